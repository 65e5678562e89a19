"""How material stands in a prompt: blocks between tags, as whoever asks writes them.

Material is other people's text, so a line of it that looks like
one of the tags is moved in by a blank and can't pass for one.
"""

from __future__ import annotations

import re

FILE, ARCHIVE, PROBLEMS, FINDINGS, CATALOGUE = "file", "archive", "problems", "findings", "index"
_TAGS = f"{FILE}|{ARCHIVE}|{PROBLEMS}|{FINDINGS}|{CATALOGUE}"
_LIKE_TAG = re.compile(rf"^(?=</?(?:{_TAGS})\b)", re.MULTILINE | re.IGNORECASE)


def as_block(tag: str, text: str, **attributes: object) -> str:
    """Write a block; attributes that are None are left out."""
    said = "".join(
        f' {name}="{_plain(str(value))}"' for name, value in attributes.items() if value is not None
    )
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    return f"<{tag}{said}>\n{_LIKE_TAG.sub(' ', whole)}</{tag}>"


def _plain(value: str) -> str:
    return " ".join(value.replace('"', "'").split())
