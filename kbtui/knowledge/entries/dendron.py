"""Dendron workspaces: where their vaults are, and how links address notes in them."""

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
_MAX_BYTES = 1 << 20
_MAX_PARENTS = 3


@dataclass(frozen=True, slots=True)
class Dendron:
    """A Dendron workspace, or a vault of one.

    `vaults` maps casefolded names to folders relative to the entries; None means that a vault is
    elsewhere. `top` is the folder of the Dendron workspace, possibly a parent; `daily` is the
    prefix of daily note names and the luxon pattern of the rest; `names` has the spelling of vault
    names.
    """

    vaults: Mapping[str, str | None] = field(default_factory=dict)
    top: Path | None = None
    daily: tuple[str, str] = ("daily.journal.", "y.MM.dd")
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> list[str]:
        """The folders of the vaults that are here, in order."""
        return [folder for folder in self.vaults.values() if folder is not None]

    def has(self, vault: str, path: str) -> bool:
        """Return whether an entry is in a vault; for unknown ones, in a folder of that name."""
        vault = vault.casefold()
        if vault not in self.vaults:
            return f"/{vault}/" in f"/{path.casefold()}"
        folder = self.vaults[vault]
        return folder is not None and path.startswith(f"{_ROOT}{folder}/" if folder else _ROOT)

    def address(self, path: str, slug: str) -> str | None:
        """Return the link address of an entry with its vault; None if it is in none."""
        inner = [vault for vault, folder in self.vaults.items() if folder and self.has(vault, path)]
        around = [vault for vault, folder in self.vaults.items() if folder == ""]
        found = max(inner, key=lambda vault: len(self.vaults[vault] or ""), default=None)
        vault = found or next(iter(around), None)
        return None if vault is None else f"{IN_VAULT}{self.names.get(vault, vault)}/{slug}"


def dendron_at(root: Path) -> Dendron | None:
    """Detect whether a folder is a Dendron workspace or a vault of one; None if neither."""
    settings = next(
        (above for above in (root, *root.parents[:_MAX_PARENTS]) if (above / SETTINGS).is_file()),
        None,
    )
    has_files = any((root / name).is_file() for name in FILES)
    if settings is None:
        return Dendron() if has_files else None
    values = _values(settings / SETTINGS)
    vaults: dict[str, str | None] = {}
    names: dict[str, str] = {}
    for name, place in _vaults(values):
        names[name.casefold()] = name
        vaults[name.casefold()] = _vault_folder(root, settings / place)
    known = Dendron(vaults, settings, _daily(values), names)
    return known if settings == root or known.folders or has_files else None


def _values(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_BYTES)
    except OSError:
        return {}
    return frontmatter.parse(b"---\n" + text.removeprefix(b"\xef\xbb\xbf") + b"\n---\n").values


def _vaults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and folder of each vault, from newer or older settings."""
    listed = table(values, "workspace").get("vaults") or values.get("vaults")
    for vault in listed if isinstance(listed, list) else []:
        place = vault.get("fsPath") if isinstance(vault, dict) else None
        if isinstance(place, str) and place:
            place = os.path.normpath(place)
            yield str(vault.get("name") or os.path.basename(place)), place  # noqa: PTH119


def _daily(values: Mapping[str, Any]) -> tuple[str, str]:
    journal = table(table(values, "workspace"), "journal") or table(values, "journal")
    domain = str(journal.get("dailyDomain") or "daily")
    name = str(journal.get("name") or "journal")
    return f"{domain}.{name}.", str(journal.get("dateFormat") or "y.MM.dd")


def table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table under a key of a program's settings; an empty one for anything else."""
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _vault_folder(root: Path, folder: Path) -> str | None:
    """Return a vault's folder relative to root; empty if root is in it, None if elsewhere."""
    folder = Path(os.path.normpath(folder))
    if root.is_relative_to(folder):
        return ""
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else None
