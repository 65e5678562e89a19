"""What somebody may see of a workspace: views in which the rest isn't there.

Whoever makes text for a model or for another agent asks a `View`, which has a library, a history, a
search and sessions like those of the workspace. What its reader may not see is in none of them, so
that nobody who works with one has to know what is private.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

from kbtui.documents.documents import Documents, DocumentText, is_document
from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library, Reader
from kbtui.knowledge.library.overlay import Overlay
from kbtui.models.port import ChatModel
from kbtui.search.results import Hit, OtherPlace, SearchResult
from kbtui.search.search_index import SearchIndex
from kbtui.sessions import DREW_ON
from kbtui.sessions.store import SessionMessage, SessionStore
from kbtui.settings import Settings
from kbtui.views.public_history import PublicHistory
from kbtui.workspace.files import READ_LIMIT, read_pieces, text_of
from kbtui.workspace.layout import Workspace, short_name
from kbtui.workspace.scan import Scanner

_SPARE = 8  # hits that are looked for beyond what is wanted, as some may have to be left out
_LONGEST_PATH = 1_000
WITHHELD = "[withheld: this drew on a private entry, which only local models may read]"
_MARKED = rf'"{DREW_ON}": ?(?!false|null|\[\])'  # as a key: in a text its quotes are escaped
_LONGEST_NAME = 10_000  # bytes


class Audience(Enum):
    """Who sees a workspace."""

    OWN_MODEL = "a model on this machine"
    """Sees all. What it was shown is marked, so that no other model is told later."""
    MODEL_ELSEWHERE = "a model on another machine"
    """Sees nothing private, and may know that it is there."""
    OTHER_AGENT = "another program"
    """Is told as if there were nothing private."""

    @classmethod
    def of(cls, model: ChatModel) -> Audience:
        """Whoever sees what a chat model is shown."""
        return cls.OWN_MODEL if model.is_local else cls.MODEL_ELSEWHERE


class ViewedServices(Protocol):
    """The parts of a workspace that a view is of."""

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


class View:
    """A workspace as an audience sees it; all methods may be called from any thread."""

    def __init__(
        self, services: ViewedServices, audience: Audience, *, heard_all: bool = False
    ) -> None:
        """View these services; `heard_all`: who asks may say what only their own models see."""
        self.audience = audience
        self._services = services
        self._sees_all = audience is Audience.OWN_MODEL
        self._heard_all = heard_all or self._sees_all

    @cached_property
    def library(self) -> Reader:
        """The entries, and any file."""
        return {
            Audience.OWN_MODEL: self._services.library.for_own_models,
            Audience.MODEL_ELSEWHERE: self._services.library.discreet,
            Audience.OTHER_AGENT: self._services.library.public,
        }[self.audience]

    def overlay(self) -> Overlay:
        """The files, for working out edits on top of them; nothing is written."""
        return {
            Audience.OWN_MODEL: self._services.library.overlay,
            Audience.MODEL_ELSEWHERE: self._services.library.discreet_overlay,
            Audience.OTHER_AGENT: self._services.library.public_overlay,
        }[self.audience]()

    @cached_property
    def history(self) -> PublicHistory:
        """The changes; those of private files in no view, as a mark would have to say which."""
        return PublicHistory(self._services.history, self._services.library)

    @cached_property
    def search(self) -> SearchView:
        """The search."""
        return SearchView(self._services, self, heard_all=self._heard_all)

    @cached_property
    def sessions(self) -> SessionView:
        """The conversations."""
        return SessionView(self._services, sees_all=self._sees_all)

    @cached_property
    def unasked(self) -> View:
        """What may be shown without having been asked for: as there is no mark, nothing private."""
        if not self._sees_all:
            return self
        return View(self._services, Audience.MODEL_ELSEWHERE, heard_all=True)

    @property
    def unseen(self) -> int:
        """How many entries there are that aren't shown, where that may be known."""
        if self.audience is Audience.OTHER_AGENT:
            return 0
        return len(self._services.library.infos()) - len(self.library.infos())

    def catalogue(self, query: str, most_tokens: int, count: Callable[[str], int]) -> str:
        """The catalogue for a prompt, ranked for a query; the number of `unseen` is told."""
        library = self._services.library
        return library.prompt_index(query, most_tokens, count, self.library, self.unseen)

    def hides(self, path: str) -> bool:
        """True if this file's text isn't shown."""
        return not self._sees_all and self._services.library.is_private(path)

    def conceals(self, path: str) -> bool:
        """True if it may not even be known that this file is there."""
        return self.audience is Audience.OTHER_AGENT and self.hides(path)

    def tells_past(self, path: str) -> bool:
        """True if it may be told what a file once said, and that it was there."""
        return self._sees_all or not self.history.has_private_past(path)

    def is_document(self, path: str) -> bool:
        """True if a file is read by the text that is made of it."""
        return is_document(path, self._services.settings.search.roots)

    def text(self, path: str, most_bytes: int = READ_LIMIT) -> str:
        """The text of a text file.

        Raises:
            NotFoundError: it isn't there for this audience. Else as `Reader.read`.
        """
        return text_of(self.library.read(path, most_bytes))

    def document(self, path: str) -> DocumentText:
        """The text that is made of a document.

        Raises:
            NotFoundError: it isn't there for this audience.
            UsageError: it is private.
        """
        self.library.check(path)
        with Documents(self._services.workspace) as documents:
            return documents.read(path)

    def files(self, *areas: str) -> list[str]:
        """The files of some folders, or files, that are there for this audience, by path."""
        found = Scanner(self._services.workspace).scan(*areas)
        return sorted(path for path in found if not self.hides(path))

    def projects(self) -> list[str]:
        """The folders of docs/."""
        folder = self._services.workspace.docs
        names = [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
        return sorted(name for name in names if not self.conceals(f"docs/{name}/README.md"))

    def to_mark(self, shown: Any) -> tuple[str, ...]:
        """What is private among all that was shown, to be marked where it is stored.

        Args:
            shown: The data of a tool's result: paths anywhere in it, and messages of sessions as
                ``{"session": ..., "messages": [first, last]}``.
        """
        if not self._sees_all:
            return ()
        library, sessions = self._services.library, self.sessions
        found = {path: None for path in sorted({*_paths(shown)}) if _is_private(library, path)}
        for session, messages in _stretches(shown):
            if sessions.drew_on_private(session, messages):
                found[f"sessions/{session}.jsonl"] = None
        return tuple(found)


class SearchView:
    """The search as an audience sees it."""

    def __init__(self, services: ViewedServices, view: View, *, heard_all: bool) -> None:
        self._services = services
        self._view = view
        self._heard_all = heard_all

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
        """Find the places that answer a query; see `SearchIndex.search`.

        A query that nobody typed so may repeat what a model read in a private entry: then it isn't
        sent to an embedding model elsewhere.
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
            sendable=typed or not (self._heard_all and has_private),
        )
        hits = [self._shown(hit) for hit in result.hits if not self._hides(hit)][:limit]
        # A word out of a private entry would tell of it, and couldn't be marked.
        suggestion = None if has_private else result.suggestion
        return replace(result, hits=tuple(hits), suggestion=suggestion)

    def _shown(self, hit: Hit) -> Hit:
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
        """The messages of a conversation, raises as `SessionStore.read`."""
        return self.shown(self._services.sessions.read(ref))

    def shown(self, messages: Iterable[SessionMessage]) -> tuple[SessionMessage, ...]:
        """Messages, of those that drew on something private only that they were."""
        return tuple(messages) if self._sees_all else tuple(map(_withheld, messages))

    def withholds(self, message: SessionMessage) -> bool:
        """True if of this message only that it was said is shown."""
        return not self._sees_all and message.drew_on_private

    def withheld(self, messages: Sequence[SessionMessage]) -> frozenset[int]:
        """The ids of all messages of turns that drew on something which this audience may not see.

        The turn itself marks what its tools showed; a name in an answer is taken as a sign as well,
        for conversations from before an entry became private.
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
        told = (turn for turn in turns if any(_tells(each, names) for each in turn))
        return frozenset(each.id for turn in told for each in turn)

    def hidden_logs(self, logs: Iterable[str], hidden: Iterable[str]) -> set[str]:
        """The logs, by path, that hold something private, or name a `hidden` file.

        What the user took back stands in them as well.
        """
        if self._sees_all:
            return set()
        names = {form for path in hidden for form in (path, json.dumps(path)[1:-1])}
        told = re.compile("|".join([_MARKED, *map(re.escape, sorted(names))]).encode())
        found = set()
        for path in logs:
            last = b""
            with suppress(KbtuiError):  # whoever reads it says so
                for piece in read_pieces(self._services.workspace, path):
                    if told.search(last + piece):
                        found.add(path)
                    last = piece[-_LONGEST_NAME:]
        return found

    def hides(self, session: str | None, messages: tuple[int, int] | None) -> bool:
        """True if something private was drawn on between two messages of a conversation."""
        return not self._sees_all and self.drew_on_private(session, messages)

    def hides_any(self, session: str | None) -> bool:
        """True if something private was drawn on anywhere in a conversation."""
        return self.hides(session, (0, 1 << 62))

    def drew_on_private(self, session: str | None, messages: tuple[int, int] | None) -> bool:
        """True if something private was drawn on there, whoever asks."""
        if not session or messages is None:
            return False
        first, last = messages
        try:
            found = self._services.sessions.read(session)
        except NotFoundError:
            return False
        return any(first <= each.id <= last and each.drew_on_private for each in found)


def _tells(message: SessionMessage, names: Sequence[str]) -> bool:
    """True if a message drew on something private, or an answer has one of these names in it."""
    if message.drew_on_private or message.role == "user" or not names:
        return message.drew_on_private
    said = [message.content, *(call.arguments for call in message.tool_calls)]
    said.append(json.dumps(dict(message.meta), ensure_ascii=False, default=str))
    text = "\n".join(said)
    return any(name in text for name in names)


def _withheld(message: SessionMessage) -> SessionMessage:
    """A message as other models than those on this machine are told it."""
    if not message.drew_on_private:
        return message
    calls = tuple(replace(call, arguments="{}") for call in message.tool_calls)
    return replace(message, content=WITHHELD, tool_calls=calls)


def _paths(shown: Any) -> Iterator[str]:
    """The texts anywhere in some data that may be paths."""
    if isinstance(shown, str):
        if ("/" in shown or shown.endswith(".md")) and len(shown) <= _LONGEST_PATH:
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
    except KbtuiError:  # it is no path
        return False


def _stretches(shown: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    """The messages of sessions that some data names."""
    if isinstance(shown, Mapping):
        match shown:
            case {"session": str(session), "messages": [int(first), int(last)]}:
                yield session, (first, last)
        shown = shown.values()
    if isinstance(shown, Iterable) and not isinstance(shown, str):
        for value in shown:
            yield from _stretches(value)
