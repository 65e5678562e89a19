from __future__ import annotations

import gc
from datetime import date

import pytest
from textual.app import App
from textual.content import Content, Span

from kbtui.history.queries.diff import diff_file
from kbtui.presentation.times import format_day
from kbtui.tui.diff import lines as diff_lines
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.diff.lines import lay_out, lay_out_parts
from tests.tui.at_rest import Door
from tests.tui.notes_support import text_of, until


def diff_of(old: str, new: str, path: str = "knowledge/topics/x.md"):
    return diff_file(path, old.encode(), new.encode())


def plain(layout) -> list[str]:
    return [line.content.plain.rstrip() for line in layout.lines]


def test_a_patch_has_both_line_numbers_and_signs():
    layout = lay_out([diff_of("a\nb\nc\n", "a\nB\nc\n")], 80, side_by_side=False, raw=True)
    assert plain(layout) == [
        " ■ X  +1 -1",
        " line 1",
        "  1   1   a",
        "  2     - b",
        "      2 + B",
        "  3   3   c",
    ]
    assert [line.fill for line in layout.lines[3:5]] == ["diff--removed", "diff--added"]


NOTE = """---
type: person
updated: 2026-11-03
tags: [a, "b"]
related: [projects/kestrel]
---
# Alice

- likes `tea` and [[people/bob|Bob]]
- plain *words*
"""


def marked(layout) -> list[str]:
    return [
        line.text[span.start : span.end]
        for line in layout.lines
        for span in line.content.spans
        if "-word" in str(span.style)
    ]


def test_a_difference_is_shown_as_people_read_it():
    new = (
        NOTE.replace("updated: 2026-11-03", "owner: Mira Okafor\nupdated: 2026-11-24")
        .replace('"b"]', "b, c]")
        .replace("[projects/kestrel]", "[projects/kestrel, topics/time-series]")
        .replace("likes", "loves")
    )
    layout = lay_out([diff_of(NOTE, new)], 80, side_by_side=False)
    assert plain(layout) == [
        " ■ X  +4 -3",
        " line 1",
        " + owner  Mira Okafor",
        " ~ tags  a, b → a, b, c",
        " ~ related  Kestrel → Kestrel, Time series",
        "   Alice",
        "",
        " - • likes tea and Bob",
        " + • loves tea and Bob",
        "   • plain words",
    ]
    assert marked(layout)[-2:] == ["likes", "loves"]


def test_a_blank_line_that_ends_what_was_added_is_not_shown():
    layout = lay_out([diff_of("a\n", "a\n\nb\n\n")], 80, side_by_side=False)
    assert plain(layout)[0] == " ■ X  +1"
    assert plain(layout)[-3:] == ["   a", " +", " + b"]


def test_the_date_of_a_change_is_shown_where_nothing_else_was_changed():
    layout = lay_out([diff_of(NOTE, NOTE.replace("11-03", "11-24"))], 80, side_by_side=False)
    said = f" ~ updated  {format_day(date(2026, 11, 3))} → {format_day(date(2026, 11, 24))}"
    assert said in plain(layout)


def test_a_property_in_the_middle_of_long_frontmatter_is_known_as_one():
    fields = "".join(f"field{n}: {n}\n" for n in range(30))
    old = f"---\n{fields}---\ntext\n"
    layout = lay_out([diff_of(old, old.replace("d20: 20", "d20: x"))], 80, side_by_side=False)
    assert plain(layout)[1:] == [" properties", " ~ field20  20 → x"]


def test_of_a_list_in_the_frontmatter_the_name_stands_above_what_was_added():
    old = "---\nstatus: done\ntags:\n  - a\naliases:\n  - b\n---\n"
    layout = lay_out(
        [diff_of(old, old.replace("  - a\n", "  - a\n  - c\n"))], 80, side_by_side=False
    )
    assert plain(layout)[2:] == ["   tags", " +   c"]


@pytest.mark.parametrize("target", ["people/mira-okafor", "People/Mira okafor"])
def test_a_link_that_says_a_path_is_shown_by_its_title(target):
    layout = lay_out([diff_of("", f"at [[{target}]]\n")], 80, side_by_side=False)
    assert plain(layout)[-1] == " + at Mira okafor"


def test_where_only_the_signs_of_markdown_differ_they_are_shown():
    layout = lay_out([diff_of("a *b*\n", "a _b_\n")], 80, side_by_side=False)
    assert plain(layout)[2:] == [" - a *b*", " + a _b_"]


async def test_p_shows_the_patch_and_the_reading_again():
    app = DiffApp()
    async with app.run_test(size=(80, 20)) as pilot:
        view = app.query_one(DiffView)
        view.show([diff_of("**a**\n", "**b**\n")])
        await until(pilot, lambda: " + b" in text_of(view))
        view.toggle_raw()
        await until(pilot, lambda: "1 + **b**" in text_of(view))
        view.toggle_raw()
        await until(pilot, lambda: "**" not in text_of(view))


def test_beside_each_other_what_replaced_a_line_stands_in_its_row():
    layout = lay_out([diff_of("a\nb\nc\n", "a\nB\nnew\nc\n")], 41, side_by_side=True, raw=True)
    assert plain(layout)[2:] == [
        "  1   a             │  1   a",
        "  2 - b             │  2 + B",
        "                    │  3 + new",
        "  3   c             │  4   c",
    ]


def test_what_is_wholly_new_or_gone_takes_the_whole_width_as_nothing_stands_beside_it():
    text = "one\ntwo\n"
    for old, new, sign in (("", text, "+"), (text, "", "-")):
        layout = lay_out([diff_of(old, new)], 120, side_by_side=True)
        assert plain(layout)[-2:] == [f" {sign} one", f" {sign} two"]


def test_only_the_words_that_changed_are_emphasized():
    layout = lay_out([diff_of("the quick fox\n", "the slow fox\n")], 80, side_by_side=False)
    assert marked(layout) == ["quick", "slow"]


def test_long_lines_are_wrapped_inside_their_column():
    words = " ".join(f"word{n}" for n in range(60))
    for beside in (False, True):
        layout = lay_out([diff_of("x\n", f"{words}\n")], 60, side_by_side=beside)
        assert all(line.content.cell_length <= 60 for line in layout.lines)
        assert " ".join("".join(plain(layout)).split()).count("word") == 60


def test_escapes_and_directions_in_a_difference_are_taken_out():
    layout = lay_out([diff_of("a\n", "\x1b[31mred \u202eevil\ttab\n")], 80, side_by_side=False)
    text = "\n".join(plain(layout))
    assert "[31mred evil" in text
    assert not set("\x1b\u202e\t") & set(text)


def test_more_context_joins_places_and_less_parts_them():
    old = "\n".join(f"l{n}" for n in range(1, 31)) + "\n"
    new = old.replace("l5\n", "five\n").replace("l12\n", "twelve\n").replace("l30\n", "l30\nl31\n")
    diff = diff_of(old, new)
    assert len(diff.hunks) == 2
    wide = [diff_file("x", old.encode(), new.encode(), context=n) for n in (0, 1, 3, 30)]
    assert [len(diff.hunks) for diff in wide] == [3, 3, 2, 1]
    tight = wide[0]
    assert [hunk.header for hunk in tight.hunks] == [
        "@@ -5 +5 @@",
        "@@ -12 +12 @@",
        "@@ -30,0 +31 @@",
    ]
    assert wide[2].hunks == diff.hunks


def test_a_new_a_deleted_and_a_binary_file_say_what_they_are():
    added = diff_file("knowledge/a.md", None, b"one\n")
    deleted = diff_file("knowledge/b.md", b"one\n", None)
    binary = diff_file("knowledge/c.md", b"\0\1", b"\0\2")
    text = "\n".join(plain(lay_out([added, deleted, binary], 80, side_by_side=False)))
    assert " ○ A  new  +1" in text
    assert " ○ B  deleted  -1" in text
    assert "not text" in text


class DiffApp(App[None]):
    def compose(self):
        yield DiffView()


def test_markdown_and_frontmatter_are_coloured_and_other_files_are_not():
    old = "---\ntype: person\n---\n# Alice\n\n- likes `tea` and [[bob]] #team\nplain: text\n"
    new = old.replace("person", "topic").replace("text\n", "texts\n")

    def styled(path: str) -> dict[str, str]:
        layout = lay_out([diff_of(old, new, path)], 80, side_by_side=False, raw=True)
        return {
            line.content.plain[span.start : span.end].strip(): str(span.style)
            for line in layout.lines
            for span in line.content.spans
        }

    styles = styled("knowledge/people/alice.md")
    expected = {
        "type:": "h3", "# Alice": "strong", "-": "muted", "`tea`": "code", "[[bob]]": "link",
        "#team": "tag",
    }  # fmt: skip
    for text, style in expected.items():
        assert styles[text] in {f".md--{style}", ".diff--minus"}, text
    assert "plain:" not in styles, "a key is one only in the frontmatter"
    assert "# Alice" not in styled("notes.txt")


async def test_it_stands_side_by_side_by_itself_where_there_is_room():
    for width, beside in ((100, False), (140, True)):
        app = DiffApp()
        async with app.run_test(size=(width, 20)) as pilot:
            view = app.query_one(DiffView)
            view.show([diff_of("a\n", "b\n")])
            await until(pilot, lambda v=view: v.lines)
            assert ("│" in text_of(view)) is beside
            view.toggle_side_by_side()
            await until(pilot, lambda v=view, b=beside: ("│" in text_of(v)) is not b)


async def test_five_thousand_lines_are_scrolled_by_drawing_only_what_is_seen(monkeypatch):
    old = "\n".join(f"line {n} of the text" for n in range(5_000)) + "\n"
    new = old.replace("of the", "of a")
    app = DiffApp()
    async with app.run_test(size=(100, 30)) as pilot:
        view = app.query_one(DiffView)
        view.show([diff_of(old, new)])
        await until(pilot, lambda: len(view.lines) > 10_000)
        drawn = []
        draw = DiffView._draw
        monkeypatch.setattr(
            DiffView, "_draw", lambda self, index: drawn.append(index) or draw(self, index)
        )
        view.scroll_end(animate=False)
        await until(pilot, lambda: "line 4999 of a text" in text_of(view))
        assert len(set(drawn)) <= 60


async def test_the_beginning_of_a_long_difference_is_there_before_its_end(monkeypatch):
    door, one_column = Door(), diff_lines.one_column

    def slow_column(texts, width):
        for number, line in enumerate(one_column(texts, width)):
            if number == 1_000:
                door.wait()
            yield line

    monkeypatch.setattr(diff_lines, "one_column", slow_column)
    app = DiffApp()
    async with app.run_test(size=(100, 30)) as pilot:
        view = app.query_one(DiffView)
        view.show([diff_of("a\n" * 2_000, "b\n" * 2_000), diff_of("c\n", "d\n", "last.md")])
        await until(pilot, lambda: "- a" in text_of(view))
        assert len(view.lines) < 1_000
        assert len(view._hunks) == 1
        door.open()
        await until(pilot, lambda: len(view._hunks) == 2)
        assert view.lines[-1].text.split() == ["+", "d"]
        view.go_to_hunk(1)
        await until(pilot, lambda: "Last" in text_of(view))


def test_what_is_made_for_the_lines_of_a_long_difference_does_not_pile_up():
    """Else the garbage collector stops everything while it looks through it."""
    old = "\n".join(f"line {n} of the [[text]]" for n in range(1_500)) + "\n"
    diff = diff_of(old, old.replace("of the", "of a"))
    for beside in (False, True):
        before = sum(isinstance(each, Content | Span) for each in gc.get_objects())
        parts = lay_out_parts([diff], 130, side_by_side=beside)
        next(parts)
        next(parts)
        alive = sum(isinstance(each, Content | Span) for each in gc.get_objects())
        assert alive < before + 50


def test_of_a_new_note_the_properties_without_a_value_are_not_shown():
    text = "---\ntype: topic\nrelated: []\nowner:\ntags:\n  - one\n---\n# A\n"
    new = diff_file("knowledge/topics/x.md", None, text.encode())
    said = "\n".join(plain(lay_out([new], 60, side_by_side=False)))
    assert "+ type  topic" in said
    assert "+ tags" in said
    assert "related" not in said
    assert "owner" not in said


def test_the_fences_around_code_are_left_out_where_they_stand_for_nothing_new():
    old = "- ~~~\n  a\n  ~~~\n\n```` md\n```\nb\n````\n"
    shown = plain(
        lay_out(
            [diff_of(old, old.replace("a\n", "A\n").replace("b\n", "B\n"))], 80, side_by_side=False
        )
    )
    assert not any("~" in line or "````" in line for line in shown)
    assert any("```" in line for line in shown)  # of the other fence it is code
