"""A workspace of Dendron's: where its vaults lie, and how links name a note in one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.links import IN_VAULT

SETTINGS = "dendron.yml"
FILES = (SETTINGS, ".root", "root.schema.yml")
_ROOT = "knowledge/"
_MOST_BYTES = 1 << 20
_ABOVE = 3


@dataclass(frozen=True, slots=True)
class Dendron:
    """A workspace of Dendron's, or a vault of one.

    `vaults` has the folder of each vault, from the entries on, by its casefolded name; None: it
    lies elsewhere. `top` is the folder of the workspace, which may be above; `daily` how the names
    of its notes of days begin, and what follows as a pattern of luxon's.
    """

    vaults: Mapping[str, str | None] = field(default_factory=dict)
    top: Path | None = None
    daily: tuple[str, str] = ("daily.journal.", "y.MM.dd")
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> list[str]:
        """The folders of the vaults that are here, in their order."""
        return [folder for folder in self.vaults.values() if folder is not None]

    def has(self, vault: str, path: str) -> bool:
        """True if an entry lies in a vault; of one that nobody knows, in a folder of its name."""
        vault = vault.casefold()
        if vault not in self.vaults:
            return f"/{vault}/" in f"/{path.casefold()}"
        folder = self.vaults[vault]
        return folder is not None and path.startswith(f"{_ROOT}{folder}/" if folder else _ROOT)

    def address(self, path: str, slug: str) -> str | None:
        """How a link names an entry with its vault; None where it lies in none."""
        inner = [vault for vault, folder in self.vaults.items() if folder and self.has(vault, path)]
        around = [vault for vault, folder in self.vaults.items() if folder == ""]
        found = max(inner, key=lambda vault: len(self.vaults[vault] or ""), default=None)
        vault = found or next(iter(around), None)
        return None if vault is None else f"{IN_VAULT}{self.names.get(vault, vault)}/{slug}"


def dendron_at(root: Path) -> Dendron | None:
    """Read what a folder is to Dendron: a workspace, a vault of one, or (None) neither."""
    settings = next(
        (above for above in (root, *root.parents[:_ABOVE]) if (above / SETTINGS).is_file()), None
    )
    has_files = any((root / name).is_file() for name in FILES)
    if settings is None:
        return Dendron() if has_files else None
    values = _values(settings / SETTINGS)
    vaults: dict[str, str | None] = {}
    names: dict[str, str] = {}
    for name, place in _vaults(values):
        names[name.casefold()] = name
        vaults[name.casefold()] = _below(root, settings / place)
    known = Dendron(vaults, settings, _daily(values), names)
    return known if settings == root or known.folders or has_files else None


def _values(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MOST_BYTES)
    except OSError:
        return {}
    return frontmatter.parse(b"---\n" + text.removeprefix(b"\xef\xbb\xbf") + b"\n---\n").values


def _vaults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and place of each vault, as newer and older settings have them."""
    listed = _table(values, "workspace").get("vaults") or values.get("vaults")
    for vault in listed if isinstance(listed, list) else []:
        place = vault.get("fsPath") if isinstance(vault, dict) else None
        if isinstance(place, str) and place:
            place = os.path.normpath(place)
            yield str(vault.get("name") or os.path.basename(place)), place  # noqa: PTH119


def _daily(values: Mapping[str, Any]) -> tuple[str, str]:
    journal = _table(_table(values, "workspace"), "journal") or _table(values, "journal")
    domain = str(journal.get("dailyDomain") or "daily")
    name = str(journal.get("name") or "journal")
    return f"{domain}.{name}.", str(journal.get("dateFormat") or "y.MM.dd")


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _below(root: Path, folder: Path) -> str | None:
    """A vault's folder from the root on; empty if the root lies in it, None if it is elsewhere."""
    folder = Path(os.path.normpath(folder))
    if root.is_relative_to(folder):
        return ""
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else None
