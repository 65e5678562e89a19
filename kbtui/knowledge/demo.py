"""The example that ``kbtui init --demo`` makes: a dozen entries, linked as real ones are."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from kbtui.history.objects.commit import Actor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from kbtui.history.history import History
    from kbtui.history.objects.commit import Commit


def plant(history: History) -> Commit | None:
    """Write the example's entries, in one change that can be undone; None: all are there."""
    with history.change(Actor.YOU, "a small example to look around in") as change:
        for path, data in sorted(_entries(resources.files("kbtui.knowledge") / "example", "")):
            if change.read(path) is None:
                change.write(path, data, expecting=None)
    return change.result


def _entries(folder: Traversable, below: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _entries(item, f"{below}{item.name}/")
        elif item.name.endswith(".md"):
            yield f"knowledge/{below}{item.name}", item.read_bytes()
