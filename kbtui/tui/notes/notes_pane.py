"""The notes pane: the tree, and the reader or editor of an entry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec

from textual import events, getters, on
from textual.containers import Vertical

from kbtui.clock import local_day
from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.actions.registry import bindings
from kbtui.tui.messages import (
    AskAbout,
    OpenEntry,
    OpenHistory,
    OpenSearch,
    OpenTasks,
    go_to,
    tell,
    tell_error,
)
from kbtui.tui.notes.tree_panel import TreePanel
from kbtui.tui.terminal.background import latest, run_latest
from kbtui.tui.terminal.lazy_modules import lazy_modules
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.row_list import RowList
from kbtui.workspace.layout import NAME_PREFIX, short_name

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from kbtui.history.change import Actor, Commit
    from kbtui.knowledge.entries.entry import Entry
    from kbtui.knowledge.library.library import EntryInfo
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.markdown.markdown_view import MarkdownView
    from kbtui.tui.notes import (
        documents,
        entry_actions,
        entry_editor,
        entry_view,
        map as note_map,
        similar,
        today,
    )
    from kbtui.tui.notes.entry_editor import EntryEditor
    from kbtui.tui.notes.entry_view import EntryView
    from kbtui.tui.notes.knowledge_tree import KnowledgeTree

else:
    documents, entry_actions, entry_editor, entry_view, note_map, similar, today = lazy_modules(
        "notes.documents",
        "notes.entry_actions",
        "notes.entry_editor",
        "notes.entry_view",
        "notes.map",
        "notes.similar",
        "notes.today",
    )

_Params = ParamSpec("_Params")
_BODY = "entry-body"
_BESIDE_COLUMNS = 100
"""Width in columns from which the tree is beside the entry."""


def _in_background(
    work: Callable[Concatenate[NotesPane, KnowledgeBase, _Params], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[NotesPane, _Params], None]:
    """Run an action in the background, one at a time, and show its errors."""

    @wraps(work)
    def run(pane: NotesPane, /, *args: _Params.args, **kwargs: _Params.kwargs) -> None:
        if pane.kb is not None:
            run_latest(pane, "action", work, pane, pane.kb, *args, **kwargs)

    return run


_NO_ENTRY = "Choose a note first: this key is about one, not about a folder."


def _with_entry(
    work: Callable[Concatenate[NotesPane, KnowledgeBase, str, _Params], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[NotesPane, _Params], None]:
    """Run an action on the current entry, or tell the user there is none."""

    @wraps(work)
    def run(pane: NotesPane, /, *args: _Params.args, **kwargs: _Params.kwargs) -> None:
        path = pane.target()
        if path is not None:
            _in_background(work)(pane, path, *args, **kwargs)
        elif pane.kb is not None:
            tell(pane, _NO_ENTRY)

    return run


class NotesPane(Vertical):
    """The pane to browse, read and edit notes.

    Others call `open_entry`, `knowledge_ready` and `knowledge_changed`. There is one current entry,
    selected by the tree or the reader, whichever has the focus; the other follows, so that keys
    always act on the visible entry.
    """

    DEFAULT_CSS = """
    NotesPane {
        layout: vertical;
        #notes-filter { height: 1; border: none; padding: 0 1; background: $boost; }
        #notes-tree { height: 1fr; }
        #notes-list { height: 1fr; min-width: 100%; min-height: 100%; }
        #notes-entry { height: 2fr; }
        &.-reading #notes-list { min-width: 0; min-height: 0; }
        &.-beside #notes-split { layout: horizontal; }
        &.-beside.-reading #notes-list { width: 2fr; max-width: 52; height: 100%; }
        &.-beside #notes-entry { width: 3fr; height: 100%; }
        #notes-split { height: 1fr; }
        &.-editing #notes-list { display: none; }
        &.-editing #notes-entry { display: none; }
    }
    """
    BINDINGS = bindings("notes")
    BLANK = True
    WITH_RECENT: ClassVar[bool] = True
    """Whether recent changes may be shown below the tree."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kb: KnowledgeBase | None = None
        self.view: EntryView | None = None
        self.editor: EntryEditor | None = None
        self._last_deletion: Commit | None = None
        self._pending_open: tuple[str, int | None, bool] | None = None

    def compose(self) -> ComposeResult:
        with Divided(id="notes-split"):
            yield TreePanel(id="notes-list", with_recent=self.WITH_RECENT)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _BESIDE_COLUMNS, "-beside")

    # Parts

    panel = getters.query_one("#notes-list", TreePanel)

    @property
    def knowledge_tree(self) -> KnowledgeTree:
        return self.panel.knowledge_tree

    @property
    def entries(self) -> dict[str, EntryInfo]:
        """The entries in the tree, by path."""
        return self.panel.entries

    @property
    def current_path(self) -> str | None:
        """The path of the file on the screen, or None."""
        document = self.view.document if self.view is not None else None
        return document.path if document is not None else None

    @property
    def is_filled(self) -> bool:
        return self.panel.is_filled

    # The knowledge base

    def knowledge_ready(self, kb: KnowledgeBase) -> None:
        """Attach the opened knowledge base, and open what was requested before."""
        self.kb = kb
        self.panel.start(kb)
        if self._pending_open is not None:
            path, line, edit = self._pending_open
            self._pending_open = None
            self.open_entry(path, line, edit=edit)

    def switch_to(self, kb: KnowledgeBase) -> None:
        """Switch to the knowledge base of another time, keeping folds and the open entry."""
        self.kb = kb
        self.panel.start(kb)
        if self.view is not None:
            self.view.switch_to(kb)

    def knowledge_changed(self, paths: Sequence[str], actor: Actor) -> None:
        """Mark what a commit changed, and reload it."""
        shown = self.current_path
        self.panel.changed(paths, actor, shown)
        day = local_day()
        if shown in paths or (self.view is not None and self.view.path in paths):
            self._file_changed()
        elif shown is not None and today.is_page_of(shown, day) and self.editor is None:
            self._file_changed()  # a task or a date may have come
        elif self._is_empty and any(today.is_page_of(path, day) for path in paths):
            self.show_today()

    def newer_lines_found(self) -> None:
        """Mark anew, in the note that is shown, what newer lines are known of."""
        if self.editor is None and self.view is not None:
            self.view.newer_lines_found()

    def day_changed(self) -> None:
        """Name days anew; what is being edited stays as it is."""
        self.panel.read_again()
        if self.editor is None and self.view is not None:
            self.view.reload()

    def _file_changed(self) -> None:
        if self.editor is not None:
            self.editor.file_changed()
        elif self.view is not None:
            self.view.reload()

    # The current entry

    @property
    def _tree_is_active(self) -> bool:
        return self.knowledge_tree.has_focus or self.panel.filter_has_focus

    def target(self) -> str | None:
        """Return the path of the current entry, which keys act on, or None."""
        if self._tree_is_active or self.view is None:
            return self.knowledge_tree.entry.path if self.knowledge_tree.entry is not None else None
        return self.view.path

    @on(RowList.Highlighted, "#notes-tree")
    def _cursor_moved(self) -> None:
        self._sync_selection()

    def on_descendant_focus(self) -> None:
        self._sync_selection()

    def _sync_selection(self) -> None:
        """Select the same entry in tree and reader."""
        if self.view is None or self.editor is not None:
            return
        entry, path = self.knowledge_tree.entry, self.view.path
        if not self._tree_is_active:
            if path is not None and (entry is None or entry.path != path):
                self.panel.reveal(path)
        elif entry is not None and entry.path != path:
            self.view.peek(entry.path)

    def moved(self, old: str, new: str) -> None:
        """Handle a changed path of an entry: keep showing it."""
        if new == old:
            return
        if self.view is not None:
            self.view.follow(old, new)
        self.panel.reveal(new)

    def _entry_deleted(self, path: str) -> None:
        """Handle a deleted entry: show the one read before it, or only the tree."""
        if self.view is None or self.view.path != path or self.view.leave(path):
            self._sync_selection()
            return
        go_to(
            self.knowledge_tree
        )  # first: on removal of a focused widget Textual would focus another
        self.view.remove()
        self.view = None
        self._show_note(shows=False)

    # Opening

    def open_entry(self, path: str, line: int | None = None, *, edit: bool = False) -> None:
        """Show a file of the workspace, optionally at a line and in the editor.

        For a conversation (``sessions/…``), `line` is the id of a message.
        """
        if self.kb is None:
            self._pending_open = (path, line, edit)
            return
        self._open(path, line, edit=edit)

    @latest("open")
    async def show_today(self, *, moves_focus: bool = False) -> None:
        """Show the page of today; without `moves_focus` only if no note is shown."""
        kb = self.kb
        if kb is None or (not moves_focus and not self._is_empty):
            return
        if moves_focus and not await self._leave_editor():
            return
        path = await asyncio.to_thread(today.todays_page, kb, local_day())
        if moves_focus or self._is_empty:
            view = await self._show(kb, path)
            if moves_focus:
                go_to(view.body)

    @property
    def _is_empty(self) -> bool:
        return self.view is None and self.editor is None

    @latest("open")
    async def show_first(self, path: str) -> None:
        """Show a file if none is shown yet, without moving the focus."""
        if self.kb is not None and self._is_empty:
            await self._show(self.kb, path)

    @latest("open")
    async def _open(self, path: str, line: int | None, *, edit: bool) -> None:
        if self.kb is None or not await self._leave_editor():
            return
        self._last_deletion = None
        go_to((await self._show(self.kb, path, line)).body)
        if edit:
            await self._edit(path, line)

    async def _show(self, kb: KnowledgeBase, path: str, line: int | None = None) -> EntryView:
        """Show a file in the reader, which is created if needed, and in the tree."""
        if self.view is None:
            self.view = entry_view.EntryView(kb, id="notes-entry")
            self._show_note(shows=True)
            await self.query_one("#notes-split").mount(self.view)
        self.view.open(path, line)
        self.panel.reveal(path)
        return self.view

    def _show_note(self, *, shows: bool) -> None:
        """Adapt the layout to whether a note is shown: the tree alone needs less space."""
        self.set_class(shows, "-reading", update=False)  # the next call updates the whole screen
        self.screen.set_class(shows, "-reading-note")
        for around in self.screen.query(Divided):
            around.divide()

    def on_entry_view_opened(self, event: EntryView.Opened) -> None:
        path = event.document.path
        if self.view is not None:
            place = "" if path.startswith(NAME_PREFIX) else short_name(path)
            self.view.label_with(with_sign(event.document.named), place=clean_line(place))
        self.panel.clear_mark(path)

    @on(OpenEntry)
    def _open_requested(self, event: OpenEntry) -> None:
        event.stop()
        self.open_entry(event.path, event.line, edit=event.edit)

    def on_entry_view_missing_link(self, event: EntryView.MissingLink) -> None:
        self.offer_to_make(event.target)

    def offer_to_make(self, target: str) -> None:
        """Offer to create the missing entry that a link leads to."""
        self._new(clean_line(target.rpartition("/")[2].removesuffix(".md")))

    def focus_tree(self) -> None:
        go_to(self.editor.text_area if self.editor is not None else self.knowledge_tree)

    # Editing

    async def _edit(self, path: str, line: int | None = None) -> None:
        """Open the editor in place of tree and reader."""
        if self.kb is None or self.editor is not None:
            return
        try:
            document = await asyncio.to_thread(today.load_to_edit, self.kb, path, local_day())
        except KbtuiError as error:
            tell_error(self, error)
            return
        why_not = entry_editor.why_not_editable(document)
        if why_not:
            tell(self, why_not, "warning")
            return
        view = self.view
        if view is None or self.current_path != path:
            await self._show(self.kb, path)
        elif line is None and (view.body.scroll_y > 0 or view.body.has_cursor):
            line = view.body.pointed_source
        self.editor = entry_editor.EntryEditor(self.kb, document, line=line, id="notes-editor")
        self.add_class("-editing")
        await self.query_one("#notes-split").mount(self.editor)
        go_to(self.editor.text_area)

    async def _leave_editor(self) -> bool:
        """Close the editor unless the user cancels, and return whether it is closed."""
        if self.editor is not None:
            if not await self.editor.leave():
                return False
            await self._close_editor()
        return True

    async def _close_editor(self) -> None:
        editor, self.editor = self.editor, None
        if editor is not None:
            await editor.remove()
        self.remove_class("-editing")

    async def on_entry_editor_closed(self) -> None:
        await self._close_editor()
        if self.view is not None:
            self.view.reload()
            go_to(self.view.body)

    # Moving

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable single-letter keys while the user types, and keys that don't apply."""
        if self.editor is not None or self.panel.filter_has_focus:
            return False
        if action == "save":
            return (self.target() or "").startswith((NAME_PREFIX, "sessions/"))
        if action == "version":
            return self._reads and self.view is not None and len(self.view.life) > 1
        if action == "now":
            return self.view is not None and self.view.is_past
        if action == "go_to_day":
            return self.view is not None and documents.is_day(self.target() or "")
        return super().check_action(action, parameters)

    def _active_list(self) -> RowList[Any] | MarkdownView:
        focused = self.screen.focused
        if isinstance(focused, RowList) and self in focused.ancestors:
            return focused
        return self.view.body if self.view is not None and self._reads else self.knowledge_tree

    @property
    def _reads(self) -> bool:
        """Whether the text of the open note has the focus; its widgets may not be there yet."""
        focused = self.screen.focused
        if focused is None or self.view is None or focused.id != _BODY:
            return False
        return self.view in focused.ancestors

    def _move(self, by: int) -> None:
        widget = self._active_list()
        if isinstance(widget, RowList):
            widget.cursor += by
        else:
            widget.move_cursor(by)

    def action_down(self) -> None:
        self._move(1)

    def action_up(self) -> None:
        self._move(-1)

    def action_left(self) -> None:
        if self._active_list() is self.knowledge_tree:
            self.knowledge_tree.action_fold()
        else:
            go_to(self.knowledge_tree)

    def action_right(self) -> None:
        if self._active_list() is self.knowledge_tree:
            self.knowledge_tree.action_unfold()

    def action_open(self) -> None:
        widget = self._active_list()
        if isinstance(widget, RowList):
            widget.action_select()
        elif self.view is not None:
            self.view.follow_link()

    def action_back(self) -> None:
        if self.view is not None:
            self._reveal_current() if self.view.go_back() else go_to(self.knowledge_tree)

    def action_forward(self) -> None:
        if self.view is not None and self.view.go_forward():
            self._reveal_current()

    def _reveal_current(self) -> None:
        """Reveal the reader's file in the tree, or focus the reader if the tree doesn't have it."""
        if self.view is None or self.view.path is None:
            return
        self.panel.reveal(self.view.path)
        if self.view.path not in self.entries:
            go_to(self.view.body)

    async def action_filter(self) -> None:
        await self.panel.start_filter()

    def _view_or_hint(self, does: str) -> EntryView | None:
        """Return the reader, or tell the user what the key would do in it."""
        if self.view is None:
            tell(self, f"Open a note first: then {does}.")
        return self.view

    @_with_entry
    async def action_go_to_day(self, kb: KnowledgeBase, path: str, way: int) -> None:
        """Open the day note before (-1) or after (1) the current one."""
        day = await asyncio.to_thread(documents.day_beside, kb, path, way)
        if day is not None:
            self.open_entry(day)
        else:
            tell(self, f"There is no note of a day {'after' if way > 0 else 'before'} this one.")

    def action_version(self, by: int) -> None:
        if self.view is not None:
            self.view.step(by)

    def action_now(self) -> None:
        if self.view is not None:
            self.view.back_to_now()

    def action_outline(self) -> None:
        if view := self._view_or_hint("o shows its headings"):
            view.choose_heading()

    def action_preview(self) -> None:
        if view := self._view_or_hint("K shows where its links lead"):
            view.preview()

    def action_tick(self) -> None:
        if self.view is None or self._tree_is_active:
            self.knowledge_tree.action_page(1)
        elif not self.view.body.toggle_fold() and not self.view.tick():
            self.view.body.action_page_down()

    # Asking

    def action_backlinks(self) -> None:
        if self.view is not None and self.view.path is not None:
            self.view.choose_link()

    def action_map(self) -> None:
        path = self.target()
        if path is None or self.kb is None:
            tell(self, _NO_ENTRY)
            return
        self.app.push_screen(note_map.MapScreen(self.kb, path), self._open_from_map)

    def action_similar(self) -> None:
        path = self.target()
        if path is None or self.kb is None:
            tell(self, _NO_ENTRY)
            return
        self.app.push_screen(similar.SimilarScreen(self.kb, path))

    def _open_from_map(self, there: OpenEntry | None) -> None:
        if there is not None:
            self.open_entry(there.path, there.line)

    def action_ask(self) -> None:
        path = self.target()
        if path is not None:
            self.post_message(AskAbout(path))

    def action_history(self) -> None:
        path = self.target()
        if path is not None:
            self.post_message(OpenHistory(path))

    @_with_entry
    async def action_compare(self, kb: KnowledgeBase, path: str) -> None:
        await entry_actions.compare_note(self, kb, path)

    def action_why(self) -> None:
        if view := self._view_or_hint("w says where a line of it comes from"):
            view.ask_why()

    def action_correct(self) -> None:
        if view := self._view_or_hint("r puts a line of it right everywhere"):
            view.correct()

    def action_authors(self) -> None:
        if view := self._view_or_hint("W says who wrote each line of it"):
            view.toggle_authors()

    @_in_background
    async def action_tags(self, kb: KnowledgeBase) -> None:
        tag = await entry_actions.pick_tag(self, kb)
        if tag is not None:
            self.post_message(OpenSearch(f'tag:"{tag}"' if " " in tag else f"tag:{tag}"))

    def action_tasks(self) -> None:
        self.post_message(OpenTasks())

    # Changing

    def action_new(self) -> None:
        self._new()

    @_in_background
    async def _new(self, kb: KnowledgeBase, title: str = "") -> None:
        """Ask for title and type, create the entry, and open the editor."""
        entry = await entry_actions.new_entry(self, kb, title, self.knowledge_tree.category)
        if entry is not None:
            line = entry_actions.first_line_to_fill(entry.text)
            self.open_entry(entry.path, line, edit=True)

    @_with_entry
    async def action_save(self, kb: KnowledgeBase, path: str) -> None:
        if path.startswith(NAME_PREFIX):
            made = await entry_actions.entry_of_name(self, kb, path)
        else:
            made = await self._entry_of_message(kb)
        if made is not None:
            self.open_entry(made.path)

    async def _entry_of_message(self, kb: KnowledgeBase) -> Entry | None:
        document = self.view.document if self.view is not None else None
        if self.view is None or document is None or document.kind != "conversation":
            return None
        message = documents.message_at(document, self.view.body.pointed_source)
        if message is None:
            return None
        session = documents.session_of(document.path)
        return await entry_actions.entry_of_message(self, kb, session, message)

    async def action_edit(self) -> None:
        path = self.target()
        if path is not None:
            await self._edit(path)

    @_with_entry
    async def action_edit_outside(self, kb: KnowledgeBase, path: str) -> None:
        await entry_actions.edit_outside(self, kb, path)
        self.panel.read()
        self._file_changed()

    @_with_entry
    async def action_rename(self, kb: KnowledgeBase, path: str) -> None:
        self.moved(path, await entry_actions.rename_entry(self, kb, path) or path)

    @_with_entry
    async def action_move(self, kb: KnowledgeBase, path: str) -> None:
        self.moved(path, await entry_actions.move_entry(self, kb, path) or path)

    @_with_entry
    async def action_link_mentions(self, kb: KnowledgeBase, path: str) -> None:
        await entry_actions.link_mentions(self, kb, path)

    @_with_entry
    async def action_delete(self, kb: KnowledgeBase, path: str) -> None:
        deleted = await entry_actions.delete_entry(self, kb, path)
        if deleted is not None:
            self._last_deletion = deleted
            self._entry_deleted(path)

    def action_undo(self) -> None:
        self._undo_last() if self._last_deletion is None else self._undelete(self._last_deletion)

    @_in_background
    async def _undelete(self, kb: KnowledgeBase, deleted: Commit) -> None:
        self._last_deletion = None
        path = await entry_actions.undelete(self, kb, deleted)
        if path is not None:
            self.open_entry(path)

    @_with_entry
    async def _undo_last(self, kb: KnowledgeBase, path: str) -> None:
        await entry_actions.undo_last(self, kb, path)
