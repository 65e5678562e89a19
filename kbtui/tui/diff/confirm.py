"""A change on its way: worked out, looked at, agreed to, made, and stopped where it takes long.

Beside it two versions of a text to choose from.
"""

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
_UNSEEN_SECONDS = 0.08
"""Seconds that work may take before a box says what is done."""
_LOOK_SECONDS = 0.2
_SHOWN_FILES = 20
_BAR_CELLS = 40


class ConfirmScreen(ReadingDialog[str], KeyDialog):
    """Answers with the key of the choice; None for leaving everything as it is."""

    DEFAULT_CSS = """
    ConfirmScreen {
        DiffView { height: 1fr; margin-top: 1; }
        &.-diffs > Vertical { height: 90%; }
        &.-diffs VerticalScroll { max-height: 50%; }
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
        """Ask with `title`; `choices` maps each key to what it does, `leave` is what Esc does."""
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
    **how: Any,
) -> str | None:
    """Ask by a `ConfirmScreen`; the key of the choice, None for leaving everything as it is."""
    return await node.app.push_screen_wait(ConfirmScreen(title, text, choices, diffs, **how))


async def choose_version(
    node: DOMNode, path: str, *, theirs: str, mine: str, base: str
) -> str | None:
    """Show `theirs` (in the file now) against `mine`, both grown out of `base`; None: go on."""
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
    """Both changes in one text; None where they touch the same lines."""
    from kbtui.history.merging.tree_merge import merge_three

    both = merge_three(path, base.encode(), mine.encode(), theirs.encode())
    return None if both is None or both.theirs is not None else both.data.decode()


class WorkBox(Dialog[None]):
    """Says what is being done and how far it is; Esc stops it."""

    HINT = "Esc stops it"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._text = clean_line(text)
        self._at = (0, 0)
        self._began = 0.0
        self._is_over = False
        self._rows = 1
        self.stopped = asyncio.Event()

    def compose_question(self) -> ComposeResult:
        yield Static(self._said())

    def on_mount(self) -> None:
        self.set_interval(_LOOK_SECONDS, self._show)

    def watch_work(self, done: int, total: int) -> None:
        """Note how far it is; called where the work is done, which this may stop.

        Raises:
            StoppedError: The person wants that.
        """
        self._began = self._began if self._at[1] else monotonic()
        self._at = done, total
        if self.stopped.is_set():
            raise StoppedError("Stopped: nothing was changed.")

    def action_cancel(self) -> None:
        self.stopped.set()
        self._text = "Stopping, and putting back what was written …"
        self._show()

    def close(self) -> None:
        """It is done; what was asked above the box meanwhile is answered first."""
        self._is_over = True
        self._leave()

    def on_screen_resume(self) -> None:
        """Go as well, once there is nothing above any more."""
        self._leave()

    def _leave(self) -> None:
        if self._is_over and self.is_current:
            self.dismiss(None)

    def _show(self) -> None:
        said = self._said()
        rows = 1 + said.plain.count("\n")
        self.query_one(Static).update(said, layout=rows != self._rows)
        self._rows = rows

    def _said(self) -> Content:
        done, total = self._at
        if not total:
            return Content(self._text)
        full = _BAR_CELLS * done // total
        bar = ("█" * full, "$accent"), ("░" * (_BAR_CELLS - full), "$text-muted")
        left = (monotonic() - self._began) * (total - done) / max(1, done)
        wait = f", {span(left)} left" if done and left >= 1 else ""
        return Content.assemble(f"{self._text}\n", *bar, f"  {done:,} of {total:,}{wait}")


async def watched(
    node: DOMNode, title: str, text: str, work: Callable[[Watch], T], *, writes: bool = False
) -> T:
    """Work in a thread; where it takes more than a moment, a box says so.

    Args:
        node: Whose app shows it.
        title: The box's title.
        text: What is being done.
        work: Is given what it tells how far it is.
        writes: It must be waited for even when it is stopped.

    Raises:
        StoppedError: The person stopped it.
    """
    box = WorkBox(title, text)
    job = asyncio.ensure_future(asyncio.to_thread(work, box.watch_work))
    await asyncio.wait([job], timeout=_UNSEEN_SECONDS)
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
    """The question before a change of several files is made.

    `own` are the files that it is about, `unasked` how many others it may touch without a
    question, `names` what they are called. `{files}` in the text stands for the count of those
    others. `nothing` is said where nothing is to be changed.
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
    """Work a change out, ask if it touches other files, and make it.

    Args:
        node: Whose app asks.
        history: Where it is made.
        gather: Hands the change to the `sink` it is given; runs in a thread and writes nothing.
        question: What is asked.

    Returns:
        The commit; None where the person left or stopped it, and then nothing was changed.

    Raises:
        KbtuiError: It can't be made.
    """

    def gathered(_watch: Watch) -> list[Change]:
        changes: list[Change] = []
        gather(sink=changes.append)
        return changes

    title = question.title
    try:
        changes = await watched(node, title, "Looking at what it would change …", gathered)
        if not changes and question.nothing:
            tell(node, question.nothing)
        if not changes or not await _agreed(node, history, changes[0], question):
            return None
        text = f"Changing {counted(len(changes[0].edits), 'file')}"
        return await watched(
            node, title, text, lambda watch: history.apply(changes[0], watch), writes=True
        )
    except StoppedError as stopped:
        tell(node, stopped.message)
    return None


async def _agreed(node: DOMNode, history: History, change: Change, question: Question) -> bool:
    others = len(set(change.edits).difference(question.own))
    if others <= question.unasked:
        return True
    diffs = await watched(
        node,
        question.title,
        "Looking at what it would change …",
        lambda _: history.preview(change, _SHOWN_FILES),
    )
    kind = "other file" if question.own else "file"
    text = question.text.replace("{files}", counted(others, kind))
    if len(change.edits) > len(diffs):
        text += f" The first {len(diffs)} of {len(change.edits):,} are shown below."
    title, keys = f"{question.title}?", {"y": question.yes}
    return await confirm(node, title, text, keys, diffs, names=question.names) is not None
