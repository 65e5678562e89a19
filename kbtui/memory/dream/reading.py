"""What Dream reads: unread archive entries, and what the files say about their subjects."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor
from kbtui.knowledge.entries.entry import EntryInfo
from kbtui.knowledge.format.body import body_of
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.knowledge.format.lines import split_lines
from kbtui.knowledge.library.library import Library
from kbtui.knowledge.library.overlay import Overlay, shown_text
from kbtui.memory.dream.tools import CURATE, prompt
from kbtui.memory.edits.guards import missing_facts
from kbtui.memory.edits.memory_file import is_statement, line_key
from kbtui.memory.edits.subjects import is_clear_name, named_in
from kbtui.memory.edits.working_copy import NOTES, WorkingCopy
from kbtui.memory.records.archive import ArchiveEntry
from kbtui.memory.records.cursors import Cursors
from kbtui.memory.records.transcript import ARCHIVE, CATALOGUE, FILE, PROBLEMS, as_block
from kbtui.memory.services import Services
from kbtui.models.port import ChatModel, cut_to_tokens
from kbtui.sessions.slices import split_text
from kbtui.text import fold, moment, shorten, slugify
from kbtui.workspace.layout import short_name

log = logging.getLogger(__name__)
_SAFETY = 0.8  # token counts are estimates
_MIN_TOKENS = 200
_MAX_ENTRY_TOKENS = 16_000
_HITS_PER_ENTRY = 3


@dataclass(frozen=True, slots=True)
class ArchivePage:
    """A part of the archive shown at once: whole entries, or a piece of one that is too long."""

    entries: tuple[ArchiveEntry, ...]
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of all its blocks."""
        return "\n".join(self.blocks)


@dataclass(frozen=True, slots=True)
class ArchiveBatch:
    """The archive entries of one run, oldest first, and how many wait after them."""

    entries: tuple[ArchiveEntry, ...]
    pages: tuple[ArchivePage, ...]
    remaining: int

    @property
    def day(self) -> date | None:
        """The date of the newest entry that has one."""
        return next((entry.day for entry in reversed(self.entries) if entry.day), None)

    @property
    def cursor(self) -> int:
        """The highest cursor."""
        return max(entry.cursor for entry in self.entries)


class TokenBudget:
    """The division of a model's context window, in tokens."""

    def __init__(self, model: ChatModel, index_tokens: int) -> None:
        tools = json.dumps([CURATE.description, CURATE.parameters])
        instructions = prompt("")[0].content
        window = int(model.context_window * _SAFETY)
        free = window - model.count_tokens(tools) - model.count_tokens(instructions)
        self.page = max(_MIN_TOKENS, free // 5)
        self.note = max(_MIN_TOKENS, free // 15)
        self.entries = min(_MAX_ENTRY_TOKENS, max(_MIN_TOKENS, free // 5))
        self.catalogue = min(index_tokens, max(_MIN_TOKENS, free // 10))


class DreamReader:
    """Gathers what a model is shown; nothing from private entries."""

    def __init__(self, services: Services, cursors: Cursors) -> None:
        self._services = services
        self._view = services.for_memory
        self._cursors = cursors

    def waiting(self) -> list[ArchiveEntry]:
        """Return the unread archive entries, without those of imported conversations.

        Those that only account for what Dream itself left out are skipped as well.
        """
        entries = self._services.archive.entries(self._cursors.seen())
        if not entries:
            return []
        imported = {info.id for info in self._services.sessions.list() if info.untouched}
        return [
            entry
            for entry in entries
            if entry.session not in imported and (entry.session or entry.content)
        ]

    def batch(self, limit: int, budget: TokenBudget, model: ChatModel) -> ArchiveBatch:
        """Return the next archive entries, at most `limit` and no more than fit one page.

        An entry longer than a page is a batch of its own, in parts.
        """
        waiting = self.waiting()
        chosen: list[ArchiveEntry] = []
        blocks: list[str] = []
        size = 0
        for entry in waiting[:limit]:
            block = _block(entry, entry.content)
            size += model.count_tokens(block)
            if chosen and size > budget.page:
                break
            chosen.append(entry)
            blocks.append(block)
        pages = [ArchivePage(tuple(chosen), tuple(blocks))]
        if len(chosen) == 1 and size > budget.page:
            parts = split_text(chosen[0].content, budget.page, model.count_tokens)
            pages = [
                ArchivePage((chosen[0],), (_block(chosen[0], part, f"{number} of {len(parts)}"),))
                for number, part in enumerate(parts, 1)
            ]
        pages = pages if chosen else []
        return ArchiveBatch(tuple(chosen), tuple(pages), len(waiting) - len(chosen))

    def unread(self, size: int, day: date) -> list[ArchivePage]:
        """Return all unread archive entries, as pages of at most `size`: the newest first.

        The others begin with another page each day, so that each one has its turn where there is no
        time for all.
        """
        waiting = self.waiting()
        pages = []
        for end in range(len(waiting), 0, -size):
            chosen = tuple(waiting[max(0, end - size) : end])
            pages.append(ArchivePage(chosen, tuple(_block(each, each.content) for each in chosen)))
        first, rest = pages[:1], pages[1:]
        begin = day.toordinal() % max(1, len(rest))
        return [*first, *rest[begin:], *rest[:begin]]

    def material(
        self, page: ArchivePage, files: Overlay, budget: TokenBudget, model: ChatModel
    ) -> str:
        """Return everything that a model is shown for a page, the most stable parts first."""
        paths = [p for p in NOTES if files.exists(p) and not self._view.hides(p)]
        parts = [self._file(path, files, budget.note) for path in paths]
        catalogue = self._view.catalogue(page.text, budget.catalogue, model.count_tokens)
        if catalogue:
            parts.append(as_block(CATALOGUE, catalogue))
        remaining = budget.entries
        for info in self._relevant(page, files):
            block = self._file(info.path, files, remaining)
            remaining -= model.count_tokens(block)
            if remaining < 0:
                break
            paths.append(info.path)
            parts.append(block)
        if found := self._problems(files, paths):
            parts.append(as_block(PROBLEMS, "\n".join(problem.line() for problem in found)))
        return "\n\n".join([*parts, *page.blocks])

    def find_problems(
        self, page: ArchivePage, copy: WorkingCopy
    ) -> tuple[list[Problem], dict[str, str]]:
        """Return the problems in the files around a page, and the texts of these files.

        Two entries that say the same are left to a person if a person wrote both; such a problem
        has no `instead`.
        """
        files = copy.files
        paths = [p for p in NOTES if files.exists(p) and not self._view.hides(p)]
        paths += [info.path for info in self._relevant(page, files)]
        texts = {path: shown_text(files.data(path)) for path in paths}
        return self._problems(files, paths, copy.is_human_only), texts

    def _problems(
        self, files: Overlay, paths: Iterable[str], is_kept: Callable[[str], bool] = lambda _: False
    ) -> list[Problem]:
        """Return the problems in some files, except where Dream was overruled."""
        infos = self._view.library.infos()
        found = problems(self._services.library, infos, files, paths, is_kept)
        return [problem for problem in found if not self._was_undone(problem.path)]

    def _was_undone(self, path: str) -> bool:
        """Return whether a change of Dream to a file was undone."""
        history = self._services.history
        undone = [each for c in history.log(path) for each in (c.origin.undoes or "").split()]
        for each in undone:
            with contextlib.suppress(KbtuiError):  # a purge has removed it
                if history.commit(each).actor is Actor.DREAM:
                    return True
        return False

    def _file(self, path: str, files: Overlay, limit: int) -> str:
        files.shown.add(path)
        text = shown_text(files.data(path))
        cut = cut_to_tokens(text, limit)
        last = next(iter(self._services.history.log(path, limit=1)), None)
        return as_block(
            FILE,
            cut,
            path=path,
            changed=moment(last.time) if last else None,
            cut=None if cut == text else "the rest isn't shown",
        )

    def _relevant(self, page: ArchivePage, files: Overlay) -> list[EntryInfo]:
        """Return the entries that a page is about: first those mentioned, then search hits."""
        infos = {
            info.path: info
            for info in self._view.library.infos()
            if info.problem is None and files.exists(info.path)
        }
        named = named_in(infos.values(), page.text)
        found = [infos[path] for path in self._search_hits(page.entries) if path in infos]
        return list(dict.fromkeys([*named, *found]))[:12]

    def _search_hits(self, entries: Sequence[ArchiveEntry]) -> Iterator[str]:
        for entry in entries:
            query = shorten(entry.content, 400)
            try:
                result = self._view.search.search(query, "knowledge", _HITS_PER_ENTRY)
            except KbtuiError as error:
                log.info("the index can't be asked: %s", error)
                return
            yield from (hit.path for hit in result.hits)


def _block(entry: ArchiveEntry, text: str, part: str | None = None) -> str:
    return as_block(
        ARCHIVE,
        text,
        cursor=entry.cursor,
        time=entry.timestamp or None,
        raw="true" if entry.raw else None,
        part=part,
    )


# Problems -----------------------------------------------------------------------------------------


MAX_PROBLEMS = 12
_MAX_GROUPS = 40


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in the file `path`.

    `kind` is ``broken link``, ``same twice`` (entries), ``repeated line`` or ``not linked``; `what`
    is the link's target, the line or the name of the other entry; `instead` is the right entry, if
    known.
    """

    kind: str
    path: str
    what: str
    instead: str = ""

    def line(self) -> str:
        """Return its line for the prompt."""
        right = f" => {self.instead}" if self.instead else ""
        return f"- {self.kind} in {self.path}: {self.what}{right}"

    @property
    def named(self) -> str:
        """What to tell a person of it, if it is left to them; else ""."""
        is_left = self.kind == "same twice" and not self.instead
        return f"{short_name(self.path)} says what {self.what} says" if is_left else ""

    def edit(self, text: str) -> dict[str, Any] | None:
        """Return the edit that fixes it in its file's text, or None if that isn't evident."""
        path, instead = self.path, self.instead
        if self.kind == "repeated line":
            cut = _second_occurrence(text, self.what)
            return {"do": "edit_file", "path": path, "old": cut[0], "new": cut[1]} if cut else None
        edits: dict[str, dict[str, Any]] = {
            "same twice": {"do": "merge_entries", "path": self.what, "to": instead},
            "broken link": {"do": "fix_link", "path": path, "old": self.what, "to": instead},
            "not linked": {"do": "link_entries", "path": path, "to": instead},
        }
        return edits[self.kind] if instead else None


def _second_occurrence(text: str, fact: str) -> tuple[str, str] | None:
    """Return a unique passage ending with the second line that states a fact, and it without it."""
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if _words(line) == _words(fact)]
    for begin in range(places[1] - 1, -1, -1) if places[1:] else ():
        passage = "\n".join(lines[begin : places[1] + 1])
        if text.count(passage) == 1:
            return passage, "\n".join(lines[begin : places[1]])
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", fold(text)))


def problems(
    library: Library,
    seen: Iterable[EntryInfo],
    files: Overlay,
    shown: Iterable[str],
    is_kept: Callable[[str], bool] = lambda _path: False,
) -> list[Problem]:
    """Return the first problems of each kind in the files `shown`, among the entries `seen`.

    Of two entries that say the same and that both `is_kept`, none is right. A template is never one
    of them, as it resembles its notes.
    """
    infos = [info for info in seen if info.problem is None]
    texts = {path: shown_text(files.data(path)) for path in shown}
    share = MAX_PROBLEMS // 3
    habits = files.habits()
    found = [
        *islice(
            _same_twice([i for i in infos if not habits.is_template(i)], files, is_kept), share
        ),
        *islice(_repeated({path: texts[path] for path in NOTES if path in texts}), share),
        *islice(_not_linked(library, infos, texts), share),
    ]
    return [*found, *islice(_broken_links(library, infos), MAX_PROBLEMS - len(found))]


def _same_twice(
    infos: Iterable[EntryInfo], files: Overlay, is_kept: Callable[[str], bool]
) -> Iterator[Problem]:
    """Yield entries of one name and folder of which one says everything that the other does."""
    for group in islice(_same_named(infos), _MAX_GROUPS):
        kept_paths = {info.path for info in group if is_kept(info.path)}
        kept, *others = sorted(
            group, key=lambda info: (info.path not in kept_paths, len(info.slug), info.slug)
        )
        for other in others:
            paths = (other.path, kept.path)
            if _is_within(files, *paths) or _is_within(files, *reversed(paths)):
                is_left = other.path in kept_paths
                what, instead = (kept.name, "") if is_left else (short_name(other.path), kept.name)
                yield Problem("same twice", other.path, what, instead)


def _same_named(infos: Iterable[EntryInfo]) -> Iterator[list[EntryInfo]]:
    """Return the groups of entries that share a name and a folder."""
    groups: dict[tuple[str, str], list[EntryInfo]] = defaultdict(list)
    for info in infos:
        groups[info.category, normalise(info.title)].append(info)
    return (group for group in groups.values() if len(group) > 1)


def _is_within(files: Overlay, path: str, other: str) -> bool:
    return not missing_facts(shown_text(files.data(path)), [shown_text(files.data(other))])


def _repeated(texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield facts that appear twice under the same heading; the second is reported."""
    for path, text in texts.items():
        seen: set[str] = set()
        for line in split_lines(text):
            if not is_statement(line):
                seen = seen if not line.strip() else set()
            elif (key := line_key(line)) in seen:
                yield Problem("repeated line", path, plain_fact(line))
            elif key:
                seen.add(key)


def _not_linked(
    library: Library, infos: Sequence[EntryInfo], texts: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield mentions without a link of a person, a project, or an entry with a longer name."""
    named = [*filter(is_clear_name, infos)]
    for path, text in texts.items():
        if path in NOTES or not text.startswith("---"):
            continue
        linked = {path, *(each.path for each in library.outgoing(path))}
        for info in named_in(named, body_of(text)):
            if info.path not in linked:
                yield Problem("not linked", path, info.title, info.name)


def _broken_links(library: Library, infos: Iterable[EntryInfo]) -> Iterator[Problem]:
    """Yield links that lead nowhere though exactly one entry has that name."""
    known = list(infos)
    by_slug: dict[str, list[str]] = defaultdict(list)
    for info in known:
        by_slug[slugify(info.slug)].append(info.name)
    for info in known:
        for resolved in library.outgoing(info.path):
            target = resolved.link.target
            if resolved.path is not None or not target:
                continue
            name = target.rstrip("/").rpartition("/")[2].removesuffix(".md")
            candidates = by_slug.get(slugify(name), []) if name else []
            if len(candidates) == 1 and candidates[0] != info.name:
                yield Problem("broken link", info.path, target, candidates[0])
