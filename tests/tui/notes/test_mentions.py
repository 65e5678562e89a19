from __future__ import annotations

from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.notes.documents import load_document, load_mentions
from kbtui.workspace.layout import MEMORY
from tests.tui.notes_support import DEFAULT, NotesApp, arrived, hit, make_kb, opened, text_of, until

MENTIONING = {
    **DEFAULT,
    "topics/plan.md": "# Plan\n\nAlice does it.\nNot [[alice]].\r\nAsk alice.\n",
    "topics/other.md": "# Other\n\nWith Alice, too.\n",
}
ALICE = "knowledge/people/alice.md"


def knowing(tmp_path):
    kb = make_kb(tmp_path, MENTIONING)
    kb.search.hits = (
        hit("knowledge/topics/plan.md", 3, "Alice does it."),
        hit("knowledge/topics/other.md", 3, "With Alice, too."),
        hit(ALICE, 7, "Alice"),
    )
    return kb


async def test_lines_that_say_the_name_without_a_link_stand_below_those_that_link(tmp_path):
    app = NotesApp(knowing(tmp_path))
    async with app.run_test(size=(100, 40)) as pilot:
        body = (await opened(pilot, ALICE)).view.body
        await until(pilot, lambda: "without a link" in text_of(body))
        below = text_of(body).split("without a link")[1]
        assert "■ Plan   Alice does it." in below
        assert "Ask alice." in below
        assert "■ Other   With Alice, too." in below
        assert "Not" not in below


async def test_one_key_makes_links_of_them_in_one_change_after_a_look(tmp_path):
    kb = knowing(tmp_path)
    app = NotesApp(kb)
    async with app.run_test(size=(100, 40)) as pilot:
        await opened(pilot, ALICE)
        before = len(list(kb.history.log()))
        await pilot.press("L")
        screen = await arrived(pilot, ConfirmScreen, "DiffView")
        await until(pilot, lambda: "■ Plan" in text_of(screen.query_one("DiffView")))
        assert len(list(kb.history.log())) == before
        await pilot.press("y")
        await until(pilot, lambda: "2 notes link to Alice now." in app.toasts)
        assert len(list(kb.history.log())) == before + 1
        plan = (kb.workspace.knowledge / "topics/plan.md").read_bytes()
        assert plan == b"# Plan\n\n[[Alice]] does it.\nNot [[alice]].\r\nAsk [[alice]].\n"
        other = kb.library.get("knowledge/topics/other.md").text
        assert other == "# Other\n\nWith [[Alice]], too.\n"


async def test_without_any_it_says_so(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        await opened(pilot, ALICE)
        await pilot.press("L")
        await until(pilot, lambda: "No other note says its name" in app.toasts)


def test_the_memory_is_named_so_and_its_word_is_no_mention_of_it(tmp_path):
    kb = make_kb(tmp_path, {"topics/plan.md": "# Plan\n\nIt wants more memory than we have.\n"})
    file = kb.workspace.root / MEMORY
    file.parent.mkdir(exist_ok=True)
    file.write_text("# Facts\n\n- The gate code is 4711.\n")
    kb.search.hits = (hit("knowledge/topics/plan.md", 3, "more memory"),)
    assert load_document(kb, MEMORY).title == "Memory"
    assert load_mentions(kb, MEMORY) == ()
