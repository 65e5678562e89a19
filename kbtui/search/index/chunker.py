"""Splits files into chunks: the units that are indexed, embedded and shown.

A file becomes an `IndexedDocument` with the properties that all its chunks share. Each chunk has
its line range and its *passages*, slices short enough for an embedding model's input. A passage is
embedded with title and heading or, in a conversation, speaker and date, as questions mention these.
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
from operator import methodcaller
from typing import Any

from kbtui.documents.documents import DocumentText
from kbtui.search.index.letters import QUESTION_MARKS, SENTENCE_END
from kbtui.search.index.markdown import (
    Block,
    Outline,
    Properties,
    cut,
    cut_block,
    estimate,
    outline,
    pack,
    prose_start,
    read_properties,
    text_end,
)
from kbtui.sessions.log_records import FORGOTTEN_MARK, SessionLog
from kbtui.text import shorten, storable
from kbtui.workspace.files import decode

_TITLE_WIDTH = 60
_SPEAKER_KEYS = ("name", "speaker", "role")
_TIME_KEYS = ("time", "timestamp", "ts")
_MOST_ASKED = 0.4  # of the letters of a message that says something
_IS_QUESTION = methodcaller("endswith", QUESTION_MARKS)


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """A message; `range` is the message ids it covers, `line` its line in the log.

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
        """The day of the message in the machine's zone, as ``2026-03-25``; empty if unknown."""
        moment = _parse_time(self.time)
        return moment.strftime("%Y-%m-%d") if moment else ""

    @property
    def label(self) -> str:
        """The speaker and date for display: ``Kim, 25 March 2026``."""
        moment = _parse_time(self.time)
        date = f"{moment.day} {moment:%B %Y}" if moment else self.time
        return ", ".join(filter(None, (self.speaker, date)))


def is_question(text: str) -> bool:
    """Return whether every sentence of a message ends with a question mark."""
    return text.rstrip().endswith(QUESTION_MARKS) and _share_asked(text) == 1


def mostly_asks(text: str) -> bool:
    """Return whether a message says little besides its questions."""
    return _share_asked(text) > _MOST_ASKED


def _share_asked(text: str) -> float:
    """Return which share of a message's letters stands in sentences with a question mark."""
    sentences = [*filter(None, map(str.strip, SENTENCE_END.split(text)))]
    asked = sum(map(len, filter(_IS_QUESTION, sentences)))
    return asked / max(1, sum(map(len, sentences)))


def session_name(path: str) -> str:
    """Return the session id of a log's path."""
    return path.rpartition("/")[2].removesuffix(".jsonl")


def session_messages(path: str, text: str) -> tuple[str, list[SpokenMessage]]:
    """Return a session's title and messages, without rewound messages and forgotten text."""
    session, log = session_name(path), SessionLog()
    origins: dict[int, tuple[int, str, str]] = {}  # line, speaker and time of each message
    for line, record in _records(text):
        log.add(record)
        if log.messages and log.messages[-1].id not in origins:
            origins[log.messages[-1].id] = (
                line,
                _first_text(record, _SPEAKER_KEYS),
                _first_text(record, _TIME_KEYS),
            )
    title = " ".join(log.title.replace(FORGOTTEN_MARK, " ").split())
    return title, [
        SpokenMessage(*origins[each.id], each.content, session, (each.id, each.id), each.role)
        for each in log.messages
        if each.is_said and each.content.replace(FORGOTTEN_MARK, "").strip()
    ]


def shown_title(path: str, title: str, messages: list[SpokenMessage]) -> str:
    """Return a session's title, or the start of its first message, or its id."""
    first_text = messages[0].text if messages else ""
    return title or shorten(first_text, _TITLE_WIDTH) or session_name(path)


def archive_messages(text: str) -> list[SpokenMessage]:
    """Return the records of the archive, ``memory/history.jsonl``, without mere questions.

    Nor a conversation that was kept whole, which is searched where it was held.
    """
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
        and not (record.get("raw") is True and _text(record.get("session")))
        and not is_question(record["content"].removeprefix("The user said: "))
    ]


def _first_text(record: dict[str, Any], keys: Iterable[str]) -> str:
    """Return the first text that isn't empty among the values of some keys."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _records(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line, record)`` for each line with a JSON object; skip torn and foreign lines."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            hook = _storable if "\\ud" in line.lower() else None  # a surrogate, as JSON writes it
            record = json.loads(line, object_hook=hook) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield number, record


def _storable(record: dict[str, Any]) -> dict[str, Any]:
    """Replace lone surrogates, which JSON can represent and UTF-8 can't."""
    return {
        key: storable(value) if isinstance(value, str) else value for key, value in record.items()
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _range(value: Any) -> tuple[int, int] | None:
    match value:
        case [int(first), int(last)]:
            return first, last
    return None


def _parse_time(time: str) -> datetime | None:
    """Return a stored time in the machine's zone; None if it is none."""
    try:
        return datetime.fromisoformat(time).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


VERSION = "10"
# MiniLM reads 256 tokens; leave room for title and heading, and for errors of the estimate.
PASSAGE_TOKENS = 180
_SHORT_PASSAGE = 90
_NEIGHBOUR_CHARACTERS = 1000
_PAGE_END_CHARACTERS = 200
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
# What notes repeat of a conversation that nobody could condense: below this heading of a day's
# (which older versions wrote), and below this sentence of a session's.
_RAW_HEADING = re.compile(r"## Flush at \d\d:\d\d \(session: .*\) \[RAW\]")
_RAW_SENTENCE = re.compile(r"\[RAW\] No summary could be made; what was said stands below\.")
_RAW_LINE = re.compile(r"(?:- )?(?:user|assistant): |## (?:Summary|Key Messages)\Z")
_UNINDENTED = re.compile(r"^[^\s]", re.MULTILINE)
_TIMED = re.compile(r"^[-*+][ \t]+(?:\[[^\]\n]\][ \t]+)?(?:~~)?\d\d:\d\d[ \t]", re.MULTILINE)
INDEX_NAME = "INDEX.md"


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a chunk's text that is embedded, with `context` prepended."""

    start: int
    end: int
    context: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document; `headings` are ``(line, path)``, each valid from its line on.

    `context` is text around a message: searched with less weight, and not shown. `role` is the
    speaker's.
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
        """Return the texts to embed, in the order of `passages`."""
        return [f"{p.context}{self.text[p.start : p.end]}" for p in self.passages]


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A file split into chunks; `problem` says why it has none, if so."""

    path: str
    properties: Properties
    chunks: tuple[Chunk, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The size and overlap of chunks, in tokens."""

    tokens: int = 512
    overlap: int = 64

    def identity(self) -> str:
        """Return a key that changes when files must be split into chunks anew."""
        return f"{VERSION} {self.tokens} {self.overlap} {PASSAGE_TOKENS}"


def is_indexed(path: str) -> bool:
    """Return whether a file is indexed, judging by its path."""
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
    """Split a file into chunks; never raises, whatever the bytes are."""
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
    """Split the text of a document into chunks, with the page, slide or chapter as heading.

    A sentence that runs across a page break is added to the `context` of both pages.
    """
    properties = Properties(title=path.rpartition("/")[2], extra=text.title)
    bodies = ["", *(part for _, part in text.parts), ""]
    chunks = []
    for number, ((place, part), start) in enumerate(zip(text.parts, text.starts, strict=True)):
        context = ""
        if not text.markdown:  # pages, not slides or chapters
            context = f"{_unfinished(bodies[number])}\n{_rest(part, bodies[number + 2])}".strip()
        for chunk in _chunks(part, properties, limits, markdown=text.markdown):
            first, last = chunk.lines
            headings = (
                (line + start - 1, _full_heading(place, each)) for line, each in chunk.headings
            )
            lines = (first + start - 1, last + start - 1)
            chunks.append(replace(chunk, lines=lines, headings=tuple(headings), context=context))
    return IndexedDocument(path, properties, tuple(chunks), text.problem)


def _unfinished(page: str) -> str:
    """Return the unfinished last sentence of a page; empty if its last sentence is complete."""
    last = SENTENCE_END.split(page[-_PAGE_END_CHARACTERS:])[-1].strip()
    return "" if last.endswith((*QUESTION_MARKS, ".", "!")) else last


def _rest(page: str, following: str) -> str:
    """Return the end, on the following page, of a page's unfinished sentence."""
    return SENTENCE_END.split(following[:_PAGE_END_CHARACTERS])[0] if _unfinished(page) else ""


def _full_heading(place: str, heading: str) -> str:
    """Prefix a heading with its place, ``slide 3 > Costs``, unless it starts with it already."""
    if heading == place or heading.startswith(f"{place} > "):
        return heading
    return " > ".join(filter(None, (place, heading)))


def passage_key(text: str) -> bytes:
    """Return the key of a passage's vector: a 16-byte hash of the embedded text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _without_excerpts(path: str, text: str) -> str:
    """Blank what a note of a day or session repeats of a conversation that wasn't condensed."""
    if not path.startswith("memory/") or "[RAW]" not in text:
        return text
    lines, is_below = text.split("\n"), False
    for number, line in enumerate(lines):
        if _RAW_HEADING.fullmatch(line) or _RAW_SENTENCE.fullmatch(line):
            is_below, lines[number] = True, ""
        elif is_below and _RAW_LINE.match(line):
            lines[number] = ""
        elif line.strip():
            is_below = False
    return "\n".join(lines)


def _markdown(path: str, text: str, limits: ChunkLimits) -> IndexedDocument:
    text = _without_excerpts(path, text)
    properties = read_properties(path, text)
    chunks = tuple(_chunks(text, properties, limits, markdown=True))
    if not chunks:
        chunks = (_frontmatter_chunk(text, properties),)
    return IndexedDocument(path, properties, chunks)


def _frontmatter_chunk(text: str, properties: Properties) -> Chunk:
    """Return the chunk of a file without a body, whose text is the frontmatter."""
    raw = text.strip("-\n ")
    found = outline(text)
    start = text.find(raw)
    lines = (found.line_at(start), found.line_at(max(start, start + len(raw) - 1)))
    passage = Passage(0, min(len(raw), 4 * PASSAGE_TOKENS), f"{properties.title}\n")
    return Chunk(raw, lines, ((lines[0], ""),), (passage,))


def _journal_bounds(found: Outline, limits: ChunkLimits) -> Iterator[tuple[int, int]]:
    """Split a journal: one chunk per timed item, and the text between them as usual."""
    text = found.text
    starts = [block.start for block in found.blocks]
    marks = [
        match.start()
        for match in _TIMED.finditer(text)
        if not found.blocks[bisect_right(starts, match.start()) - 1].solid  # solid: code
    ]
    bounds = [(0, marks[0])] if marks else []
    for start, following in pairwise([*marks, len(text)] if marks else []):
        end = next((n.start() for n in _UNINDENTED.finditer(text, start + 1, following)), following)
        yield from _between_items(found, starts, *bounds.pop(), limits) if bounds else ()
        yield start, start + len(text[start:end].rstrip())
        bounds.append((end, following))
    yield from _between_items(found, starts, *bounds.pop(), limits) if bounds else ()


def _between_items(
    found: Outline, starts: list[int], start: int, end: int, limits: ChunkLimits
) -> Iterator[tuple[int, int]]:
    """Split the text between timed items of a journal, unless it is only headings."""
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
    journal = list(_journal_bounds(found, limits)) if markdown else []
    for start, end in journal or pack(found, limits.tokens, limits.overlap):
        first = max(0, bisect_right(starts, start) - 1)
        blocks = found.blocks[first : bisect_left(starts, end)]
        headings: dict[str, int] = {}
        for block in blocks:
            headings.setdefault(found.paths[block.section], found.line_at(max(block.start, start)))
        yield Chunk(
            text[start:end],
            (found.line_at(start), found.line_at(max(start, end - 1))),
            tuple([(line, path) for path, line in headings.items()]),
            tuple(_passages(found, first, start, end, properties.title)),
        )


def _passages(found: Outline, first: int, start: int, end: int, title: str) -> Iterator[Passage]:
    """Pack the blocks of ``text[start:end]`` into passages, preferably one section each."""
    if timed := _TIMED.match(found.text, start):
        body = timed.end()
    else:  # The title is prepended to each passage anyway.
        body = start + (0 if first else prose_start(found.text[start:end], title))
    end = body + text_end(found.text[body:end])
    at, size, section = body, 0, -1
    for block, left, tokens in _pieces(found, first, body, end):
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
    """Split the blocks in ``text[start:end]`` into pieces; yield ``(block, start, tokens)``."""
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
    parts = [*filter(None, (title, heading))]
    if heading == title or heading.startswith(f"{title} > "):
        parts = [heading]
    context = " > ".join(parts)[:200]
    end -= len(found.text[at:end]) - len(found.text[at:end].rstrip())
    return Passage(at - base, end - base, f"{context}\n" if context else "")


def _conversation(
    path: str, title: str, messages: list[SpokenMessage], limits: ChunkLimits
) -> IndexedDocument:
    """Make one chunk per message, or more for long ones.

    A passage starts with the end of the previous message, and both neighbours are `context`:
    measured on LoCoMo, each makes finding the turn that answers a question more likely.
    """
    properties = Properties(
        title=shown_title(path, title, messages),
        created=messages[0].day if messages else "",
        extra=title,
    )
    chunks: list[Chunk] = []
    for i, message in enumerate(messages):
        before, after = _neighbours(messages, i)
        label, day = message.label, message.day
        context = f"{_tail(before, limits.overlap)}\n{label}: "
        plain = Properties(title=label)
        for chunk in _chunks(message.text, plain, limits, markdown=True):
            passages = [replace(p, context=context) if not p.start else p for p in chunk.passages]
            located = replace(
                chunk,
                lines=(message.line, message.line),
                headings=((message.line, label),),
                passages=tuple(passages),
                session=message.session,
                messages=message.range,
                updated=day,
                context=f"{before[-_NEIGHBOUR_CHARACTERS:]}\n{after[:_NEIGHBOUR_CHARACTERS]}",
                role=message.role,
            )
            chunks.append(located)
    return IndexedDocument(path, properties, tuple(chunks))


def _neighbours(messages: list[SpokenMessage], place: int) -> tuple[str, str]:
    """Return the texts before and after a message in its conversation: an archive has many."""
    session = messages[place].session
    around = (messages[place - 1 : place] if place else [], messages[place + 1 : place + 2])
    before, after = (
        "".join([each.text for each in found if session is not None and each.session == session])
        for found in around
    )
    return before, after


def _tail(text: str, tokens: int) -> str:
    """Return about the last `tokens` tokens of a text, in whole words."""
    if estimate(text) <= tokens:
        return text
    return "… " + text[-4 * tokens :].partition(" ")[2]
