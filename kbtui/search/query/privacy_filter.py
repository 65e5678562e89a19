"""What an embedding model elsewhere must not see."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kbtui.workspace.layout import Workspace

if TYPE_CHECKING:
    from kbtui.search.index.chunk_rows import ChunkRow


class Withheld:
    """Says of passages whether only models on this machine may see them.

    Besides the files that say so themselves those are the paths that `is_private` names, and the
    sessions that `is_tainted`, as long as their logs don't grow.
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
        self._taint_cache: dict[
            str, tuple[int, bool]
        ] = {}  # by session: the size of its log, the answer

    def is_withheld(self, row: ChunkRow) -> bool:
        """True if a model elsewhere must not see a passage."""
        session = row.chunk.session
        if session is not None:
            with suppress(OSError):
                size = self._workspace.place(f"sessions/{session}.jsonl").stat().st_size
                known = self._taint_cache.get(session)
                if known is None or known[0] != size:
                    known = self._taint_cache[session] = (size, self._is_tainted(session))
                return known[1]
        return self.hides_file(row)

    def hides_file(self, row: ChunkRow) -> bool:
        """True if a passage stands in such a file, which costs nothing to say."""
        return row.file.private or self._is_private(row.path)
