r"""Splits a document into frontmatter and body, byte for byte, and changes single keys.

The block stands between a first line ``---`` (behind a byte-order mark, if there is one) and the
next line that is ``---`` or ``...``, as Obsidian, Jekyll and pandoc write it. Joining the parts of
a split gives the very same bytes back. Reading goes through python-frontmatter with our splitter
and the hardened reader of `yaml_edit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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

_LEFT_ALONE = "The file is left as it is; edit the lines between the two `---` by hand."
_LONG = 4_096  # bytes of a block that isn't kept
_SINGULAR = {"tags": "tag", "aliases": "alias"}


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The content of a document's frontmatter; `problem` tells why it can't be read, if it can't.

    `tree` is for whoever needs positions, as offsets into the text of `Parts.head`.
    """

    values: Mapping[str, Any]
    tree: Node
    problem: str | None = None


class _Handler(YAMLHandler):  # type: ignore[misc]  # the package is skipped by mypy
    """Teaches python-frontmatter where the block ends and how to read it safely."""

    tree = Node("mapping", 0, 0, "block")
    head = ""

    def split(self, text: str) -> tuple[str, str]:
        parts = split(text.encode())
        return parts.head.decode(), parts.body.decode()

    def load(self, fm: str, **_options: object) -> Any:  # noqa: ARG002
        self.tree = read_tree(self.head)  # `fm` has lost its carriage returns
        return self.tree.plain()


def read(parts: Parts) -> Frontmatter:
    """Read the frontmatter of a split document; never raises."""
    if not parts.head.strip():
        return Frontmatter({}, _Handler.tree)
    return _read(parts.head) if len(parts.head) < _LONG else _read.__wrapped__(parts.head)


# The guards, the catalogue and the dates look in turn at all that a change writes.
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
    """Read a whole document's frontmatter; never raises."""
    return read(split(_encoded(document) if isinstance(document, str) else document))


@overload
def set_keys(document: str, changes: Mapping[str, Any]) -> str: ...
@overload
def set_keys(document: bytes, changes: Mapping[str, Any]) -> bytes: ...
def set_keys(document: str | bytes, changes: Mapping[str, Any]) -> str | bytes:
    """Set top-level keys, or remove those whose value is None; all other bytes stay.

    A document without frontmatter gets a block. Values are text, numbers, truth values, dates,
    and lists or mappings of those.

    Raises:
        UnreadableError: the frontmatter can't be read, or can't be changed without touching
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
    """Offer every value, with the top-level key above it, to `replace`; None leaves it alone.

    Raises:
        UnreadableError: the frontmatter can't be read.
    """
    if isinstance(document, str):
        return replace_scalars(_encoded(document), replace).decode("utf-8", "surrogatepass")
    return _with_head(split(document), lambda head, tree: edit_scalars(head, tree, replace))


def _encoded(document: str) -> bytes:
    return document.encode("utf-8", "surrogatepass")


def _with_head(parts: Parts, edit: Callable[[str, Node], str]) -> bytes:
    front = read(parts)
    if front.problem is not None:
        raise UnreadableError(f"The frontmatter can't be changed: {front.problem}.", _LEFT_ALONE)
    head = parts.head.decode()
    try:
        changed = edit(head, front.tree)
    except FrontmatterError as error:
        raise UnreadableError(f"The frontmatter can't be changed: {error}.", _LEFT_ALONE) from error
    return parts.join() if changed == head else parts.with_head(changed).join()


def word(values: Mapping[str, Any], key: str) -> str:
    """One line of text; empty where there is none."""
    value = values.get(key)
    return plain_line(value) if isinstance(value, str) else ""


def words(value: Any) -> tuple[str, ...]:
    """Read a list of words, or one, or lists in lists (an unquoted ``[[name]]`` is one in YAML)."""
    if isinstance(value, str):
        found = [clean_line(value)]
    elif isinstance(value, list):
        found = [each for item in value for each in words(item)]
    else:
        return ()
    return tuple(dict.fromkeys(each for each in found if each))


def tags(values: Mapping[str, Any], in_body: Iterable[str] = ()) -> tuple[str, ...]:
    """The tags of the frontmatter, written as a list or in one line, and those of the body."""
    written = [tag.strip().lstrip("#").rstrip("/") for tag in words(items(values, "tags")[1])]
    return tuple(dict.fromkeys(tag for tag in [*written, *in_body] if tag))


def items(values: Mapping[str, Any], key: str) -> tuple[str, list[Any]]:
    """The items of ``tags``, ``aliases`` or ``related`` as they are written.

    Beside them the key that they stand under, as Obsidian once wrote ``tag`` and ``alias``.
    """
    singular = _SINGULAR.get(key, key)
    if key not in values and singular in values:
        return singular, _items(values[singular], key)
    return key, _items(values.get(key), key)


def with_items(values: Mapping[str, Any], key: str, items: list[Any]) -> list[Any] | str:
    """The new value of a list by the key that `items` gave: tags in a line stay so, if they can."""
    written = values.get(key)
    if key not in {"tags", "tag"} or not isinstance(written, str) or not items:
        return items
    before = _items(written, "tags")
    between = re.search(r"[,\s]+", written.strip())
    gap = between.group() if between else ", "
    if "\n" in gap or any(re.search(r"[,\s]", str(item)) for item in items):
        return items
    hashed = bool(before) and all(item.startswith("#") for item in before)
    return gap.join(f"#{item}" if hashed and item[:1] != "#" else str(item) for item in items)


def with_more(values: Mapping[str, Any], key: str, more: Iterable[str]) -> dict[str, Any]:
    """The change that adds to ``tags``, ``aliases`` or ``related`` what they don't hold yet."""
    place, held = items(values, key)
    known = {_bare(word) for word in words(held)}
    fresh = [each for each in dict.fromkeys(more) if _bare(each) and _bare(each) not in known]
    return {place: with_items(values, place, [*held, *fresh])} if fresh else {}


def _bare(item: str) -> str:
    return item.strip("#[]").casefold()


def _items(value: Any, key: str) -> list[Any]:
    if isinstance(value, str):
        found = re.split(r"[,\s]+", value) if key == "tags" else [value]
        return [item for item in found if item.strip()]
    return list(value) if isinstance(value, list) else []
