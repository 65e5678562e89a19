"""A folder of notes as Obsidian reads it: which links lead nowhere there, which properties it can't show.

Its rules, as its documentation and its API have them: a link names the end of a path, whatever its
case, first a file beside the note and then the one with the shortest path; a title or an alias is no
name. ``#Heading`` is compared without punctuation, ``#^block`` as it is. Folders and files that
begin with a dot aren't there.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import yaml

from kbtui.knowledge.format.body import split
from kbtui.knowledge.format.document import read
from kbtui.knowledge.format.links import links_in_body

_PUNCTUATION = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\]")
_HEADING = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*|([^\s#>|-].*)\n {0,3}(?:=+|-+)[ \t]*)$",
    re.MULTILINE,
)
_BLOCK = re.compile(r"(?:^|\s)\^([\w-]+)[ \t]*$", re.MULTILINE)
_REFUSED = re.compile(r"[\\:#^\[\]|]")
_SCALARS = (str, int, float, bool, type(None), dt.date, dt.datetime)


@dataclass(frozen=True)
class Vault:
    """The files below a folder that Obsidian knows."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)  # folded path -> path
    named: dict[str, list[str]] = field(default_factory=dict)  # folded name -> paths

    @classmethod
    def at(cls, root: Path) -> Vault:
        """Look through a folder."""
        vault = cls(root)
        for file in sorted(root.rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.is_file() and not any(part.startswith(".") for part in path.split("/")):
                vault.files[_key(path)] = path
                vault.named.setdefault(_key(file.name), []).append(path)
        return vault

    def notes(self) -> list[str]:
        """The paths of the notes."""
        return [path for path in self.files.values() if path.endswith(".md")]

    def leads_to(self, target: str, source: str) -> str | None:
        """The file that a link's path names in a note."""
        for wanted in (f"{target}.md", target):
            if found := self._at(_key(wanted), source):
                return found
        return None

    def _at(self, key: str, source: str) -> str | None:
        folder = posixpath.dirname(source)
        if key.startswith(("./", "../")):
            return self.files.get(posixpath.normpath(posixpath.join(_key(folder), key)))
        key = key.removeprefix("/")
        if found := self.files.get(key):
            return found
        ends = self.named.get(key.rpartition("/")[2], ())
        ends = [path for path in ends if f"/{_key(path)}".endswith(f"/{key}")]
        near = [path for path in ends if posixpath.dirname(path) == folder]
        return min(near or ends, key=lambda path: (path.count("/"), len(path)), default=None)

    def broken(self) -> Iterator[tuple[str, str]]:
        """The links that lead nowhere: the note, and what it says."""
        for path in self.notes():
            body = split((self.root / path).read_bytes()).body.decode("utf-8", "replace")
            for placed in links_in_body(body):
                link = placed.link
                target = unquote(link.target) if link.kind == "markdown" else link.target
                found = self.leads_to(target, path) if target else path
                if found is None or not self._has(found, link.heading):
                    yield path, body[placed.start : placed.end]

    def _has(self, path: str, heading: str | None) -> bool:
        """True if a note has a heading or block; of other files anything may be said."""
        if not heading or not path.endswith(".md"):
            return True
        text = (self.root / path).read_text("utf-8", "replace")
        if "^" in heading:
            return heading.rpartition("^")[2].lower() in map(str.lower, _BLOCK.findall(text))
        code = read(text).code
        there = {
            _plain(match[1] or match[2])
            for match in _HEADING.finditer(text)
            if match.start() not in code
        }
        return all(_plain(unquote(each)) in there for each in heading.split("#") if each)

    def bad_properties(self) -> Iterator[tuple[str, str]]:
        """The properties that Obsidian can't show: the note, and why."""
        for path in self.notes():
            parts = split((self.root / path).read_bytes())
            try:
                values: Any = yaml.safe_load(parts.head.decode())
            except (UnicodeDecodeError, yaml.YAMLError) as error:
                yield path, f"no YAML: {error}"
                continue
            if values is not None and not isinstance(values, dict):
                yield path, "no properties"
                continue
            for key, value in (values or {}).items():
                items = value if isinstance(value, list) else [value]
                if not all(isinstance(item, _SCALARS) for item in items):
                    yield path, f"{key} holds more than words, numbers and lists of them"
                if key in ("tags", "aliases") and not isinstance(value, (list, str, type(None))):
                    yield path, f"{key} is no list"

    def bad_names(self) -> list[str]:
        """The files that no link can name."""
        return [path for path in self.files.values() if _REFUSED.search(path)]


def _plain(heading: str) -> str:
    return " ".join(_PUNCTUATION.sub(" ", heading).split()).casefold()


def _key(path: str) -> str:
    return normalize("NFC", path).casefold()
