"""What is read off an entry, whatever its bytes are."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from kbtui.knowledge.entries.entry import Link, parse_entry
from kbtui.knowledge.entries.templates import without_empty_sections
from kbtui.knowledge.format.body import plain_line, summary_of
from kbtui.text import shorten

if TYPE_CHECKING:
    from pathlib import Path

ALICE = """---
type: person
created: 2024-01-02
updated: 2024-06-01
related: [topics/docker, "[[Bob|the other]]"]
tags: [team, '#lead']
aliases: Al
private: true
author: "[[people/carol]]"
---
# Alice Liddell

## Role
Leads **the** [[topics/docker#Compose|containers]] team. Second sentence. #ops/night

```
[[not a link]] #nottag
```
See `[[neither]]`, ![[picture.png]] and [Bob](../people/bob%20b.md#role "title").
[web](https://example.org/a.md) [here](#role) [ref]

[ref]: ../topics/git.md
[^1]: a/footnote.md
"""


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-1-5", "2026-01-05"),
        ("2026/1/5", "2026-01-05"),
        ("20260105", "2026-01-05"),
        ("2026-1-5T10:00", "2026-01-05T10:00"),
        ("2026-01-05", "2026-01-05"),
        ("20261399", "20261399"),
        ("202601051200", "202601051200"),
        ("2026-1-5-2", "2026-1-5-2"),
    ],
)
def test_dates_of_properties_that_hold_dates_are_read_in_looser_forms(
    written: str, day: str
) -> None:
    head = f"---\ncreated: {written}\nupdated: {written}\nid: {written}\ntitle: {written}\n---\n"
    entry = parse_entry("knowledge/topics/x.md", f"{head}x\n".encode())
    assert (entry.created, entry.updated) == (day, day)
    assert (entry.frontmatter["id"], entry.title) == (written, written)


def test_everything_is_read_off() -> None:
    entry = parse_entry("knowledge/people/alice.md", ALICE.encode())
    assert (entry.title, entry.type, entry.category, entry.slug) == (
        "Alice Liddell",
        "person",
        "people",
        "alice",
    )
    assert (entry.created, entry.updated, entry.private) == ("2024-01-02", "2024-06-01", True)
    assert entry.tags == ("team", "lead", "ops/night")
    assert entry.aliases == ("Al",)
    assert entry.related == ("topics/docker", "Bob")
    assert entry.summary == "Leads the containers team."
    assert entry.problem is None
    assert entry.text == ALICE
    assert ALICE.splitlines()[entry.body_line - 1] == "# Alice Liddell"
    assert entry.body.startswith("# Alice Liddell")
    assert entry.blob == hashlib.sha1(b"blob %d\0" % len(ALICE) + ALICE.encode()).hexdigest()
    assert entry.links == (
        Link("topics/docker", "related", 5),
        Link("Bob", "related", 5, "the other"),
        Link("people/carol", "wiki", 9),
        Link("topics/docker", "wiki", 14, "containers", "Compose"),
        Link("picture.png", "wiki", 19),
        Link("../people/bob%20b.md", "markdown", 19, "Bob", "role"),
        Link("../topics/git.md", "markdown", 22, "ref"),
    )


def test_what_is_missing_is_taken_from_name_and_folder() -> None:
    entry = parse_entry("knowledge/decisions/2026-11-auth.md", b"Plain text only\nin two lines")
    assert (entry.title, entry.type, entry.slug) == ("2026-11-auth", "decision", "2026-11-auth")
    assert entry.summary == "Plain text only in two lines"
    assert entry.frontmatter == {}
    assert parse_entry("knowledge/loose.md", b"").category == ""
    assert parse_entry("knowledge/recipes/soup.md", b"").type is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"---\na: [\n---\n# Broken\nfind me", "frontmatter"),
        ("---\ntitle: Wide\n---\n# Wide\nfind me".encode("utf-16"), "UTF-16"),
        (b"# Latin\nfind me caf\xe9", "bytes"),
        (b"---\ntitle: caf\xe9\n---\nfind me", "bytes"),
    ],
)
def test_what_cannot_be_rewritten_says_why_and_stays_readable(data: bytes, problem: str) -> None:
    entry = parse_entry("knowledge/topics/odd.md", data)
    assert entry.problem is not None
    assert problem in entry.problem
    assert "find me" in entry.text


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        ("# T\n\nFirst sentence. Second one.", "First sentence."),
        ("# T\n> [!note] quoted\n\n| a | b |\n\n- [ ] a **bold** item\n- next", "a bold item"),
        ("Uses e.g. Docker, i.e. containers. More.", "Uses e.g. Docker, i.e. containers."),
        ("Version 3.11 is out! Yes.", "Version 3.11 is out!"),
        ("```\ncode.\n```\nText [a](b.md) and [[c|d]] `e`", "Text a and d e"),
        ("日本語の文。つぎの文。", "日本語の文。"),
        ("<!-- note -->\n![[x.png]]\n\n---\n\nAt last", "At last"),
        ("", ""),
    ],
)
def test_the_summary_is_the_first_sentence_as_a_reader_sees_it(body: str, summary: str) -> None:
    if body.startswith("日"):
        summary = "日本語の文。つぎの文。"  # no blank stands between sentences there
    assert summary_of(body) == summary


@pytest.mark.parametrize("length", [*range(155, 166), 400])
def test_a_first_sentence_about_as_long_as_a_summary_is_cut_as_any_text(length: int) -> None:
    sentence = f"{'word ' * (length // 5)}{'x' * (length % 5)}".strip()[: length - 1] + "."
    assert summary_of(f"{sentence} More of it.") == shorten(sentence, 160)


def test_what_is_only_marks_is_no_summary() -> None:
    assert summary_of("[^1]\n\n<b></b>\n\n3 lamps.") == "3 lamps."


def test_a_summary_raises_and_lowers_numbers_as_the_note_does() -> None:
    said = "10<sup>6</sup> cells, CO<sub>2</sub>, the 1<sup>st</sup>, x<sup>-n</sup>."
    assert summary_of(said) == "10⁶ cells, CO₂, the 1st, x⁻ⁿ."


def test_a_written_summary_wins_and_loses_what_steers_a_terminal() -> None:
    text = '---\nsummary: "*Short* \\e[31m"\n---\nLong text.\n'
    assert parse_entry("knowledge/a.md", text.encode()).summary == "Short [31m"


def test_of_a_decision_the_summary_is_what_was_decided() -> None:
    text = "# Use X\n\n## Context\nY is slow.\n\n## Decision\nWe use Xenon. It is fast.\n"
    assert parse_entry("knowledge/decisions/x.md", text.encode()).summary == "We use Xenon."
    undecided = text.replace("We use Xenon. It is fast.\n", "")
    assert parse_entry("knowledge/decisions/x.md", undecided.encode()).summary == "Y is slow."
    assert parse_entry("knowledge/topics/x.md", text.encode()).summary == "Y is slow."


def test_long_text_is_cut_at_a_word() -> None:
    summary = summary_of("word " * 100)
    assert len(summary) <= 160
    assert summary.endswith("word…")


HOSTILE = {
    "brackets": "[" * 20_000,
    "ticks": "`" * 20_001,
    "open ticks": "`a " * 20_000,
    "stars": "*_" * 20_000,
    "wikilinks": "[[a|" * 10_000,
    "tags": "#a" * 9_000,
    "links": "[a](" * 10_000,
    "fences": "``` `\n" * 5_000,
    "angles": "<" * 20_000,
    "bullets": "- " * 20_000,
    "definitions": "[a]:" * 10_000,
    "rules": "---\n" * 10_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    began = time.process_time()
    entry = parse_entry("knowledge/hostile.md", text.encode())
    assert entry.text == text
    assert time.process_time() - began < 5


@given(st.binary(max_size=400))
def test_any_bytes_are_an_entry(data: bytes) -> None:
    for document in (data, b"---\n" + data + b"\n---\n" + data):
        entry = parse_entry("knowledge/topics/any.md", document)
        assert entry.title
        assert "\x1b" not in entry.title + entry.summary + "".join(entry.tags)


@given(st.text(max_size=200))
def test_a_plain_line_is_one_line(text: str) -> None:
    assert "\n" not in plain_line(text)


@pytest.mark.data
def test_links_of_a_real_vault_lie_on_the_lines_they_name(data_dir: Path) -> None:
    checked = 0
    for file in (data_dir / "vaults" / "obsidian-help-en").rglob("*.md"):
        entry = parse_entry(f"knowledge/{file.name}", file.read_bytes())
        lines = entry.text.split("\n")
        for link in entry.links:
            assert link.target in lines[link.line - 1]
            checked += 1
    assert checked > 500


def test_the_properties_of_a_logseq_page_are_read() -> None:
    text = "title:: Kestrels\nalias:: falcons, [[Small Hawks]]\ntags:: #birds, flight\nprivate:: true\n\n- hover\n"
    entry = parse_entry("knowledge/pages/kestrel.md", text.encode())
    assert entry.title == "Kestrels"
    assert entry.aliases == ("falcons", "Small Hawks")
    assert entry.tags == ("birds", "flight")
    assert entry.private
    assert entry.frontmatter == {}


def test_only_empty_sections_of_the_types_own_template_are_left_out_of_what_is_read() -> None:
    text = "## Role\r\n\r\n## Notes\n### Small\n\n## Works on\n \n## Mine\n\n```\n## Role\n```\n"
    shown = without_empty_sections(text, "person")
    assert [line.strip() for line in shown.split("\n")] == (
        ["", "", "## Notes", "### Small", "", "", "", "## Mine", "", "```", "## Role", "```", ""]
    )
    assert without_empty_sections(text, "topic") == text
    assert without_empty_sections(text, None) == text


def test_a_file_of_old_windows_is_told_as_such() -> None:
    entry = parse_entry("knowledge/topics/a.md", "# A\n\ncafé and more\n".encode("cp1252"))
    assert "café" in entry.text
    assert "aren't UTF-8" in (entry.problem or "")
