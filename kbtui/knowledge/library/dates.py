"""Keeps `created` and `updated` true: a companion of every change.

Left as they are: adopted edits of other programs, what undo and restore bring back, the mere
repair of a link, a new name, and documents that a person keeps without frontmatter. An `updated`
that the writer set stands, and one in a form of the user's own (no ISO date) is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kbtui.errors import UnreadableError
from kbtui.history.change import RESTORED, Change
from kbtui.knowledge.entries.entry import category_of, is_entry
from kbtui.knowledge.entries.templates import TYPE_OF_FOLDER
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.frontmatter import Frontmatter
from kbtui.workspace.layout import Workspace

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?P<time>[T ]\d{2}:\d{2}(?P<seconds>:\d{2})?)?")


class DateKeeper:
    """Sets the dates of entries whose content a change alters."""

    def __init__(self, workspace: Workspace, now: Callable[[], datetime] | None = None) -> None:
        self._layout = workspace
        self._in_place = workspace.in_place
        self._now = now or (lambda: datetime.now().astimezone())

    def companion(self, change: Change) -> None:
        """Set the dates in a change that is about to be applied."""
        if change.adopted or change.origin.undoes or change.reason.startswith(RESTORED):
            return
        for path, data in list(change.edits.items()):
            if data is None or path in change.repairs:
                continue
            if not is_entry(path):
                continue
            dated = self._dated(path, data, change)
            if dated != data:
                change.replace(path, dated)

    def _dated(self, path: str, data: bytes, change: Change) -> bytes:
        matter = frontmatter.parse(data)
        if matter.problem:
            return data
        before = change.before(path)
        if before == data:
            return data
        try:
            if before is None:
                return self._new(path, data, matter, by_machine=change.actor.is_machine)
            return self._edited(data, matter, frontmatter.parse(before))
        except UnreadableError:
            return data  # a form of YAML that can't be changed in place: the date has to wait

    def _new(self, path: str, data: bytes, matter: Frontmatter, *, by_machine: bool) -> bytes:
        """Complete the dates of a new entry; a machine's gets frontmatter if it has none.

        In somebody's own folder notes say only what their owner has them say.
        """
        if self._in_place or (not matter.values and not by_machine):
            return data
        today = self._now().date()
        said = matter.values.get
        usual = {
            "type": by_machine and TYPE_OF_FOLDER.get(category_of(path).partition("/")[0]),
            "created": said("updated") or today,
            "updated": said("created") or today,
        }
        keys = {key: value for key, value in usual.items() if value and not said(key)}
        return frontmatter.set_keys(data, keys) if keys else data

    def _edited(self, data: bytes, matter: Frontmatter, before: Frontmatter) -> bytes:
        if not matter.values:
            return data
        written = matter.values.get("updated")
        if self._in_place and not written:
            return data
        if written and written != before.values.get("updated"):
            return data
        stamp = self._stamp(written)
        return data if stamp is None else frontmatter.set_keys(data, {"updated": stamp})

    def _stamp(self, written: Any) -> str | None:
        """Write the present in the form that the date had; None: it has a form of its own."""
        now = self._now()
        if not written:
            return now.date().isoformat()
        found = _ISO.match(written) if isinstance(written, str) else None
        if found is None:
            return None
        if not found["time"]:
            return now.date().isoformat() if found.end() == len(written) else None
        spec = "seconds" if found["seconds"] else "minutes"
        text = now.replace(tzinfo=None).isoformat(sep=found["time"][0], timespec=spec)
        zone = written[found.end() :]
        if zone == "Z":
            utc = now.astimezone(UTC).replace(tzinfo=None)
            return f"{utc.isoformat(sep=found['time'][0], timespec=spec)}Z"
        return text if not zone else None
