"""Hits as rows: the note once, its sections below, no markup, weak ones behind a line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kbtui.presentation.notes import Names
from kbtui.search.results import Explain
from kbtui.tui.markdown.inline import InlineBuilder, Links
from kbtui.tui.markdown.plain import as_read, named_by_path
from kbtui.tui.markdown.syntax import parse_line
from kbtui.tui.search.hits import HitList, by_note, paths_in, snippet_of
from tests.tui.notes_support import hit

A, B = "knowledge/topics/a.md", "knowledge/people/b.md"


def shown(rows: HitList, width: int = 60) -> list[str]:
    return [rows.render_row(index, width)[0].plain.strip() for index in range(rows.row_count)]


@pytest.mark.parametrize(
    ("snippet", "plain"),
    [
        ("## Works on - [[people/mira|Mira]] **builds** it", "Works on - Mira builds it"),
        ("- [ ] call `Bob` ==soon== ^block-1", "call Bob soon"),
        ("See ![[a picture.png]] and [[topics/radio]]", "See ▣ a picture.png and Radio"),
        ("**", "**"),
        ("*em* and **a bold one that is c", "em and a bold one that is c"),
        ("see `a == b` and == c", "see a == b and == c"),
        ("kept %%hidden%% <!-- gone --> and <b>shown</b> <button>x</button>", "kept and shown x"),
        ("a comment begins <!-- here and is cut", "a comment begins"),
        ("was cut in it --> and goes on", "and goes on"),
        ("| Item | Price | · | --- | ---: | · | **Tea** | 3 |", "Item Price · Tea 3"),
        ("text ## A heading ```python print(1)", "text A heading print(1)"),
        ("To read · > What is it? · - [/] this", "To read · What is it? · this"),
        ("3 * 4 # 5 is no heading", "3 * 4 # 5 is no heading"),
    ],
)
def test_a_snippet_has_no_markup_and_is_never_empty(snippet: str, plain: str) -> None:
    assert snippet_of(hit(A, 1, snippet)).plain == plain


def test_matches_stay_marked_where_markup_before_them_goes() -> None:
    text = "## The [[x|radio]] and the radio"
    at = text.rindex("radio")
    content = snippet_of(hit(A, 1, text, (at, at + 5)))
    (span,) = [each for each in content.spans if str(each.style) == ".rows--match"]
    assert content.plain[span.start : span.end] == "radio"
    assert span.start == len("The radio and the ")


def test_hits_of_one_note_stand_together_under_its_name() -> None:
    first, other = hit(A, 1, "x", (0, 1), heading="A > One"), hit(B, 1, "x", (0, 1))
    second = hit(A, 9, "x", (0, 1), heading="A > Two")
    assert by_note([first, other, second]) == [first, second, other]


async def test_weak_hits_by_meaning_alone_are_folded_until_they_are_asked_for() -> None:
    rows = HitList()
    strong = replace(hit(A, 1, "radio", (0, 5)), relevance=0.9)
    by_meaning = Explain(None, 1, 0.0, 0.3)
    weak = [replace(hit(B, line, "other"), relevance=0.4, explain=by_meaning) for line in range(3)]
    rows.show_hits([strong, *weak], Names())
    assert rows.row_count == 2
    assert "3 weaker hits" in shown(rows)[1]
    assert not rows.unfold()
    rows.cursor = 1
    assert rows.unfold()
    assert rows.items == (strong, *weak)


async def test_where_all_hits_are_by_meaning_none_is_folded() -> None:
    rows = HitList()
    alike = [replace(hit(A, line, "other"), relevance=0.4) for line in range(4)]
    rows.show_hits(alike, Names())
    assert rows.row_count == 4


def test_a_hit_in_a_conversation_is_under_its_title_and_says_who_and_when() -> None:
    rows = HitList()
    found = replace(
        hit("sessions/s.jsonl", 1, "tea", heading="user, 24 December 2025"),
        title="The boiler",
        session="s",
        messages=(1, 1),
        speaker="user",
    )
    rows.show_hits([found], Names())
    assert shown(rows)[0].startswith(
        "The boiler \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} You, 24 December"
    )


@pytest.mark.parametrize(
    "text",
    [
        "See [[topics/radio]] and [[people/mira|Mira]]",
        "[[topics/radio#Power]], ![[mast.png]] and [[#Here]]",
        "a [[ b ]] c [[x\\|y]] [[]] [[|z]]",
    ],
)
def test_a_line_of_links_alone_is_read_as_the_parser_reads_it(text: str) -> None:
    parsed = InlineBuilder(Links(named_by_path(Names()))).walk(parse_line(text)).content()
    assert as_read(text) == parsed.plain


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[!abstract] **Further reading**: [[Sites]]", "Further reading: Sites"),
        ("> [!note]- Folded", "Folded"),
        ("[!tip]", "Tip"),
        ("a · ---|:--:|--- · b", "a · b"),
        ("a - b", "a - b"),
    ],
)
def test_marks_of_blocks_are_not_read(text: str, read: str) -> None:
    assert as_read(text) == read


def test_the_links_of_a_snippet_lead_to_entries_with_and_without_their_ending() -> None:
    found = hit("knowledge/a.md", 1, "see [[people/mira]] and [[people/jonas.md|Jonas]]")
    entries = ["knowledge/a.md", "knowledge/people/mira.md", "knowledge/people/jonas.md"]
    assert [*paths_in([found])] == entries
