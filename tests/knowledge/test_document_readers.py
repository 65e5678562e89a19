"""Headings, tasks, tags, links, mentions, summaries and sections all see the same blocks."""

from __future__ import annotations

import pytest

from kbtui.knowledge.entries.entry import append_to_section, section_text
from kbtui.knowledge.format.body import heading_of, headings_of, summary_of, tags_in_body
from kbtui.knowledge.format.links import links_in_body
from kbtui.knowledge.format.tasks import tasks_in
from kbtui.knowledge.linking.mentions import mentions_in

_BELOW = "\n\n# Head\n\n- [ ] task #tag [[Link]] Oslo\n"
_OPEN = {
    "a fence on a bullet's line": "- ```\n  code\n",
    "an open fence in a quote": "> ```\n> code\n",
    "an open fence in a nested item": "- a\n  - ~~~\n    code\n",
    "a fence that closes with more signs": "```\ncode\n````\n",
    "a fence of the other sign in it": "~~~\n```\n~~~\n",
    "a fence that is none": "``` a ` b\n",
    "a backtick alone": "a ` b\n",
    "HTML above a blank line": "<div>\n```\n",
}
_HIDDEN = {
    "a fence": "```\n{}\n```\n",
    "an open fence": "```\n{}\n",
    "a fence in an item": "- a\n\n  ```\n  {}\n  ```\n",
    "an indented block": "text\n\n    {}\n",
}


@pytest.mark.parametrize("above", _OPEN.values(), ids=list(_OPEN))
def test_what_is_below_code_is_found(above: str) -> None:
    text = above + _BELOW
    assert [heading.text for heading in headings_of(text)] == ["Head"]
    assert heading_of(text) == "Head"
    assert [task.text for task in tasks_in(text)] == ["task #tag [[Link]] Oslo"]
    assert tags_in_body(text) == ["tag"]
    assert [placed.link.target for placed in links_in_body(text)] == ["Link"]
    assert len(mentions_in(text, ["Oslo"])) == 1
    assert (section_text(text, "head") or "").strip() == "- [ ] task #tag [[Link]] Oslo"


@pytest.mark.parametrize("around", _HIDDEN.values(), ids=list(_HIDDEN))
def test_nothing_in_code_counts(around: str) -> None:
    for line in ("# Head", "- [ ] task", "#tag", "[[Link]]", "Oslo"):
        text = around.format(line)
        assert headings_of(text) == []
        assert list(tasks_in(text)) == []
        assert tags_in_body(text) == []
        assert links_in_body(text) == []
        assert mentions_in(text, ["Oslo"]) == []
        assert section_text(text, "Head") is None


@pytest.mark.parametrize(
    "around", ["%%\n{}\n%%\n", "<!--\n{}\n-->\n", "<div>\n{}\n</div>\n", "$$\n{}\n$$\n"]
)
def test_headings_and_tasks_in_comments_html_and_formulas_are_none(around: str) -> None:
    assert headings_of(around.format("# Head")) == []
    assert list(tasks_in(around.format("- [ ] task"))) == []


def test_headings_are_those_of_items_and_underlined_ones_too_and_not_those_of_quotes() -> None:
    text = "- # In an item\n\nUnderlined\n---\n\n> # Quoted\n\nkey: value\n---\n"
    assert [(each.level, each.text, each.line) for each in headings_of(text)] == [
        (1, "In an item", 1),
        (2, "Underlined", 3),
        (2, "key: value", 8),
    ]


def test_a_summary_is_the_first_prose_whatever_is_above_it() -> None:
    above = "---\ntitle: x\n---\nTitle\n===\n\n%%\nnot this\n%%\n\n> nor this\n\n    nor code\n\n| a |\n|---|\n"
    assert summary_of(f"{above[16:]}\n- [x] This is **it**. And more.\n") == "This is it."


def test_a_sections_heading_may_be_underlined_and_one_in_an_item_is_none() -> None:
    text = "- # Notes\n\nNotes\n-----\n\n- a\n\n# Next\n"
    assert append_to_section(text, "Notes", "- b") == text.replace("- a\n", "- a\n- b\n")


def test_the_part_that_a_definition_leads_to_is_no_tag() -> None:
    text = "See [the reasons][why]. #tag\n\n[why]: #rationale\n"
    assert tags_in_body(text) == ["tag"]
