"""The workspace behind the protocol, opened when it is first needed, and its tools.

The tools are the agent's own, run as for a model on another machine: nobody knows where a client
sends what it reads. So private entries are not even named to it.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.agent.sources import Sources
from kbtui.agent.tools.base import ToolContext
from kbtui.agent.tools.toolbox import TOOLS, Toolbox
from kbtui.agent.turn import new_turn_id
from kbtui.errors import ConflictError, KbtuiError, NotFoundError, UsageError
from kbtui.history.objects.commit import Actor, Origin
from kbtui.mcp_server.history_tools import HISTORY_TOOLS, history_tools
from kbtui.mcp_server.public_history import PublicHistory
from kbtui.mcp_server.resources import Resources
from kbtui.models.port import ToolCall
from kbtui.text import clean_line, shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.agent.tools.toolbox import Outcome
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.mcp_server.resources import Page
    from kbtui.models.port import ToolSpec

log = logging.getLogger(__name__)
_SEARCHES = frozenset({"memory_search", "vector_search"})
# What is known of every tool without a workspace.
_KNOWN: tuple[tuple[ToolSpec, bool], ...] = (
    *((tool.spec, tool.writes) for tool in TOOLS),
    *((tool.spec, tool.writes) for tool in HISTORY_TOOLS),
)
_OF_HISTORY = frozenset(tool.spec.name for tool in HISTORY_TOOLS)
_MOST_ARGUMENTS = 4_000_000  # characters; the search takes no larger files either
_NAME_WIDTH = 60
_MANY = 1_000  # entries
_DESTRUCTIVE = frozenset({"edit_entry", "undo_change"})


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as it is offered; `destroys`: it may take away what was there."""

    spec: ToolSpec
    writes: bool
    destroys: bool


class Backend:
    """Answers calls on one workspace; all methods may be called from any thread.

    Args:
        open_workspace: Opens it.
        batch: What the changes of this connection are known by, all together.
        read_only: Whether only tools that change nothing are offered.
    """

    def __init__(
        self, open_workspace: Callable[[], KnowledgeBase], batch: str, *, read_only: bool = False
    ) -> None:
        self._open_workspace = open_workspace
        self._batch = batch
        self._read_only = read_only
        self._opening = threading.Lock()
        self._opened: _Opened | None = None
        self._is_closed = False

    def offers(self) -> tuple[Offer, ...]:
        """The tools, always in the same order; this opens nothing."""
        return tuple(
            Offer(spec, writes, spec.name in _DESTRUCTIVE)
            for spec, writes in _KNOWN
            if not (self._read_only and writes)
        )

    def check(self, name: str) -> None:
        """See that there is such a tool.

        Raises:
            NotFoundError: there is none; the hint names those that there are.
        """
        names = [offer.spec.name for offer in self.offers()]
        if name in names:
            return
        why = " that only reads" if self._read_only else ""
        raise NotFoundError(
            f"There is no tool {shorten(clean_line(name), _NAME_WIDTH)!r}{why}.",
            f"There are: {', '.join(names)}.",
        )

    def call(self, name: str, arguments: str, client: str) -> Outcome:
        """Run a tool.

        Args:
            name: Which one.
            arguments: A JSON object.
            client: What the program that asks calls itself; its changes are known by that.

        Raises:
            KbtuiError: the workspace can't be used, or the arguments are too long.
        """
        self.check(name)
        if len(arguments) > _MOST_ARGUMENTS:
            raise UsageError(
                f"The arguments are too long: {len(arguments):,} characters, at most"
                f" {_MOST_ARGUMENTS:,}.",
                "Split it into several entries, or add it piece by piece.",
            )
        opened = self._open()
        opened.catch_up(name, writes=opened.toolbox.writes(name))
        return opened.toolbox.run(ToolCall("", name, arguments), opened.context(client))

    def resources(self, cursor: str | None) -> Page:
        """One page of what can be attached.

        Raises:
            KbtuiError: the workspace can't be used, or there is no such page.
        """
        return self._refreshed().page(cursor)

    def read(self, uri: str) -> str:
        """The text of a resource.

        Raises:
            KbtuiError: the workspace can't be used, or there is no such resource.
        """
        return self._refreshed().read(uri)

    def suggest(self, typed: str) -> list[str]:
        """Names of entries for what was typed of one; raises as `resources`."""
        return self._refreshed().suggest(typed)

    def close(self) -> None:
        """Write what is pending and let go of the workspace."""
        with self._opening:
            self._is_closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.kb.close()

    def _refreshed(self) -> Resources:
        opened = self._open()
        opened.kb.library.refresh()
        return opened.resources

    def _open(self) -> _Opened:
        with self._opening:
            if self._is_closed:
                raise KbtuiError("The server is shutting down.")
            if self._opened is None:
                self._opened = _Opened(self._open_workspace(), self._batch)
            return self._opened


class _Opened:
    """A workspace that is open, with the tools that work on it."""

    def __init__(self, kb: KnowledgeBase, batch: str) -> None:
        self.kb = kb
        self._batch = batch
        self._searching = threading.Lock()
        self._has_searched = False
        # Made now, as two threads must not make them at once.
        self._search, self._sessions, provenance = kb.search, kb.sessions, kb.provenance
        self._inbox = kb.memory.inbox if kb.settings.memory.review == "ask" else None
        history = PublicHistory(kb.history, kb.library)
        self.resources = Resources(kb.workspace, kb.library)
        self.toolbox = Toolbox((*TOOLS, *history_tools(history, provenance)))

    def context(self, client: str) -> ToolContext:
        """The context of a call: that of a model elsewhere, with no conversation of its own."""
        kb = self.kb
        return ToolContext(
            workspace=kb.workspace,
            history=kb.history,
            library=kb.library,
            search=self._search,
            sessions=self._sessions,
            settings=kb.settings,
            origin=Origin(turn=new_turn_id(), model=_name(client), batch=self._batch),
            sources=Sources(),
            is_local=False,
            session="",
            message=0,
            inbox=self._inbox,
            actor=Actor.MCP,
            names_private=False,
        )

    def catch_up(self, name: str, *, writes: bool) -> None:
        """Take note of what others did since the last call: people, the app, other clients."""
        if self.kb.workspace.writable and (writes or name in _OF_HISTORY):
            try:
                self.kb.history.adopt()
            except ConflictError as problem:
                # What a person must decide, such as about the loss of most entries.
                log.warning("%s", problem)
        self.kb.library.refresh()
        if name in _SEARCHES:
            self._start_search()

    def _start_search(self) -> None:
        """Index what changed; from the first search on, also in the background."""
        with self._searching:
            if not self._has_searched:
                self._has_searched = True
                self._search.start()
                if len(self.kb.library.infos()) > _MANY:
                    return  # all files are looked at now; it answers meanwhile
        self._search.refresh_now()


def _name(client: str) -> str:
    return shorten(clean_line(client), _NAME_WIDTH) or "a client without a name"
