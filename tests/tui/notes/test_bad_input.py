"""What odd notes do to what shows them."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from kbtui.tui.widgets.dialogs import PickDialog
from tests.tui.notes_support import NotesApp, arrived, hit, make_kb, opened, text_of, until

EVIL = "\x1b[31m[@click=app.quit]x[/] \u202egnp\u2066 \U000e0041 %%"
ODD = {
    "topics/漢字.md": f"---\ntype: topic\naliases: ['{EVIL}', 日本]\nstatus: 完了 🎉\n---\n# 漢字 👨‍👩‍👧 です\n\nsee [[evil]]\n",
    "topics/evil.md": (
        f'---\nowner: "[[{"漢字"}]]"\nkey {EVIL}: x\nnested: {{a: [1, {{b: c}}]}}\n---\n'
        f"# Evil {EVIL}\n\n| {EVIL} | b |\n|---|---|\n| [[漢字\\|{EVIL}]] | ![[x]] |\n\n"
        f"${EVIL}$\n\n![[{EVIL}.png]]\n![{EVIL}](http://x.y/z.png)\n\n> [!{EVIL}]- {EVIL}\n> x\n"
        "\nمرحبا بالعالم 漢字 said.\n"  # noqa: RUF001 - right-to-left is what is tried
    ),
}
SIZES = [(40, 12), (80, 24), (300, 100)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["漢字", "evil"])
async def test_odd_notes_neither_shift_a_frame_nor_steer_the_terminal(tmp_path, name, size):
    kb = make_kb(tmp_path, ODD)
    kb.search.hits = (hit("knowledge/topics/evil.md", 16, "漢字"),)
    app = NotesApp(kb)
    async with app.run_test(size=size) as pilot:
        notes = await opened(pilot, f"knowledge/topics/{name}.md")
        await until(pilot, lambda: notes.view.links)
        view = notes.view.body
        assert all(line.content.cell_length <= view.text_width for line in view.lines)
        shown = "\n".join(line.text for line in view.lines)
        assert not set("\x1b\u202e\u2066\U000e0041\t") & set(shown)
        await pilot.press("b")
        await pilot.press("escape", "K", "escape", "W", "o", "escape")
        screen = app.screen._compositor.render_strips()
        assert {cell_len("".join(part.text for part in row)) for row in screen} == {size[0]}
        assert len(app.screen_stack) == 1


async def test_five_thousand_links_are_read_and_chosen_from(tmp_path):
    links = "".join(f"- [[n{number}]] and [[b]]\n" for number in range(5_000))
    back = "".join(f"line {number} [[a]]\n\n" for number in range(1_000))
    kb = make_kb(tmp_path, {"topics/a.md": f"# A\n\n{links}", "topics/b.md": f"# B\n\n{back}"})
    app = NotesApp(kb)
    async with app.run_test(size=(100, 30)) as pilot:
        notes = await opened(pilot, "knowledge/topics/a.md")
        await until(pilot, lambda: "b lists all" in notes.view.body.lines[-1].text)
        assert notes.view.body.lines[-1].text == "… 800 more: b lists all"
        await pilot.press("b")
        dialog = await arrived(pilot, PickDialog, "ChoiceList")
        assert len(dialog.choices.items) == 6_001
        await pilot.press(*"n4999", "enter")
        await until(pilot, lambda: len(app.screen_stack) == 2, "it asks for what isn't there")
        assert "n4999" in text_of(app.screen.query_one("Input"))


async def test_a_line_of_380000_brackets_is_shown(tmp_path):
    app = NotesApp(make_kb(tmp_path, {"topics/scan.md": "# Scan\n\n" + "[![" * 127_000 + "\n"}))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/scan.md")
        await until(pilot, lambda: "[![[![" in text_of(notes.view.body))
