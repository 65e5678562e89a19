from __future__ import annotations

from types import MappingProxyType

import pytest

from kbtui.documents.documents import DocumentPicture
from kbtui.presentation.notes import Named, kind_of
from kbtui.tui.markdown.layout import Rendered, column_widths, render, render_plain
from kbtui.tui.markdown.pictures import picture_lines
from kbtui.tui.markdown.source import Embed, Property, SourceText
from kbtui.tui.markdown.syntax import LinkRef, embedded_in


def render_markdown(
    text: str, width: int, folds=MappingProxyType({}), wanted=None, **said
) -> Rendered:
    return render(SourceText(text, **said), width, folds, wanted)


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


def test_boxes_are_what_themes_of_obsidian_make_of_them():
    text = "- [/] half\n- [-] not\n- [>] later\n- [?] ask\n- [x](y) link\n- [12] two\n"
    assert shown(text) == ["◪ half", "☒ not", "▷ later", "[?] ask", "• x link", "• [12] two"]


DETAILS = """<details>
<summary>Why <b>not</b>?</summary>

- [ ] one

</details>

<details open><summary>Two</summary>
inside
<details>
deep
</details>
</details>
"""


def test_details_are_their_summary_until_they_are_opened():
    rendered = render_markdown(DETAILS, 40, first_line=3)
    assert [line.text for line in rendered.lines] == [
        "▸ Why not?", "", "▾ Two", "  inside", "", "  ▸ Details",
    ]  # fmt: skip
    assert {at: fold.is_open for at, fold in rendered.folds.items()} == {
        3: False,
        10: True,
        12: False,
    }
    opened = render_markdown(DETAILS, 40, first_line=3, folds={3: True, 10: False})
    assert [(line.text, line.source) for line in opened.lines] == [
        ("▾ Why not?", 3), ("  ☐ one", 6), ("", 6), ("▸ Two", 10),
    ]  # fmt: skip
    assert render_markdown(DETAILS, 40, first_line=3, wanted=13).lines[-1].text == "    deep"


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>a</summary>b</details>",
        "<details><summary>a </summary>b\nc\n</details>",
        "<details>\na\n\nb\n\nc",
        "<details>\n<summary>a\n\nb\n</details>\n\nc",
        "x <details>\n<summary>a</summary>\nb\n</details> c",
        "- <details>\n  a\n- b\n\n</details>\n\nc",
    ],
)
def test_of_details_that_are_written_otherwise_every_word_is_shown(text):
    opened = render_markdown(text, 40, dict.fromkeys(range(9), True)).lines
    words = " ".join(line.text for line in opened).split()
    assert [word for word in words if word in {"a", "b", "c", "ab"}] in (["a", "b", "c"], ["ab"])


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
        resolve=lambda ref: None if ref.target == "b" else Named("", ""),
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


@pytest.mark.parametrize(
    ("written", "shown_as"),
    [
        ("[[people/mira-okafor]]", "Mira Okafor"),
        ("[[mira-okafor#Role]]", "Mira Okafor \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} Role"),
        ("[[people/mira-okafor|her]]", "her"),
        ("[[Mira O.]]", "Mira O."),
        ("[her](people/mira-okafor.md)", "her"),
        ("[[nobody]]", "nobody"),
        ("[[#Role]]", "Role"),
    ],
)
def test_a_link_that_says_only_a_path_is_shown_by_the_title(written: str, shown_as: str) -> None:
    rendered = render_markdown(
        written,
        80,
        resolve=lambda ref: None if ref.target == "nobody" else Named("", "Mira Okafor"),
    )
    assert rendered.lines[0].content.plain == shown_as


def test_tables_fit_their_width_and_wrap_their_cells():
    text = "| a | long head |\n|--:|---|\n| 1 | several words in here |\n"
    assert shown(text, 20) == [
        "a  long head",
        "─  ─────────────────",
        "1  several words in",
        "   here",
    ]
    assert column_widths([30, 3, 30], 40, [5, 3, 5]) == [18, 3, 19]
    assert column_widths([50, 50], 20, [14, 2]) == [14, 6]


def test_a_table_that_is_too_wide_for_its_words_stands_as_records():
    text = (
        "| Name | Department | Where | Since |\n|---|---|---|---|\n"
        "| Mira Okafor | Engineering of radios | [[Kestrel]] | 2024 |\n| Jonas | | | 2023 |\n"
    )
    assert shown(text, 30) == [
        "Name        Mira Okafor",
        "Department  Engineering of",
        "            radios",
        "Where       Kestrel",
        "Since       2024",
        "──────────",
        "Name        Jonas",
        "Since       2023",
    ]
    assert shown(text, 80)[0].split() == ["Name", "Department", "Where", "Since"]


@pytest.mark.parametrize("width", [1, 10, 33])
def test_nothing_is_wider_than_it_may_be_nor_lost(width):
    text = "# " + "x" * 50 + "\n\n> - " + "y" * 50 + "\n\n```\n" + "z" * 50 + "\n```\n\n漢字" * 9
    lines = render_markdown(text, width).lines
    assert all(line.content.cell_length <= max(width, 12) for line in lines)
    everything = "".join(line.content.plain for line in lines)
    assert [everything.count(char) for char in "xyz漢"] == [50, 50, 50, 9]


def test_html_math_and_what_markdown_does_not_know_stay_readable():
    text = "<div onclick='x'>\nhi\n</div>\n\na <b>b</b> $x^2$ %%c%% <Widget> List<str>\n"
    assert shown(text, 60) == ["hi", "", "a b x^2  <Widget> List<str>"]


def test_what_somebody_said_is_shown_whole():
    text = "<div onclick='x'>\nhi\n</div>\n\na <b>b</b> %%c%% ^id\n\n> [!tip]- T\n> b\n"
    lines = [line.text for line in render_markdown(text, 60, whole=True).lines]
    assert lines[:3] == ["<div onclick='x'>", "hi", "</div>"]
    assert lines[4:] == ["a <b>b</b> %%c%% ^id", "", "▌ T", "▌ b"]


def test_comments_block_ids_and_tags_are_left_out_and_the_lines_keep_their_numbers():
    text = (
        "%%\nto do\n\nmore\n%%\n\nSaid. ^quote-1\n\n- item ^a1\n\n^list\n\n<!-- a\nb -->\n"
        "<div>\n\n<style>\np { x }\n</style>\n\n`%%` and `<!--` ^x ^2 end\n\n```\n%%code%% ^id\n```\n"
    )
    lines = [line for line in render_markdown(text, 60).lines if line.text.strip()]
    assert [(line.text.rstrip(), line.source) for line in lines] == [
        ("Said.", 7),
        ("• item", 9),
        ("%% and <!-- ^x ^2 end", 21),
        (" %%code%% ^id", 24),
    ]
    assert not render_markdown("%% only this %%\n", 60).lines


def test_a_comment_that_is_not_closed_is_shown():
    assert shown("a\n\n%% b\n") == ["a", "", "%% b"]
    assert shown("a\n\n<!-- b %% c\n") == ["a", "", "<!-- b %% c"]


def test_links_pictures_and_breaks_of_html_are_what_they_are():
    rendered = render_markdown(
        '<a class="x" href="https://a.b">site</a><br>two <img src="i.png" alt="A cat"/>', 40
    )
    assert [line.text for line in rendered.lines] == ["site", "two ▣ A cat"]
    assert [ref.target for ref in rendered.links] == ["https://a.b", "i.png"]


def spans_of(text: str, style: str) -> list[str]:
    content = render_markdown(text, 60).lines[0].content
    return [content.plain[at.start : at.end] for at in content.spans if at.style == style]


def test_marks_lose_their_signs_and_may_hold_other_styles():
    text = "==a **b** c== and ==漢字== and `==no==` and 1 == 2 == 3"
    assert shown(text, 60) == ["a b c and 漢字 and ==no== and 1 == 2 == 3"]
    assert spans_of(text, ".md--mark") == ["a b c", "漢字"]
    assert spans_of(text, ".md--strong") == ["b"]
    assert shown("*a ==b* c== d") == ["*a b* c d"]


def test_tags_have_a_style_of_their_own():
    assert spans_of("#one and #a/b not a#b or #1 [red]", ".md--tag") == ["#one", "#a/b"]


def test_a_callout_has_its_own_title_in_the_colour_of_its_kind():
    rendered = render_markdown("> [!warning|right] Mind **this**\n> body\n> > [!tip]\n", 40)
    assert [line.text for line in rendered.lines] == ["▌ Mind this", "▌ body", "▌", "▌ ▌ Tip"]
    styles = [{span.style for span in line.content.spans} for line in rendered.lines]
    assert ".md--callout-warn" in styles[0]
    assert ".md--callout-good" in styles[3]
    body = render_markdown("> [!note]\n> body\n> more\n", 40, first_line=5).lines
    assert [(line.text, line.source) for line in body] == [("▌ Note", 5), ("▌ body more", 6)]


FOLDED = "> [!faq]- Why?\n> Because.\n> > [!bug]+ Open\n> > inside\n"


def test_a_folded_callout_is_its_title_until_it_is_opened():
    rendered = render_markdown(FOLDED, 40, first_line=3)
    assert [line.text for line in rendered.lines] == ["▌ ▸ Why?"]
    opened = render_markdown(FOLDED, 40, first_line=3, folds={3: True})
    assert [line.text for line in opened.lines] == [
        "▌ ▾ Why?", "▌ Because.", "▌", "▌ ▌ ▾ Open", "▌ ▌ inside",
    ]  # fmt: skip
    assert {at: fold.is_open for at, fold in opened.folds.items()} == {3: True, 5: True}
    closed = render_markdown(FOLDED, 40, first_line=3, folds={3: True, 5: False})
    assert closed.lines[-1].text == "▌ ▌ ▸ Open"
    assert len(render_markdown(FOLDED, 40, first_line=3, wanted=4).lines) == 5


HEADINGS = "# One\n\na\n\n## Two\n\nb\n\n### Three\n\nc\n\n## Four\n\nd[^1]\n\n[^1]: note\n"


def test_a_folded_heading_hides_all_below_it_up_to_the_next_of_its_level():
    rendered = render_markdown(HEADINGS, 20, {5: False})
    texts = [line.text for line in rendered.lines if line.text.strip("━─")]
    assert texts == ["One", "a", "▸ Two", "Four", "d[1]", "[1] note"]
    assert {at: list(fold.lines)[-1] for at, fold in rendered.folds.items()} == {
        1: 18,
        5: 12,
        13: 18,
    }


def test_what_is_looked_for_below_a_folded_heading_is_shown():
    texts = [line.text for line in render_markdown(HEADINGS, 20, {5: False}, 11).lines]
    assert "c" in texts
    assert "▸ Two" not in texts


def test_formulas_stand_as_code_without_their_signs_and_prices_are_none():
    text = "so $a_1*b_2*c$ for $5 or $6\n\n$$\nx^2\n$$\n"
    assert shown(text, 40) == ["so a_1*b_2*c for $5 or $6", "", " x^2"]
    assert spans_of(text, ".md--code") == ["a_1*b_2*c"]


def test_properties_are_chips_with_links_on_as_many_lines_as_they_need():
    properties = (
        Property("", ("topic",)),
        Property("", ("#a/b",)),
        Property("related", ("people/bob", "[[x#y|Xavier]]"), linked=True),
        Property("source", ("see [[Book]] at https://a.b/c?d=[red] now",)),
        Property("evil", ("\x1b[31m[bold]x\n  y",)),
        Property("", ("24 Nov",), quiet=True),
    )
    rendered = render_markdown("Text\n", 50, first_line=9, properties=properties)
    assert [(line.text, line.source) for line in rendered.lines] == [
        (" topic   #a/b   related people/bob   Xavier ", 1),
        (" source see Book at https://a.b/c?d=[red] now ", 1),
        (" evil [31m[bold]x y   24 Nov ", 1),
        ("", 1),
        ("Text", 9),
    ]
    assert [(ref.kind, ref.target, ref.heading) for ref in rendered.links] == [
        ("wiki", "people/bob", ""),
        ("wiki", "x", "y"),
        ("wiki", "Book", ""),
        ("web", "https://a.b/c?d=[red]", ""),
    ]
    narrow = render_markdown("Text", 12, properties=properties).lines
    assert all(line.content.cell_length <= 12 for line in narrow)


def test_a_property_that_names_an_entry_has_the_sign_of_its_kind():
    owner = (Property("owner", ("people/alice",), linked=True),)
    alice = Named("knowledge/people/alice.md", "Alice", kind_of("person"))
    rendered = render_markdown("Text", 40, properties=owner, resolve=lambda _ref: alice)
    assert rendered.lines[0].text == " owner ● Alice "


@pytest.mark.parametrize(
    "sign",
    ["==a ", "<!--", "<!--x%%", "^a", "<a href=x ", "<b ", "> [!a]- ", "[[a", "%% `", " href=x"],
)
def test_many_signs_without_an_end_are_shown(sign):
    assert render_markdown("<a" + (sign * 20_000)[:60_000], 80).lines


def test_plain_text_is_only_wrapped():
    lines = render_plain("# no heading\n\n  two\tthree", 9).lines
    assert [(line.content.plain, line.source, line.joined) for line in lines] == [
        ("# no", 1, False),
        ("heading", 1, True),
        ("", 2, False),
        ("  two", 3, False),
        ("three", 3, True),
    ]


def test_an_outline_of_forty_levels_is_shown_to_its_end():
    outline = "".join("  " * level + f"- level {level}\n" for level in range(40))
    assert any("level 39" in line for line in shown(f"{outline}\nbelow\n", 160))
    assert shown(f"{outline}\nbelow\n", 160)[-1] == "below"


def test_what_is_embedded_stands_in_its_place_one_step_deep():
    text = "a\n\n![[b#C]]\n\n![x](p.png)\n\nin a line ![[b#C]]\n\n![[none]]\n"
    embeds = {
        LinkRef("wiki", "b", "C"): Embed("B > C", "one [[d]]\n\n![[b#C]]\n"),
        LinkRef("markdown", "p.png"): Embed("p.png · 12 bytes"),
    }
    rendered = render_markdown(text, 40, first_line=5, embeds=embeds)
    assert [(line.text, line.source) for line in rendered.lines if line.text] == [
        ("a", 5),
        ("│ ▣ B > C", 7),
        ("│ one d", 7),
        ("│ ", 7),
        ("│ ▣ b > C", 7),
        ("│ ▣ p.png · 12 bytes", 9),
        ("in a line ▣ b > C", 11),
        ("▣ none", 13),
    ]
    assert [ref.target for ref in rendered.links] == ["b", "d", "b", "p.png", "b", "none"]


PICTURE = DocumentPicture(40, 30, 4, 3, bytes(range(36)))


def test_a_picture_is_drawn_in_half_blocks_where_it_is_embedded():
    embeds = {LinkRef("wiki", "p.png"): Embed("p.png · 40 x 30", picture=PICTURE)}
    rendered = render_markdown("above\n![[p.png]]\nbelow **x**\nlast\n", 30, embeds=embeds)
    assert [(line.text, line.source) for line in rendered.lines] == [
        ("above", 1),
        ("│ ▣ p.png · 40 x 30", 2),
        ("│ ▀▀▀▀", 2),
        ("│ ▀▀▀▀", 2),
        ("below x last", 3),
    ]
    style = rendered.lines[2].content.spans[-1].style
    assert style.foreground.rgb == (9, 10, 11)


@pytest.mark.parametrize(
    ("size", "shown_as"), [((200, 2), (20, 1)), ((1, 120), (1, 24)), ((3, 3), (3, 2))]
)
def test_a_picture_keeps_its_shape_and_fits(size, shown_as):
    columns, rows = size
    lines = list(picture_lines(DocumentPicture(1, 1, columns, rows, bytes(3 * columns * rows)), 20))
    assert (lines[0].cell_length, len(lines)) == shown_as


def test_what_a_text_embeds_is_found_once_and_in_order():
    text = "![](b.png) ![[a]] [[no]] ![[a|100]] ![w](https://x.y/i.png) ![[#h]] ![s](<c.png> 'T')"
    assert [ref.target for ref in embedded_in(text)] == ["b.png", "a", "c.png"]


def test_a_line_that_would_take_the_parser_seconds_is_shown_as_it_is_written():
    text = "# Scan\n\n" + "[![" * 11_000 + "\n"
    assert shown(text, 100)[:3] == ["# Scan", "", "[![" * 33 + "["]


def test_a_picture_in_base64_on_one_line_leaves_the_note_as_it_is_laid_out():
    picture = "![scan](data:image/png;base64," + "QUJD" * 20_000 + ")"
    assert shown(f"- one\n\n{picture}\n")[0] == "• one"


def test_single_line_breaks_are_shown_if_the_vault_shows_them():
    text = "one\ntwo *three\nfour*\n\nfive"
    assert str(render(SourceText(text), 40).lines[0].content) == "one two three four"
    shown = render(SourceText(text, breaks=True), 40).lines
    assert [(str(line.content), line.source) for line in shown] == [
        ("one", 1),
        ("two three", 2),
        ("four", 3),
        ("", 1),
        ("five", 5),
    ]
