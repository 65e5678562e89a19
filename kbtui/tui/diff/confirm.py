"""Dialogs that confirm a change, show its progress, and choose between versions of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar, NamedTuple, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Static

from kbtui.errors import StoppedError
from kbtui.history.change import Change, Commit, Watch
from kbtui.history.history import History
from kbtui.history.queries.diff import FileDiff, diff_file
from kbtui.presentation.notes import Names
from kbtui.text import clean_line, counted, span
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.messages import tell
from kbtui.tui.widgets.dialogs import Dialog, KeyDialog, ReadingDialog

T = TypeVar("T")
_BOX_DELAY_SECONDS = 0.08
"""Seconds that work may take before a progress box is shown."""
_REFRESH_SECONDS = 0.2
_MAX_SHOWN_FILES = 20
_BAR_CELLS = 40


class ConfirmScreen(ReadingDialog[str], KeyDialog):
    """A question with an optional diff; returns the key of the choice, or None if cancelled."""

    DEFAULT_CSS = """
    ConfirmScreen {
        DiffView { height: 1fr; margin-top: 1; }
        &.-diffs > Vertical { height: 90%; }
        &.-diffs VerticalScroll { max-height: 50%; }
        &.-diffs.-low > Vertical { height: 100%; }
        &.-low DiffView { margin-top: 0; min-height: 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "hunk(1)", "Next place", show=False),
        Binding("N", "hunk(-1)", "Place before", show=False),
        Binding("p", "raw", "As a patch", show=False),
    ]

    def __init__(
        self,
        title: str,
        text: str,
        choices: Mapping[str, str],
        diffs: Sequence[FileDiff] = (),
        *,
        leave: str = "leaves it",
        names: Names | None = None,
    ) -> None:
        """Create a question; `choices` maps keys to their labels, `leave` is the label of Esc."""
        super().__init__(title, text, choices, leave=leave)
        self._diffs = tuple(diffs)
        self._names = names or Names()
        self.set_class(bool(diffs), "-diffs")

    def compose_question(self) -> ComposeResult:
        with VerticalScroll(id="confirm-text"):
            yield Static(self.text)
        if self._diffs:
            yield DiffView()

    def on_mount(self) -> None:
        for view in self.query(DiffView):
            view.names = self._names
            view.show(self._diffs)
            view.focus()

    def action_hunk(self, by: int) -> None:
        for view in self.query(DiffView):
            view.go_to_hunk(by)

    def action_raw(self) -> None:
        for view in self.query(DiffView):
            view.toggle_raw()


async def confirm(
    node: DOMNode,
    title: str,
    text: str,
    choices: Mapping[str, str],
    diffs: Sequence[FileDiff] = (),
    **options: Any,
) -> str | None:
    """Show a `ConfirmScreen` and return the key of the choice, or None if cancelled."""
    return await node.app.push_screen_wait(ConfirmScreen(title, text, choices, diffs, **options))


async def choose_version(
    node: DOMNode, path: str, *, theirs: str, mine: str, base: str
) -> str | None:
    """Return the text the user chose of `theirs` (on disk), `mine` and their merge, or None."""
    both = merged(path, base, mine, theirs)
    choices = {"m": "saves mine over it", "t": "takes the file's"}
    answer = await confirm(
        node,
        f"{path.removeprefix('knowledge/')} changed meanwhile",
        "Removed lines (-) are in the file now, added ones (+) are yours. Your text is kept as a "
        "draft until you decide.",
        {"b": "saves both merged", **choices} if both is not None else choices,
        [diff_file(path, theirs.encode(), mine.encode())],
        leave="goes on editing",
    )
    return {"m": mine, "t": theirs, "b": both}.get(answer or "")


def merged(path: str, base: str, mine: str, theirs: str) -> str | None:
    """Return the three-way merge of `mine` and `theirs`, or None if they conflict."""
    from kbtui.history.merging.tree_merge import merge_three

    both = merge_three(path, base.encode(), mine.encode(), theirs.encode())
    return None if both is None or both.theirs is not None else both.data.decode()


class WorkBox(Dialog[None]):
    """A progress dialog for running work; Esc cancels it."""

    HINT = "Esc stops it"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._text = clean_line(text)
        self._progress = (0, 0)
        self._started = 0.0
        self._is_done = False
        self._rows = 1
        self.stopped = asyncio.Event()

    def compose_question(self) -> ComposeResult:
        yield Static(self._status())

    def on_mount(self) -> None:
        self.set_interval(_REFRESH_SECONDS, self._show)

    def report_progress(self, done: int, total: int) -> None:
        """Record progress; called from the worker thread.

        Raises:
            StoppedError: The user cancelled the work.
        """
        self._started = self._started if self._progress[1] else monotonic()
        self._progress = done, total
        if self.stopped.is_set():
            raise StoppedError("Stopped: nothing was changed.")

    def action_cancel(self) -> None:
        self.stopped.set()
        self._text = "Stopping, and putting back what was written …"
        self._show()

    def close(self) -> None:
        """Close the box as soon as no other dialog covers it."""
        self._is_done = True
        self._dismiss_if_done()

    def on_screen_resume(self) -> None:
        self._dismiss_if_done()

    def _dismiss_if_done(self) -> None:
        if self._is_done and self.is_current:
            self.dismiss(None)

    def _show(self) -> None:
        status = self._status()
        rows = 1 + status.plain.count("\n")
        self.query_one(Static).update(status, layout=rows != self._rows)
        self._rows = rows

    def _status(self) -> Content:
        done, total = self._progress
        if not total:
            return Content(self._text)
        full = _BAR_CELLS * done // total
        bar = ("█" * full, "$accent"), ("░" * (_BAR_CELLS - full), "$text-muted")
        left = (monotonic() - self._started) * (total - done) / max(1, done)
        wait = f", {span(left)} left" if done and left >= 1 else ""
        return Content.assemble(f"{self._text}\n", *bar, f"  {done:,} of {total:,}{wait}")


async def run_with_progress(
    node: DOMNode, title: str, text: str, work: Callable[[Watch], T], *, writes: bool = False
) -> T:
    """Run `work` in a thread, with a progress box if it takes more than a moment.

    Args:
        node: A node of the app that shows the box.
        title: The box's title.
        text: What is being done.
        work: Takes the callback to report its progress to.
        writes: Whether to wait for `work` to end even after it was cancelled.

    Raises:
        StoppedError: The user cancelled it.
    """
    box = WorkBox(title, text)
    job = asyncio.ensure_future(asyncio.to_thread(work, box.report_progress))
    await asyncio.wait([job], timeout=_BOX_DELAY_SECONDS)
    if job.done():
        return job.result()
    node.app.push_screen(box)
    stop = asyncio.ensure_future(box.stopped.wait())
    try:
        await asyncio.wait([job] if writes else [job, stop], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
        box.close()
    if not job.done():
        job.add_done_callback(lambda job: job.cancelled() or job.exception())  # nobody waits
        raise StoppedError("Stopped: nothing was changed.")
    return job.result()


class Question(NamedTuple):
    """The confirmation asked before a change to several files.

    `own` are the files the change is about, `unasked` is how many others it may touch without
    confirmation, `names` are their display names. `{files}` in the text is replaced by the number
    of those others. `nothing` is the message if there is nothing to change.
    """

    title: str
    text: str
    yes: str
    own: Collection[str] = ()
    unasked: int = 1
    nothing: str = ""
    names: Names = Names()


async def make_change(
    node: DOMNode, history: History, gather: Callable[..., object], question: Question
) -> Commit | None:
    """Prepare a change, ask for confirmation if it touches other files, and apply it.

    Args:
        node: A node of the app that asks.
        history: The history to apply the change to.
        gather: Passes the change to its argument `sink`; runs in a thread and writes nothing.
        question: The confirmation to ask.

    Returns:
        The commit, or None if the user cancelled; nothing was changed then.

    Raises:
        KbtuiError: The change can't be made.
    """

    def prepared(_watch: Watch) -> list[Change]:
        changes: list[Change] = []
        gather(sink=changes.append)
        return changes

    title = question.title
    try:
        changes = await run_with_progress(
            node, title, "Looking at what it would change …", prepared
        )
        if not changes and question.nothing:
            tell(node, question.nothing)
        if not changes or not await _confirmed(node, history, changes[0], question):
            return None
        text = f"Changing {counted(len(changes[0].edits), 'file')}"
        return await run_with_progress(
            node, title, text, lambda watch: history.apply(changes[0], watch), writes=True
        )
    except StoppedError as stopped:
        tell(node, stopped.message)
    return None


async def _confirmed(node: DOMNode, history: History, change: Change, question: Question) -> bool:
    others = len(set(change.edits).difference(question.own))
    if others <= question.unasked:
        return True
    diffs = await run_with_progress(
        node,
        question.title,
        "Looking at what it would change …",
        lambda _: history.preview(change, _MAX_SHOWN_FILES),
    )
    kind = "other file" if question.own else "file"
    text = question.text.replace("{files}", counted(others, kind))
    if len(change.edits) > len(diffs):
        text += f" The first {len(diffs)} of {len(change.edits):,} are shown below."
    title, keys = f"{question.title}?", {"y": question.yes}
    return await confirm(node, title, text, keys, diffs, names=question.names) is not None
