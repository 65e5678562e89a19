"""The reader: header, rendered text and links of a document."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kbtui.clock import local_day
from kbtui.knowledge.format.body import headings_of, line_named
from kbtui.knowledge.format.facts import plain_fact
from kbtui.knowledge.format.tasks import TaskLine, task_at
from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.results import NewerLine
from kbtui.tui.diff.correct import correct_everywhere
from kbtui.tui.markdown.markdown_view import MarkdownView
from kbtui.tui.markdown.source import SourceText
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.messages import OpenEntry, tell
from kbtui.tui.notes.documents import (
    Document,
    DocumentLinks,
    load_document,
    load_links,
    load_mentions,
    message_line,
    stated_summary,
    tick,
)
from kbtui.tui.notes.embeds import with_embeds
from kbtui.tui.notes.entry_actions import may_replace, open_web_link
from kbtui.tui.notes.life import Version, load_version, read_life, with_life
from kbtui.tui.notes.preview import LinkTarget, PreviewScreen
from kbtui.tui.notes.today import around_today
from kbtui.tui.notes.why import WhyScreen
from kbtui.tui.terminal.background import SerialQueue, in_threads, latest, run_latest
from kbtui.tui.terminal.graphics import graphics_of
from kbtui.tui.widgets.dialogs import pick
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import Choice
from kbtui.views.view import Audience

_BLAMABLE_KINDS = frozenset({"entry", "text"})
_BACK_PLACES = 100
"""The number of places that Back remembers."""
_LINKS_BESIDE_COLUMNS = 100
"""Width in columns from which backlinks are beside the text."""
_PEEK_DELAY_SECONDS = 0.05
"""Seconds that the tree's cursor rests on an entry before it is loaded."""


class _Place(NamedTuple):
    """A file and a position: a line, or a scroll offset `top` (None for the current one)."""

    path: str
    line: int | None = None
    top: int | None = 0


class LinksHere(MarkdownView):
    """The clickable headings and backlinks beside a note; keys use outline and link list."""

    can_focus = False


class EntryView(Pane):
    """A view of one document at a time with a back history, like a browser."""

    DEFAULT_CSS = """
    EntryView {
        height: 1fr;
        #entry-header { height: auto; max-height: 7; padding: 0 1 1 0; }
        #entry-sides { height: 1fr; layout: horizontal; }
        #entry-body { width: 1fr; height: 100%; }
        #entry-links {
            display: none; width: 40; height: 100%; margin-left: 1;
            border-left: solid $border-blurred; padding-left: 1;
        }
        &.-links-beside #entry-links { display: block; }
        #entry-body:focus { background-tint: $foreground 2%; }
    }
    """

    @dataclass
    class Opened(Message):
        """Posted when a document is shown."""

        document: Document

    @dataclass
    class MissingLink(Message):
        """Posted when a link to a missing entry is chosen."""

        target: str

    def __init__(self, kb: KnowledgeBase, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kb = kb
        self._back_stack: list[_Place] = []
        self._forward_stack: list[_Place] = []
        self._shows_authors = False
        self._pending_place: _Place | None = None
        self._loaded_event = asyncio.Event()
        self._is_peeking = False
        self._has_room = False
        self._tick_queue = SerialQueue(self, "tick")
        self.document: Document | None = None
        self._newer: Mapping[int, NewerLine] = {}
        self.links: DocumentLinks | None = None
        self.life: Sequence[Version] = ()
        """The versions of the note, oldest first; empty until they are read."""
        self._version: int | None = None

    @property
    def path(self) -> str | None:
        """The path of the file being shown or loaded."""
        if self._pending_place is not None:
            return self._pending_place.path
        return self.document.path if self.document is not None else None

    def compose(self) -> ComposeResult:
        yield Static(id="entry-header")
        with Container(id="entry-sides"):
            yield MarkdownView(id="entry-body")
            yield LinksHere(id="entry-links")

    def on_resize(self) -> None:
        has_room = self.size.width >= _LINKS_BESIDE_COLUMNS
        if has_room != self._has_room:
            self._has_room = has_room
            if self.document is not None:
                self._show_source(self.document.source(self.links), top=None)

    def _show_source(self, source: SourceText, **options: Any) -> None:
        is_coming = self.links is None and self.has_class("-links-beside")
        outline = self.links.outline if self.links is not None else ""
        beside = self._has_room and (is_coming or bool(source.below or outline))
        self.set_class(beside, "-links-beside")
        if beside:
            self.query_one(LinksHere).show(SourceText(outline, below=source.below))
            source = source._replace(below=())
        self.body.show(source, **options)

    body = getters.query_one("#entry-body", MarkdownView)

    # Opening

    def open(self, path: str, line: int | None = None) -> None:
        """Show a file, at a line if given, and add the previous one to the back history.

        For a conversation, `line` is the id of a message.
        """
        self._push_history(path)
        self._start_load(_Place(path, line))

    def peek(self, path: str) -> None:
        """Show a file without adding it to the back history."""
        if self._is_peeking and self._back_stack and self._back_stack[-1].path == path:
            self._start_load(self._back_stack.pop(), after=_PEEK_DELAY_SECONDS)
        else:
            self._push_history(path)
            self._start_load(_Place(path), after=_PEEK_DELAY_SECONDS)
            self._is_peeking = True

    def _push_history(self, path: str) -> None:
        """Push the current place to the back history, unless it was only peeked at."""
        if self.document is not None and self.path != path and not self._is_peeking:
            self._back_stack = [*self._back_stack[1 - _BACK_PLACES :], self._current_place()]
            self._forward_stack = []

    def switch_to(self, kb: KnowledgeBase) -> None:
        """Show the same file of another knowledge base, such as one of the past."""
        self._kb = kb
        self.reload()

    def reload(self) -> None:
        """Reload the file, keeping the scroll position; if another is being loaded, that one."""
        if self.path is not None:
            is_peeking = self._is_peeking
            self._start_load(self._pending_place or _Place(self.path, top=None))
            self._is_peeking = is_peeking

    def go_back(self) -> bool:
        """Go back in the history, and return whether that was possible."""
        return self._move_between(self._back_stack, self._forward_stack)

    def go_forward(self) -> bool:
        """Go forward in the history, and return whether that was possible."""
        return self._move_between(self._forward_stack, self._back_stack)

    def follow(self, old: str, new: str) -> None:
        """Replace the path of a renamed file, and show it under the new one."""
        for places in (self._back_stack, self._forward_stack):
            places[:] = [p._replace(path=new) if p.path == old else p for p in places]
        if self.path == old:
            here = self._pending_place or _Place(old, top=None)
            self._start_load(here._replace(path=new))

    def leave(self, path: str) -> bool:
        """Show the file before a deleted one, and return whether there is one."""
        self._back_stack = [place for place in self._back_stack if place.path != path]
        self._forward_stack = [place for place in self._forward_stack if place.path != path]
        if self._back_stack:
            self._start_load(self._back_stack.pop())
            return True
        return False

    def _move_between(self, source: list[_Place], target: list[_Place]) -> bool:
        if not source or self.document is None:
            return False
        target.append(self._current_place())
        self._start_load(source.pop())
        return True

    def _current_place(self) -> _Place:
        shown = self.document.path if self.document else ""
        return self._pending_place or _Place(shown, top=round(self.body.scroll_y))

    def _start_load(self, place: _Place, *, after: float = 0) -> None:
        self._pending_place = place
        self._is_peeking = False
        self._loaded_event.clear()
        # Keys wait for the group "load", but not for a peek.
        for group in ("load", "look"):
            self.workers.cancel_group(self, group)
        run_latest(self, "look" if after else "load", self._run_load, place, after)

    async def _run_load(self, place: _Place, after: float) -> None:
        path, line, top = place
        if after:
            await asyncio.sleep(after)
        document = await asyncio.to_thread(load_document, self._kb, path)
        if document.kind == "conversation" and line is not None:
            line = message_line(document, line)
        shown = self.document
        if document.is_today and shown is not None and shown.path == path:
            document = replace(document, above=shown.above, below=shown.below)  # until read anew
        self.document, self._pending_place = document, None
        self._loaded_event.set()
        # Links are resolved afterwards: in a large vault that takes longer than reading.
        self.links = None
        self.life, self._version = (), None
        self._show(document, line, top)
        self._update_authors()
        self._newer = {}
        self.body.mark_outdated(())
        self._mark_outdated(document)
        self.post_message(self.Opened(document))
        if document.is_today:
            await self._read_around()
            document = self.document
        if document.entry is None and not document.is_picture:
            return
        links = await asyncio.to_thread(load_links, self._kb, document)
        if not document.is_picture:
            self.life = await asyncio.to_thread(read_life, self._kb, path)
            self.document = document = with_life(self.document, self.life)
        sharp = graphics_of(self.app) is not None
        steps = with_embeds(self._kb, document, links, sharp=sharp)
        async for links in in_threads(steps):
            self.links = links
            self._show_source(await asyncio.to_thread(document.source, links), top=None)
        if document.is_picture:
            return
        mentions = await asyncio.to_thread(load_mentions, self._kb, path)
        if mentions and not self.is_past:
            self.links = replace(links, mentions=mentions)
            source = await asyncio.to_thread(document.source, self.links)
            self._show_source(source, top=None)

    async def _read_around(self) -> None:
        """Show what is coming, what is open, and what was written around the lines of today."""
        if (document := self.document) is None:
            return
        around = await asyncio.to_thread(around_today, self._kb, document.path, local_day())
        shown = self.document
        if shown is not None and shown.is_today and shown != (page := around.placed(shown)):
            self.document = page
            self._show_source(self.document.source(self.links), top=None)

    # Its life

    @property
    def is_past(self) -> bool:
        """Whether an older version of the note is shown in its place."""
        return self._version is not None

    def step(self, by: int) -> None:
        """Show an earlier (-1) or later (1) version in place; after the last the note itself."""
        last = len(self.life) - 1
        at = max(0, (last if self._version is None else self._version) + by)
        if at >= last:
            if self.is_past:
                self.back_to_now()
        elif at != self._version and self.document is not None:
            self._version = at
            self._load_version(self.document, at)

    def back_to_now(self) -> None:
        """Show the note as it is now again."""
        self._version = None
        self.reload()

    @latest("look")
    async def _load_version(self, shown: Document, at: int) -> None:
        past = await asyncio.to_thread(load_version, self._kb, shown, self.life, at)
        if self._version == at:
            self.document, self.links = past, None
            self._update_authors()
            self.body.mark_outdated(())
            self._show(past, None, None)

    # Showing

    def _show(self, document: Document, line: int | None, top: int | None) -> None:
        header = self._header(document)
        self.query_one("#entry-header", Static).update(header)
        self.query_one("#entry-header").display = bool(header)
        reveal = (line, None) if line is not None else None
        more = document.entry is not None
        self._show_source(document.source(), reveal=reveal, top=top, more=more)

    def _header(self, document: Document) -> Content:
        entry = document.entry
        lines = []
        if document.kind == "entry" and entry is not None and not entry.problem:
            summary = stated_summary(entry)
            if summary:
                lines.append(Content.styled(summary, "italic"))
        if document.reason and document.body:
            lines.append(Content.styled(document.reason, "$text-warning"))
        return Content("\n").join(lines)

    # Authors

    def toggle_authors(self) -> None:
        self._shows_authors = not self._shows_authors
        self._update_authors()

    def _update_authors(self) -> None:
        """Reserve the gutter of authors at once, and fill it when they are known."""
        document = self.document
        if not self._shows_authors or document is None or document.kind not in _BLAMABLE_KINDS:
            self.body.show_authors(None)
            return
        self.body.show_authors(())
        self._fill_authors(document)

    @latest("authors")
    async def _fill_authors(self, document: Document) -> None:
        blame = self._kb.history.blame
        origins = await asyncio.to_thread(blame, document.path, text=document.text)
        if self._shows_authors and self._still_shows(document):
            self.body.show_authors(origins)

    def _still_shows(self, document: Document) -> bool:
        """Return whether a document's text is shown, whatever was added around it meanwhile."""
        shown = self.document
        return shown is not None and (shown.path, shown.text) == (document.path, document.text)

    # Newer lines

    def newer_lines_found(self) -> None:
        """Mark anew what newer lines are known of, in the note and in what is coming."""
        if self.document is not None and not self.is_past:
            self._mark_outdated(self.document)
            self._read_coming_anew()

    @latest("above")
    async def _read_coming_anew(self) -> None:
        if self.document is not None and self.document.is_today:
            await self._read_around()

    @latest("newer")
    async def _mark_outdated(self, document: Document) -> None:
        """Mark the lines of which a newer one is known."""
        if document.kind not in _BLAMABLE_KINDS:
            return
        view = self._kb.seen_by(Audience.OWN_MODEL)
        found = await asyncio.to_thread(self._kb.newer.lines_in, document.text, view)
        shown = self.document
        if found and shown is not None and shown.path == document.path:
            self._newer = found
            self.body.mark_outdated(found)

    def _open_newer(self) -> bool:
        """Open the newer line of the one at the cursor, and return whether there is one."""
        newer = self._newer.get(self.body.pointed_source) if self.body.has_cursor else None
        if newer is None:
            return False
        self.post_message(OpenEntry(newer.path, newer.line))
        return True

    @latest("open")
    async def ask_why(self) -> None:
        """Show the origin of the line at the cursor."""
        await self._loaded_event.wait()
        document = self.document
        if document is None or document.kind not in _BLAMABLE_KINDS:
            tell(self, "Nobody keeps account of who wrote this.", "warning")
            return
        self.app.push_screen(WhyScreen(self._kb, document.path, self.body.pointed_source))

    @latest("open")
    async def correct(self) -> None:
        """Put the line at the cursor right, in every place that repeats it."""
        await self._loaded_event.wait()
        document, line = self.document, self.body.pointed_source
        lines = document.text.split("\n") if document is not None else []
        if document is None or document.kind not in _BLAMABLE_KINDS or line > len(lines):
            tell(self, "Only what stands in notes and memory is corrected.", "warning")
            return
        title = document.entry.title if document.kind == "entry" and document.entry else ""
        await correct_everywhere(self, self._kb, plain_fact(lines[line - 1]), about=title)

    # Looking ahead

    @latest("open")
    async def preview(self) -> None:
        """Preview the link targets of the line at the cursor."""
        await self._loaded_event.wait()
        links = self.links
        refs = [ref for ref in self.body.links_here() if ref.kind != "web" and ref.target]
        ends = [(links.path_of(ref) if links else None, ref) for ref in refs]
        targets = [LinkTarget(path, ref) for path, ref in ends if path is not None]
        if targets:
            self.app.push_screen(PreviewScreen(self._kb, targets))
        else:
            tell(self, "No link to a note is on this line; j and k go to another.")

    # Outline

    @latest("outline")
    async def choose_heading(self) -> None:
        await self._loaded_event.wait()
        document = self.document
        text = document.text if document is not None else ""
        headings = await asyncio.to_thread(headings_of, text)
        highest = min((each.level for each in headings), default=0)
        choices = [
            Choice("  " * (each.level - highest) + each.text, f"{each.line:,}", each.line)
            for each in headings
        ]
        line = await pick(self, "Outline", choices, nothing="There are no headings in it.")
        if line is not None and document is not None and self._still_shows(document):
            self.body.reveal_source(line)
            self.body.focus()

    # Tasks

    def tick(self) -> bool:
        """Toggle the task at the cursor, and return whether there is one."""
        document = self.document
        if document is None or not document.editable or not self.body.has_cursor:
            return False
        line = self.body.pointed_source
        task = task_at(document.text, line)
        if task is not None:
            self._tick_queue.run(self._tick, document.path, task)
        return task is not None

    async def _tick(self, path: str, task: TaskLine) -> None:
        if await may_replace(self, self._kb, path):
            await asyncio.to_thread(tick, self._kb, path, task)

    # Links

    def follow_link(self) -> None:
        """Follow the only link of the line at the cursor, or let the user choose one."""
        here = self.body.links_here() if self.body.has_cursor else []
        if not here and self._open_newer():
            return
        if len(here) == 1:
            self._follow(here[0])
        else:
            self.choose_link(here)

    @latest("open")
    async def choose_link(self, among: Sequence[LinkRef] = ()) -> None:
        """Let the user choose among links and backlinks of the note, or those in `among`."""
        await self._loaded_event.wait()
        links = self.links
        ends = await asyncio.to_thread(links.ends, among) if links is not None else []
        choices = [Choice(*end) for end in ends]
        nothing = "No links. [[name]] in the text makes one."
        link = await pick(self, f"Links {len(ends):,}", choices, nothing=nothing)
        if link is not None:
            self._follow(link)

    @on(MarkdownView.LinkClicked)
    def _follow_clicked(self, event: MarkdownView.LinkClicked) -> None:
        self._follow(event.link)

    def _follow(self, link: LinkRef) -> None:
        if link.kind == "file":
            self.post_message(OpenEntry(link.target, int(link.heading) if link.heading else None))
        elif link.kind == "web":
            run_latest(self, "action", open_web_link, self, link.target)
        elif not link.target:
            self._go_to_heading(link)
        else:
            path = self.links.path_of(link) if self.links is not None else None
            if path is None:
                self.post_message(self.MissingLink(link.target))
            else:
                self._open_at_heading(path, link)

    def _go_to_heading(self, link: LinkRef) -> None:
        if self.document is not None:
            line = line_named(self.document.text, link.heading)
            if line is not None:
                self.body.reveal_source(line)

    @latest("follow")
    async def _open_at_heading(self, path: str, link: LinkRef) -> None:
        line = None
        if link.heading:
            line = await asyncio.to_thread(self._line_of_heading, path, link.heading)
        self.post_message(OpenEntry(path, line))

    def _line_of_heading(self, path: str, heading: str) -> int | None:
        return line_named(load_document(self._kb, path).text, heading)
