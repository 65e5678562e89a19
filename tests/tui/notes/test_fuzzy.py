from __future__ import annotations

from kbtui.knowledge.library.library import EntryInfo
from kbtui.text import slugify
from kbtui.tui.notes.fuzzy import FuzzyIndex, matched_spans


def entry(title: str, age: int = 0, *, aliases: tuple[str, ...] = (), tags: tuple[str, ...] = ()):
    slug = slugify(title)
    return EntryInfo(
        f"knowledge/topics/{slug}.md", title, "topic", "topics", slug, tags, aliases,
        None, None, "", False, None, "0" * 40, 1, 1_000 - age,
    )  # fmt: skip


def found(query: str, *entries: EntryInfo) -> list[str]:
    return [match.entry.title for match in FuzzyIndex(entries).search(query)]


def test_the_same_name_wins_over_a_beginning_a_word_and_a_part():
    entries = [
        entry("Postgres"),
        entry("Postgres tuning"),
        entry("Why postgres"),
        entry("xpostgres"),
    ]
    assert found("postgres", *reversed(entries)) == [e.title for e in entries]


def test_of_equals_the_newer_comes_first():
    assert found("note", entry("Note aa", 5), entry("Note bb", 1)) == ["Note bb", "Note aa"]


def test_aliases_tags_folders_and_accents_count():
    cafe = entry("Café Müller", aliases=("Coffee place",), tags=("food",))
    for query in ("cafe mull", "coffee", "#food", "topics", "MÜLLER", "muller cafe"):
        assert found(query, cafe, entry("Other"))[:1] == ["Café Müller"], query


def test_a_title_comes_before_an_alias_that_begins_alike():
    alias = entry("Settings", aliases=("Obsidian settings",))
    assert found("ob", alias, entry("Obsidian for teams", 5))[0] == "Obsidian for teams"
    assert found("obsidian set", alias, entry("Obsidian for teams")) == ["Settings"]


def test_letters_in_order_and_typing_errors_are_forgiven():
    wanted, other = entry("PostgreSQL for analytics"), entry("Docker")
    assert found("pfa", wanted, other) == ["PostgreSQL for analytics"]
    assert found("postgersql", wanted, other) == ["PostgreSQL for analytics"]
    assert found("zzzz", wanted, other) == []


def test_a_typing_error_in_one_word_finds_a_long_title():
    long = entry("Notes about the boiler service and the heating contract of the old house, 2026")
    for query in ("bioler", "boilr", "hosue boiler", "contarct"):
        assert found(query, long, entry("Dock")) == [long.title], query
    assert found("boat 2027", long) == []


def test_a_search_that_is_overtaken_ends_with_nothing():
    assert FuzzyIndex([entry("a")]).search("a", stale=lambda: True) == []


def test_matches_are_shown_where_they_are():
    assert matched_spans("Why Postgres", "postg") == [(4, 9)]
    assert matched_spans("PostgreSQL", "pql") == [(0, 1), (8, 9), (9, 10)]
    assert matched_spans("Straße", "strasse") == []
