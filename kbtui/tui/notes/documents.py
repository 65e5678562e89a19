"""A file as it is shown: an entry, plain text, a conversation, or the reason why it can't be.

Everything here reads files, so call it in threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from kbtui.documents.documents import Documents, is_document, kind_of
from kbtui.errors import KbtuiError, NotFoundError
from kbtui.knowledge.format.links import Link, target_first
from kbtui.text import clean, clean_line, counted
from kbtui.tui.notes.pages import NAME_PREFIX
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from kbtui.knowledge.entries.entry import Entry
    from kbtui.knowledge.library.reader import Backlink, ResolvedLink
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.markdown.inline import LinkRef

Kind = Literal["entry", "text", "conversation", "binary", "missing"]
READ_LIMIT_BYTES = 20 * 1024 * 1024
_MARKDOWN_SUFFIXES = (".md", ".markdown")
_SHOWN_ELSEWHERE = frozenset(
    {"type", "created", "updated", "related", "tags", "tag", "aliases", "alias", "title",
     "summary", "description", "private", "sources"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it is shown.

    `text` is the whole file and `body` what is shown of it, which begins with line `first_line`:
    without the headings of a template that nothing was written below.
    `raw` asks for no rendering; `reason` says in one line why, or why there is nothing to see.
    `blob` is the content's hash. `editable` tells whether its text can be edited here without
    losing a byte.
    """

    path: str
    kind: Kind
    title: str
    text: str = ""
    body: str = ""
    first_line: int = 1
    raw: bool = False
    reason: str = ""
    blob: str | None = None
    entry: Entry | None = None
    editable: bool = False


@dataclass(frozen=True, slots=True)
class DocumentLinks:
    """Where a document leads, and what leads to it."""

    outgoing: tuple[ResolvedLink, ...] = ()
    backlinks: tuple[Backlink, ...] = ()

    def shown(self, document: Document) -> str:
        """The text of a document with the target first in each link; its lines stay the same."""
        turned = {each.link for each in self.outgoing if each.link.turned_round}
        if document.raw or not turned:
            return document.body

        def read(link: Link) -> Link:
            return other if (other := link.turned()) in turned else link

        return target_first(document.body, document.first_line, read)

    def path_of(self, link: LinkRef) -> str | None:
        """The file that a link in the text leads to; None where it leads nowhere."""
        target = unquote(link.target).casefold()
        for resolved in self.outgoing:
            if unquote(clean(resolved.link.target)).casefold() == target:
                return resolved.path
        return None


def load_document(kb: KnowledgeBase, path: str) -> Document:
    """Read a file of the workspace for showing; whatever is wrong is said in the document."""
    title = clean_line(path.rpartition("/")[2])
    try:
        if path.startswith("sessions/"):
            return _conversation(kb, path)
        if path.startswith(NAME_PREFIX):
            return _name(kb, path)
        return _file(kb, path)
    except NotFoundError:
        return Document(path, "missing", title, reason="It isn't there (any more).")
    except KbtuiError as error:
        return Document(path, "missing", title, reason=clean_line(str(error)))


def _file(kb: KnowledgeBase, path: str) -> Document:
    from kbtui.knowledge.entries.entry import parse_entry
    from kbtui.knowledge.entries.templates import without_empty_sections
    from kbtui.workspace.files import decode

    if kind_of(path) and is_document(path, kb.settings.search.roots):
        return _converted(kb, path)
    data = kb.library.read(path, READ_LIMIT_BYTES)
    if _is_binary(data):
        title = clean_line(path.rpartition("/")[2])
        return Document(path, "binary", title, reason=f"{_size(len(data))}, not text.")
    entry = parse_entry(path, data)
    decoded = decode(data)
    whole = Document(
        path,
        "entry",
        entry.title,
        text=entry.text,
        body=entry.text,
        raw=True,
        blob=entry.blob,
        entry=entry,
        editable=decoded.exact and decoded.encoding != "utf-16",
    )
    if not path.lower().endswith(_MARKDOWN_SUFFIXES):
        return replace(whole, kind="text", title=clean_line(path.rpartition("/")[2]))
    if entry.problem:
        return replace(whole, reason=clean_line(entry.problem))
    body = without_empty_sections(entry.body, entry.type)
    return replace(whole, raw=False, body=body, first_line=entry.body_line)


def _converted(kb: KnowledgeBase, path: str) -> Document:
    """The text that was made of a document: to be read, not edited."""
    with Documents(kb.workspace) as documents:
        text = documents.read(path)
    title = clean_line(path.rpartition("/")[2])
    if not text.parts:
        return Document(path, "binary", title, reason=f"It can't be read: {text.problem}.")
    body = text.whole
    return Document(path, "text", title, body, body, raw=not text.markdown, reason=text.problem)


def _is_binary(data: bytes) -> bool:
    head = data[:8192]
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:,.0f} kB" if count < 1024**2 else f"{count / 1024**2:,.1f} MB"


def _name(kb: KnowledgeBase, path: str) -> Document:
    """The lines that have a name, by day."""
    name = path.removeprefix(NAME_PREFIX)
    lines = kb.names.lines(name)
    parts, day = [f"# {name}\n"], None
    for each in lines:
        title = each.when[:10] or short_name(each.path)
        if title != day:
            parts.append(f"\n##### {title}\n")
            day = title
        time = f"{each.line.time} " if each.line.time else ""
        parts.append(f"- {time}{each.line.text}")
    body = "\n".join(parts)
    reason = f"{counted(len(lines), 'line')} with that name · s makes an entry of them"
    return Document(path, "text", name, text=body, body=body, reason=reason if lines else "Gone.")


def _links_of_name(kb: KnowledgeBase, path: str) -> DocumentLinks:
    """Where the lines of a name stand."""
    from kbtui.knowledge.library.reader import Backlink

    return DocumentLinks(
        (),
        tuple(
            Backlink(each.path, short_name(each.path), each.line.first, each.line.text)
            for each in kb.names.lines(path.removeprefix(NAME_PREFIX))
        ),
    )


def _conversation(kb: KnowledgeBase, path: str) -> Document:
    log = kb.sessions.read_log(path.removeprefix("sessions/").removesuffix(".jsonl"))
    parts = [
        f"##### {'you' if said.role == 'user' else 'kb'} · {said.id}\n\n{said.content.strip()}\n"
        for said in log.messages
        if said.role in {"user", "assistant"} and said.content.strip()
    ]
    body = "\n".join(parts)
    title = clean_line(log.shown_title)
    reason = "" if body else "Nothing was said."
    return Document(path, "conversation", title, text=body, body=body, reason=reason)


def message_line(document: Document, message: int) -> int:
    """The line of a shown conversation on which the message of that id begins."""
    for number, line in enumerate(document.body.split("\n"), 1):
        if line.startswith("##### ") and line.endswith(f" {message}"):
            return number
    return 1


def load_links(kb: KnowledgeBase, path: str) -> DocumentLinks:
    """Resolve a document's links both ways; an unreadable neighbour costs only its own links.

    What is open, and what is linked with it, is what a person will ask about next.
    """
    if path.startswith(NAME_PREFIX):
        return _links_of_name(kb, path)
    try:
        links = DocumentLinks(tuple(kb.library.outgoing(path)), tuple(kb.library.backlinks(path)))
    except KbtuiError:
        links = DocumentLinks()
    kb.search.read_first([*filter(None, (each.path for each in links.outgoing)), path])
    return links


def facts_of(entry: Entry) -> list[str]:
    """Say an entry's frontmatter in short phrases, for its header."""
    facts = [entry.type or "", *(f"#{tag}" for tag in entry.tags[:8])]
    if entry.updated:
        facts.append(f"updated {entry.updated[:16]}")
    elif entry.created:
        facts.append(f"created {entry.created[:16]}")
    if entry.private:
        facts.append("private: local models only")
    for key, value in entry.frontmatter.items():
        if key not in _SHOWN_ELSEWHERE and isinstance(value, str) and value.strip():
            facts.append(f"{key}: {value}")
    return [clean_line(fact) for fact in facts[:14] if fact]


def stated_summary(entry: Entry) -> str:
    """The summary that somebody wrote; a derived one would only repeat the text below."""
    for key in ("summary", "description"):
        value = entry.frontmatter.get(key)
        if isinstance(value, str) and value.strip():
            return clean_line(value)
    return ""
