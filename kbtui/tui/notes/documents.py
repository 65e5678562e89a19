"""A file as it is shown: an entry, plain text, a conversation, or the reason why it can't be.

Everything here reads files, so call it in threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from kbtui.documents.documents import Documents, is_document, kind_of
from kbtui.errors import ConflictError, KbtuiError, NotFoundError
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.links import IN_VAULT, Link, target_first
from kbtui.knowledge.format.tasks import Task, task_at, ticked
from kbtui.text import clean, clean_line, counted, shorten
from kbtui.workspace.layout import NAME_PREFIX, short_name

if TYPE_CHECKING:
    from kbtui.knowledge.entries.entry import Entry
    from kbtui.knowledge.library.reader import Backlink, ResolvedLink
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.markdown.inline import Embed, Property
    from kbtui.tui.markdown.syntax import LinkRef

Kind = Literal["entry", "text", "conversation", "binary", "missing"]
READ_LIMIT_BYTES = 20 * 1024 * 1024
_MARKDOWN_SUFFIXES = (".md", ".markdown")
_SHOWN_ELSEWHERE = frozenset({"type", "tags", "tag", "title", "summary", "description", "private"})
_MOST_PROPERTIES = 40
_MOST_VALUES = 20
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it is shown.

    `text` is the whole file and `body` what is shown of it, which begins with line `first_line`:
    without the headings of a template that nothing was written below. `properties` are what the
    frontmatter says.
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
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True)
class DocumentLinks:
    """Where a document leads, and what leads to it.

    `embeds` are the files that it shows inside itself, `inner` the links in these.
    """

    outgoing: tuple[ResolvedLink, ...] = ()
    backlinks: tuple[Backlink, ...] = ()
    inner: tuple[ResolvedLink, ...] = ()
    embeds: Mapping[LinkRef, Embed] = field(default_factory=dict)

    @cached_property
    def _links(self) -> dict[str, ResolvedLink]:
        found: dict[str, ResolvedLink] = {}
        for resolved in (*self.outgoing, *self.inner):
            found.setdefault(_key(resolved.link.target), resolved)
        return found

    def shown(self, document: Document) -> str:
        """The text of a document with the target first in each link; its lines stay the same."""
        turned = {each.link for each in self.outgoing if each.link.turned_round}
        in_vaults = any(each.link.target.startswith(IN_VAULT) for each in self.outgoing)
        if document.raw or not (turned or in_vaults):
            return document.body

        def read(link: Link) -> Link:
            return other if (other := link.turned()) in turned else link

        return target_first(document.body, document.first_line, read)

    def path_of(self, link: LinkRef) -> str | None:
        """The file that a link in the text leads to; None where it leads nowhere."""
        resolved = self._links.get(_key(link.target))
        return resolved.path if resolved is not None else None

    def title_of(self, link: LinkRef) -> str | None:
        """The title of what a link leads to, empty where it has none; None where it leads nowhere.

        A link without a target leads to a place in the note itself.
        """
        resolved = self._links.get(_key(link.target))
        if not link.target or (resolved is not None and resolved.path is not None):
            return clean_line((resolved.title if resolved is not None else "") or "")
        return None


def _key(target: str) -> str:
    return unquote(clean(target)).casefold()


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
        return Document(path, "binary", title, reason=f"{readable_size(len(data))}, not text.")
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
    first_line, properties = entry.body_line, properties_of(entry)
    return replace(whole, raw=False, body=body, first_line=first_line, properties=properties)


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


def readable_size(count: int) -> str:
    """A number of bytes as people say it."""
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


def properties_of(entry: Entry) -> tuple[Property, ...]:
    """An entry's frontmatter in the order in which it is written, its type and tags first."""
    from kbtui.tui.markdown.inline import Property

    written = entry.frontmatter
    found = [Property("", (kind,))] if (kind := frontmatter.word(written, "type")) else []
    found += [Property("", (f"#{tag}",)) for tag in frontmatter.tags(written)[:_MOST_VALUES]]
    if entry.private:
        found.append(Property("private", ("local models only",)))
    for key, value in written.items():
        values = tuple(_values(value))
        if values and key not in _SHOWN_ELSEWHERE:
            found.append(Property(key, values[:_MOST_VALUES], linked=key == "related"))
    return tuple(found[:_MOST_PROPERTIES])


def _values(value: object) -> Iterator[str]:
    """The values of a property, each in one line; of a mapping with its keys."""
    if isinstance(value, list):
        for each in value:
            yield from _values(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (f"{key}: {said}" for said in _values(each))
    elif isinstance(value, str) and value.strip():
        yield shorten(value, _LONGEST_VALUE)


def tick(kb: KnowledgeBase, path: str, task: Task) -> None:
    """Turn the box of a task that was read, in the file as it is now.

    Raises:
        KbtuiError: the line says something else by now, or can't be written.
    """
    from kbtui.history.change import Actor

    now = load_document(kb, path)
    there = task_at(now.text, task.line)
    if there is None or there.text != task.text:
        raise ConflictError(
            f"Line {task.line} of {short_name(path)} is another one by now.", "Try it again."
        )
    if there.done == task.done:
        said = f"{'opened again' if task.done else 'done'}: {shorten(task.text, 60)}"
        text = ticked(now.text, there)
        kb.library.write(path, text, expecting=now.blob, actor=Actor.YOU, reason=said)


def stated_summary(entry: Entry) -> str:
    """The summary that somebody wrote; a derived one would only repeat the text below."""
    for key in ("summary", "description"):
        value = entry.frontmatter.get(key)
        if isinstance(value, str) and value.strip():
            return clean_line(value)
    return ""
