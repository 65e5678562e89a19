"""Tombstones of facts that must not be remembered again because the user undid or forgot them.

``memory/tombstones.jsonl`` holds a keyed hash of each fact and where it was said, never the text,
so whoever reads the file learns nothing. The key is in ``.kbtui/key``.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.change import Actor, Change, Commit, is_import
from kbtui.history.history import History
from kbtui.knowledge.format.facts import normalise, without_facts
from kbtui.memory.records.archive_lines import is_record
from kbtui.memory.records.claims import changed_facts, facts_of
from kbtui.memory.records.dates import local, with_dates
from kbtui.memory.records.ranges import Range, read_range
from kbtui.sessions.log_records import TITLE
from kbtui.sessions.store import SessionStore
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import BadLine, Record, add_record, parse_records
from kbtui.workspace.layout import MACHINE, Workspace

TOMBSTONES = "memory/tombstones.jsonl"
LOST_KEY = "its key is lost"
_KEY = f"{MACHINE}/key"
_KEY_BYTES = 32
_ONE_CHANGE = timedelta(minutes=1)  # between a tombstone and its commit
# Files that hold memory; the archive, the cursors and the tombstones don't count.
_REMEMBERED = re.compile(
    r"knowledge/.*|memory/(?:MEMORY|\d{4}-\d\d-\d\d[^/]*)\.md|USER\.md|SOUL\.md", re.DOTALL
)
_CLOCK = re.compile(r"\A\d\d:\d\d[ \t]+(?=\S)")
_GENERATED = "INDEX.md"
_OLDER_FORMS = ("> {}", "%% {} %%")
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")
_ANSWERS = re.compile(r"\A\W*\w+,\s")


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where a fact was said; `messages` is an inclusive range of ids."""

    session: str
    messages: Range


@dataclass(frozen=True, slots=True)
class _Tombstone:
    """The latest tombstone of a fact; messages in `dropped` are skipped altogether.

    If `undone`, the fact was undone or rejected; otherwise it was forgotten.
    """

    digest: str
    time: datetime
    sources: tuple[FactSource, ...]
    lifted: bool
    dropped: tuple[FactSource, ...]
    undone: bool = False

    def after(self, before: _Tombstone) -> _Tombstone:
        """Return this tombstone with the sources of an earlier one of the same fact added."""
        if self.lifted or before.lifted:
            return self
        return replace(
            self,
            sources=_union(before.sources, self.sources),
            dropped=_union(before.dropped, self.dropped),
            undone=before.undone and self.undone,
        )

    def already_says(self, now: datetime, sources: Sequence[FactSource], *, undone: bool) -> bool:
        """Return whether the tombstone already says all of this.

        A fact buried earlier is buried again: the user may have stated it in between.
        """
        holds = not self.lifted and self.time == now and self.undone <= undone
        return holds and set(sources) <= set(self.sources)


@dataclass(eq=False)
class Tombstones:
    """Buries facts, and knows which ones are buried."""

    workspace: Workspace
    history: History
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _key: bytes | None = field(default=None, init=False)
    _cached: tuple[tuple[int, int, int] | None, dict[str, _Tombstone]] = field(
        default_factory=lambda: (None, {}), init=False
    )

    def bury(
        self,
        change: Change,
        facts: Iterable[str],
        sources: Sequence[FactSource] = (),
        *,
        undone: bool = False,
    ) -> int:
        """Add tombstones to a running change; return how many facts were newly buried.

        `sources` is where the facts were said. Facts that were `undone` are only kept from
        background work; forgotten ones from every writer, until they are stated again.
        """
        return self._append(change, self._digests(facts), sources, undone=undone)

    def lift(self, change: Change, facts: Iterable[str]) -> int:
        """Lift tombstones, because the user stated these facts again or undid an undo."""
        there, facts = self._by_digest(), list(facts)
        older = [each for fact in facts for each in self._older_digests(fact) if each in there]
        return self._append(change, [*self._digests(facts), *older], lifted=True)

    def buried(
        self, fact: str, *, said: Iterable[tuple[datetime, str]] = (), asked: bool = False
    ) -> bool:
        """Return whether a fact, in any wording that `normalise` equates, must not be written.

        The user may have stated it again in what was `said` since. An undone fact may also be
        written by a writer that was `asked` to since then: nobody repeats all the words of a
        request.
        """
        there = self._by_digest()
        digests = (self._digest(fact), *self._older_digests(fact)) if there else ()
        stones = [there[each] for each in digests if each in there and not there[each].lifted]
        if not stones:
            return False
        stone = max(stones, key=attrgetter("time"))
        since = self._said_since(stone, said)
        return not ((asked and stone.undone and since) or is_stated(fact, since))

    def _said_since(
        self, stone: _Tombstone, said: Iterable[tuple[datetime, str]]
    ) -> list[tuple[datetime, str]]:
        """Return what was said after a fact was buried.

        A tombstone with a time to come was made under a wrong clock: its commit tells after which
        others it was, and what was said under such a clock is left out.
        """
        now = self.clock()
        if stone.time <= now:
            return [(when, text) for when, text in said if when > stone.time]
        moments = self.history.moments()
        made = next(
            (
                moments[commit.id]
                for commit in self.history.log(TOMBSTONES)
                if commit.id in moments and abs(commit.time - stone.time) < _ONE_CHANGE
            ),
            stone.time.timestamp(),
        )
        return [(when, text) for when, text in said if made < when.timestamp() and when <= now]

    def forgotten(self, session: str) -> list[Range]:
        """Return the messages of a session whose facts were buried."""
        return self._messages(session, lambda stone: stone.sources)

    def dropped(self, session: str) -> list[Range]:
        """Return the messages that an older version was asked to skip."""
        return self._messages(session, lambda stone: stone.dropped)

    def _messages(
        self, session: str, get: Callable[[_Tombstone], Iterable[FactSource]]
    ) -> list[Range]:
        stones = (stone for stone in self._by_digest().values() if not stone.lifted)
        return [each.messages for stone in stones for each in get(stone) if each.session == session]

    def companion(self, change: Change) -> bool:
        """Bury facts that an undo removes and lift those it restores; return whether it is an undo.

        Of what a restore removes, only what a machine wrote is buried: going back to a day takes
        along what the person wrote since, which isn't wrong for that.

        An import that is undone as a whole may be imported again, and what a sync takes back is
        still in the notes in other words: nothing is buried for either.
        """
        if change.is_restoration and change.origin.undoes is None and not change.adopted:
            self.bury(change, _with_untimed(self._machines(change)), undone=True)
        if change.origin.undoes is None or change.adopted or self._is_import(change.origin.undoes):
            return False
        for path in [path for path in change.edits if is_record(path)]:
            change.replace(path, files.read_if_there(self.workspace, path))
        if change.actor is Actor.SYNC:
            return False
        removed, added = _changed_facts(change)
        sources = self._sources(change.origin.undoes)
        self.bury(
            change, _with_untimed(without_facts(removed, added).values()), sources, undone=True
        )
        self.lift(change, _with_untimed(without_facts(added, removed).values()))
        again = chain(*map(self.buried_by, change.origin.undoes.split()))
        gone = self._digests(removed.values())
        self._append(change, (e.digest for e in again if e.digest not in gone), lifted=True)
        return True

    def _machines(self, change: Change) -> list[str]:
        """Return the facts that a change removes of those that a machine wrote."""
        removed, added = _changed_facts(change)
        gone = without_facts(removed, added)
        found: dict[str, str] = {}
        for path in filter(_is_remembered, change.edits if gone else ()):
            text = files.text_of(change.before(path))
            origins = self.history.blame(path, text=text) if text else ()
            lines = zip(text.split("\n"), origins, strict=False)
            written = [line for line, each in lines if not each.actor.writes_human_text]
            found |= {normalise(fact): fact for fact in facts_of("\n".join(written))}
        return [fact for key, fact in gone.items() if key in found]

    def _is_import(self, commits: str) -> bool:
        """Return whether commits are the whole of an import, but for what is undone already."""
        known = commits.split()
        batch = self.history.commit(known[0]).origin.batch
        if batch is None or not is_import(batch):
            return False
        return {each.id for each in self.history.standing(batch)} <= set(known)

    def restore_sessions(self, commit: Commit, sessions: SessionStore) -> list[str]:
        """Toggle the session masks of a forgetting that a commit undid or redid; return the ids."""
        changed: dict[str, None] = {}
        for each in (commit.origin.undoes or "").split():
            try:
                undone = self.history.commit(each)
            except KbtuiError:
                continue
            if undone.origin.undoes:
                changed |= dict.fromkeys(self.restore_sessions(undone, sessions))
            for session in self.sessions_of(each) if not undone.origin.undoes else ():
                with suppress(KbtuiError):
                    sessions.unmask(session, each)
                    changed[session] = None
        return list(changed)

    def sessions_of(self, commit: str) -> list[str]:
        """Return the sessions in which the facts that a commit buried were said."""
        sources = [source for stone in self.buried_by(commit) for source in stone.sources]
        return list(dict.fromkeys(source.session for source in sources))

    def buried_by(self, commit: str) -> list[_Tombstone]:
        """Return the tombstones that a commit added; none if the commit no longer exists."""
        try:
            before = self._blob_at(self.history.commit(commit).parent)
            after = self._blob_at(commit)
        except KbtuiError:
            return []
        if after == before:
            return []
        known = {record.data for record in self._records(before)}
        stones = (_parse(each.value) for each in self._records(after) if each.data not in known)
        return [stone for stone in stones if stone is not None and not stone.lifted]

    def _blob_at(self, commit: str | None) -> str | None:
        return self.history.tree(commit).get(TOMBSTONES) if commit else None

    def _records(self, blob: str | None) -> list[Record]:
        return parse_records(self.history.read_blob(blob) if blob else b"", TOMBSTONES)[0]

    def problems(self) -> tuple[BadLine, ...]:
        """Return the lines that can't be used; they stay in the file as they are."""
        records, bad = parse_records(
            files.read_if_there(self.workspace, TOMBSTONES) or b"", TOMBSTONES
        )
        for record in records:
            if _parse(record.value) is None:
                bad.append(BadLine(TOMBSTONES, record.number, record.data, "no tombstone"))
            elif record.value.get("key", self._key_id()) != self._key_id():
                bad.append(BadLine(TOMBSTONES, record.number, record.data, LOST_KEY))
        return tuple(sorted(bad, key=lambda line: line.number))

    def _append(
        self,
        change: Change,
        digests: Iterable[str],
        sources: Sequence[FactSource] = (),
        *,
        lifted: bool = False,
        undone: bool = False,
    ) -> int:
        data = grown = change.read(TOMBSTONES) or b""
        known, now, count = _read(data), self.clock(), 0
        for digest in dict.fromkeys(digests):
            stone = known.get(digest)
            is_buried = stone is not None and not stone.lifted
            is_known = stone is not None and stone.already_says(now, sources, undone=undone)
            if is_buried if lifted else not is_known:
                record = self._record(digest, sources, now, lifted=lifted, undone=undone)
                grown = add_record(grown, record)
                count += lifted or not is_buried
        if grown != data:
            change.put(TOMBSTONES, grown, over=change.before(TOMBSTONES))
        return count

    def _record(
        self, digest: str, sources: Sequence[FactSource], time: datetime, **marks: bool
    ) -> dict[str, Any]:
        record: dict[str, Any] = {"hash": digest, "time": time.isoformat(), "key": self._key_id()}
        if sources:
            record["sources"] = [
                {"session": source.session, "messages": list(source.messages)} for source in sources
            ]
        return record | {mark: True for mark, holds in marks.items() if holds}

    def _sources(self, undone: str) -> tuple[FactSource, ...]:
        """Return where the facts of the undone commits were said."""
        found = []
        for commit in undone.split():
            try:
                origin = self.history.commit(commit).origin
            except KbtuiError:
                continue
            if origin.session is not None and origin.messages is not None:
                found.append(FactSource(origin.session, origin.messages))
        return tuple(found)

    def _by_digest(self) -> dict[str, _Tombstone]:
        """Return all tombstones by digest, reread if the file has changed."""
        status = files.file_status(self.workspace, TOMBSTONES)
        state = (status.st_size, status.st_ino, status.st_mtime_ns) if status else None
        if state != self._cached[0]:
            data = files.read_if_there(self.workspace, TOMBSTONES) or b""
            self._cached = (state, _read(data))
        return self._cached[1]

    def _digests(self, facts: Iterable[str]) -> list[str]:
        return [self._digest(fact) for fact in facts if normalise(fact)]

    def _older_digests(self, fact: str) -> Iterator[str]:
        """Yield the hashes under which 0.3.0 and older buried a line of a quote or a comment."""
        for form in _OLDER_FORMS:
            yield self._digest(form.format(fact))

    def _digest(self, fact: str) -> str:
        return hmac.new(self._secret(), normalise(fact).encode(), hashlib.sha256).hexdigest()

    def _key_id(self) -> str:
        """Return a fingerprint that tells keys apart without revealing them."""
        return hmac.new(self._secret(), b"name", hashlib.sha256).hexdigest()[:8]

    def _secret(self) -> bytes:
        if self._key is None:
            self._key = self._load_key() or self._make_key()
        return self._key

    def _load_key(self) -> bytes | None:
        try:
            with storage_errors("Can't read the key of the tombstones"):
                key = bytes.fromhex(self._key_file.read_text("ascii", "replace"))
        except (NotFoundError, ValueError):
            return None
        return key if len(key) == _KEY_BYTES else None

    def _make_key(self) -> bytes:
        """Create the key once for all processes, replacing a damaged one."""
        key = secrets.token_bytes(_KEY_BYTES)
        if not self.workspace.writable:
            return key
        draft = f"{_KEY}-{secrets.token_hex(4)}"
        files.write_machine_file(self.workspace, draft, key.hex().encode())
        made = self.workspace.root / draft
        with storage_errors("Can't make the key of the tombstones"):
            try:
                os.link(made, self._key_file)
            except FileExistsError:
                theirs = self._load_key()
                if theirs is None:
                    made.replace(self._key_file)
                key = theirs or key
            made.unlink(missing_ok=True)
        return key

    @property
    def _key_file(self) -> Path:
        return self.workspace.root / _KEY


def _with_untimed(facts: Iterable[str]) -> list[str]:
    """Return the facts, and journal lines a second time without their time of day."""
    return [each for fact in facts for each in dict.fromkeys((fact, _CLOCK.sub("", fact)))]


def is_stated(fact: str, said: Iterable[tuple[datetime, str]]) -> bool:
    """Return whether a text contains all words of a fact without denying it.

    Files have dates where people say "tomorrow".
    """
    return any(_states(with_dates(text, local(when)), fact) for when, text in said)


def _states(text: str, fact: str) -> bool:
    """Return whether the sentences of a text that deny nothing contain all words of a fact.

    A single word before a comma answers an earlier question: "No, I do like tea."
    """
    from kbtui.offline.language import language_of  # its words are loaded only if needed
    from kbtui.offline.times import iso_days

    language = language_of(text)
    words = set(normalise(fact).split())
    if any(iso_days(fact)):  # "on" that day, which is "tomorrow"
        words -= language.words["on"]
    denials = language.list("deny").words | language.list("forget").words
    stated: set[str] = set()
    for sentence in _SENTENCE_END.split(text):
        rest = set(normalise(_ANSWERS.sub("", sentence, count=1)).split())
        if not (rest & denials) - words:
            stated |= set(normalise(sentence).split())
    return words <= stated


def _read(data: bytes) -> dict[str, _Tombstone]:
    records, _ = parse_records(data, TOMBSTONES)
    stones = [stone for record in records if (stone := _parse(record.value)) is not None]
    latest: dict[str, _Tombstone] = {}
    for stone in sorted(stones, key=lambda stone: stone.time):
        before = latest.get(stone.digest)
        latest[stone.digest] = stone.after(before) if before else stone
    return latest


def _union(one: Sequence[FactSource], other: Sequence[FactSource]) -> tuple[FactSource, ...]:
    return tuple(dict.fromkeys([*one, *other]))


def _parse(value: Any) -> _Tombstone | None:
    digest, time = value.get("hash"), value.get("time")
    if not isinstance(digest, str) or not isinstance(time, str):
        return None
    try:
        when = datetime.fromisoformat(time)
    except ValueError:
        return None
    listed = value.get("sources")
    sources = tuple(_sources(listed if isinstance(listed, list) else []))
    return _Tombstone(
        digest,
        when if when.tzinfo else when.replace(tzinfo=UTC),
        sources,
        value.get("lifted") is True,
        sources if value.get("drops") is True else (),
        value.get("undone") is True,
    )


def _sources(values: list[Any]) -> Iterable[FactSource]:
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("session"), str):
            messages = read_range(value.get("messages"), TITLE)
            if messages is not None:
                yield FactSource(value["session"], messages)


def _is_remembered(path: str) -> bool:
    return _REMEMBERED.fullmatch(path) is not None and not path.endswith(_GENERATED)


def _changed_facts(change: Change) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts that a change removes from memory and those that it adds, by key."""
    removed: dict[str, str] = {}
    added: dict[str, str] = {}
    for path, data in list(change.edits.items()):
        if _is_remembered(path):
            before = change.before(path)
            gone, come = changed_facts(files.text_of(before), files.text_of(data))
            removed |= gone
            added |= come
    return removed, added
