"""Decides which passages a remote embedding model must not see."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kbtui.workspace.layout import Workspace

if TYPE_CHECKING:
    from kbtui.search.index.chunk_rows import ChunkRow


class PrivacyFilter:
    """A predicate for passages that only models on this machine may see.

    These are in files marked private, at paths for which `is_private` holds, or in sessions for
    which `is_tainted` holds; the latter is cached until the session's log changes size.
    """

    def __init__(
        self,
        workspace: Workspace,
        is_private: Callable[[str], bool] = lambda _path: False,
        is_tainted: Callable[[str], bool] = lambda _session: False,
    ) -> None:
        self._workspace = workspace
        self._is_private = is_private
        self._is_tainted = is_tainted
        self._taint_cache: dict[str, tuple[int, bool]] = {}  # session: log size, answer

    def hides(self, row: ChunkRow) -> bool:
        """Return whether remote models must not see a passage."""
        session = row.chunk.session
        if session is not None:
            with suppress(OSError):
                size = self._workspace.place(f"sessions/{session}.jsonl").stat().st_size
                cached = self._taint_cache.get(session)
                if cached is None or cached[0] != size:
                    cached = self._taint_cache[session] = (size, self._is_tainted(session))
                return cached[1]
        return self.hides_file(row)

    def hides_file(self, row: ChunkRow) -> bool:
        """Return whether a passage is in a private file; cheap, as sessions aren't read."""
        return row.file.private or self._is_private(row.path)
