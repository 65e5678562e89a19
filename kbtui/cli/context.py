"""The workspace that was named, opened for a command."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from kbtui.knowledge_base import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command works; `named` is None when nobody said so."""

    named: Path | None = None

    @contextmanager
    def opened(self, overrides: Mapping[str, Any] | None = None) -> Iterator[KnowledgeBase]:
        """Open the knowledge base for the block; what it has to say goes to standard error.

        Without a named workspace the nearest or the user's own one is opened, and made when it
        isn't there yet.
        """
        kb = self.open(overrides)
        try:
            for notice in kb.notices:
                note(f"kbtui: {notice}")
            yield kb
        finally:
            kb.close()

    def open(self, overrides: Mapping[str, Any] | None = None) -> KnowledgeBase:
        """Open the knowledge base, as `opened` does, for somebody who closes it."""
        from kbtui.knowledge_base import KnowledgeBase

        return KnowledgeBase.open(self.named, create=self.named is None, overrides=overrides)

    def check(self) -> None:
        """See that there is something to open, at little cost.

        Raises:
            WorkspaceError: there isn't.
        """
        from kbtui.workspace.opening import find_workspace, is_to_be, open_workspace

        root = find_workspace(self.named)
        if self.named is not None and not is_to_be(root):
            open_workspace(root)


pass_place = click.make_pass_decorator(Place, ensure=True)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
