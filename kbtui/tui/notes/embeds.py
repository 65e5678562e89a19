"""What a note shows of others inside itself: ``![[note]]``, ``![[note#heading]]``, pictures.

One step only: what an embedded note embeds is a link there. Reads files, so call it in threads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.knowledge.format.outline import part_named
from kbtui.text import clean, clean_line
from kbtui.tui.markdown.source import Embed
from kbtui.tui.markdown.syntax import LinkRef, embedded_in
from kbtui.tui.notes.documents import Document, DocumentLinks, load_document, readable_size

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase

_MOST_EMBEDS = 50
_MOST_CHARACTERS = 20_000


def with_embeds(kb: KnowledgeBase, document: Document, links: DocumentLinks) -> DocumentLinks:
    """The links of a document with what it embeds, and where the links in that lead."""
    embeds: dict[LinkRef, Embed] = {}
    inner = list(links.inner)
    for ref in embedded_in(clean(document.body))[:_MOST_EMBEDS]:
        path = links.path_of(ref)
        if path is None or path == document.path:
            continue
        embeds[ref] = _embed(kb, path, ref)
        if embeds[ref].text:
            try:
                inner += kb.library.outgoing(path)
            except KbtuiError:
                continue
    return replace(links, embeds=embeds, inner=tuple(inner)) if embeds else links


def _embed(kb: KnowledgeBase, path: str, ref: LinkRef) -> Embed:
    """What is shown of a file: its text or a part of it, else its name and size."""
    name = clean_line(path.rpartition("/")[2])
    if not path.lower().endswith((".md", ".markdown")):
        try:
            size = readable_size(kb.workspace.place(path).stat().st_size)
        except OSError:
            return Embed(f"{name} · it can't be read")
        return Embed(f"{name} · {size}")
    shown = load_document(kb, path)
    if shown.raw or not shown.body.strip():
        return Embed(f"{shown.title} · {shown.reason or 'nothing is in it'}")
    text = part_named(shown.body, ref.heading) if ref.heading else shown.body
    title = f"{shown.title} > {ref.heading}" if ref.heading else shown.title
    if not text.strip():
        return Embed(f"{title} · there is no such part")
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS].rpartition(chr(10))[0]}\n\n…"
    return Embed(title, clean(text))
