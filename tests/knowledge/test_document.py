"""The one reader of documents: what each line of a Markdown text is, held to markdown-it-py."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin

import kbtui
from kbtui.knowledge.format import document
from kbtui.knowledge.format.block_parser import MAX_DEPTH, parse_leaves
from kbtui.knowledge.format.document import Document, read, read_body
from kbtui.knowledge.format.leaves import needs_parse, scanned
from kbtui.workspace.files import decode

if TYPE_CHECKING:
    from markdown_it.token import Token

VAULTS = ["foam", "jackyzha0-site", "kepano-obsidian", "obsidian-help-en", "odd-frontmatter"]
_PIECES = [
    *("# ", "#", "## head ##", "text", "more words", "- ", "-", "* ", "+ ", "1. ", "2) ", "0. "),
    *("-     ", "-\t\t", "> ", ">", ">> ", "```", "````", "~~~", "``` python", "`span`", "`", "``"),
    *("\\`", "***", "---", "- - -", "===", "=", ":::", "<div>", "</div>", "<b>", "<!-- ", "-->"),
    *("[a]: /url", "[a]", "[^1]: ", "[^1]", " 'title'", "[x]", "[ ] ", "[/] ", " | ", "|", "|---|"),
    *("--- | ---", "-|-", "#tag", "key: value", "\x0c", "\u2028", "\r", "\0", "1234567890. "),
    *(" ", "  ", "   ", "    ", "\t", "a", "_", "**bold**"),
]
_TEXTS = st.lists(st.sampled_from([*_PIECES, *["\n"] * 24, "\n\n", "\n\n"]), max_size=24).map(
    "".join
)
_OURS = st.lists(
    st.sampled_from(
        [*_PIECES, "%%", "%% note %%", "$$", "$$ x $$", *["\n"] * 24, "---\n", "...\n"]
    ),
    max_size=24,
).map("".join)
_LEAVES = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "tr_open": "row",
}


def _library() -> MarkdownIt:
    """Return markdown-it-py with all of its own rules for blocks."""
    parser = MarkdownIt("commonmark", {"maxNesting": 10_000}).enable("table").disable("inline")
    parser.use(footnote_plugin, move_to_end=False)
    return parser


def _kind(tokens: list[Token], number: int) -> str:
    """Return what the library says that the block of a token is, in our words."""
    kind = _LEAVES[tokens[number].type]
    before = tokens[number - 1].type if number else ""
    if kind == "paragraph" and before == "list_item_open":
        return "item"
    if kind == "html" and tokens[number].content.lstrip(" \t>").startswith("<!--"):
        return "comment"
    return kind


def _by_library(text: str) -> list[tuple[str, int, int]]:
    plain = text.replace("\r", " ")
    tokens = _library().parse(plain)
    return [
        (_kind(tokens, number), token.map[0], token.map[1])
        for number, token in enumerate(tokens)
        if token.type in _LEAVES and token.map
    ]


def _by_ours(text: str) -> list[tuple[str, int, int]]:
    same = {"task": "item", "quote": "paragraph"}
    return [
        (same.get(block.kind, block.kind), block.first, block.stop)
        for block in read_body(text).blocks
        if block.kind != "definition"
    ]


def _notes(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): decode(file.read_bytes()).text
        for file in sorted(folder.rglob("*.md"))
        if file.is_file()
    }


@settings(max_examples=500, deadline=None)
@given(_TEXTS)
def test_the_blocks_of_any_text_are_those_of_markdown_it(text: str) -> None:
    assert _by_ours(text) == _by_library(text)


@settings(max_examples=500, deadline=None)
@given(_OURS)
def test_what_need_not_be_parsed_is_read_as_the_parser_reads_it(text: str) -> None:
    plain = text.replace("\r", " ").replace("\0", " ")
    if not needs_parse(plain):
        assert list(scanned(plain)) == parse_leaves(plain)


@settings(max_examples=500, deadline=None)
@given(_OURS)
def test_what_is_taken_for_code_without_reading_blocks_is_what_the_blocks_say(text: str) -> None:
    found = Document(text)
    parsed = Document(text)
    blocks = [parsed._whole_lines(each) for each in parsed.blocks if each.kind == "code"]
    spans = [span for each in parsed.blocks for span in parsed.code_spans(each)]
    assert list(found.code) == sorted([*blocks, *spans])


@settings(max_examples=500, deadline=None)
@given(_OURS)
def test_headings_found_without_reading_blocks_are_those_of_the_blocks(text: str) -> None:
    assert Document(text).headings == tuple(b for b in Document(text).blocks if b.level)


@settings(max_examples=300, deadline=None)
@given(_OURS, st.integers(1, 20))
def test_what_is_read_by_parts_is_what_is_read_at_once(text: str, size: int) -> None:
    body = Document(text)._body
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "_FIRST_PART", size)
        assert list(document._leaves_by_parts(body)) == parse_leaves(body)


@settings(max_examples=300, deadline=None)
@given(_OURS)
def test_every_line_with_a_letter_or_digit_is_visible_once(text: str) -> None:
    found = Document(text)
    lines = [each.line for each in found.visible_lines()]
    head = found.line_at(found.body_start) if found.body_start else 0
    below = [n for n, line in enumerate(text.split("\n")) if re.search(r"[^\W_]", line)]
    assert lines == sorted(set(lines))
    assert {n for n in below if n >= head} <= set(lines)


@settings(max_examples=200, deadline=None)
@given(_OURS)
def test_blocks_are_in_order_and_their_spans_in_their_lines(text: str) -> None:
    found = Document(text)
    stop = 0
    for block in found.blocks:
        assert stop <= block.first < block.stop
        stop = block.stop
        assert found.line_starts[block.first] <= block.start <= block.end
        assert block.end <= found.line_span(block.stop - 1)[1]


@pytest.mark.data
@pytest.mark.parametrize("vault", VAULTS)
def test_every_note_of_a_real_vault_is_read_alike_fast_and_in_full(
    data_dir: Path, vault: str
) -> None:
    for name, text in _notes(data_dir / "vaults" / vault).items():
        found = Document(text)
        body = found._body
        if not needs_parse(body):
            assert list(scanned(body)) == parse_leaves(body), name
        blocks = [found._whole_lines(each) for each in found.blocks if each.kind == "code"]
        spans = [span for each in found.blocks for span in found.code_spans(each)]
        assert list(Document(text).code) == sorted([*blocks, *spans]), name
        assert Document(text).headings == tuple(b for b in found.blocks if b.level), name
        assert list(document._leaves_by_parts(body)) == parse_leaves(body), name
        if "%%" not in body and "$$" not in body:
            assert _by_ours(body) == _by_library(body), name


# What small texts are -----------------------------------------------------------------------------

_KINDS = [
    # Each line of a text with what it is; "" for what no person reads as text.
    ("a fence on a bullet's line ends with its item", "- ```\n  # code\ntext", ["", "code", "paragraph"]),
    ("a fence in a quote ends with it", "> ```\n> - [ ] code\n- [ ] task", ["", "code", "task"]),
    ("an open fence takes the rest", "```\n# code\n\n- [ ] code", ["", "code", "", "code"]),
    ("a fence of its sign and as long closes", "````\n```\ncode\n````\ntext", ["", "", "code", "", "paragraph"]),
    ("a fence with words doesn't close", "```\na\n``` b\nc\n```", ["", "code", "code", "code", ""]),
    ("what opens with backticks in it is no fence", "``` a`b\n# head", ["paragraph", "heading"]),
    ("the words of a fence are seen", "``` python title=x\na\n```", ["code", "code", ""]),
    ("indented below a blank line", "text\n\n    - [ ] code", ["paragraph", "", "code"]),
    ("indented below a paragraph", "text\n    more", ["paragraph", "paragraph"]),
    ("indented below an item", "- item\n\n    more\n\n      code", ["item", "", "paragraph", "", "code"]),
    ("indented far below an item", "- item\n\n      code", ["item", "", "code"]),
    ("a tab below a heading", "# head\n\tcode", ["heading", "code"]),
    ("a heading needs a blank", "#tag\n#\n# ", ["paragraph", "", ""]),
    ("seven signs are none", "####### text", ["paragraph"]),
    ("underlined with dashes", "Head\n---\ntext", ["heading", "", "paragraph"]),
    ("underlined with equals", "Head\nmore\n===", ["heading", "heading", ""]),
    ("like YAML over dashes", "key: value\n---", ["heading", ""]),
    ("a rule below a blank line", "text\n\n---\ntext", ["paragraph", "", "", "paragraph"]),
    ("a heading in an item", "- # head\n- item", ["heading", "item"]),
    ("a heading below an item", "- item\n# head", ["item", "heading"]),
    ("underlined in an item", "- Head\n  ---\n- item", ["heading", "", "item"]),
    ("dashes below an item", "- item\n---", ["item", ""]),
    ("a heading in a quote", "> # head\n> text\nlazy", ["heading", "quote", "quote"]),
    ("a callout", "> [!note]- Title\n> text", ["quote", "quote"]),
    ("any mark in a box", "- [x] a\n- [/] b\n1. [>] c\n- [ ]\n- [xy] d", ["task", "task", "task", "item", "item"]),
    ("a task in a quote", "> - [ ] a", ["task"]),
    ("a box that no blank follows", "- [x](url)\n- [x]", ["item", "item"]),
    ("a comment on lines of its own", "%%\n- [ ] a\n\n# b\n%%\n# c", ["", "comment", "", "comment", "", "heading"]),
    ("a comment on one line", "%% # a %%\n%%b%% text", ["comment", "paragraph"]),
    ("an open comment is text", "%% a\n\n# b", ["paragraph", "", "heading"]),
    ("a comment in code is code", "```\n%%\n```\n# a\n\n%% b %%", ["", "", "", "heading", "", "comment"]),
    ("code in a comment is a comment", "%%\n```\n%%\n# a", ["", "", "", "heading"]),
    ("a comment of HTML", "<!--\n- [ ] a\n\n# b\n-->\n# c", ["", "comment", "", "comment", "", "heading"]),
    ("an open one takes the rest", "<!-- a\n\n# b", ["comment", "", "comment"]),
    ("HTML takes what is below it", "<div>\n# a\n- [ ] b\n\n# c", ["html", "html", "html", "", "heading"]),
    ("HTML in a paragraph", "<b>a</b> text\n# b", ["paragraph", "heading"]),
    ("a formula", "text\n$$\n# a\n$$\n# b", ["paragraph", "", "code", "", "heading"]),
    ("an open formula is text", "$$ 5\n\n# b", ["paragraph", "", "heading"]),
    ("a table", "a | b\n--|--\nc | d\ne\n\nf | g", ["row", "", "row", "row", "", "paragraph"]),
    ("bars are no table", "| a | b |\n| c | d |", ["paragraph", "paragraph"]),
    ("a link with a bar in a table", "| a |\n|---|\n| [[b\\|c]] |", ["row", "", "row"]),
    ("a footnote", "[^1]: a\n\n    b\n\n        c", ["paragraph", "", "paragraph", "", "code"]),
    ("a definition", "[a]: /url\n---\n", ["definition", "", ""]),
    ("another number is no list in a paragraph", "text\n2. a\n\n2. b", ["paragraph", "paragraph", "", "item"]),
    ("the first is one", "text\n1. a", ["paragraph", "item"]),
    ("a number alone is seen", "1984.", ["item"]),
    ("properties", "---\ntitle: a\ntags:\n  - b\n---\nc", ["", "property", "property", "property", "", "paragraph"]),
    ("only at the top", "\n---\na: b\n---", ["", "", "heading", ""]),
    ("open properties are none", "---\na: b\n# c", ["", "paragraph", "heading"]),
    ("a carriage return ends no line", "a\r# b\r\n# c\r\n", ["paragraph", "heading", ""]),
    ("nor does a form feed or a line separator", "a\x0c# b\u2028# c\n# d", ["paragraph", "heading"]),
    ("a form feed is no blank line", "a\n\x0c\n    b", ["paragraph", "", "paragraph"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kinds"), [case[1:] for case in _KINDS], ids=[case[0] for case in _KINDS]
)
def test_the_kind_of_each_line(text: str, kinds: list[str]) -> None:
    found: dict[int, str] = {line.line: line.kind for line in read(text).visible_lines()}
    assert [found.get(number, "") for number in range(len(kinds))] == kinds
    assert len(kinds) == text.count("\n") + 1


def test_a_block_says_where_its_text_is_and_how_deep_and_in_which_section() -> None:
    text = "# Top\n- a\n  - [x] done `it`\n## Below ##\n> quoted\n"
    found = read(text)
    assert [(text[each.start : each.end], each.kind, each.depth) for each in found.blocks] == [
        ("Top", "heading", 0),
        ("a", "item", 1),
        ("done `it`", "task", 2),
        ("Below", "heading", 0),
        ("quoted", "quote", 1),
    ]
    assert [found.sections[each.section].path for each in found.blocks] == [
        ("Top",), ("Top",), ("Top",), ("Top", "Below"), ("Top", "Below"),
    ]  # fmt: skip
    assert found.blocks[2].mark == "x"
    assert [text[slice(*span)] for span in found.code_spans(found.blocks[2])] == ["`it`"]


def test_a_code_span_ends_with_its_block_and_needs_as_many_backticks() -> None:
    text = "a `b\nc` d `` e ` f `` \\`g` h` `\n\n` i\n"
    assert [text[start:end] for start, end in read(text).code] == ["`b\nc`", "`` e ` f ``", "` h`"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```py\n# x\n```\nb", "```py\n# x\n```"),
        ("````md\n```py\nx\n```\n````\nb", "````md\n```py\nx\n```\n````"),
        ("~~~\n```\n~~~\nb", "~~~\n```\n~~~"),
        ("```\n```py\n```\nb", "```\n```py\n```"),
        ("```one``` line\nb", ""),
        ("- ```\n  a\nb", "- ```\n  a"),
        ("\n    a\nb", ""),
    ],
)
def test_a_fence_ends_at_one_of_its_sign_that_is_as_long_and_says_nothing(
    text: str, code: str
) -> None:
    lines = text.split("\n")
    assert "\n".join(lines[number] for number in sorted(read(text).fenced)) == code


@pytest.mark.parametrize(
    ("text", "code", "closing"),
    [
        ("```py\na\n\n  b\n```\nc", "a\n\n  b", 4),
        ("- ~~~\n    a\n  ~~~", "  a", 2),
        ("> ```\n> a\n> > b\n> ```", "a\n> b", 3),
        ("````\n```\na\n````", "```\na", 3),
        ("```\na", "a", None),
        ("```", "", None),
        ("```\n\n", "", None),
    ],
)
def test_what_is_between_fences_and_which_line_closes_it(
    text: str, code: str, closing: int | None
) -> None:
    found = read(text)
    assert [(found.code_of(each), found.closing_fence(each)) for each in found.fenced_blocks] == [
        (code, closing)
    ]


def test_a_fence_without_its_words_keeps_what_is_in_front_of_it() -> None:
    found = read("> - ````py title\n>   a\n\n~~~ b\n")
    assert [found.bare_fence(each) for each in found.fenced_blocks] == ["> - ````", "~~~"]


def test_comments_are_found_in_and_between_paragraphs_and_not_in_code() -> None:
    text = "a %%b%% c <!-- d --> `%%e%%` %%f\n\n%%\ng\n%%\n"
    assert [text[start:end] for start, end in read(text).comments] == [
        "%%b%%", "<!-- d -->", "%%\ng\n%%",
    ]  # fmt: skip


_ADDED = [
    (
        "a title",
        "---\ntitle: Oslo\n---\n",
        "---\ntitle: Oslo in spring\n---\n",
        "title: Oslo in spring",
    ),
    ("a tag", "---\ntags: [a]\n---\n", "---\ntags: [a, moved]\n---\n", "tags: [a, moved]"),
    ("a heading", "text\n", "## She moved\n\ntext\n", "She moved"),
    ("an underlined heading", "text\n", "She moved\n---\ntext\n", "She moved"),
    ("a cell", "|a|\n|-|\n", "|a|\n|-|\n|moved|\n", "|moved|"),
    ("a line of code", "```\na\n```\n", "```\na\nmoved\n```\n", "moved"),
    ("the words of a fence", "```\na\n```\n", "``` moved\na\n```\n", "``` moved"),
    ("behind a fence on a bullet's line", "- ```\n", "- ```\n\nmoved\n", "moved"),
    ("a comment", "a\n", "a\n%% moved %%\n", "%% moved %%"),
    ("a comment of HTML", "a\n", "a\n\n<!-- moved -->\n", "<!-- moved -->"),
    ("HTML", "a\n", "a\n\n<div>moved</div>\n", "<div>moved</div>"),
    ("a quote", "> a\n", "> a\n> moved\n", "moved"),
    ("a footnote", "a\n", "a\n\n[^1]: moved\n", "moved"),
    ("a definition", "a\n", "a\n\n[moved]: /url\n", "[moved]: /url"),
    ("the number of an empty item", "a\n", "a\n\n1984.\n", "1984."),
    ("a second time", "- a\n", "- a\n- a\n", "a"),
]


def visible(text: str) -> Counter[str]:
    return Counter(" ".join(line.text.split()) for line in read(text).visible_lines())


@pytest.mark.parametrize(
    ("before", "after", "line"), [case[1:] for case in _ADDED], ids=[case[0] for case in _ADDED]
)
def test_every_line_that_is_added_is_visible_whatever_its_kind(
    before: str, after: str, line: str
) -> None:
    assert [*(visible(after) - visible(before)).elements()] == [line]


def test_what_moves_or_becomes_another_kind_isnt_added() -> None:
    before = "# Head\n\nshe lives in Oslo\n\n- [ ] call\n"
    assert visible(before) == visible("- [x] call\n- she  lives in Oslo\n\nHead\n===\n")


# Bad input ----------------------------------------------------------------------------------------

_BAD = {
    "5,000 lists in one another on a line": "- " * 5_000 + "x\n",
    "2,500 lists in one another": "".join(f"{'  ' * depth}- x\n" for depth in range(1_000)),
    "5,000 quotes in one another": (">" * 5_000 + "x\n") * 10 + "\n",
    "lists and quotes in one another": "> - " * 3_000 + "x\n\n",
    "a line of 5 MB": "a" * 5_000_000 + "\n",
    "5 MB of brackets": "[" * 5_000_000 + "\n",
    "5 MB of dashes": "- " * 2_500_000 + "x\n",
    "5 MB of signs": "# " * 2_500_000 + "x\n",
    "1 MB of backticks": "` " * 500_000 + "\n",
    "1 MB of backslashes": "\\`" * 500_000 + "\n",
    "5 MB of attributes": "<a" + " b" * 2_500_000 + "\n",
    "unclosed fences in quotes": "> ```\n\n" * 20_000,
    "fences on bullets' lines": "- ```\n" * 20_000,
    "unclosed comments in items": "- %% a\n" * 20_000,
    "unclosed comments in a paragraph": "a <!-- b %%\n" * 20_000 + "\n",
    "unclosed formulas": "$$ a\n\n" * 20_000,
    "definitions": "[a]: b 'c\n" * 20_000 + "\n",
    "an open label": "[" + "a\n" * 20_000 + "\n",
    "tables without end": "a|b\n-|-\n" * 10_000 + "\n",
    "a head that never ends": "---\n" + "a: b\n" * 50_000,
    "only carriage returns": "a\r" * 200_000 + "\n",
    "form feeds and line separators": "a\x0c\u2028" * 200_000 + "\n",
}


@pytest.mark.parametrize("name", _BAD)
def test_whatever_a_text_is_it_is_read_in_time_and_the_heading_below_it_found(name: str) -> None:
    text = f"{_BAD[name]}# Head\n"
    began = time.process_time()
    found = Document(text)
    assert found.sections[-1].title == "Head"
    assert sum(len(ranges) for ranges in (found.code, found.comments)) <= len(text)
    assert [line.text for line in found.visible_lines()][-1] == "Head"
    assert time.process_time() - began < 10


def test_html_swallows_headings_until_a_blank_line_and_no_further() -> None:
    found = Document("<div>\n" + "# no\n" * 20_000 + "\n# yes\n")
    assert [section.title for section in found.sections] == ["", "yes"]


def test_what_is_in_too_many_lists_is_still_seen() -> None:
    text = "".join(f"{'  ' * depth}- line{depth}\n" for depth in range(2 * MAX_DEPTH))
    assert [line.text.lstrip("- ") for line in read(text).visible_lines()] == [
        f"line{depth}" for depth in range(2 * MAX_DEPTH)
    ]


def test_a_body_that_begins_with_a_rule_has_no_properties() -> None:
    text = "---\na: b\n---\n"
    assert [block.kind for block in read_body(text).blocks] == ["heading"]
    assert [block.kind for block in read(text).blocks] == ["property"]


# One reader ---------------------------------------------------------------------------------------

_FENCES_BY_HAND = {
    "knowledge/format/document.py": "the reader",
    "knowledge/format/leaves.py": "the reader",
    "agent/turn.py": "writes one",
    "cli/help.py": "lays out pages of our own",
    "importers/html_writer.py": "writes one",
    "importers/outlines.py": "puts the end of one on a line of its own",
    "importers/sources/aider.py": "the log of another program, which no Markdown reader reads",
    "importers/sources/chatgpt.py": "writes one",
    "importers/sources/claude.py": "an element of another program, in a fence or not",
    "importers/sources/kbtui_export.py": "the one that an export writes above a note",
    "maintenance/export.py": "writes one",
    "memory/consolidation/answer.py": "the JSON that a model answers",
    "models/dialects.py": "the calls that a model answers, and what it explains in code",
    "models/schema.py": "the JSON that a model answers",
    "models/written_calls.py": "the JSON that a model answers",
    "tui/markdown/plain.py": "drops the marks of a text whose lines were joined to one",
}


def test_nothing_else_tells_code_between_fences() -> None:
    root = Path(kbtui.__file__).parent
    by_hand = re.compile(r"`{3}(?!`)|~{3}|[`~]\\?\{3,")
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if any(by_hand.search(line) for line in _code_lines(file.read_text("utf-8")))
    }
    assert found == set(_FENCES_BY_HAND)


def _code_lines(text: str) -> list[str]:
    """Return the lines of a program that aren't in a docstring."""
    return re.sub(r'"""(?:[^"]|"(?!""))*"""', "", text).split("\n")
