"""Entries based on documents: written only if the user asks for it, and with their sources.

What a document says never becomes a fact about the user, and instructions in a document cause no
write: the user has to ask in their own words, and the entry cites the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kbtui.agent.tools.base import ToolContext
from kbtui.errors import KbtuiError
from kbtui.memory.edits.editor import Ground, claims_in, names_of_user
from kbtui.offline.language import begins, holds, of_all, tokens
from kbtui.offline.lines import sentences
from kbtui.workspace.layout import MEMORY

KIND = "reference"
"""The type of entries about what somebody else says."""

_NOTES = ("USER.md", MEMORY)


@dataclass(frozen=True, slots=True)
class Cited:
    """The documents that an entry's lines come from, and what they say."""

    paths: tuple[str, ...] = ()
    ground: Ground = field(default_factory=Ground)


def cited_for(context: ToolContext, kind: str, texts: Iterable[str]) -> Cited:
    """Find the documents shown in this turn that contain what the user didn't say of an entry."""
    if kind != KIND or context.find_ground is None or not _asks_to_write(context.said):
        return Cited()
    user_ground = context.find_ground()
    documents = _documents(context)
    shown = (each.text for text in texts for each in claims_in(text))
    lines = [each for each in dict.fromkeys(shown) if user_ground.lacks(each)]
    if _is_about_user(context, lines):
        return Cited()
    found = [path for path, has in documents.items() if not all(map(has.lacks, lines))]
    ground = Ground()
    for path in found:
        ground |= documents[path]
    return Cited(tuple(found), ground)


def _asks_to_write(message: str) -> bool:
    return any(
        begins(each, of_all("remember")) is not None or holds(each, of_all("write"))
        for each in sentences(message)
        if not each.endswith("?")
    )


def _documents(context: ToolContext) -> dict[str, Ground]:
    shown: dict[str, list[str]] = {}
    roots = context.settings.search.roots
    areas = ("docs/", *(f"{root}/" for root in roots))
    sources = ((each.path, each.text) for each in context.sources.shown)
    for path, text in (*sources, *context.attached):
        if path.startswith(areas) or context.view.is_document(path):
            shown.setdefault(path, []).append(text)
    return {path: Ground.of((None, each) for each in of) for path, of in shown.items()}


def _is_about_user(context: ToolContext, lines: Sequence[str]) -> bool:
    names = names_of_user(_texts_about_user(context))
    own = {token.word for name in names for token in tokens(name)}
    return any(
        holds(line, of_all("self")) or not own.isdisjoint(token.word for token in tokens(line))
        for line in lines
    )


def _texts_about_user(context: ToolContext) -> Iterable[str]:
    for path in _NOTES:
        try:
            yield context.view.text(path)
        except KbtuiError:
            continue
