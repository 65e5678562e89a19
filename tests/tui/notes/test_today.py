"""The page of today: what is coming, what is open, and the lines of the day."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from kbtui.clock import local_day, local_now
from kbtui.history.change import Origin
from kbtui.knowledge_base import KnowledgeBase
from tests.tui.notes_support import text_of
from tests.tui.shell import Shell, running, settle

if TYPE_CHECKING:
    from pathlib import Path

TODAY = local_day()
TOMORROW = TODAY + timedelta(days=1)
LATE = TODAY - timedelta(days=9)
GARDEN = "knowledge/topics/garden.md"


def _page(root: Path) -> None:
    with KnowledgeBase.open(root, create=True) as kb:
        kb.library.create("topic", "Garden")
        kb.workspace.place(GARDEN).write_text(
            f"# Garden\n\n- [ ] rake 📅 {LATE}\n\nThe plumber comes on {TOMORROW}.\n\n- [ ] prune\n"
        )
        kb.history.adopt(settle=0)
        now = local_now()
        old = kb.journal.keep("The rent is 1180.", now.replace(hour=0, minute=1), Origin())
        new = kb.journal.keep("The rent is 1210.", now.replace(hour=0, minute=2), Origin())
        kb.journal.mark_past(old.path, old.line, old.text, new, Origin())


def shown(shell: Shell) -> str:
    view = shell.app.main.notes.view
    return text_of(view.body) if view is not None and view.query("#entry-body") else ""


async def test_today_has_what_is_coming_what_is_open_and_the_lines_of_the_day(
    tmp_path: Path,
) -> None:
    _page(tmp_path / "kb")
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "Coming 2" in shown(shell) and "1210" in shown(shell))
        text = shown(shell)
        coming, opened, said = text.index("Coming"), text.index("── Open"), text.index("00:01")
        assert coming < text.index("☐ rake") < text.index("tomorrow") < opened
        assert opened < text.index("☐ prune") < said
        assert "The rent is 1180. → The rent is 1210." in text
        assert "The last five weeks" in text


async def test_a_small_terminal_shows_it_from_its_top_whatever_comes_above_the_lines(
    tmp_path: Path,
) -> None:
    _page(tmp_path / "kb")
    with KnowledgeBase.open(tmp_path / "kb") as kb:
        for number in range(20):
            kb.journal.keep(f"Sentence {number} of a day with many.", local_now(), Origin())
    async with running(tmp_path / "kb", size=(100, 26)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "Coming 2" in shown(shell))
        body = shell.app.main.notes.view.body
        assert body.scroll_y == 0
        body.scroll_to(y=12, animate=False, force=True, immediate=True)
        reached = body.top_source
        assert reached > 1
        shell.app.main.notes.view.reload()
        await settle(shell.pilot)
        assert body.top_source == reached


async def test_a_row_leads_to_its_line(tmp_path: Path) -> None:
    _page(tmp_path / "kb")
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "☐ rake" in shown(shell))
        notes = shell.app.main.notes
        await shell.press("j", "j", "enter")
        await shell.until(lambda: notes.current_path == GARDEN)
        await shell.until(lambda: notes.view.body.pointed_source == 3)


async def test_it_is_there_before_anything_was_said_and_follows_what_is(tmp_path: Path) -> None:
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        notes = shell.app.main.notes
        await shell.say("/today", wait=False)
        await shell.until(lambda: "Nothing is written here yet" in shown(shell))
        assert not (tmp_path / "kb" / "memory" / f"{TODAY}.md").exists(), "looking writes nothing"
        kb = shell.app.kb
        kb.journal.keep("call the keeper tomorrow", local_now(), Origin(), task=True)
        await shell.until(lambda: "Coming 1" in shown(shell) and "call the keeper" in shown(shell))
        assert notes.view.document.title == "Today"


async def test_the_first_sentence_brings_it_where_no_note_is_open(tmp_path: Path) -> None:
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        assert shell.app.main.notes.view is None
        shell.app.kb.journal.keep("The kettle is new.", local_now(), Origin())
        await shell.until(lambda: "The kettle is new." in shown(shell))
        assert shell.app.focused is shell.prompt, "who types goes on typing"


async def test_f3_where_no_note_is_open_leads_to_it(tmp_path: Path) -> None:
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        await shell.press("f3")
        await shell.until(lambda: "Nothing is written here yet" in shown(shell))


async def test_a_note_that_is_open_stays_when_something_is_said(tmp_path: Path) -> None:
    async with running(tmp_path / "kb", entries=1, size=(140, 50)) as shell:
        notes = shell.app.main.notes
        notes.open_entry("knowledge/topics/topic-0.md")
        await shell.until(lambda: notes.current_path == "knowledge/topics/topic-0.md")
        shell.app.kb.journal.keep("The kettle is new.", local_now(), Origin())
        await shell.until(lambda: f"memory/{TODAY}.md" in notes.entries)
        assert notes.current_path == "knowledge/topics/topic-0.md"


async def test_a_day_with_four_hundred_lines_is_shown(tmp_path: Path) -> None:
    lines = "".join(f"- {n // 60:02}:{n % 60:02} Line number {n}.\n" for n in range(400))
    with KnowledgeBase.open(tmp_path / "kb", create=True) as kb:
        kb.workspace.place(f"memory/{TODAY}.md").write_text(f"# {TODAY}\n\n{lines}")
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "Line number 5." in shown(shell))


async def test_what_was_put_off_says_what_is_newer(tmp_path: Path) -> None:
    old, new = (TODAY + timedelta(days=n) for n in (2, 4))
    async with running(tmp_path / "kb", size=(140, 50), scripted=False) as shell:
        await shell.say(f"The plumber comes on {old:%d %B} at 9")
        await shell.say(f"The plumber comes on {new:%d %B} at 11 now")
        await shell.until(lambda: f"↗ {new:%a} {new.day}" in shown(shell))


async def test_what_a_line_of_an_earlier_day_said_is_marked_as_soon_as_it_is_put_off(
    tmp_path: Path,
) -> None:
    old, new = (TODAY + timedelta(days=n) for n in (2, 4))
    with KnowledgeBase.open(tmp_path / "kb", create=True) as kb:
        earlier = local_now() - timedelta(days=1)
        kb.journal.keep(f"The plumber comes on {old:%d %B} at 9", earlier, Origin())
    async with running(tmp_path / "kb", size=(140, 50), scripted=False) as shell:
        await shell.say(f"The plumber comes on {new:%d %B} at 11 now")
        await shell.until(lambda: f"↗ {new:%a} {new.day}" in shown(shell))


async def test_notes_that_were_written_today_are_listed_with_what_came_to_them(
    tmp_path: Path,
) -> None:
    with KnowledgeBase.open(tmp_path / "kb", create=True) as kb:
        kb.library.create("topic", "Garden", body="# Garden\n\nThe beds lie in the sun.\n")
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "Written today 1" in shown(shell))
        text = shown(shell)
        assert "Nothing is written here yet" not in text
        assert "The beds lie in the sun." in text
        kb = shell.app.kb
        garden = kb.workspace.place(GARDEN)
        garden.write_text(f"{garden.read_text()}\n- leeks in row 3\n")
        kb.history.adopt(settle=0)
        await shell.until(lambda: "leeks in row 3" in shown(shell))
        assert "Written today 1" in shown(shell), "one row a note, by its last change"
        kb.library.delete(GARDEN)
        await shell.until(lambda: "Nothing is written here yet" in shown(shell))


async def test_what_was_there_before_isnt_written_today_and_many_notes_are_one_row(
    tmp_path: Path,
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Old.md").write_text("# Old\n")
    async with running(vault, size=(140, 50)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "The last five weeks" in shown(shell))
        assert "Written today" not in shown(shell)
        kb = shell.app.kb
        for number in range(6):
            kb.workspace.place(f"knowledge/n{number}.md").write_text(f"# Note {number}\n")
        kb.history.adopt(settle=0)
        await shell.until(lambda: "Written today 1" in shown(shell))
        assert "You wrote" in shown(shell)
        assert "Note 3" not in shown(shell)


async def test_the_page_of_today_can_be_written_by_hand_before_anything_was_said(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "kb", size=(140, 50)) as shell:
        await shell.say("/today", wait=False)
        await shell.until(lambda: "Nothing is written here yet" in shown(shell))
        await shell.press("e")
        notes = shell.app.main.notes
        await shell.until(lambda: notes.editor is not None)
        await shell.press("ctrl+end", *"- sunny", "ctrl+s")
        page = tmp_path / "kb" / "memory" / f"{TODAY}.md"
        await shell.until(lambda: "- sunny" in page.read_text())
        assert page.read_text().startswith(f"# {TODAY}\n")
