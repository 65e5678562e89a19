"""Path conflicts: a file and a folder of the same name can't coexist, so the file is renamed."""

from __future__ import annotations

from collections.abc import Iterable

from kbtui.workspace.layout import folders_of, with_end


def resolve_path_conflicts(paths: Iterable[str]) -> dict[str, str]:
    """Return new names for files whose name other `paths` need for a folder, by the old names."""
    every = set(paths)
    folders = {folder for path in every for folder in folders_of(path)}
    taken = {path.casefold() for path in every | folders}
    found: dict[str, str] = {}
    for path in sorted(every & folders):
        folder, _, name = path.rpartition("/")
        number = 2
        while (new := f"{folder}/{with_end(name, f'-{number}')}").casefold() in taken:
            number += 1
        taken.add(new.casefold())
        found[path] = new
    return found
