"""Embeds in a note: ``![[note]]``, ``![[note#heading]]``, pictures.

Embeds aren't nested: inside an embedded note they are links. Reads files, so call it in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from kbtui.documents.documents import DocumentPicture, Documents, is_picture
from kbtui.errors import KbtuiError
from kbtui.knowledge.format.body import part_named
from kbtui.knowledge_base import KnowledgeBase
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.source import Embed
from kbtui.tui.markdown.syntax import LinkRef, embedded_in
from kbtui.tui.notes.documents import (
    PICTURE_ITSELF,
    Document,
    DocumentLinks,
    load_document,
    readable_size,
)

_MAX_EMBEDS = 50
_MAX_CHARACTERS = 20_000


def with_embeds(
    kb: KnowledgeBase, document: Document, links: DocumentLinks, *, sharp: bool = False
) -> Iterator[DocumentLinks]:
    """Yield a document's links completed by its embeds and the links inside these.

    If it embeds pictures, it yields twice: before their pixels are read, they are boxes of their
    shape. `sharp` is for terminals that draw more than cells.
    """
    found = dict(_embedded(document, links))
    if not found:
        yield links
        return
    embeds: dict[LinkRef, Embed] = {}
    inner = list(links.inner)
    with Documents(kb.workspace) as documents:
        pictures = {ref: path for ref, path in found.items() if is_picture(path)}
        if pictures:
            boxes = {ref: _picture(path, documents.picture_size) for ref, path in pictures.items()}
            yield replace(links, embeds=boxes)
        read = partial(documents.picture, sharp=sharp)
        for ref, path in found.items():
            if ref in pictures:
                embeds[ref] = _picture(path, read)
                continue
            embeds[ref] = _embed(kb, path, ref)
            if embeds[ref].text:
                with suppress(KbtuiError):
                    inner += kb.library.outgoing(path)
    yield replace(links, embeds=embeds, inner=tuple(inner))


def _embedded(document: Document, links: DocumentLinks) -> Iterator[tuple[LinkRef, str]]:
    """Yield what a document embeds, and the path of each."""
    if document.is_picture:
        yield PICTURE_ITSELF, document.path
    elif not document.raw:
        for ref in embedded_in(clean(document.body))[:_MAX_EMBEDS]:
            path = links.path_of(ref)
            if path is not None and path != document.path:
                yield ref, path


def _picture(path: str, read: Callable[[str], DocumentPicture]) -> Embed:
    """Return a picture's embed as `read` gives it, or the reason it isn't shown."""
    name = clean_line(path.rpartition("/")[2])
    try:
        picture = read(path)
    except KbtuiError as error:
        return Embed(f"{name} · not shown: {clean_line(error.message)}")
    return Embed(f"{name} · {picture.width:,} x {picture.height:,}", picture=picture)


def _embed(kb: KnowledgeBase, path: str, ref: LinkRef) -> Embed:
    """Return a file's embed: its text or a part of it, or its name and size."""
    name = clean_line(path.rpartition("/")[2])
    if path.lower().endswith((".md", ".markdown")):
        return _note_embed(load_document(kb, path), ref.heading)
    try:
        size = readable_size(kb.workspace.place(path).stat().st_size)
    except OSError:
        return Embed(f"{name} · it can't be read")
    return Embed(f"{name} · {size}")


def _note_embed(shown: Document, heading: str) -> Embed:
    """Return the embed of a note, or of its part below a heading."""
    if shown.raw or not shown.body.strip():
        return Embed(f"{shown.title} · {shown.reason or 'nothing is in it'}")
    text, title = shown.body, shown.title
    if heading:
        text, title = part_named(text, heading), f"{title} > {heading}"
    if not text.strip():
        return Embed(f"{title} · there is no such part")
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS].rpartition(chr(10))[0]}\n\n…"
    return Embed(title, clean(text))
