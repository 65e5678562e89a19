"""What a key of the frontmatter says, as clean text, whatever people wrote there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kbtui.knowledge.summary import plain_line
from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SINGULAR = {"tags": "tag", "aliases": "alias"}


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
    """The items of a list as they are written, for who adds to it without changing the others.

    Args:
        values: The frontmatter.
        key: ``tags``, ``aliases`` or ``related``.

    Returns:
        The key that they stand under, as Obsidian once wrote ``tag`` and ``alias``, and the items.
    """
    singular = _SINGULAR.get(key, key)
    if key not in values and singular in values:
        return singular, _items(values[singular], key)
    return key, _items(values.get(key), key)


def _items(value: Any, key: str) -> list[Any]:
    if isinstance(value, str):
        found = re.split(r"[,\s]+", value) if key == "tags" else [value]
        return [item for item in found if item.strip()]
    return list(value) if isinstance(value, list) else []
