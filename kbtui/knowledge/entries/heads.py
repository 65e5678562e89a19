"""A head that a person gives with the text of a new entry, joined with the one it gets."""

from __future__ import annotations

import re
from typing import Any

from kbtui.errors import UsageError
from kbtui.knowledge.format import frontmatter

_OF_IMPORTS = "imported"
_LISTS = ("tags", "aliases", "related", "sources")
_KEY = re.compile(rb"^[^\s:#-][^:\n]*:(?:\s|$)", re.MULTILINE)


def split_head(text: str) -> tuple[str, str]:
    """Split a text into the head that it begins with, without its marks, and the rest.

    Lines between two rules without any key are text.

    Raises:
        UsageError: The head can't be read.
    """
    parts = frontmatter.split(text.encode("utf-8", "surrogatepass"))
    if not _KEY.search(parts.head):
        return "", text
    if problem := frontmatter.read(parts).problem:
        raise UsageError(
            f"The text begins with a head that can't be read: {problem}.",
            "Put that line right, or write an empty line above the first `---`.",
        )
    body = parts.body.decode("utf-8", "surrogatepass")
    return parts.head.decode("utf-8", "surrogatepass"), body


def with_head(text: str, head: str, title: str, *, private: bool) -> str:
    """Return a new entry that begins with `head`; what kbtui keeps itself is as in `text`.

    That is its title, type and dates. Of tags and other lists all items are kept. If `private`, it
    says so, whatever the head says.
    """
    changes: dict[str, Any] = {"private": True} if private else {}
    if not head:
        return frontmatter.set_keys(text, changes) if changes else text
    made = frontmatter.parse(text).values
    whole = (
        f"---\n{head}{'' if head.endswith(chr(10)) else chr(10)}---\n{frontmatter.body_of(text)}"
    )
    given = frontmatter.parse(whole).values
    changes |= {key: value for key, value in made.items() if key not in _LISTS}
    changes |= {key: value for key, value in made.items() if key in _LISTS and key not in given}
    for key in _LISTS:
        changes |= frontmatter.with_more(given, key, made.get(key) or ()) if key in made else {}
    changes |= {key: None for key in (_OF_IMPORTS,) if key in given}
    if "title" in given:
        changes["title"] = title
    return frontmatter.set_keys(whole, changes)
