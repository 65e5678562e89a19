"""What markdown-it-py does that a reader of its tokens has to know, or kbtui changes."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

Blocks = list[tuple[str, list[int]]]


def blocks(text: str) -> Blocks:
    """The blocks of a text and their lines, without paragraphs."""
    tokens = MarkdownIt("gfm-like").parse(text)
    found = [(token.type.removesuffix("_open"), token.map) for token in tokens if token.map]
    return [(kind, lines) for kind, lines in found if kind not in {"paragraph", "inline"}]


@pytest.mark.parametrize(
    "sign", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_what_splitlines_splits_at_ends_no_line(sign: str) -> None:
    assert len(f"a{sign}# b".splitlines()) == 2
    assert blocks(f"a{sign}# b") == [], "lines of tokens may be those of `str.splitlines`"


def test_a_carriage_return_ends_a_line_as_a_line_feed_does() -> None:
    assert blocks("a\r# b\r\n# c\n") == [("heading", [1, 2]), ("heading", [2, 3])], (
        "offsets by lines need no regard for lone carriage returns"
    )


def test_a_list_holds_the_empty_lines_behind_it() -> None:
    told = "the end of a list needs no look at empty lines"
    assert blocks("- a\n\n\n# b\n")[0] == ("bullet_list", [0, 3]), told


def test_a_fence_ends_where_its_quote_or_item_ends() -> None:
    told = "kbtui's one reader of documents relies on it"
    assert blocks("> ```\n> x\n# b\n")[1:] == [("fence", [0, 2]), ("heading", [2, 3])], told
    found = blocks("- ```\n  x\n# b\n")
    assert found[2:] == [("fence", [0, 2]), ("heading", [2, 3])], told


def test_a_fence_that_nothing_closes_runs_to_the_end() -> None:
    assert blocks("```\nx\n\n# b\n") == [("fence", [0, 4])]


def test_a_line_over_dashes_is_a_heading_even_if_it_looks_like_frontmatter() -> None:
    told = (
        "frontmatter need not be cut off before a note is parsed (kbtui/knowledge/format/body.py)"
    )
    assert blocks("title: a\n---\n") == [("heading", [0, 2])], told


def test_a_heading_in_an_item_is_a_heading() -> None:
    assert blocks("- # a\n")[-1] == ("heading", [0, 1])


@pytest.mark.parametrize(
    ("text", "kind"), [("<!-- - [ ] x -->\n", "html_block"), ("    - [ ] x\n", "code_block")]
)
def test_no_task_is_in_a_comment_or_in_indented_code(text: str, kind: str) -> None:
    assert blocks(text) == [(kind, [0, 1])]


def test_an_html_block_swallows_the_headings_in_it() -> None:
    assert blocks("<div>\n# a\n</div>\n") == [("html_block", [0, 3])], (
        "`parser.disable('html_block')` of kbtui/tui/markdown/syntax.py can go"
    )


def test_without_the_inline_rule_no_inline_mark_is_parsed() -> None:
    (_, inline, _) = MarkdownIt("gfm-like").disable("inline").parse("a *b*\n")
    assert inline.content == "a *b*"
    assert not inline.children, "parsing blocks alone saves no time any more"


def test_what_is_nested_deeper_than_the_limit_is_dropped() -> None:
    text = "> " * 30 + "deep"
    assert "deep" not in MarkdownIt("gfm-like").render(text), (
        "`maxNesting` of kbtui/tui/markdown/syntax.py can go"
    )
    assert "deep" in MarkdownIt("gfm-like", {"maxNesting": 100}).render(text)
