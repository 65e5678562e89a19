"""Views of a workspace that contain only what an audience may see.

Code that makes text for a model or another agent uses a `View`, which has a library, a history, a
search and sessions like those of the workspace. They don't contain what the audience may not see,
so the code needs no privacy rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

from kbtui.documents.documents import Documents, DocumentText, is_document
from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library, Reader
from kbtui.knowledge.library.overlay import Overlay
from kbtui.models.port import ChatModel
from kbtui.search.results import Hit, NewerLine, OtherPlace, SearchResult, SimilarNotes
from kbtui.search.search_index import SIMILAR, SearchIndex
from kbtui.sessions import TAINT
from kbtui.sessions.store import SessionMessage, SessionStore
from kbtui.settings import Settings
from kbtui.views.public_history import PublicHistory
from kbtui.workspace.files import READ_LIMIT, read_pieces, text_of
from kbtui.workspace.layout import Workspace, short_name
from kbtui.workspace.scan import Scanner

_SPARE = 8  # additional hits to search for, since some may be hidden
_MAX_PATH = 1_000
WITHHELD = "[withheld: this drew on a private entry, which only local models may read]"
# As a JSON key: in a string, quotes are escaped.
_MARKED = rf'"{TAINT}": ?(?!false|null|\[\])'
_OVERLAP = 10_000  # bytes


class Audience(Enum):
    """Who sees a workspace."""

    OWN_MODEL = "a model on this machine"
    """Sees everything. What it was shown is marked, so that no other model is told later."""
    MODEL_ELSEWHERE = "a model on another machine"
    """Sees nothing private, but may know that private entries exist."""
    OTHER_AGENT = "another program"
    """Must not learn that there are private entries."""

    @classmethod
    def of(cls, model: ChatModel) -> Audience:
        """Return the audience of what a chat model is shown."""
        return cls.OWN_MODEL if model.is_local else cls.MODEL_ELSEWHERE


class ViewedServices(Protocol):
    """The parts of a workspace that a view is based on."""

    @property
    def workspace(self) -> Workspace: ...  # noqa: D102
    @property
    def settings(self) -> Settings: ...  # noqa: D102
    @property
    def history(self) -> History: ...  # noqa: D102
    @property
    def library(self) -> Library: ...  # noqa: D102
    @property
    def search(self) -> SearchIndex: ...  # noqa: D102
    @property
    def sessions(self) -> SessionStore: ...  # noqa: D102
    @property
    def newer(self) -> NewerLines: ...  # noqa: D102


class Said(Protocol):
    """When something was said."""

    @property
    def day(self) -> date:
        """The day, where it was said."""

    @property
    def moment(self) -> float:
        """A Unix time to order it by."""


class NewerLines(Protocol):
    """The lines that hold instead of older ones."""

    def known(self, texts: Iterable[str]) -> list[str]:
        """Return those of some lines' texts that may be an older one's; this is fast."""

    def of(self, text: str, sight: View) -> NewerLine | None:
        """Return the newest line that holds instead of one with this text, as far as it is seen."""

    def with_newer(self, hits: Sequence[Hit], sight: View) -> tuple[Hit, ...]:
        """Return hits with the newer line of what each shows, where one is known and seen."""

    def catch_up(self, paths: Iterable[str] = ()) -> None:
        """Read what changed, as far as a short command may wait for it: these files first."""

    def said_in(self, path: str, text: str, numbers: Iterable[int]) -> Mapping[int, Said]:
        """Return when lines of a file were said, by their number, where it is known."""


class View:
    """A workspace as an audience sees it; thread-safe."""

    def __init__(
        self, services: ViewedServices, audience: Audience, *, may_repeat_private: bool = False
    ) -> None:
        """Create a view; with `may_repeat_private`, queries may repeat private text."""
        self.audience = audience
        self._services = services
        self._sees_all = audience is Audience.OWN_MODEL
        self._may_repeat_private = may_repeat_private or self._sees_all

    @cached_property
    def library(self) -> Reader:
        """The entries, and any file."""
        return {
            Audience.OWN_MODEL: self._services.library.for_own_models,
            Audience.MODEL_ELSEWHERE: self._services.library.discreet,
            Audience.OTHER_AGENT: self._services.library.public,
        }[self.audience]

    def overlay(self) -> Overlay:
        """Return the files, to compute edits on top of them without writing."""
        return {
            Audience.OWN_MODEL: self._services.library.overlay,
            Audience.MODEL_ELSEWHERE: self._services.library.discreet_overlay,
            Audience.OTHER_AGENT: self._services.library.public_overlay,
        }[self.audience]()

    @cached_property
    def history(self) -> PublicHistory:
        """The history; without private files for every audience, since it can't mark them."""
        return PublicHistory(self._services.history, self._services.library)

    @cached_property
    def search(self) -> SearchView:
        """The search."""
        return SearchView(self._services, self, may_repeat_private=self._may_repeat_private)

    @cached_property
    def sessions(self) -> SessionView:
        """The conversations."""
        return SessionView(self._services, sees_all=self._sees_all)

    @cached_property
    def unasked(self) -> View:
        """The view for what is shown unasked: without private entries, since it isn't marked."""
        if not self._sees_all:
            return self
        return View(self._services, Audience.MODEL_ELSEWHERE, may_repeat_private=True)

    @property
    def unseen(self) -> int:
        """The number of hidden entries, 0 if the audience may not know of them."""
        if self.audience is Audience.OTHER_AGENT:
            return 0
        return len(self._services.library.infos()) - len(self.library.infos())

    def catalogue(self, query: str, most_tokens: int, count: Callable[[str], int]) -> str:
        """Return the catalogue for a prompt, ranked for a query, with the number `unseen`."""
        library = self._services.library
        return library.prompt_index(query, most_tokens, count, self.library, self.unseen)

    def hides(self, path: str) -> bool:
        """Return whether the text of this file is hidden."""
        return not self._sees_all and self._services.library.is_private(path)

    def conceals(self, path: str) -> bool:
        """Return whether even the existence of this file is hidden."""
        return self.audience is Audience.OTHER_AGENT and self.hides(path)

    def shows_past(self, path: str) -> bool:
        """Return whether earlier versions of a file may be shown."""
        return self._sees_all or not self.history.has_private_past(path)

    def is_document(self, path: str) -> bool:
        """Return whether a file is read as text extracted from a document."""
        return is_document(path, self._services.settings.search.roots)

    def text(self, path: str, most_bytes: int = READ_LIMIT) -> str:
        """Return the text of a text file.

        Raises:
            NotFoundError: It doesn't exist for this audience. Otherwise like `Reader.read`.
        """
        return text_of(self.library.read(path, most_bytes))

    def document(self, path: str) -> DocumentText:
        """Return the text extracted from a document.

        Raises:
            NotFoundError: It doesn't exist for this audience.
            UsageError: It is private.
        """
        self.library.check(path)
        with Documents(self._services.workspace) as documents:
            return documents.read(path)

    def catch_up(self, hits: Iterable[Hit] = ()) -> None:
        """Find the newer lines of what changed, as far as a short command may wait for it.

        Where much has, it is those of some hits that are found.
        """
        self._services.newer.catch_up(
            [hit.path if hit.session is None else f"sessions/{hit.session}.jsonl" for hit in hits]
        )

    def said_in(self, path: str, numbers: Iterable[int]) -> Mapping[int, Said]:
        """Return when lines of a file were said, by their number from 1, where it is known."""
        try:
            return self._services.newer.said_in(path, self.text(path), numbers)
        except KbtuiError:
            return {}

    def newer(self, texts: Iterable[str]) -> dict[str, NewerLine]:
        """Return the newer line of each line of which one is known and may be seen, by its text."""
        newer = self._services.newer
        found = ((text, newer.of(text, self)) for text in newer.known(texts))
        return {text: line for text, line in found if line is not None}

    def with_newer(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return hits with the newer line of what each shows, where one is known and seen."""
        return self._services.newer.with_newer(hits, self)

    def files(self, *areas: str) -> list[str]:
        """Return the paths of the files in some areas that exist for this audience."""
        found = Scanner(self._services.workspace).scan(*areas)
        return sorted(path for path in found if not self.hides(path))

    def projects(self) -> list[str]:
        """Return the names of the folders in docs/."""
        folder = self._services.workspace.docs
        names = [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
        return sorted(name for name in names if not self.conceals(f"docs/{name}/README.md"))

    def taint_of(self, shown: Any) -> tuple[str, ...]:
        """Return the private sources of what was shown, to be marked where it is stored.

        Args:
            shown: The data of a tool's result, with paths anywhere in it, and messages of sessions
                as ``{"session": ..., "messages": [first, last]}``.
        """
        if not self._sees_all:
            return ()
        library, sessions = self._services.library, self.sessions
        found = {path: None for path in sorted({*_paths(shown)}) if _is_private(library, path)}
        for session, messages in _message_ranges(shown):
            if sessions.is_tainted(session, messages):
                found[f"sessions/{session}.jsonl"] = None
        return tuple(found)


class SearchView:
    """The search as an audience sees it."""

    def __init__(self, services: ViewedServices, view: View, *, may_repeat_private: bool) -> None:
        self._services = services
        self._view = view
        self._may_repeat_private = may_repeat_private

    def search(
        self,
        query: str,
        scope: str = "default",
        limit: int = 10,
        *,
        relevant_only: bool = False,
        statements_only: bool = False,
        by_chance: bool = False,
        before: tuple[str, int] | None = None,
        typed: bool = False,
    ) -> SearchResult:
        """Return the hits for a query; see `SearchIndex.search`.

        A query that wasn't `typed` by a person may repeat what a model read in a private entry, and
        isn't sent to an embedding model elsewhere.
        """
        has_private = any(info.private for info in self._services.library.infos())
        result = self._services.search.search(
            query,
            scope,
            limit + _SPARE,
            relevant_only=relevant_only,
            statements_only=statements_only,
            by_chance=by_chance,
            before=before,
            sendable=typed or not (self._may_repeat_private and has_private),
        )
        hits = [self._without_hidden(hit) for hit in result.hits if not self._hides(hit)][:limit]
        # A word from a private entry would reveal it, and can't be marked.
        suggestion = None if has_private else result.suggestion
        return replace(result, hits=tuple(hits), suggestion=suggestion)

    def similar(self, path: str, limit: int = SIMILAR) -> SimilarNotes:
        """Return the notes that are like one that the audience sees; see `SearchIndex.similar`."""
        return self._services.search.similar(path, limit, hides=self._view.hides)

    def _without_hidden(self, hit: Hit) -> Hit:
        also = tuple(place for place in hit.also if not self._hides(place))
        return hit if len(also) == len(hit.also) else replace(hit, also=also)

    def _hides(self, found: Hit | OtherPlace) -> bool:
        view = self._view
        return view.hides(found.path) or view.sessions.hides(found.session, found.messages)


class SessionView:
    """The conversations as an audience sees them."""

    def __init__(self, services: ViewedServices, *, sees_all: bool) -> None:
        self._services = services
        self._sees_all = sees_all

    def messages(self, ref: str) -> tuple[SessionMessage, ...]:
        """Return the messages of a conversation; raises like `SessionStore.read`."""
        return self.shown(self._services.sessions.read(ref))

    def shown(self, messages: Iterable[SessionMessage]) -> tuple[SessionMessage, ...]:
        """Return messages with the content of those based on private entries withheld."""
        return tuple(messages) if self._sees_all else tuple(map(_withheld, messages))

    def withholds(self, message: SessionMessage) -> bool:
        """Return whether the content of this message is withheld."""
        return not self._sees_all and message.tainted

    def withheld(self, messages: Sequence[SessionMessage]) -> frozenset[int]:
        """Return the ids of all messages in turns that used something hidden from this audience.

        Turns mark what their tools showed; in addition, the name of a private entry in an answer
        counts as a sign, for conversations from before the entry became private.
        """
        if self._sees_all:
            return frozenset()
        infos = self._services.library.infos()
        names = tuple(short_name(info.path) for info in infos if info.private)
        turns: list[list[SessionMessage]] = [[]]
        for message in messages:
            if message.role == "user":
                turns.append([])
            turns[-1].append(message)
        matching = (turn for turn in turns if any(_reveals_private(each, names) for each in turn))
        return frozenset(each.id for turn in matching for each in turn)

    def hidden_logs(self, logs: Iterable[str], hidden: Iterable[str]) -> set[str]:
        """Return the logs, by path, that contain something private or name a `hidden` file.

        This includes rewound messages, which are still in the log.
        """
        if self._sees_all:
            return set()
        names = {form for path in hidden for form in (path, json.dumps(path)[1:-1])}
        matching = re.compile("|".join([_MARKED, *map(re.escape, sorted(names))]).encode())
        found = set()
        for path in logs:
            last = b""
            with suppress(KbtuiError):  # whoever reads the log will report it
                for piece in read_pieces(self._services.workspace, path):
                    if matching.search(last + piece):
                        found.add(path)
                    last = piece[-_OVERLAP:]
        return found

    def hides(self, session: str | None, messages: tuple[int, int] | None) -> bool:
        """Return whether a range of messages is based on something hidden from this audience."""
        return not self._sees_all and self.is_tainted(session, messages)

    def hides_any(self, session: str | None) -> bool:
        """Return whether any message of a session is based on something hidden."""
        return self.hides(session, (0, 1 << 62))

    def is_tainted(self, session: str | None, messages: tuple[int, int] | None) -> bool:
        """Return whether a range of messages is based on private entries, for any audience."""
        if not session or messages is None:
            return False
        first, last = messages
        try:
            found = self._services.sessions.read(session)
        except NotFoundError:
            return False
        return any(first <= each.id <= last and each.tainted for each in found)


def _reveals_private(message: SessionMessage, names: Sequence[str]) -> bool:
    """Return whether a message is based on private entries, or an answer has one of the names."""
    if message.tainted or message.role == "user" or not names:
        return message.tainted
    texts = [message.content, *(call.arguments for call in message.tool_calls)]
    texts.append(json.dumps(dict(message.meta), ensure_ascii=False, default=str))
    text = "\n".join(texts)
    return any(name in text for name in names)


def _withheld(message: SessionMessage) -> SessionMessage:
    """Return a message for models on other machines."""
    if not message.tainted:
        return message
    calls = tuple(replace(call, arguments="{}") for call in message.tool_calls)
    return replace(message, content=WITHHELD, tool_calls=calls)


def _paths(shown: Any) -> Iterator[str]:
    """Yield all strings in the data that may be paths."""
    if isinstance(shown, str):
        if ("/" in shown or shown.endswith(".md")) and len(shown) <= _MAX_PATH:
            yield shown
    elif isinstance(shown, Mapping):
        for value in shown.values():
            yield from _paths(value)
    elif isinstance(shown, Iterable):
        for value in shown:
            yield from _paths(value)


def _is_private(library: Library, text: str) -> bool:
    try:
        return library.is_private(text)
    except KbtuiError:  # not a path
        return False


def _message_ranges(shown: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the message ranges of sessions in the data."""
    if isinstance(shown, Mapping):
        match shown:
            case {"session": str(session), "messages": [int(first), int(last)]}:
                yield session, (first, last)
        shown = shown.values()
    if isinstance(shown, Iterable) and not isinstance(shown, str):
        for value in shown:
            yield from _message_ranges(value)
