"""The lazily opened workspace behind the server, and its tools.

The tools are the agent's own, but with the view of `Audience.OTHER_AGENT`: a client may send what
it reads anywhere, so it doesn't even learn the names of private entries.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kbtui.agent.tools.base import Sources, Tool, ToolContext, cap, new_turn_id, quoted, text
from kbtui.agent.tools.toolbox import Toolbox, ToolOutcome, own_tools
from kbtui.clock import follow_zone
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
from kbtui.workspace.layout import BOOTSTRAP_FILES, MEMORY
from kbtui.workspace.scan import AREAS, IGNORE_FILE

log = logging.getLogger(__name__)
_SEARCH_NAMES = frozenset({"memory_search", "vector_search", "search"})
_HISTORY_NAMES = frozenset(tool.spec.name for tool in HISTORY_TOOLS)
_MAX_ARGUMENTS = 4_000_000  # characters; larger files aren't indexed either
_NAME_WIDTH = 60
_MANY_ENTRIES = 1_000  # entries
_DESTRUCTIVE = frozenset({"edit_entry", "undo_change", "delete_entry"})
_TAKES_BASE_HASH = frozenset({"edit_entry", "rename_entry", "move_entry", "delete_entry"})
_ENVELOPE = frozenset({"toolCallId", "sessionId"})
_OF_CHAT = _ENVELOPE | {"chatInput", "action"}
"""What n8n adds to every call, and to one that follows what somebody typed in its chat."""
_MAX_NAMED = 5
_BASE = "base_hash"
_CHAT_ONLY = frozenset({"search", "read"})  # LOOKUP_TOOLS has them under their established names
_TOOLS: tuple[Tool, ...] = (
    *LOOKUP_TOOLS,
    *(tool for tool in own_tools() if tool.spec.name not in _CHAT_ONLY),
    *CLIENT_TOOLS,
    *HISTORY_TOOLS,
)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool in the server's list; `destroys` if it may remove existing content."""

    spec: ToolSpec
    writes: bool
    destroys: bool


class Backend:
    """Runs tools on one workspace, in any thread; `batch` identifies the changes of this server."""

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
        """Return the tools in a stable order, without opening the workspace."""
        return tuple(
            OfferedTool(_with_base_hash(tool.spec), tool.writes, tool.spec.name in _DESTRUCTIVE)
            for tool in _TOOLS
            if not (self._read_only and tool.writes)
        )

    def check(self, name: str) -> None:
        """Check that a tool exists.

        Raises:
            NotFoundError: There is no such tool; the hint lists the existing ones.
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
        """Run a tool with the JSON text of its arguments.

        `client` is the name that the client gave itself, under which its changes are recorded;
        `connection` distinguishes concurrent clients.

        Raises:
            KbtuiError: The workspace can't be used, or the arguments are too long.
        """
        self.check(name)
        if len(arguments) > _MAX_ARGUMENTS:
            raise UsageError(
                f"The arguments are too long: {len(arguments):,} characters, at most"
                f" {_MAX_ARGUMENTS:,}.",
                "Split it into several entries, or add it piece by piece.",
            )
        follow_zone()
        opened = self._open()
        opened.kb.workspace.confirm()
        opened.catch_up(name, writes=opened.toolbox.writes(name))
        batch = f"{self._batch}-{connection}" if connection else self._batch
        context = opened.context(name, client, batch)
        offer = next(each for each in self.offers() if each.spec.name == name)
        arguments, ignored = _without_extras(offer, arguments)
        if name in _TAKES_BASE_HASH:
            arguments, changed = _check_base(context, arguments)
            if changed is not None:
                return changed
        outcome = opened.toolbox.run(ToolCall("", name, arguments), context)
        if not ignored:
            return outcome
        names = ", ".join(
            repr(shorten(clean_line(each), _NAME_WIDTH)) for each in ignored[:_MAX_NAMED]
        )
        note = f"Ignored, as there is no such argument: {names}."
        return replace(outcome, output=f"{outcome.output}\n{note}".strip())

    def resources(self, cursor: str | None) -> ResourcePage:
        """Return one page of the list of resources.

        Raises:
            KbtuiError: The workspace can't be used, or the cursor is invalid.
        """
        return self._refreshed().page(cursor)

    def read(self, uri: str) -> str:
        """Return the text of a resource.

        Raises:
            KbtuiError: The workspace can't be used, or there is no such resource.
        """
        return self._refreshed().read(uri)

    def suggest(self, typed: str) -> list[str]:
        """Return completions for a partial entry name; raises as `resources`."""
        return self._refreshed().suggest(typed)

    def close(self) -> None:
        """Flush pending writes and close the workspace."""
        with self._opening:
            self._is_closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _refreshed(self) -> Resources:
        opened = self._open()
        opened.changes.catch_up()
        return opened.resources

    def _open(self) -> _Opened:
        with self._opening:
            if self._is_closed:
                raise KbtuiError("The server is shutting down.")
            if self._opened is None:
                self._opened = _Opened(self._open_workspace())
            return self._opened


class _Opened:
    """An open workspace and its tools."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._search_lock = threading.Lock()
        self._editor_lock = threading.Lock()
        self._has_searched = False
        # Created now, as two threads must not create them concurrently.
        self._search = kb.search
        self._view = view = kb.seen_by(Audience.OTHER_AGENT)
        _ = view.library, view.history, view.search, view.sessions
        self._review_settings = kb.settings.model_copy(
            update={"memory": kb.settings.memory.model_copy(update={"review": "ask"})}
        )
        self.changes = ChangeTracker(kb, kb.settings.search.sync_interval_seconds)
        self.resources = Resources(kb.workspace, kb.library, kb.settings.search.roots)
        self._provenance = ShownProvenance(kb.provenance, view)
        self.toolbox = Toolbox(_TOOLS)

    def close(self) -> None:
        """Stop the watcher and close the workspace."""
        self.changes.close()
        self.kb.close()

    def context(self, tool: str, client: str, batch: str) -> ToolContext:
        """Return the context of a call: that of a remote model without a conversation."""
        kb = self.kb
        settings = self._review_settings if tool in ALWAYS_PROPOSED else kb.settings
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
        with self._editor_lock:  # two threads must not create it concurrently
            return self.kb.memory.editor

    def catch_up(self, name: str, *, writes: bool) -> None:
        """Pick up changes since the last call by people, the app or other clients."""
        if self.kb.workspace.writable and (writes or name in _HISTORY_NAMES):
            try:
                self.kb.history.adopt()
            except (ConflictError, StorageError) as problem:
                # Something the user has to decide, such as about the loss of most entries, or a
                # full disk; neither prevents reading.
                log.warning("%s", problem)
        paths = self.changes.catch_up()
        if name in _SEARCH_NAMES:
            self._start_search(paths or ())

    def _start_search(self, paths: Iterable[str]) -> None:
        """Index changed files; the first search also starts background indexing."""
        self._search.refresh(paths)
        with self._search_lock:
            if not self._has_searched:
                self._has_searched = True
                self._search.start()
                if len(self.kb.library.infos()) > _MANY_ENTRIES:
                    return  # all files are being checked; searching works meanwhile
        self._search.refresh_now()


def _with_base_hash(spec: ToolSpec) -> ToolSpec:
    """Add the parameter `base_hash` to a tool that changes an entry."""
    if spec.name not in _TAKES_BASE_HASH:
        return spec
    base = text("the hash that read_entry gave; refused, with the present text, if it is another")
    parameters = dict(spec.parameters)
    parameters["properties"] = {**parameters["properties"], _BASE: base}
    return replace(spec, parameters=parameters)


def _without_extras(offer: OfferedTool, arguments: str) -> tuple[str, list[str]]:
    """Return the arguments without unknown ones that do no harm, and the names of those to tell of.

    Clients add their own to every call. In a tool that writes only the known ones of those are
    taken away, silently: an argument that the client meant, such as ``private``, must be refused.
    """
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments, []
    if not isinstance(given, dict):
        return arguments, []
    known = {*offer.spec.parameters["properties"], *offer.spec.renamed}
    extra = [name for name in given if name not in known]
    envelope = _OF_CHAT if "chatInput" in given else _ENVELOPE
    if offer.writes:
        extra = [name for name in extra if name in envelope]
    rest = {name: value for name, value in given.items() if name not in extra}
    told = [name for name in extra if name not in envelope]
    return (json.dumps(rest), told) if extra else (arguments, [])


def _check_base(context: ToolContext, arguments: str) -> tuple[str, ToolOutcome | None]:
    """Return the arguments without `base_hash`, and an error outcome if the entry has changed.

    Other errors are left for the tool to report.
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
        path = context.view.library.find_path(MEMORY if ref.lower() == "memory.md" else ref)
        if not base:
            return rest, None
        entry = context.view.library.get(path)
    except KbtuiError:
        return rest, None
    if entry.blob == base.lower():
        return rest, None
    current = quoted(cap(entry.text))
    message = (
        f"Error: {path} was changed since you read it; nothing was written. Its hash is now"
        f" {entry.blob}, and it says:\n{current}\nSee whether your change still fits, and send it"
        " again with that hash."
    )
    return rest, ToolOutcome(
        False, message, f"{path} was changed meanwhile", data={"hash": entry.blob}
    )


def _name(client: str) -> str:
    return shorten(clean_line(client), _NAME_WIDTH) or "a client without a name"


_FOLDERS = tuple(area for area in AREAS if area not in BOOTSTRAP_FILES)
_Stamp = tuple[int, int]


class ChangeTracker:
    """Keeps the library and the search index up to date without scanning all files at every call.

    Changed files are reported by a watcher, and a moment earlier by new commits of other kbtui
    processes. All files are scanned if no watcher is running, and at least every `seconds`, since
    some file systems send no events.
    """

    def __init__(self, kb: KnowledgeBase, seconds: float) -> None:
        self._kb = kb
        self._seconds = seconds
        self._lock = threading.Lock()
        self._changed_lock = threading.Lock()
        self._changed: set[str] = set()
        self._must_scan = False
        self._watcher = Watcher(kb.workspace, _FOLDERS, self._note)
        self._scanned_at = float("-inf")
        self._watch: object = None
        self._head: str | None = None
        self._ignored: _Stamp | None = None

    def catch_up(self) -> set[str] | None:
        """Update the library; return the paths changed since, or None after a full scan."""
        with self._lock:
            paths = self._changed_paths()
        if paths is None:
            self._kb.library.refresh()
        else:
            self._kb.library.mark(paths)
        return paths

    def close(self) -> None:
        """Stop the watcher."""
        self._watcher.stop()

    def _changed_paths(self) -> set[str] | None:
        """Return the changed paths, or None if all have to be scanned; the lock is held."""
        self._watcher.follow()
        watch = self._watcher.running()
        now = time.monotonic()
        committed, ignored = self._committed_paths(), self._ignore_stamp()
        with self._changed_lock:
            message, self._changed = self._changed, set()
            must_scan, self._must_scan = self._must_scan, False
        is_complete = watch is not None and watch is self._watch and ignored == self._ignored
        self._watch, self._ignored = watch, ignored
        is_due = now - self._scanned_at > self._seconds
        if not is_complete or must_scan or is_due or committed is None:
            self._scanned_at = now
            return None
        return message | committed | set(BOOTSTRAP_FILES)

    def _note(self, paths: set[str] | None) -> None:
        """Record the watcher's events, in its thread."""
        with self._changed_lock:
            self._changed |= paths or set()
            self._must_scan |= paths is None

    def _committed_paths(self) -> set[str] | None:
        """Return the paths of commits since the last call, or None if there are too many."""
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
