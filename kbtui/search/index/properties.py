"""What the frontmatter of a Markdown file says to a search: title, type, tags, dates.

Reads as `kbtui.knowledge.entry` does, but only what is searched, as it runs over every file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRUE = frozenset({"true", "yes", "on", "1"})
_LOOKS_PRIVATE = re.compile(
    r"^\s*private\s*:\s*[\"']?(?:true|yes|on|1)\b", re.IGNORECASE | re.MULTILINE
)
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_DATED_NAME = re.compile(r"(\d{4}-\d{2}(?:-\d{2})?)(?!\d)")
# Said elsewhere in the index, or of no use to somebody who searches.
_NOT_EXTRA = frozenset(
    {"title", "type", "tags", "tag", "aliases", "alias", "created", "updated", "related", "id"}
    | {"private", "uid", "cssclass", "cssclasses", "publish", "permalink"}
)


@dataclass(frozen=True, slots=True)
class Properties:
    """The searched properties; `extra` is the text of all the others, `body` starts at `offset`.

    `offset` counts characters of the decoded text, behind a byte-order mark.
    """

    title: str = ""
    type: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    created: str = ""
    updated: str = ""
    private: bool = False
    extra: str = ""
    offset: int = 0


def read_properties(path: str, text: str) -> Properties:
    """Read the properties of a Markdown file; never raises, whatever it holds."""
    from kbtui.knowledge import frontmatter, summary
    from kbtui.knowledge.values import tags, word, words

    head = ""
    values: Mapping[str, Any] = {}
    body, offset = text, 0
    if text.startswith("---"):
        parts = frontmatter.split(text.encode("utf-8", "surrogatepass"))
        matter = frontmatter.read(parts)
        values, head = matter.values, parts.head.decode("utf-8", "surrogatepass")
        body = parts.body.decode("utf-8", "surrogatepass")
        offset = len(text) - len(body)
    return Properties(
        title=word(values, "title") or summary.heading_of(body) or _stem(path),
        type=word(values, "type") or _type_of_folder(path),
        tags=tags(values, summary.tags_in_body(body)),
        aliases=words(values.get("aliases", values.get("alias"))),
        created=_date(word(values, "created") or word(values, "date")) or _date_in_name(path),
        updated=_date(word(values, "updated") or word(values, "modified")),
        # In doubt private: what can't be read may say so.
        private=word(values, "private").lower() in _TRUE or bool(_LOOKS_PRIVATE.search(head)),
        extra=" ".join(_extra(values)) if values else head,
        offset=offset,
    )


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _type_of_folder(path: str) -> str:
    if not path.startswith("knowledge/"):
        return ""
    from kbtui.knowledge.templates import TYPE_OF_FOLDER

    return TYPE_OF_FOLDER.get(path.split("/")[1], "")


def _date(text: str) -> str:
    match = _DATE.match(text)
    return match[0] if match else ""


def _date_in_name(path: str) -> str:
    """The day that a file is named after, as the notes of a day are."""
    match = _DATED_NAME.match(_stem(path))
    return match[1] if match else ""


def _extra(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if key not in _NOT_EXTRA:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from _texts(child)
    elif isinstance(value, list):
        for child in value:
            yield from _texts(child)
