"""Files to chunks: what is indexed, embedded and shown.

A file becomes an `IndexedDocument` with the properties that all its chunks share. Each chunk knows
its lines and its *passages*, the slices short enough for an embedding model to read whole. A
passage carries title, heading and, of a conversation, speaker and date: questions ask by them.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from kbtui.documents.documents import DocumentText
from kbtui.search.index.markdown import (
    Block,
    Outline,
    Properties,
    cut,
    cut_block,
    estimate,
    front_end,
    outline,
    pack,
    read_properties,
    text_end,
)
from kbtui.sessions.log_records import FORGOTTEN_MARK, TITLE, masked, read_spans, settled
from kbtui.text import shorten
from kbtui.workspace.files import decode

_SPOKEN = frozenset({"user", "assistant"})
_TITLE_WIDTH = 60
_MARKS_OF_QUESTIONS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_SENTENCE = re.compile(
    "(?<=[.!?\N{ARABIC QUESTION MARK}])\\s+|\n+"
    "|(?<=[\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH QUESTION MARK}\N{FULLWIDTH EXCLAMATION MARK}])"
)


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """Something said; `range` are the message ids it covers, `line` is where it is stored.

    `role` is ``user`` or ``assistant``; empty for a record of the archive.
    """

    line: int
    speaker: str
    time: str
    text: str
    session: str | None
    range: tuple[int, int] | None
    role: str = ""

    @property
    def day(self) -> str:
        """The day it was said on, as ``2026-03-25``; empty where that isn't known."""
        moment = _moment(self.time)
        return moment.strftime("%Y-%m-%d") if moment else ""

    @property
    def label(self) -> str:
        """Who said it and when, as people write it: ``Kim, 25 March 2026``."""
        moment = _moment(self.time)
        said = f"{moment.day} {moment:%B %Y}" if moment else self.time
        return ", ".join(part for part in (self.speaker, said) if part)


def is_question(text: str) -> bool:
    """True if a message only asks: each of its sentences ends with a question mark."""
    sentences = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    return bool(sentences) and all(part.endswith(_MARKS_OF_QUESTIONS) for part in sentences)


def session_name(path: str) -> str:
    """The id of the session that a log is of."""
    return path.rpartition("/")[2].removesuffix(".jsonl")


def session_messages(path: str, text: str) -> tuple[str, list[SpokenMessage]]:
    """The title that a session was given, and what was said in it and not taken back since."""
    session = session_name(path)
    title = ""
    last = 0
    messages: list[SpokenMessage] = []
    for line, record in _settled_records(text):
        kind = record.get("kind") or record.get("_type")
        if kind in {None, "message"} and isinstance(record.get("role"), str):
            number = record.get("id")
            number = number if isinstance(number, int) else last + 1
            last = max(last, number)
            messages += _said(line, record, session, number)
        elif kind == "rewind" and isinstance(record.get("to_message"), int):
            messages = [m for m in messages if m.range and m.range[1] <= record["to_message"]]
        elif kind == "forget" and record.get("message") == TITLE:
            title = masked(title, read_spans(record))
        elif kind == "forget":
            messages = [*_masked(messages, record)]
        else:
            title = _text(record.get("title")) or title
    return " ".join(title.replace(FORGOTTEN_MARK, " ").split()), messages


def _settled_records(text: str) -> Iterable[tuple[int, dict[str, Any]]]:
    """The records of a log with their lines; what was forgotten and is remembered is read again."""
    if '"remember"' not in text:
        return _records(text)
    lines = list(_records(text))
    rest = settled([each for _, each in lines])
    return ((line, each) for (line, _), each in zip(lines, rest, strict=True))


def _masked(messages: list[SpokenMessage], record: dict[str, Any]) -> Iterator[SpokenMessage]:
    """The messages without what the user wants forgotten of one; of which nothing is left, none."""
    for message in messages:
        if message.range is None or message.range[0] != record.get("message"):
            yield message
            continue
        text = masked(message.text, read_spans(record))
        if text.replace(FORGOTTEN_MARK, "").strip():
            yield replace(message, text=text)


def shown_title(path: str, title: str, messages: list[SpokenMessage]) -> str:
    """The title of a session, else how it began, else its id."""
    begun = messages[0].text if messages else ""
    return title or shorten(begun, _TITLE_WIDTH) or session_name(path)


def archive_messages(text: str) -> list[SpokenMessage]:
    """The records of the archive, ``memory/history.jsonl``; what was only asked answers nothing."""
    return [
        SpokenMessage(
            line,
            "",
            _text(record.get("timestamp")) or "",
            record["content"],
            _text(record.get("session")),
            _range(record.get("messages")),
        )
        for line, record in _records(text)
        if _text(record.get("content"))
        and not is_question(record["content"].removeprefix("The user said: "))
    ]


def _said(line: int, record: dict[str, Any], session: str, number: int) -> Iterator[SpokenMessage]:
    text = _content(record.get("content"))
    if record["role"] in _SPOKEN and text.strip():
        speaker = _text(record.get("name")) or _text(record.get("speaker")) or record["role"]
        keys = ("time", "timestamp", "ts")
        time = next((said for key in keys if (said := _text(record.get(key)))), "")
        yield SpokenMessage(line, speaker, time, text, session, (number, number), record["role"])


def _content(content: Any) -> str:
    """The text of a message; of one in parts, that of its text parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _records(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line that holds a JSON object; a torn or foreign line is passed over."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            record = json.loads(line, object_hook=_storable) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield number, record


def _storable(record: dict[str, Any]) -> dict[str, Any]:
    """Replace half surrogate pairs, which JSON can hold and UTF-8 can't."""
    return {
        key: value.encode("utf-8", "replace").decode()
        if isinstance(value, str) and not value.isascii()
        else value
        for key, value in record.items()
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _range(value: Any) -> tuple[int, int] | None:
    match value:
        case [int(first), int(last)]:
            return first, last
    return None


def _moment(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None


VERSION = "6"
# MiniLM reads 256 tokens; title and heading go before a passage, and an estimate needs slack.
PASSAGE_TOKENS = 180
_SHORT_PASSAGE = 90
_NEIGHBOUR = 1000  # characters
_PAGE_END = 200  # characters
_BINARY_PROBE = 8192
_MARKDOWN = (".md", ".markdown", ".mdx")
_NOT_INDEXED = re.compile(r"memory/(HISTORY(-\d{4})?\.md|tombstones\.jsonl|cursors\.json)")
_BINARY = """
    .png .jpg .jpeg .gif .webp .bmp .ico .pdf .zip .gz .xz .bz2 .7z .tar .mp3 .mp4 .m4a .mov .wav
    .ogg .webm .woff .woff2 .ttf .otf .so .dll .exe .bin .npy .npz .onnx .safetensors .pt .sqlite
    .db .parquet .docx .xlsx .pptx .odt .epub .pyc .class .jar .canvas
"""
_BINARY_ENDINGS = tuple(_BINARY.split())
_ARCHIVE = re.compile(r"memory/history(-[\w-]+)?\.jsonl")
_UNINDENTED = re.compile(r"^[^\s]", re.MULTILINE)
_TIMED = re.compile(r"^[-*+][ \t]+(?:\[[^\]\n]\][ \t]+)?(?:~~)?\d\d:\d\d[ \t]", re.MULTILINE)
INDEX_NAME = "INDEX.md"


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a chunk's text that is embedded, with what is said before it."""

    start: int
    end: int
    context: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document; `headings` are ``(line, path)`` from that line on.

    `context` is what was said around a message: searched, with less weight, and not shown. `role`
    is that of who said it.
    """

    text: str
    lines: tuple[int, int]
    headings: tuple[tuple[int, str], ...] = ()
    passages: tuple[Passage, ...] = ()
    session: str | None = None
    messages: tuple[int, int] | None = None
    updated: str = ""
    context: str = ""
    role: str = ""

    def passage_texts(self) -> list[str]:
        """The texts that are embedded, in the order of `passages`."""
        return [f"{p.context}{self.text[p.start : p.end]}" for p in self.passages]


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A file as it is searched; `problem` says why nothing of it is, if so."""

    path: str
    properties: Properties
    chunks: tuple[Chunk, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """How large chunks are and how far they overlap, in tokens."""

    tokens: int = 512
    overlap: int = 64

    def identity(self) -> str:
        """Chunks of another identity are made again."""
        return f"{VERSION} {self.tokens} {self.overlap} {PASSAGE_TOKENS}"


def is_indexed(path: str) -> bool:
    """True if a file is searched at all, by its path."""
    name = path.rpartition("/")[2]
    if _NOT_INDEXED.fullmatch(path) or name == INDEX_NAME or ".conflict-" in name:
        return False
    area = path.partition("/")[0]
    if area == "sessions":
        return name.endswith(".jsonl") and ".torn-" not in name
    if area in {"knowledge", "memory"}:
        return name.lower().endswith((*_MARKDOWN, ".txt")) or _ARCHIVE.fullmatch(path) is not None
    return not name.lower().endswith(_BINARY_ENDINGS)


def read_document(path: str, data: bytes, limits: ChunkLimits) -> IndexedDocument:
    """Cut a file into chunks; never raises, whatever the bytes are."""
    decoded = decode(data)
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    if path.startswith("sessions/"):
        title, messages = session_messages(path, text)
        return _conversation(path, title, messages, limits)
    if _ARCHIVE.fullmatch(path):
        return _conversation(path, "History", archive_messages(text), limits)
    if decoded.encoding != "utf-16" and b"\0" in data[:_BINARY_PROBE]:
        return IndexedDocument(path, Properties(), problem="it is not text")
    if path.lower().endswith(_MARKDOWN):
        return _markdown(path, text, limits)
    properties = Properties(title=path.rpartition("/")[2])
    return IndexedDocument(
        path, properties, tuple(_chunks(text, properties, limits, markdown=False))
    )


def read_parts(path: str, text: DocumentText, limits: ChunkLimits) -> IndexedDocument:
    """Cut the text of a document into chunks, each with its page or whatever holds it as heading.

    A sentence that goes over the end of a page counts a little on both.
    """
    properties = Properties(title=path.rpartition("/")[2], extra=text.title)
    bodies = ["", *(part for _, part in text.parts), ""]
    chunks = []
    for number, ((place, part), start) in enumerate(zip(text.parts, text.starts, strict=True)):
        around = ""
        if not text.markdown:  # pages, not slides or chapters
            around = f"{_unended(bodies[number])}\n{_rest_of(part, bodies[number + 2])}".strip()
        for chunk in _chunks(part, properties, limits, markdown=text.markdown):
            first, last = chunk.lines
            headings = ((line + start - 1, _inside(place, each)) for line, each in chunk.headings)
            lines = (first + start - 1, last + start - 1)
            chunks.append(replace(chunk, lines=lines, headings=tuple(headings), context=around))
    return IndexedDocument(path, properties, tuple(chunks), text.problem)


def _unended(page: str) -> str:
    """The beginning of the sentence that goes on behind a page; empty where none does."""
    last = _SENTENCE.split(page[-_PAGE_END:])[-1].strip()
    return "" if last.endswith((*_MARKS_OF_QUESTIONS, ".", "!")) else last


def _rest_of(page: str, following: str) -> str:
    """The end of the sentence that goes on behind a page."""
    return _SENTENCE.split(following[:_PAGE_END])[0] if _unended(page) else ""


def _inside(place: str, heading: str) -> str:
    """A heading with the place that it is in: ``slide 3 > Costs``; a chapter has it as name."""
    if heading == place or heading.startswith(f"{place} > "):
        return heading
    return " > ".join(filter(None, (place, heading)))


def passage_key(text: str) -> bytes:
    """The key of a passage's vector: 16 bytes of the hash of what is embedded."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _markdown(path: str, text: str, limits: ChunkLimits) -> IndexedDocument:
    properties = read_properties(path, text)
    chunks = tuple(_chunks(text, properties, limits, markdown=True))
    if not chunks:
        chunks = (_bare(text, properties),)
    return IndexedDocument(path, properties, chunks)


def _bare(text: str, properties: Properties) -> Chunk:
    """The chunk of a file without a body: it is found by its title, and shows its frontmatter."""
    raw = text.strip("-\n ")
    found = outline(text)
    start = text.find(raw)
    lines = (found.line_at(start), found.line_at(max(start, start + len(raw) - 1)))
    passage = Passage(0, min(len(raw), 4 * PASSAGE_TOKENS), f"{properties.title}\n")
    return Chunk(raw, lines, ((lines[0], ""),), (passage,))


def _lines_apart(found: Outline, limits: ChunkLimits) -> Iterator[tuple[int, int]]:
    """Cut a journal: what was said at a time of its own is one, what is around as elsewhere."""
    text = found.text
    starts = [block.start for block in found.blocks]
    marks = [
        match.start()
        for match in _TIMED.finditer(text)
        if not found.blocks[bisect_right(starts, match.start()) - 1].solid  # it stands in code
    ]
    bounds = [(0, marks[0])] if marks else []
    for start, following in pairwise([*marks, len(text)] if marks else []):
        end = next((n.start() for n in _UNINDENTED.finditer(text, start + 1, following)), following)
        yield from _around(found, starts, *bounds.pop(), limits) if bounds else ()
        yield start, start + len(text[start:end].rstrip())
        bounds.append((end, following))
    yield from _around(found, starts, *bounds.pop(), limits) if bounds else ()


def _around(
    found: Outline, starts: list[int], start: int, end: int, limits: ChunkLimits
) -> Iterator[tuple[int, int]]:
    """Cut what stands between lines of a journal, unless it is nothing but headings."""
    first = max(0, bisect_right(starts, start) - 1)
    blocks = [
        replace(block, start=max(block.start, start), end=min(block.end, end))
        for block in found.blocks[first : bisect_left(starts, end)]
        if block.end > start
    ]
    blocks = [block for block in blocks if found.text[block.start : block.end].strip()]
    if not all(block.heading for block in blocks):
        yield from cut(found.text, blocks, limits.tokens, limits.overlap)


def _chunks(
    text: str, properties: Properties, limits: ChunkLimits, *, markdown: bool
) -> Iterator[Chunk]:
    found = outline(text, properties.offset, markdown=markdown)
    starts = [block.start for block in found.blocks]
    apart = list(_lines_apart(found, limits)) if markdown else []
    for start, end in apart or pack(found, limits.tokens, limits.overlap):
        first = max(0, bisect_right(starts, start) - 1)
        blocks = found.blocks[first : bisect_left(starts, end)]
        headings: dict[str, int] = {}
        for block in blocks:
            headings.setdefault(found.paths[block.section], found.line_at(max(block.start, start)))
        yield Chunk(
            text[start:end],
            (found.line_at(start), found.line_at(max(start, end - 1))),
            tuple((line, path) for path, line in headings.items()),
            tuple(_passages(found, first, start, end, properties.title)),
        )


def _passages(found: Outline, first: int, start: int, end: int, title: str) -> Iterator[Passage]:
    """Pack the blocks of ``text[start:end]`` into passages, preferably one section each."""
    if timed := _TIMED.match(found.text, start):
        begun = timed.end()
    else:  # The title goes before each passage anyway.
        begun = start + (0 if first else front_end(found.text[start:end], title))
    end = begun + text_end(found.text[begun:end])
    at, size, section = begun, 0, -1
    for block, left, tokens in _pieces(found, first, begun, end):
        new_section = block.section != section and size >= _SHORT_PASSAGE
        if size and (new_section or size + tokens > PASSAGE_TOKENS):
            yield _passage(found, at, left, start, title, section)
            at, size = left, 0
        if not size:
            section = block.section
        size += tokens
    if size:
        yield _passage(found, at, end, start, title, section)


def _pieces(found: Outline, first: int, start: int, end: int) -> Iterator[tuple[Block, int, int]]:
    """The parts of the blocks that lie in ``text[start:end]``, in pieces: block, start, tokens."""
    for number in range(first, len(found.blocks)):
        block = found.blocks[number]
        if block.start >= end:
            break
        if block.end <= start:
            continue
        left, right = max(block.start, start), min(block.end, end)
        part = replace(block, start=left, end=right, tokens=estimate(found.text[left:right]))
        for piece_start, _, tokens in cut_block(found.text, part, PASSAGE_TOKENS, solid=False):
            yield block, piece_start, tokens


def _passage(found: Outline, at: int, end: int, base: int, title: str, section: int) -> Passage:
    heading = found.paths[section]
    parts = [part for part in (title, heading) if part]
    if heading == title or heading.startswith(f"{title} > "):
        parts = [heading]
    context = " > ".join(parts)[:200]
    end -= len(found.text[at:end]) - len(found.text[at:end].rstrip())
    return Passage(at - base, end - base, f"{context}\n" if context else "")


def _conversation(
    path: str, title: str, messages: list[SpokenMessage], limits: ChunkLimits
) -> IndexedDocument:
    """One chunk a message, long ones cut.

    A passage begins with the end of the message before, and the neighbours' words count a little:
    measured on LoCoMo, both find the turn that answers a question more often.
    """
    properties = Properties(
        title=shown_title(path, title, messages),
        created=messages[0].day if messages else "",
        extra=title,
    )
    chunks: list[Chunk] = []
    for i, message in enumerate(messages):
        before = messages[i - 1].text if i else ""
        after = messages[i + 1].text if i + 1 < len(messages) else ""
        context = f"{_end(before, limits.overlap)}\n{message.label}: "
        plain = Properties(title=message.label)
        for chunk in _chunks(message.text, plain, limits, markdown=True):
            passages = [replace(p, context=context) if not p.start else p for p in chunk.passages]
            said = replace(
                chunk,
                lines=(message.line, message.line),
                headings=((message.line, message.label),),
                passages=tuple(passages),
                session=message.session,
                messages=message.range,
                updated=message.day,
                context=f"{before[-_NEIGHBOUR:]}\n{after[:_NEIGHBOUR]}",
                role=message.role,
            )
            chunks.append(said)
    return IndexedDocument(path, properties, tuple(chunks))


def _end(text: str, tokens: int) -> str:
    """The last words of a text, about `tokens` of them."""
    if estimate(text) <= tokens:
        return text
    return "… " + text[-4 * tokens :].partition(" ")[2]
