from __future__ import annotations

import pytest

from kbtui.tui.markdown.layout import column_widths, heading_line, render_markdown, render_plain


def shown(text: str, width: int = 40) -> list[str]:
    return [line.content.plain.rstrip() for line in render_markdown(text, width).lines]


def test_lists_keep_their_indent_when_they_wrap():
    assert shown("- one two three four\n  - nested\n\n1. first\n", 14) == [
        "• one two",
        "  three four",
        "  • nested",
        "",
        "1. first",
    ]


def test_tasks_quotes_callouts_rules_and_footnotes():
    text = "- [x] done\n- [ ] open\n\n> said\n\n> [!note] Title\n> body\n\n---\n\na[^1]\n\n[^1]: foot\n"
    assert shown(text, 12) == [
        "☑ done",
        "☐ open",
        "",
        "▌ said",
        "",
        "▌ Note",
        "▌ Title",
        "▌ body",
        "",
        "────────────",
        "",
        "a[1]",
        "",
        "────────────",
        "[1] foot",
    ]


def test_every_line_knows_the_line_of_the_file_it_comes_from():
    text = "# A\n\none\ntwo\n\n- x\n- y\n\n```\ncode\nmore\n```\n"
    lines = render_markdown(text, 40, first_line=6).lines
    source = {line.content.plain.strip(): line.source for line in lines}
    assert source["A"] == 6
    assert source["one two"] == 8
    assert (source["• x"], source["• y"]) == (11, 12)
    assert (source["code"], source["more"]) == (15, 16)


def test_links_of_all_kinds_are_told_apart_and_those_to_nothing_look_different():
    rendered = render_markdown(
        "[[a|Alias]] [[b#Part]] [c](../c.md#x) https://x.y ![i](i.png)",
        80,
        leads_somewhere=lambda ref: ref.target != "b",
    )
    assert [(ref.kind, ref.target, ref.heading) for ref in rendered.links] == [
        ("wiki", "a", ""),
        ("wiki", "b", "Part"),
        ("markdown", "../c.md", "x"),
        ("web", "https://x.y", ""),
        ("markdown", "i.png", ""),
    ]
    line = rendered.lines[0].content
    assert line.plain == "Alias b > Part c https://x.y ▣ i"
    missing = [span for span in line.spans if span.style == ".md--missing"]
    assert [line.plain[span.start : span.end] for span in missing] == ["b > Part"]


def test_tables_fit_their_width_and_wrap_their_cells():
    text = "| a | long head |\n|--:|---|\n| 1 | several words in here |\n"
    assert shown(text, 20) == [
        "a  long head",
        "─  ─────────────────",
        "1  several words in",
        "   here",
    ]
    assert column_widths([30, 3, 30], 40) == [18, 3, 19]
    assert sum(column_widths([50, 50], 20)) <= 20


@pytest.mark.parametrize("width", [1, 10, 33])
def test_nothing_is_wider_than_it_may_be_nor_lost(width):
    text = "# " + "x" * 50 + "\n\n> - " + "y" * 50 + "\n\n```\n" + "z" * 50 + "\n```\n\n漢字" * 9
    lines = render_markdown(text, width).lines
    assert all(line.content.cell_length <= max(width, 12) for line in lines)
    everything = "".join(line.content.plain for line in lines)
    assert [everything.count(char) for char in "xyz漢"] == [50, 50, 50, 9]


def test_html_math_and_what_markdown_does_not_know_stay_readable():
    text = "<div onclick='x'>\nhi\n</div>\n\na <b>b</b> $x^2$ %%c%%\n"
    assert shown(text) == ["<div onclick='x'>", "hi", "</div>", "", "a <b>b</b> $x^2$ %%c%%"]


def test_plain_text_is_only_wrapped():
    lines = render_plain("# no heading\n\n  two\tthree", 9).lines
    assert [(line.content.plain, line.source, line.joined) for line in lines] == [
        ("# no", 1, False),
        ("heading", 1, True),
        ("", 2, False),
        ("  two", 3, False),
        ("three", 3, True),
    ]


def test_a_heading_is_found_as_links_name_it():
    text = "# One\n## Two & more\ntext\n"
    assert heading_line(text, "Two & more") == 2
    assert heading_line(text, "two-more") == 2
    assert heading_line(text, "none") is None
