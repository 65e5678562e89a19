"""Commit metadata, and its encoding in a git commit: subject, body, trailers.

The subject is generated from the actual diff, the body is the given reason, and the last paragraph
holds trailers that only this module writes. A reason can't forge a trailer, because everything
above the last paragraph is read as text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

from kbtui.text import clean, clean_line, shorten
from kbtui.workspace.layout import short_name

_SUBJECT_WIDTH = 100
_MOVED_KEY = "Moved"
_IDENTITY = re.compile(rb"^(?P<who>.*) (?P<time>-?\d{1,15}) (?P<zone>[+-]\d{4})$", re.DOTALL)
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)  # bounded: a hostile remote may send any length
_TRAILER = re.compile(r"^(?P<key>[A-Z][a-z]+): (?P<value>.*)$")


RESTORED = "Restored from "
"""The prefix of the reason of every restore."""
REJECTED = "Rejected"
"""The prefix of the reason of every rejection of a proposal."""
SHIPPED = "The how-to documents that come with kbtui."
"""The reason of the change that puts kbtui's own documents into a workspace."""
OUTSIDE = "Edited outside kbtui."
"""The reason of a change made with another program, which kbtui only recorded."""
FOUND = "Found when kbtui first saw the folder."
"""The reason of the commit of files that existed before kbtui first saw the folder."""


class Actor(StrEnum):
    """The author of a change. The value is the actor's name in commits, settings and output.

    Attributes:
        letter: The sign shown beside the actor's lines.
        colour: The colour of that sign, by its name in themes.
        account: A sentence that explains how a line by this actor came about.
    """

    letter: str
    colour: str
    account: str

    YOU = "you", "y", "success", "You wrote it."
    AGENT = "agent", "A", "primary", "The agent wrote it in a conversation."
    CONSOLIDATOR = (
        "consolidator", "C", "secondary",
        "It was taken from a conversation when that was condensed.",
    )  # fmt: skip
    FLUSHER = "flusher", "F", "secondary", "It was noted before a long conversation was cut."
    SESSION_MEMORY = (
        "session-memory", "S", "secondary", "It sums up a conversation that had ended."
    )  # fmt: skip
    DREAM = "dream", "D", "accent", "Dream wrote it from what the archive says."
    IMPORT = "import", "I", "warning", "It was imported."
    MCP = "mcp", "M", "warning", "A program wrote it over MCP."
    SYNC = "sync", "s", "muted", "It came with a sync."

    def __new__(cls, value: str, letter: str = "", colour: str = "", account: str = "") -> Self:
        """Create a member."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.letter, member.colour, member.account = letter, colour, account
        return member

    @property
    def acts_on_request(self) -> bool:
        """Whether the actor acts on a person's request in a turn.

        The other actors may only add; whatever else they would change or remove is proposed.
        """
        return self in {Actor.YOU, Actor.AGENT}

    @property
    def writes_human_text(self) -> bool:
        """Whether what the actor writes was written by a person, here or on another machine."""
        return self in {Actor.YOU, Actor.SYNC, Actor.IMPORT}

    @property
    def is_machine(self) -> bool:
        """Whether what the actor writes is redacted; what people write never is."""
        return self is not Actor.YOU


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a change; `messages` is an inclusive range of message ids.

    `epoch` is the number of purges of the history so far and is set only on the commit that ends a
    purge. `proposal` is the proposal that the change was accepted from, `author` a person other
    than the user.
    """

    session: str | None = None
    messages: tuple[int, int] | None = None
    turn: str | None = None
    model: str | None = None
    cursor: int | None = None
    undoes: str | None = None
    batch: str | None = None
    epoch: int | None = None
    proposal: str | None = None
    author: str | None = None


# Field names by trailer key; `author` is stored as git's own author.
_FIELDS = {each.name.capitalize(): each.name for each in fields(Origin) if each.name != "author"}


Edits = dict[str, "bytes | None"]
"""Contents of files by path, None if there is no file."""
Kind = Literal["added", "modified", "deleted", "renamed"]


def kind_of(old: object | None, new: object | None, old_path: str | None = None) -> Kind:
    """Return the kind of a change, given old and new state (None if missing) and any old path."""
    if old_path is not None:
        return "renamed"
    if old is None:
        return "added"
    return "deleted" if new is None else "modified"


@dataclass(frozen=True, slots=True)
class PathChange:
    """The change of one path in a commit.

    `added` and `removed` are numbers of lines, where known; `blob` is the id of the new content, or
    None if the file is gone.
    """

    path: str
    kind: Kind
    old_path: str | None = None
    added: int | None = None
    removed: int | None = None
    blob: str | None = field(default=None, compare=False)


_MOVE = re.compile(
    r"(?P<source>.+):(?P<from>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))? -> "
    r"(?P<target>[^>]+):(?P<to>[1-9]\d{0,8})(?:-\d+)?",
    re.ASCII,
)
_ESCAPES = (("%", "%25"), (">", "%3E"))


@dataclass(frozen=True, slots=True)
class Moved:
    """`count` lines moved between two files; both numbers are those of the first line, 1-based."""

    source: str
    source_line: int
    target: str
    target_line: int
    count: int = 1

    def __str__(self) -> str:
        """Format as in the trailer: ``memory/MEMORY.md:12 -> knowledge/people/alice.md:31``."""
        old = _format_range(self.source, self.source_line, self.count)
        return f"{old} -> {_format_range(self.target, self.target_line, self.count)}"

    @classmethod
    def read(cls, value: str) -> Moved | None:
        """Parse the value of a trailer, or return None if it is malformed."""
        match = _MOVE.fullmatch(value)
        if match is None:
            return None
        first = int(match["from"])
        count = int(match["last"] or first) - first + 1
        if count < 1:
            return None
        source, target = (_unescape(match[name]) for name in ("source", "target"))
        return cls(source, first, target, int(match["to"]), count)


def _format_range(path: str, first: int, count: int) -> str:
    for char, escape in _ESCAPES:
        path = path.replace(char, escape)
    return f"{path}:{first}" if count == 1 else f"{path}:{first}-{first + count - 1}"


def _unescape(path: str) -> str:
    for char, escape in reversed(_ESCAPES):
        path = path.replace(escape, char)
    return path


@dataclass(frozen=True, slots=True)
class Commit:
    """A recorded change.

    `body` is the reason given for it, `time` is in UTC, `moves` are lines that were moved from one
    file to another, `merged` the other parents of a merge.
    """

    id: str
    parent: str | None
    time: datetime
    actor: Actor
    subject: str
    body: str
    origin: Origin
    paths: tuple[PathChange, ...] = ()
    moves: tuple[Moved, ...] = ()
    merged: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The name of the author: another person's, else the actor's."""
        return self.origin.author or self.actor.value

    @property
    def is_outside(self) -> bool:
        """Whether it records a change made with another program."""
        return self.body in {OUTSIDE, FOUND}

    @property
    def is_found(self) -> bool:
        """Whether it records files that existed when kbtui first saw the folder."""
        return self.body == FOUND or (self.parent is None and self.is_outside)

    @property
    def is_restoration(self) -> bool:
        """Whether it is an undo or a restore, so that what it wrote had existed before."""
        return self.origin.undoes is not None or self.body.startswith(RESTORED)


@dataclass(frozen=True, slots=True)
class Changed:
    """The event sent after a commit, with the paths that it changed.

    `old_paths` are the former names of renamed files; `paths` has their new names. `written` is the
    new content of files, as far as this process wrote it, or None for a file that was removed.
    """

    commit: str
    paths: tuple[str, ...]
    actor: Actor
    old_paths: tuple[str, ...] = ()
    written: Mapping[str, bytes | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def all_paths(self) -> tuple[str, ...]:
        """All paths that the commit changed, including former names."""
        return (*self.paths, *self.old_paths)


@dataclass(frozen=True, slots=True)
class RawCommit:
    """A commit object as git stores it; `author` is ``Name <address>``."""

    tree: str
    parents: tuple[str, ...]
    time: datetime
    message: str
    author: str = ""


def describe(paths: tuple[PathChange, ...]) -> str:
    """Summarise changes in one line: ``people/alice: +2 lines; decisions/auth created``."""
    shown = [path for path in paths if not is_derived(path.path)] or list(paths)
    # Others often follow from deletions and renames.
    shown.sort(key=lambda path: path.kind not in ("deleted", "renamed"))
    line = ""
    for count, path in enumerate(shown):
        part = _describe_one(path)
        longer = f"{line}; {part}" if line else part
        if line and len(longer) > _SUBJECT_WIDTH:
            return f"{line}; and {len(shown) - count} more"
        line = longer
    return clean_line(line) or "nothing"


# Append-only records of what happened: undoing a change doesn't make them untrue.
_RECORDS = re.compile(
    r"memory/(history(-\d{4})?\.jsonl|HISTORY(-\d{4})?\.md|tombstones\.jsonl|cursors\.json)"
)


def is_derived(path: str) -> bool:
    """Return whether a file is derived from others and is left out of subjects and undo.

    These are generated indexes, and the records of memory: archive, tombstones, cursors.
    """
    index = path.endswith("INDEX.md") and path.startswith("knowledge/")
    return index or _RECORDS.fullmatch(path) is not None


def _describe_one(change: PathChange) -> str:
    name = short_name(change.path)
    if change.kind == "renamed":
        return f"{short_name(change.old_path or '')} renamed to {name}"
    if change.kind != "modified":
        return f"{name} {'created' if change.kind == 'added' else 'deleted'}"
    signed = {"+": change.added, "-": change.removed}
    counts = [f"{sign}{count}" for sign, count in signed.items() if count]
    if not counts:
        return f"{name} changed"
    return f"{name}: {' '.join(counts)} {'line' if counts in (['+1'], ['-1']) else 'lines'}"


def write_message(
    subject: str, reason: str, actor: Actor, origin: Origin, moves: Iterable[Moved] = ()
) -> str:
    """Compose the full message of a commit."""
    body = clean(reason).strip()
    trailers = _trailers(actor, origin) + [
        f"{_MOVED_KEY}: {clean_line(str(each))}" for each in moves
    ]
    paragraphs = [subject, body, "\n".join(trailers)]
    return "\n\n".join(part for part in paragraphs if part) + "\n"


def _trailers(actor: Actor, origin: Origin) -> list[str]:
    values = {"Actor": actor.value, **{key: getattr(origin, _FIELDS[key]) for key in _FIELDS}}
    if origin.messages:
        values["Messages"] = "{}-{}".format(*origin.messages)
    return [
        f"{key}: {clean_line(str(value))}" for key, value in values.items() if value is not None
    ]


def _split_trailers(message: str) -> tuple[str, list[tuple[str, str]]]:
    """Split a message from its trailers; one of another git program has none of ours."""
    head, _, last = message.rpartition("\n\n")
    lines = last.split("\n")
    pairs = [(found["key"], found["value"]) for found in map(_TRAILER.match, lines) if found]
    is_ours = head and len(pairs) == len(lines) and "Actor" in dict(pairs)
    return (head, pairs) if is_ours else (message, [])


def read_commit(identifier: str, raw: RawCommit, paths: tuple[PathChange, ...] = ()) -> Commit:
    """Parse a commit with its trailers.

    A commit that another git program made has none and counts as a person's.
    """
    head, pairs = _split_trailers(raw.message.strip("\n"))
    trailers = dict(pairs)
    subject, _, body = head.partition("\n")
    actor = _actor(trailers.get("Actor"))
    author = _other_person(raw.author, author_of(Actor.YOU)) if actor is Actor.YOU else None
    return Commit(
        id=identifier,
        parent=raw.parents[0] if raw.parents else None,
        time=raw.time,
        actor=actor,
        subject=subject,
        body=body.strip("\n"),
        origin=_origin(trailers, author),
        paths=paths,
        merged=raw.parents[1:],
        moves=tuple(m for key, value in pairs if key == _MOVED_KEY and (m := Moved.read(value))),
    )


def _actor(value: str | None) -> Actor:
    try:
        return Actor(value or Actor.YOU)
    except ValueError:  # an actor added by a newer kbtui
        return Actor.MCP


@lru_cache(maxsize=256)
def _other_person(author: str, user: str) -> str | None:
    """Return the name of an author, or None if it is the user."""
    name, address = _parse_person(author)
    own_name, own_address = _parse_person(user)
    is_own = name in (own_name, _DEFAULT_USER[0]) or address in (own_address, _DEFAULT_USER[1])
    return None if is_own else shorten(name or address, _NAME_WIDTH) or None


def _parse_person(author: str) -> tuple[str, str]:
    name, _, address = clean_line(author).partition("<")
    return name.strip(), address.partition(">")[0].strip()


def _origin(trailers: dict[str, str], author: str | None) -> Origin:
    known: dict[str, Any] = {_FIELDS[key]: trailers[key] for key in trailers if key in _FIELDS}
    if "messages" in known:
        first, _, last = known["messages"].partition("-")
        begin, end = _number(first), _number(last)
        known["messages"] = None if begin is None or end is None else (begin, end)
    for name in ("cursor", "epoch"):
        if name in known:
            known[name] = _number(known[name])
    return Origin(**known, author=author)


def _number(value: str | None) -> int | None:
    return int(value) if value and _NUMBER.fullmatch(value) else None


_LATEST = 9_999_999_999  # the largest time that git writes in ten digits: the year 2286


def encode_commit(
    tree: str,
    parent: str | None,
    author: str,
    when: datetime,
    message: str,
    *,
    also: str | None = None,
) -> bytes:
    """Encode a commit object; `author` is ``Name <address>``, `also` a second parent."""
    zone = when.strftime("%z")[:5] or "+0000"
    seconds = max(0, min(int(when.timestamp()), _LATEST))  # some clocks are wrong by centuries
    stamp = f"{seconds} {zone}"
    lines = [f"tree {tree}"]
    if parent is not None:
        lines.append(f"parent {parent}")
    if also is not None:
        lines.append(f"parent {also}")
    lines += [f"author {author} {stamp}", f"committer kbtui <kbtui@localhost> {stamp}", "", message]
    return "\n".join(lines).encode("utf-8", "replace")


def decode_commit(data: bytes) -> RawCommit:
    """Decode a commit object written by any git program."""
    head, _, message = data.partition(b"\n\n")
    tree = ""
    parents: list[str] = []
    when = datetime.fromtimestamp(0, UTC)
    encoding = "utf-8"
    author = b""
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        text = value.decode("ascii", "replace")
        if key == b"tree":
            tree = text
        elif key == b"parent":
            parents.append(text)
        elif key == b"encoding":
            encoding = text
        elif key == b"author" and (match := _IDENTITY.match(value)):
            when, author = _timestamp(int(match["time"])), match["who"]
    message_text, name = _decoded(message, encoding), _decoded(author, encoding)
    return RawCommit(tree, tuple(parents), when, message_text, name)


def _timestamp(seconds: int) -> datetime:
    """Convert a Unix time, falling back to 1970 if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _decoded(message: bytes, encoding: str) -> str:
    try:
        return message.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return message.decode("utf-8", "replace")


_DEFAULT_USER = ("You", "you@kbtui.invalid")  # if git knows no user name
_NAME_WIDTH = 40
_SECTION = re.compile(r"^\s*\[\s*(?P<name>[^\]\"\s]+)[^\]]*\]")
_VALUE = re.compile(r"^\s*(?P<key>name|email)\s*=\s*(?P<value>.*?)\s*$", re.IGNORECASE)


def author_of(actor: Actor) -> str:
    """Return ``Name <address>`` of an actor; for the user as configured in git, else ``You``."""
    if actor is not Actor.YOU:
        return f"kbtui {actor.value} <{actor.value}@kbtui.invalid>"
    return _user(os.environ.get("HOME", ""), os.environ.get("XDG_CONFIG_HOME", ""))


@lru_cache(maxsize=4)
def _user(home: str, config: str) -> str:
    """Read the user's name from git's own configuration files, and nothing else from them."""
    found: dict[str, str] = {}
    folder = Path(config) if config else Path(home) / ".config"
    for file in (folder / "git" / "config", Path(home) / ".gitconfig"):
        found |= _read_git_config(file)
    name = re.sub(r"[<>]", "", clean_line(found.get("name", ""))) or _DEFAULT_USER[0]
    address = re.sub(r"[<>\s]", "", clean_line(found.get("email", ""))) or _DEFAULT_USER[1]
    return f"{name} <{address}>"


def _read_git_config(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8-sig", "replace").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    section = ""
    for line in lines:
        if match := _SECTION.match(line):
            section = match["name"].lower()
        elif section == "user" and (match := _VALUE.match(line)):
            found[match["key"].lower()] = match["value"].strip('"')
    return found
