"""How material stands in a prompt: blocks between tags, as whoever asks writes them.

The offline model reads them back. Material is other people's text, so a line of it that looks like
one of the tags is moved in by a blank and can't pass for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE, ARCHIVE, PROBLEMS, FINDINGS, CATALOGUE = "file", "archive", "problems", "findings", "index"
_TAGS = f"{FILE}|{ARCHIVE}|{PROBLEMS}|{FINDINGS}|{CATALOGUE}"
_LIKE_TAG = re.compile(rf"^(?=</?(?:{_TAGS})\b)", re.MULTILINE | re.IGNORECASE)
_BLOCK = re.compile(
    rf"^<(?P<tag>{_TAGS})(?P<attributes>(?: \w+=\"[^\"\n]*\")*)>\n(?P<text>.*?)^</(?P=tag)>$",
    re.MULTILINE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r" (\w+)=\"([^\"\n]*)\"")


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of material: what it is, what is said about it, and its text."""

    tag: str
    text: str
    attributes: Mapping[str, str] = field(default_factory=dict)


def as_block(tag: str, text: str, **attributes: object) -> str:
    """Write a block; attributes that are None are left out."""
    said = "".join(
        f' {name}="{_plain(str(value))}"' for name, value in attributes.items() if value is not None
    )
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    return f"<{tag}{said}>\n{_LIKE_TAG.sub(' ', whole)}</{tag}>"


def blocks_in(prompt: str) -> Iterator[Block]:
    """The blocks of a prompt, in order."""
    for match in _BLOCK.finditer(prompt):
        yield Block(match["tag"], match["text"], dict(_ATTRIBUTE.findall(match["attributes"])))


def _plain(value: str) -> str:
    return " ".join(value.replace('"', "'").split())
