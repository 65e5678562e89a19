"""What the frontmatter of a Markdown file says to a search: title, type, tags, dates.

Reads as `kbtui.knowledge.entry` does, but only what is searched, as it runs over every file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbtui.text import clean_line

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
        title=_word(values, "title") or summary.heading_of(body) or _stem(path),
        type=_word(values, "type") or _type_of_folder(path),
        tags=_tags(values, summary.tags_in_body(body)),
        aliases=_words(values.get("aliases", values.get("alias"))),
        created=_date(_word(values, "created") or _word(values, "date")) or _date_in_name(path),
        updated=_date(_word(values, "updated") or _word(values, "modified")),
        # In doubt private: what can't be read may say so.
        private=_word(values, "private").lower() in _TRUE or bool(_LOOKS_PRIVATE.search(head)),
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


def _word(values: Mapping[str, Any], key: str) -> str:
    from kbtui.knowledge.summary import plain_line

    value = values.get(key)
    return plain_line(value) if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        found = [clean_line(value)]
    elif isinstance(value, list):
        found = [word for item in value for word in _words(item)]
    else:
        return ()
    return tuple(dict.fromkeys(word for word in found if word))


def _tags(values: Mapping[str, Any], in_body: list[str]) -> tuple[str, ...]:
    value = values.get("tags", values.get("tag"))
    if isinstance(value, str):
        value = re.split(r"[,\s]+", value)
    written = [tag.strip().lstrip("#").rstrip("/") for tag in _words(value)]
    return tuple(dict.fromkeys(tag for tag in [*written, *in_body] if tag))


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
