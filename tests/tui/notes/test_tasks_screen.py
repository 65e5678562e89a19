"""The screen of tasks: what is late, this week, later and undated; ticked and moved in its file."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from textual.widgets import Input

from kbtui.clock import local_day, local_now
from kbtui.history.change import Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.notes.preview import Preview
from kbtui.tui.notes.tasks import TasksScreen
from kbtui.tui.widgets.dialogs import KeyDialog
from tests.tui.notes_support import text_of
from tests.tui.shell import Shell, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TODAY = local_day()
TOMORROW, LONG_AGO, FAR = (TODAY + timedelta(days=n) for n in (1, -30, 60))
GARDEN = f"""# Garden

- [ ] rake the leaves 📅 {LONG_AGO}
- [ ] water the plants 🔁 every week 📅 {TOMORROW}
- [ ] dig ⏫ [due:: {FAR}]
- [ ] prune the 林檎 tree \x1b[31m
- [x] mow
- [ ] odd 📅 2026-02-30
"""
PATH = "knowledge/topics/garden.md"


def _notes(root: Path) -> None:
    with KnowledgeBase.open(root, create=True) as kb:
        kb.library.create("topic", "Garden")
        kb.workspace.place(PATH).write_text(GARDEN)
        kb.history.adopt(settle=0)


@asynccontextmanager
async def tasks(root: Path, size: tuple[int, int] = (100, 30)) -> AsyncIterator[Shell]:
    _notes(root)
    async with running(root, size=size) as shell:
        await shell.say("/tasks", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, TasksScreen))
        await shell.until(lambda: "rake" in listed(shell))
        yield shell


def listed(shell: Shell) -> str:
    return text_of(shell.app.screen.rows)


def written(root: Path) -> str:
    return (root / PATH).read_text()


async def test_what_was_only_said_to_be_done_stands_below_and_is_not_ticked(tmp_path: Path) -> None:
    root = tmp_path / "kb"
    _notes(root)
    with KnowledgeBase.open(root) as kb:
        for text in (f"I have to pay by {TOMORROW}", f"The plumber comes on {TOMORROW}"):
            kb.journal.keep(text, local_now(), Origin())
        page = kb.workspace.place(f"memory/{TODAY}.md")
    before = page.read_text()
    async with tasks(root, (100, 46)) as shell:
        await shell.until(lambda: "Said, not noted as a task  1" in listed(shell))
        text = listed(shell)
        assert text.index("odd") < text.index("• I have to pay by")
        assert "plumber" not in text
        assert "5 open" in str(shell.app.screen.rows.border_title)
        await shell.press("end", "space")
        await shell.notified("was said, not noted as a task")
        assert page.read_text() == before
        await shell.press("enter")
        await shell.until(lambda: shell.app.main.notes.current_path == f"memory/{TODAY}.md")


async def test_tasks_stand_under_when_they_are_due(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        rows = [row.strip() for row in listed(shell).split("\n") if row.strip()]
        kinds = [row.split("  ")[0] for row in rows]
        assert kinds == [
            "Late",
            "☐ rake the leaves",
            "This week",
            "☐ water the plants",
            "Later",
            "☐ ▲ dig",
            "Without a date",
            "☐ prune the 林檎 tree [31m",
            "☐ odd",
        ]
        assert "by tomorrow · ↻ every week · Garden" in rows[3]
        assert "no calendar has a 2026-02-30" in rows[-1]
        assert "5 open · 1 late" in str(shell.app.screen.rows.border_title)


async def test_space_ticks_a_task_in_its_file_as_one_change_and_u_takes_it_back(
    tmp_path: Path,
) -> None:
    async with tasks(tmp_path / "kb") as shell:
        await shell.press("space")
        await shell.until(lambda: "rake" not in listed(shell))
        assert f"- [x] rake the leaves 📅 {LONG_AGO} ✅ {TODAY}\n" in written(tmp_path / "kb")
        assert shell.app.kb.history.commit("HEAD").body == "done: rake the leaves"
        await shell.press("u")
        await shell.until(lambda: "rake" in listed(shell))
        assert written(tmp_path / "kb").endswith(GARDEN.split("\n", 1)[1])


async def test_a_task_of_a_read_only_note_is_changed_only_when_one_says_so(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        file = tmp_path / "kb" / PATH
        file.chmod(0o444)
        before = written(tmp_path / "kb")
        await shell.press("space")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        assert "read-only" in shell.app.screen.text.plain
        await shell.press("escape")
        await shell.until(lambda: isinstance(shell.app.screen, TasksScreen))
        assert written(tmp_path / "kb") == before
        await shell.press("space")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("r")
        await shell.until(lambda: "[x] rake" in written(tmp_path / "kb"))
        assert file.stat().st_mode & 0o777 == 0o444


async def test_the_note_of_a_task_is_shown_beside_it_at_its_line(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb", size=(140, 42)) as shell:
        preview = shell.app.screen.query_one(Preview)
        await shell.until(lambda: "mow" in text_of(preview))
        assert str(preview.border_title) == "Garden"


async def test_a_recurring_task_comes_again(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        await shell.press("j", "space")
        next_week = TOMORROW + timedelta(weeks=1)
        again = f"- [ ] water the plants 🔁 every week 📅 {next_week}\n"
        await shell.until(lambda: again in written(tmp_path / "kb"))
        await shell.notified("It comes again")


async def test_s_moves_a_task_to_another_day_in_words(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        await shell.press("s")
        await shell.until(lambda: shell.app.screen.query(Input))
        shell.app.screen.query_one(Input).value = "tomorrow"
        await shell.press("enter")
        await shell.until(lambda: f"rake the leaves 📅 {TOMORROW}" in written(tmp_path / "kb"))
        await shell.until(lambda: "Late  1" not in listed(shell))


async def test_what_names_no_day_is_refused_and_nothing_written(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        before = written(tmp_path / "kb")
        await shell.press("s")
        await shell.until(lambda: shell.app.screen.query(Input))
        shell.app.screen.query_one(Input).value = "soonish"
        await shell.press("enter")
        await shell.notified("names no day")
        assert written(tmp_path / "kb") == before


async def test_a_filter_shows_only_tasks_with_the_words(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        await shell.press("slash", *"plants")
        await shell.until(lambda: "rake" not in listed(shell))
        assert "water" in listed(shell)
        assert "1 of 5 open" in str(shell.app.screen.rows.border_title)
        await shell.press("escape")
        await shell.until(lambda: "rake" in listed(shell))


async def test_enter_opens_the_note_at_the_line_and_shift_t_leads_here(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb") as shell:
        await shell.press("j", "enter")
        notes = shell.app.main.notes
        await shell.until(lambda: shell.app.screen is shell.app.main)
        await shell.until(lambda: notes.current_path == PATH and notes.view.body.has_cursor)
        assert (
            "water the plants"
            in notes.view.document.text.split("\n")[notes.view.body.pointed_source - 1]
        )
        await shell.press("T")
        await shell.until(lambda: isinstance(shell.app.screen, TasksScreen))


async def test_where_nothing_is_open_it_says_what_a_task_is(tmp_path: Path) -> None:
    async with running(tmp_path / "kb") as shell:
        await shell.say("/tasks", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, TasksScreen))
        await shell.until(lambda: "Nothing is open" in listed(shell))
        await shell.press("space", "s", "u", "enter")
        await shell.notified("Nothing was changed here yet")


async def test_in_forty_columns_tasks_can_be_read(tmp_path: Path) -> None:
    async with tasks(tmp_path / "kb", size=(40, 12)) as shell:
        assert "rake the leaves" in listed(shell)
