"""The folder of the inbox: one file for each proposal, and a list of what was rejected."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.memory.inbox.proposal import Proposal, as_json, from_json
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.layout import MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from kbtui.workspace.layout import Workspace

_FOLDER = f"{MACHINE}/inbox"
_REJECTED = f"{_FOLDER}/rejected.jsonl"
_SUFFIX = ".json"


class InboxStore:
    """Reads and writes the proposals of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def list(self) -> list[Proposal]:
        """All proposals that wait, the oldest first."""
        found = (_load(file) for file in self._files())
        return sorted(
            (proposal for proposal in found if proposal is not None),
            key=lambda proposal: (proposal.created, proposal.id),
        )

    def get(self, ref: str) -> Proposal:
        """One proposal by its id or the unique beginning of it; raises as `Inbox.get`."""
        wanted = ref.strip().lower()
        found = [proposal for proposal in self.list() if wanted and proposal.id.startswith(wanted)]
        if not found:
            raise NotFoundError(
                f"There is no proposal {ref!r}.", "`kbtui inbox` lists those that wait."
            )
        if len(found) > 1:
            ids = ", ".join(proposal.id for proposal in found)
            raise UsageError(f"{ref!r} could be {ids}.", "Say more of it.")
        return found[0]

    def put(self, proposal: Proposal) -> None:
        """Store a proposal, whole, for nobody else to read."""
        text = json.dumps(as_json(proposal), ensure_ascii=False, indent=1)
        data = text.encode("utf-8", "replace")
        files.write_machine_file(self._root, _path(proposal.id), data)

    def remove(self, proposal: Proposal) -> None:
        """Remove a proposal; one that is gone already is fine."""
        with storage_errors(f"Can't remove the proposal {proposal.id}"):
            (self._root / _path(proposal.id)).unlink(missing_ok=True)

    def free_id(self) -> str:
        """An id that nothing has yet, short enough to type."""
        while True:
            new = secrets.token_hex(3)
            if not (self._root / _path(new)).exists():
                return new

    def problems(self) -> tuple[str, ...]:
        """Files that can't be read; they stay there."""
        broken = (file.name for file in self._files() if _load(file) is None)
        return tuple(f"{_FOLDER}/{name}" for name in broken)

    def note_rejection(self, record: Mapping[str, object]) -> None:
        """Remember what was put away."""
        append_line(self._root / _REJECTED, record)

    def rejections(self) -> frozenset[str]:
        """The fingerprints of what was put away: of whole changes (``change``), and places."""
        found: set[str] = set()
        for record in read_lines(self._root / _REJECTED).records:
            places = record.get("places")
            prints = [record.get("change"), *(places if isinstance(places, list) else ())]
            found.update(each for each in prints if isinstance(each, str))
        return frozenset(found)

    def stamp(self) -> int:
        """Changes whenever a proposal came or went, in whichever process."""
        try:
            return (self._root / _FOLDER).stat().st_mtime_ns
        except OSError:
            return 0

    def _files(self) -> Iterable[Path]:
        folder = self._root / _FOLDER
        return sorted(file for file in folder.glob(f"[!.]*{_SUFFIX}") if file.is_file())


def _load(file: Path) -> Proposal | None:
    try:
        return from_json(json.loads(file.read_bytes()), file.name.removesuffix(_SUFFIX))
    except (OSError, KbtuiError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _path(proposal_id: str) -> str:
    return f"{_FOLDER}/{proposal_id}{_SUFFIX}"
