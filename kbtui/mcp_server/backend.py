"""The workspace behind the protocol, opened when it is first needed, and its tools.

The tools are the agent's own, but they see the workspace as `Audience.OTHER_AGENT` does: nobody
knows where a client sends what it reads, so private entries are not even named to it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kbtui.agent.tools.base import Sources, Tool, ToolContext, cap, new_turn_id, quoted, text
from kbtui.agent.tools.toolbox import TOOLS, Toolbox, ToolOutcome
from kbtui.errors import ConflictError, KbtuiError, NotFoundError, StorageError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.client_tools import ALWAYS_PROPOSED, CLIENT_TOOLS
from kbtui.mcp_server.history_tools import HISTORY_TOOLS
from kbtui.mcp_server.lookup_tools import LOOKUP_TOOLS
from kbtui.mcp_server.resources import ResourcePage, Resources
from kbtui.memory.edits.editor import Editor
from kbtui.memory.recall.provenance import ShownProvenance
from kbtui.models.port import ToolCall, ToolSpec
from kbtui.search.search_index import Watcher
from kbtui.text import clean_line, shorten
from kbtui.views.view import Audience
from kbtui.workspace.layout import BOOTSTRAP_FILES
from kbtui.workspace.scan import AREAS, IGNORE_FILE

log = logging.getLogger(__name__)
_SEARCHES = frozenset({"memory_search", "vector_search", "search"})
_OF_HISTORY = frozenset(tool.spec.name for tool in HISTORY_TOOLS)
_MOST_ARGUMENTS = 4_000_000  # characters; the search takes no larger files either
_NAME_WIDTH = 60
_MANY = 1_000  # entries
_DESTRUCTIVE = frozenset({"edit_entry", "undo_change", "delete_entry"})
_CHANGES_WHAT_WAS_READ = frozenset({"edit_entry", "rename_entry", "move_entry", "delete_entry"})
_BASE = "base_hash"
_OF_CHAT = frozenset({"search", "read"})  # whose parts other agents know by names of their own
_TOOLS: tuple[Tool, ...] = (
    *LOOKUP_TOOLS,
    *(tool for tool in TOOLS if tool.spec.name not in _OF_CHAT),
    *CLIENT_TOOLS,
    *HISTORY_TOOLS,
)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it is offered; `destroys`: it may take away what was there."""

    spec: ToolSpec
    writes: bool
    destroys: bool


class Backend:
    """Answers calls on one workspace, from any thread; `batch` is what its changes are known by."""

    def __init__(
        self, open_workspace: Callable[[], KnowledgeBase], batch: str, *, read_only: bool = False
    ) -> None:
        self._open_workspace = open_workspace
        self._batch = batch
        self._read_only = read_only
        self._opening = threading.Lock()
        self._opened: _Opened | None = None
        self._is_closed = False

    def offers(self) -> tuple[OfferedTool, ...]:
        """The tools, always in the same order; this opens nothing."""
        return tuple(
            OfferedTool(_with_base(tool.spec), tool.writes, tool.spec.name in _DESTRUCTIVE)
            for tool in _TOOLS
            if not (self._read_only and tool.writes)
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

    def call(self, name: str, arguments: str, client: str, connection: str = "") -> ToolOutcome:
        """Run a tool with a JSON object.

        `client` is what the program that asks calls itself, by which its changes are known;
        `connection` tells one of several at once from the others.

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
        batch = f"{self._batch}-{connection}" if connection else self._batch
        context = opened.context(name, client, batch)
        if name in _CHANGES_WHAT_WAS_READ:
            arguments, changed = _checked_base(context, arguments)
            if changed is not None:
                return changed
        return opened.toolbox.run(ToolCall("", name, arguments), context)

    def resources(self, cursor: str | None) -> ResourcePage:
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
            opened.close()

    def _refreshed(self) -> Resources:
        opened = self._open()
        opened.keeping_up.catch_up()
        return opened.resources

    def _open(self) -> _Opened:
        with self._opening:
            if self._is_closed:
                raise KbtuiError("The server is shutting down.")
            if self._opened is None:
                self._opened = _Opened(self._open_workspace())
            return self._opened


class _Opened:
    """A workspace that is open, with the tools that work on it."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._searching = threading.Lock()
        self._making = threading.Lock()
        self._has_searched = False
        # Made now, as two threads must not make them at once.
        self._search = kb.search
        self._view = view = kb.seen_by(Audience.OTHER_AGENT)
        _ = view.library, view.history, view.search, view.sessions
        self._asks = kb.settings.model_copy(
            update={"memory": kb.settings.memory.model_copy(update={"review": "ask"})}
        )
        self.keeping_up = KeepingUp(kb, kb.settings.search.sync_interval_seconds)
        self.resources = Resources(kb.workspace, kb.library, kb.settings.search.roots)
        self._provenance = ShownProvenance(kb.provenance, view)
        self.toolbox = Toolbox(_TOOLS)

    def close(self) -> None:
        """Stop watching, and let go of the workspace."""
        self.keeping_up.close()
        self.kb.close()

    def context(self, tool: str, client: str, batch: str) -> ToolContext:
        """The context of a call: that of a model elsewhere, with no conversation of its own."""
        kb = self.kb
        settings = self._asks if tool in ALWAYS_PROPOSED else kb.settings
        return ToolContext(
            view=self._view,
            layout=kb.workspace,
            settings=settings,
            origin=Origin(turn=new_turn_id(), model=_name(client), batch=batch),
            sources=Sources(),
            find_editor=self._editor,
            actor=Actor.MCP,
            recalls=kb.settings.mcp.search_conversations,
            find_provenance=lambda: self._provenance,
        )

    def _editor(self) -> Editor:
        with self._making:  # two threads must not make it at once
            return self.kb.memory.editor

    def catch_up(self, name: str, *, writes: bool) -> None:
        """Take note of what others did since the last call: people, the app, other clients."""
        if self.kb.workspace.writable and (writes or name in _OF_HISTORY):
            try:
                self.kb.history.adopt()
            except (ConflictError, StorageError) as problem:
                # What a person must decide, such as about the loss of most entries; or a full disk,
                # which keeps nobody from reading.
                log.warning("%s", problem)
        paths = self.keeping_up.catch_up()
        if name in _SEARCHES:
            self._start_search(paths or ())

    def _start_search(self, paths: Iterable[str]) -> None:
        """Index what changed; from the first search on, also in the background."""
        self._search.refresh(paths)
        with self._searching:
            if not self._has_searched:
                self._has_searched = True
                self._search.start()
                if len(self.kb.library.infos()) > _MANY:
                    return  # all files are looked at now; it answers meanwhile
        self._search.refresh_now()


def _with_base(spec: ToolSpec) -> ToolSpec:
    """A tool's description with `base_hash`, where it changes what was read before."""
    if spec.name not in _CHANGES_WHAT_WAS_READ:
        return spec
    base = text("the hash that read_entry gave; refused, with the present text, if it is another")
    parameters = dict(spec.parameters)
    parameters["properties"] = {**parameters["properties"], _BASE: base}
    return replace(spec, parameters=parameters)


def _checked_base(context: ToolContext, arguments: str) -> tuple[str, ToolOutcome | None]:
    """The arguments without `base_hash`, and a refusal where the entry isn't the one of that hash.

    What is wrong otherwise is for the tool to say.
    """
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments, None
    if not isinstance(given, dict) or _BASE not in given:
        return arguments, None
    base, ref = str(given.pop(_BASE) or "").strip(), str(given.get("entry", ""))
    rest = json.dumps(given)
    try:
        path = context.view.library.find_path(
            "memory/MEMORY.md" if ref.lower() == "memory.md" else ref
        )
        if not base:
            return rest, None
        entry = context.view.library.get(path)
    except KbtuiError:
        return rest, None
    if entry.blob == base.lower():
        return rest, None
    shown = quoted(cap(entry.text))
    told = (
        f"Error: {path} was changed since you read it; nothing was written. Its hash is now"
        f" {entry.blob}, and it says:\n{shown}\nSee whether your change still fits, and send it"
        " again with that hash."
    )
    return rest, ToolOutcome(
        False, told, f"{path} was changed meanwhile", data={"hash": entry.blob}
    )


def _name(client: str) -> str:
    return shorten(clean_line(client), _NAME_WIDTH) or "a client without a name"


_FOLDERS = tuple(area for area in AREAS if area not in BOOTSTRAP_FILES)
_Stamp = tuple[int, int]


class KeepingUp:
    """Keeps the library and the search as new as the files, without a look at all at every call.

    A watcher tells which files changed; the history's newest commit tells of other programs of ours
    at once, which a watcher does a moment later. All files are looked at where no watcher runs, and
    after so many `seconds` in any case, as there are disks that tell nothing.
    """

    def __init__(self, kb: KnowledgeBase, seconds: float) -> None:
        self._kb = kb
        self._seconds = seconds
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._changed: set[str] = set()
        self._must_look = False
        self._watcher = Watcher(kb.workspace, _FOLDERS, self._note)
        self._looked_at = float("-inf")
        self._watch: object = None
        self._head: str | None = None
        self._ignored: _Stamp | None = None

    def catch_up(self) -> set[str] | None:
        """Take note of what changed since the last call; gives the paths, None: look at all."""
        with self._lock:
            paths = self._news()
        if paths is None:
            self._kb.library.refresh()
        else:
            self._kb.library.mark(paths)
        return paths

    def close(self) -> None:
        """Stop watching."""
        self._watcher.stop()

    def _news(self) -> set[str] | None:
        """The files to look at, None for all; the lock is held."""
        self._watcher.follow()
        watch = self._watcher.running()
        now = time.monotonic()
        committed, ignored = self._committed(), self._ignore_stamp()
        with self._telling:
            told, self._changed = self._changed, set()
            must_look, self._must_look = self._must_look, False
        is_sure = watch is not None and watch is self._watch and ignored == self._ignored
        self._watch, self._ignored = watch, ignored
        is_old = now - self._looked_at > self._seconds
        if not is_sure or must_look or is_old or committed is None:
            self._looked_at = now
            return None
        return told | committed | set(BOOTSTRAP_FILES)

    def _note(self, paths: set[str] | None) -> None:
        """Keep what the watcher tells, in its thread."""
        with self._telling:
            self._changed |= paths or set()
            self._must_look |= paths is None

    def _committed(self) -> set[str] | None:
        """The files of the commits since the last call; None if that is more than a few."""
        history = self._kb.history
        before, self._head = self._head, history.head()
        if before == self._head:
            return set()
        paths: set[str] = set()
        try:
            for commit in history.log(limit=50):
                if commit.id == before:
                    return paths
                paths |= {n for c in commit.paths for n in (c.path, c.old_path) if n}
        except KbtuiError:
            pass
        return None

    def _ignore_stamp(self) -> _Stamp | None:
        try:
            status = (self._kb.workspace.root / IGNORE_FILE).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size
