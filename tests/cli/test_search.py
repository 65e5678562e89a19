"""Search from a script."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.importers.exports import claude, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command


@pytest.fixture
def filled(kbtui: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    kbtui.ok("new", "topic", "Walrus care", "-b", "The walrus eats clams at dawn.")
    kbtui.ok("new", "topic", "Penguins", "-b", "A penguin eats fish.")
    return kbtui


def test_hits_have_the_promised_shape(filled: Command) -> None:
    found = filled.ok("search", "walrus clams", "--json").json
    assert set(found) >= {"query", "scope", "took_ms", "semantic", "hits"}
    assert found["semantic"] is False
    hit = found["hits"][0]
    assert set(hit) >= {"path", "heading", "lines", "score", "snippet", "explain"}
    assert set(hit["explain"]) >= {"lexical_rank", "semantic_rank"}
    assert hit["path"] == "knowledge/topics/walrus-care.md"
    lines = filled.file(hit["path"]).read_text().splitlines()
    first, last = hit["lines"]
    assert "clams" in "\n".join(lines[first - 1 : last])
    at = hit["matches"][0]
    assert hit["snippet"][slice(*at)].casefold() in lines[hit["line"] - 1].casefold()


def test_text_output_names_place_and_words(filled: Command) -> None:
    out = filled.ok("search", "penguin", "-n", "1").out
    assert out.startswith("knowledge/topics/penguins.md:")
    assert "penguin eats fish" in out
    assert "\x1b" not in out


@pytest.mark.model
def test_weak_hits_by_meaning_alone_are_counted_and_listed_if_asked_for(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Walrus care", "-b", "The walrus eats clams at dawn.")
    for title in ("Tax forms", "Bicycle repair", "Opera tickets"):
        kbtui.ok("new", "topic", title, "-b", f"{title} are in the blue folder.")
    done = kbtui.ok("search", "walrus", "--semantic")
    assert "Walrus care" in done.out
    assert "Opera" not in done.out
    assert "3 weaker hits" in done.err
    assert "Opera" in kbtui.ok("search", "walrus", "--semantic", "--weak").out


def test_explain_says_what_ran_and_where_the_words_put_each_hit(filled: Command) -> None:
    done = filled.ok("search", "eats AND (clams OR fish) -penguin", "--explain")
    assert "Whoosh's searcher: +(eats AND ((clams OR fish))) -penguin" in done.err
    assert "(no. 1), meaning none" in done.out
    assert "Ran plain words" in filled.ok("search", "walrus", "--explain").err


def test_nothing_found_is_status_one(filled: Command) -> None:
    done = filled("search", "zyxwvut", "--json")
    assert (done.status, done.json["hits"]) == (1, [])
    done = filled("search", "zyxwvut")
    assert done.out == ""
    assert "Nothing" in done.err


def test_what_conversations_hold_is_counted_beside(filled: Command, tmp_path: Path) -> None:
    talks = [claude(f"c{n}", f"Does a walrus sing {n}?", "No.") for n in range(3)]
    filled.ok("import", "--no-memory", str(written(tmp_path / "a.json", talks)))
    found = filled.ok("search", "walrus", "--scope", "sessions", "--json").json
    count = len(found["hits"])
    assert count >= len(talks)
    assert found["in_conversations"] == 0
    done = filled.ok("search", "walrus")
    assert "walrus-care.md" in done.out
    assert f"{count} in conversations: add --scope sessions" in done.err
    assert filled.ok("search", "walrus", "--json").json["in_conversations"] == count
    assert "in conversations" not in filled("search", "penguin").err


def test_scope_and_revision(filled: Command) -> None:
    assert filled("search", "walrus", "--scope", "docs").status == 1
    filled.ok("delete", "walrus-care")
    assert filled("search", "walrus", "--lexical").status == 1
    assert filled.ok("search", "walrus", "--at", "HEAD~1", "--json").json["hits"]


def test_many_queries_are_answered_line_by_line(filled: Command, tmp_path: Path) -> None:
    queries = [{"id": "a", "text": "walrus"}, {"id": 2, "text": "zyxwvut"}, {"id": "c", "text": ""}]
    lines = "\n".join(json.dumps(query) for query in queries) + "\n\n"
    file = tmp_path / "queries.jsonl"
    file.write_text(lines)
    for source, stdin in ((str(file), ""), ("-", lines)):
        answers = filled.ok("search", "--queries", source, "-n", "3", "--json", stdin=stdin).lines
        assert [answer["id"] for answer in answers] == ["a", 2, "c"]
        assert answers[0]["hits"][0]["path"] == "knowledge/topics/walrus-care.md"
        assert answers[1]["hits"] == []


def test_a_bad_line_of_queries_is_named(filled: Command) -> None:
    done = filled("search", "--queries", "-", stdin='{"id": 1, "text": "a"}\n{"id": 2}\n')
    assert done.status == 2
    assert "Line 2" in done.err
    assert filled("search").status == 2
    assert filled("search", "x", "--queries", "-").status == 2
