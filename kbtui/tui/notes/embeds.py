"""Embeds in a note: ``![[note]]``, ``![[note#heading]]``, pictures.

Embeds aren't nested: inside an embedded note they are links. Reads files, so call it in threads.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from kbtui.documents.documents import Documents, is_picture
from kbtui.errors import KbtuiError
from kbtui.knowledge.format.body import part_named
from kbtui.knowledge_base import KnowledgeBase
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.source import Embed
from kbtui.tui.markdown.syntax import LinkRef, embedded_in
from kbtui.tui.notes.documents import (
    Document,
    DocumentLinks,
    load_document,
    picture_embed,
    readable_size,
)

_MAX_EMBEDS = 50
_MAX_CHARACTERS = 20_000


def with_embeds(kb: KnowledgeBase, document: Document, links: DocumentLinks) -> DocumentLinks:
    """Return a document's links completed by its embeds and the links inside these."""
    if document.raw:
        return links
    embeds: dict[LinkRef, Embed] = {}
    inner = list(links.inner)
    with Documents(kb.workspace) as documents:
        for ref in embedded_in(clean(document.body))[:_MAX_EMBEDS]:
            path = links.path_of(ref)
            if path is None or path == document.path:
                continue
            embeds[ref] = _embed(kb, path, ref, documents)
            if embeds[ref].text:
                with suppress(KbtuiError):
                    inner += kb.library.outgoing(path)
    return replace(links, embeds=embeds, inner=tuple(inner)) if embeds else links


def _embed(kb: KnowledgeBase, path: str, ref: LinkRef, documents: Documents) -> Embed:
    """Return a file's embed: its text or a part of it, a picture, or its name and size."""
    name = clean_line(path.rpartition("/")[2])
    if is_picture(path):
        return picture_embed(path, documents)
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
