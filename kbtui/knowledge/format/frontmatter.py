r"""Splitting of documents into frontmatter and body without loss, and edits of single keys.

The block is between a first line ``---`` (after an optional byte-order mark) and the next line that
is ``---`` or ``...``, as in Obsidian, Jekyll and pandoc. Joining the parts of a split returns the
same bytes. Parsing goes through python-frontmatter with our splitter and the hardened YAML reader
of `yaml_edit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, overload

import frontmatter
from frontmatter.default_handlers import YAMLHandler

from kbtui.errors import UnreadableError
from kbtui.knowledge.format.body import (
    Parts as Parts,
    body_of as body_of,
    plain_line,
    split as split,
)
from kbtui.knowledge.format.yaml_edit import (
    FrontmatterError,
    Node,
    edit_keys,
    edit_scalars,
    read_tree,
    value_text as value_text,
)
from kbtui.text import clean_line

_EDIT_HINT = "The file is left as it is; edit the lines between the two `---` by hand."
_CACHE_LIMIT = 4_096  # bytes; larger blocks aren't cached
_SINGULAR = {"tags": "tag", "aliases": "alias"}
_DAY = re.compile(
    r"(\d{4})(?:-(\d\d?)-(\d\d?)|/(\d\d?)/(\d\d?)|(\d\d)(\d\d))(?=[T ]\d|\Z)", re.ASCII
)
_NULLS = frozenset({"null", "Null", "NULL", "~"})


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The parsed frontmatter of a document; `problem` says why it couldn't be parsed, if so.

    `tree` has positions, as offsets into the text of `Parts.head`.
    """

    values: Mapping[str, Any]
    tree: Node
    problem: str | None = None


class _Handler(YAMLHandler):  # type: ignore[misc]  # the package is skipped by mypy
    """A python-frontmatter handler with our splitter and a safe YAML reader."""

    tree = Node("mapping", 0, 0, "block")
    head = ""

    def split(self, text: str) -> tuple[str, str]:  # noqa: ARG002
        return self.head, ""  # the document was split before

    def load(self, fm: str, **_options: object) -> Any:  # noqa: ARG002
        self.tree = read_tree(self.head)  # `fm` has lost its carriage returns
        return self.tree.plain()


def read(parts: Parts) -> Frontmatter:
    """Parse the frontmatter of a split document; never raises."""
    if not parts.head.strip():
        return Frontmatter({}, _Handler.tree)
    return _read(parts.head) if len(parts.head) < _CACHE_LIMIT else _read.__wrapped__(parts.head)


# The checks, the catalogue and the dates each parse everything a change writes.
@lru_cache(maxsize=512)
def _read(head: bytes) -> Frontmatter:
    handler = _Handler()
    try:
        handler.head = head.decode()
        values, _body = frontmatter.parse(f"---\n{handler.head}---\n", handler=handler)
    except UnicodeDecodeError:
        return Frontmatter({}, _Handler.tree, "it isn't valid UTF-8")
    except FrontmatterError as error:
        return Frontmatter({}, _Handler.tree, str(error))
    return Frontmatter(values, handler.tree)


def parse(document: str | bytes) -> Frontmatter:
    """Parse the frontmatter of a whole document; never raises."""
    return read(split(_encoded(document) if isinstance(document, str) else document))


@overload
def set_keys(document: str, changes: Mapping[str, Any]) -> str: ...
@overload
def set_keys(document: bytes, changes: Mapping[str, Any]) -> bytes: ...
def set_keys(document: str | bytes, changes: Mapping[str, Any]) -> str | bytes:
    """Set top-level keys, removing those whose value is None; all other bytes stay.

    A document without frontmatter gets a block. Values are text, numbers, booleans, dates, and
    lists or mappings of those.

    Raises:
        UnreadableError: the frontmatter can't be parsed, or can't be changed without touching
            other keys; the document must then be left alone.
    """
    if isinstance(document, str):
        return set_keys(_encoded(document), changes).decode("utf-8", "surrogatepass")
    parts = split(document)
    return _with_head(parts, lambda head, tree: edit_keys(head, tree, changes, parts.newline))


@overload
def replace_scalars(document: str, replace: Callable[[str, str], str | None]) -> str: ...
@overload
def replace_scalars(document: bytes, replace: Callable[[str, str], str | None]) -> bytes: ...
def replace_scalars(
    document: str | bytes, replace: Callable[[str, str], str | None]
) -> str | bytes:
    """Replace every scalar by ``replace(top_level_key, value)``; None leaves it unchanged.

    Raises:
        UnreadableError: the frontmatter can't be parsed.
    """
    if isinstance(document, str):
        return replace_scalars(_encoded(document), replace).decode("utf-8", "surrogatepass")
    return _with_head(split(document), lambda head, tree: edit_scalars(head, tree, replace))


def _encoded(document: str) -> bytes:
    return document.encode("utf-8", "surrogatepass")


def _with_head(parts: Parts, edit: Callable[[str, Node], str]) -> bytes:
    front = read(parts)
    if front.problem is not None:
        raise UnreadableError(f"The frontmatter can't be changed: {front.problem}.", _EDIT_HINT)
    head = parts.head.decode()
    try:
        changed = edit(head, front.tree)
    except FrontmatterError as error:
        raise UnreadableError(f"The frontmatter can't be changed: {error}.", _EDIT_HINT) from error
    if changed == head:
        return parts.join()
    whole = parts.with_head(changed).join()
    if split(whole).body != parts.body:
        raise UnreadableError(
            "The frontmatter can't be changed: it would end elsewhere.", _EDIT_HINT
        )
    return whole


def word(values: Mapping[str, Any], key: str) -> str:
    """Return the value of a key as one line of text; empty if it isn't text."""
    value = values.get(key)
    return plain_line(value) if isinstance(value, str) else ""


def day_word(values: Mapping[str, Any], key: str) -> str:
    """Return the value of a key that holds a date, its day in ISO 8601 where that can be told.

    People and programs also write ``2026-1-5``, ``2026/1/5`` and ``20260105``. That these are dates
    only the key tells: the same digits are an id or a number elsewhere.
    """
    value = word(values, key)
    found = _DAY.match(value)
    parts = [int(part) for part in found.groups() if part] if found else []
    try:
        return date(*parts).isoformat() + value[found.end() :] if found else value
    except ValueError:
        return value


def words(value: Any) -> tuple[str, ...]:
    """Flatten a word, a list, or nested lists (YAML's reading of ``[[name]]``) into words."""
    if isinstance(value, str):
        found = [clean_line(value)]
    elif isinstance(value, list):
        found = [each for item in value for each in words(item)]
    else:
        return ()
    return tuple(dict.fromkeys(each for each in found if each))


def tags(values: Mapping[str, Any], in_body: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the tags of the frontmatter, a list or one line, followed by those of the body."""
    written = [tag.strip().lstrip("#").rstrip("/") for tag in words(items(values, "tags")[1])]
    return tuple(dict.fromkeys(tag for tag in [*written, *in_body] if tag))


def items(values: Mapping[str, Any], key: str) -> tuple[str, list[Any]]:
    """Return the items of ``tags``, ``aliases`` or ``related`` as written, after their key.

    The key may be the singular, as Obsidian once wrote ``tag`` and ``alias``.
    """
    singular = _SINGULAR.get(key, key)
    if key not in values and singular in values:
        return singular, _as_items(values[singular], key)
    return key, _as_items(values.get(key), key)


def with_items(values: Mapping[str, Any], key: str, items: list[Any]) -> list[Any] | str:
    """Return the value to write for `items`; tags written in one line stay so if possible."""
    written = values.get(key)
    if key not in {"tags", "tag"} or not isinstance(written, str) or not items:
        return items
    if written in _NULLS:
        return items
    before = _as_items(written, "tags")
    between = re.search(r"[,\s]+", written.strip())
    gap = between.group() if between else ", "
    if "\n" in gap or any(re.search(r"[,\s]", str(item)) for item in items):
        return items
    hashed = bool(before) and all(item.startswith("#") for item in before)
    return gap.join(f"#{item}" if hashed and item[:1] != "#" else str(item) for item in items)


def with_more(values: Mapping[str, Any], key: str, more: Iterable[str]) -> dict[str, Any]:
    """Return the key change that adds missing items to ``tags``, ``aliases`` or ``related``."""
    place, held = items(values, key)
    if not isinstance(values.get(place), str | list | None):
        return {}  # the user's own format must not be replaced
    known = {_folded_item(word) for word in words(held)}
    fresh = [
        each
        for each in dict.fromkeys(more)
        if _folded_item(each) and _folded_item(each) not in known
    ]
    return {place: with_items(values, place, [*held, *fresh])} if fresh else {}


def _folded_item(item: str) -> str:
    return item.strip("[]").lstrip("#").casefold()  # C# is no C


def _as_items(value: Any, key: str) -> list[Any]:
    if isinstance(value, str) and value not in _NULLS:
        found = re.split(r"[,\s]+", value) if key == "tags" else [value]
        return [item for item in found if item.strip()]
    return list(value) if isinstance(value, list) else []
