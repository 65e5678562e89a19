from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st
from whoosh import analysis, qparser, query, reading, scoring, searching

from kbtui.clock import local_day
from kbtui.search.index import analyser, bm25f, chain
from kbtui.search.index.whoosh_reader import CorpusReader
from kbtui.search.query.parser import date_bounds, parse
from kbtui.search.results import QUERY_LANGUAGE
from tests.search.helpers import Desk, paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.search.search_index import SearchIndex


NOTES = {
    "knowledge/projects/sync.md": "---\ntype: project\ntags: [infra, area/work]\nupdated: 20260310\n---\n"
    "# Sync service\n\nThe plugin keeps a vault and its folders in step.\n",
    "knowledge/projects/theme.md": "---\ntype: project\ntags: [design]\nupdated: 2026-02-01\n---\n"
    "# Theme editor\n\nA plugin with settings for colours.\n",
    "knowledge/people/anna.md": "---\ntype: person\ntags: [family]\nupdated: 2025-12-24\n---\n"
    "# Anna Volunteer\n\nShe volunteers at the library; an e-mail came on Monday.\n",
    "knowledge/people/o-brien.md": "---\ntype: person\nupdated: 2026-6-1\n---\n"
    "# Mr O'Brien\n\nSigned the tax letter, and a letter about tax.\n",
    "knowledge/recipes/soup.md": "---\ntags: [food/winter]\nupdated: 2026-01-15\n---\n"
    "# Onion soup\n\nBrown fox onions, no dog. Rock 'n' roll while it cooks: http://a.org/b\n",
    "knowledge/recipes/bread.md": "---\nupdated: 2026-01-20\n---\n"
    "# Bread\n\nKnead the dough with a woman's patience. The quick brown fox and the dog.\n",
    "knowledge/ideas/organising.md": "---\nupdated: 2026-04-04\n---\n"
    "# Organising the cellar\n\nOrganize shelves; organs are out of scope. C++ and C# books.\n",
    "knowledge/ideas/haus.md": "---\nupdated: 2026-05-05\n---\n"
    "# Das Haus\n\nEin \N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}schönes Haus\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK} am See. "
    "Nein NOT ist hier ein Wort.\n",
}
SHORT = {path.rpartition("/")[2].removesuffix(".md"): path for path in NOTES}
EVERYTHING = set(SHORT)
# What somebody types, and the notes that it means.
SAMPLES: list[tuple[str, set[str]]] = [
    ("plugin AND settings", {"theme"}),
    ("plugin settings", {"sync", "theme"}),
    ("(folder OR vault) AND plugin", {"sync"}),
    ("plugin NOT settings", {"sync"}),
    ("plugin -settings", {"sync"}),
    ("-settings plugin", {"sync"}),
    ("plugin AND NOT settings", {"sync"}),
    ("NOT NOT settings", {"theme"}),
    ("fox NOT dog", set()),
    ("fox OR plugin", {"soup", "bread", "sync", "theme"}),
    ("fox OR plugin AND settings", {"soup", "bread", "theme"}),
    ("(fox OR plugin) AND (dog OR settings)", {"soup", "bread", "theme"}),
    ("+fox +dough", {"bread"}),
    ("+fox dough", {"soup", "bread"}),
    ("-(fox OR plugin) type:person", {"anna", "o-brien"}),
    ("type:project", {"sync", "theme"}),
    ("type:project settings", {"theme"}),
    ("-type:project fox", {"soup", "bread"}),
    ("NOT type:project fox", {"soup", "bread"}),
    ("tag:area", {"sync"}),
    ("#area/work", {"sync"}),
    ("tag:(infra OR design) plugin", {"sync", "theme"}),
    ("title:theme", {"theme"}),
    ('title:"onion soup"', {"soup"}),
    ("title:volunt*", {"anna"}),
    ("folder:recipes fox", {"soup", "bread"}),
    ("in:people -letter", {"anna"}),
    ('"tax letter"', {"o-brien"}),
    ('"letter tax"', set()),
    ('"letter tax"~2', {"o-brien"}),
    ('"brown fox" -dough', {"soup"}),
    ('"brown fox and the dog" OR title:theme', {"bread", "theme"}),
    ("volunteer*", {"anna"}),
    ("library*", {"anna"}),
    ("organiz*", {"organising"}),
    ("wom?n", {"bread"}),
    ("dogh~", {"bread", "soup"}),
    ("updated:2026-01", {"soup", "bread"}),
    ("updated:>2026-04", {"o-brien", "haus"}),
    ("updated:01.06.2026", {"o-brien"}),
    ("updated:20260601", {"o-brien"}),
    ("after:2026-03-01 before:2026-05", {"sync", "organising"}),
    ("updated:[2026-01 to 2026-02]", {"soup", "bread", "theme"}),
    ("updated:2026-01..2026-02 plugin", {"theme"}),
    ("\N{DOUBLE LOW-9 QUOTATION MARK}schönes Haus\N{LEFT DOUBLE QUOTATION MARK}", {"haus"}),
    ("e-mail", {"anna"}),
    ("rock 'n' roll", {"soup"}),
    ("http://a.org/b", {"soup"}),
    ('title:"', set()),
    ("C++ OR C#", {"organising"}),
    ("letter AND", {"o-brien"}),
    ("AND letter", {"o-brien"}),
    ("[draft] fox", {"soup", "bread"}),
    ("*dough* bread", {"bread"}),
    ("NO FOX AND NO DOG", {"soup", "bread"}),
    ('Where is the "tax bread"?', {"o-brien", "bread"}),
    ("obrien", {"o-brien"}),
    ("obrien AND letters", {"o-brien"}),
    ("email AND Monday", {"anna"}),
    ("emails", {"anna"}),
    ("shelf", {"organising"}),
    ("women", {"bread"}),
    ("organ", {"organising"}),
    ("organi?e", {"organising"}),
    (
        "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}schönes Haus\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}",
        {"haus"},
    ),
    ("schoenes AND Haeuser", {"haus"}),
    ("cooked", {"soup"}),
    ("updated:01.06.2026 obrien", {"o-brien"}),
]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchIndex]:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    for path, text in NOTES.items():
        desk.write(path, text)
    yield desk.index()
    desk.close()


@pytest.mark.parametrize(("query", "meant"), SAMPLES, ids=[query for query, _ in SAMPLES])
def test_a_query_as_people_type_it_finds_what_it_means(
    notes: SearchIndex, query: str, meant: set[str]
) -> None:
    result = notes.search(query, limit=50)
    assert {hit.path for hit in result.hits} == {SHORT[name] for name in meant}
    assert not result.notice


def test_filters_phrases_and_exclusions_are_told_from_words() -> None:
    asked = parse('type:decision tag:auth "exact phrase" -draft updated:2026 session store archi*')
    assert asked.phrases == ("exact phrase",)
    assert asked.words == ("session", "store")
    assert asked.beginnings == ("archi*",)
    assert asked.text == "exact phrase session store archi*"
    assert str(asked.operators) == (
        '+type:decision +tag:auth +"exact phrase" +updated:[2026 TO 2026~]'
        " -draft session store archi*"
    )


FORMS = [form for row, _ in QUERY_LANGUAGE[1:] for form in row.split("  ")]


@pytest.mark.parametrize("form", FORMS)
def test_what_the_help_says_that_a_query_may_hold_is_more_than_words(form: str) -> None:
    assert parse(form).operators is not None


def test_a_search_with_operators_is_parsed_scored_and_run_by_whoosh(
    notes: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    for owner, name in (
        (qparser.QueryParser, "process"),
        (searching.Searcher, "search_with_collector"),
        (scoring, "bm25"),
        (reading.IndexReader, "expand_prefix"),
        (query.And, "_matcher"),
        (analysis.StemFilter, "__call__"),
    ):
        real = getattr(owner, name)
        monkeypatch.setattr(
            owner,
            name,
            lambda *given, name=name, real=real, **by: ran.append(name) or real(*given, **by),
        )
    monkeypatch.setattr(bm25f, "bm25", scoring.bm25)
    monkeypatch.setattr(analyser, "_term_cache", {})
    assert notes.search("fox* AND knead AND (dough OR sour-dough)", limit=5).hits
    assert {
        "process",
        "search_with_collector",
        "bm25",
        "expand_prefix",
        "_matcher",
        "__call__",
    } <= set(ran)
    assert chain.CHAIN.has_morph()
    assert issubclass(CorpusReader, reading.IndexReader)


@pytest.mark.parametrize(
    "text", ["http://example.com", "note: this", "a:b:c", "--verbose", "x -> y"]
)
def test_what_only_looks_like_a_filter_is_words(text: str) -> None:
    asked = parse(text)
    assert asked.operators is None
    assert asked.words
    assert not asked.notice


@pytest.mark.parametrize(
    "text",
    ["updated:soon", "after:foo", "updated:2026-02-30", "created:2026-13", "updated:20260230"],
)
def test_a_day_that_is_none_is_words_and_that_is_said(text: str) -> None:
    asked = parse(text)
    assert asked.operators is None
    assert asked.words == (text,)
    assert text in asked.notice
    assert "2026-03-01" in asked.notice


@pytest.mark.parametrize(
    "text", ["", "   ", '"', '""', "-", "*", "AND OR", 'type: ""', "NOT", "()"]
)
def test_a_query_without_anything_to_look_for_is_empty_or_harmless(text: str) -> None:
    asked = parse(text)
    assert not asked.terms()
    assert not asked.has_conditions


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2000 + "fox" + ")" * 2000 + " AND dog",
        "fox AND (" * 2000 + "dog",
        " AND ".join(f"word{i}" for i in range(2500)),
        "AND OR NOT " * 500 + "fox",
        "fox AND " * 1000 + "dough",
        "NOT " * 5000 + "fox",
        "-" * 5000 + "fox",
        "'",
        "\N{RIGHT-TO-LEFT OVERRIDE}fox AND \N{HEBREW LETTER ALEF}\N{ZERO WIDTH JOINER}",
        "fox AND e\N{COMBINING ACUTE ACCENT}\N{COMBINING GRAVE ACCENT}te",
        "\ue03a AND \ue000",
        "\ud800 AND fox",
    ],
    ids=range(12),
)
def test_a_query_that_nobody_would_read_is_answered_all_the_same(
    notes: SearchIndex, text: str
) -> None:
    notes.search(text)


def test_more_operators_than_whoosh_can_nest_are_left_out_and_that_is_said(
    notes: SearchIndex,
) -> None:
    result = notes.search("knead AND " * 1000 + "dough")
    assert [hit.path for hit in result.hits] == [SHORT["bread"]]
    assert result.notice == "More than 100 operators can't be read."


def test_what_whoosh_cannot_read_is_plain_words_and_that_is_said(
    notes: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object, **_by: object) -> None:
        raise RecursionError

    monkeypatch.setattr(qparser.QueryParser, "process", fail)
    result = notes.search("(knead OR dough) AND bread")
    assert [hit.path for hit in result.hits] == [SHORT["bread"]]
    assert "can't be read" in result.notice


def test_very_common_words_count_only_if_there_are_no_others() -> None:
    assert list(parse("what is the plan for auth").terms()) == ["plan", "auth"]
    assert list(parse("to be or not to be").terms()) == ["to", "be", "or", "not"]


def test_a_pasted_document_is_a_query_of_bounded_size() -> None:
    assert len(parse(" ".join(f"word{i}" for i in range(50_000))).terms()) <= 256


@given(st.text(max_size=300))
def test_any_text_is_a_query(text: str) -> None:
    asked = parse(text)
    assert isinstance(asked.text, str)
    assert asked.terms() is not None


@pytest.mark.parametrize(
    ("value", "inside", "outside"),
    [
        ("2026", ["2026-01-01", "2026-12-31", "2026"], ["2025-12-31", "2027-01-01"]),
        ("2026-03", ["2026-03-01", "2026-03-31"], ["2026-02-28", "2026-04-01"]),
        ("2026-3", ["2026-03-31"], ["2026-02-28"]),
        (">2026-03", ["2026-04-01", "2027"], ["2026-03-31", "2026-03"]),
        (">=2026-03", ["2026-03-01"], ["2026-02-28"]),
        ("<2026", ["2025-12-31", "2025"], ["2026-01-01", "2026"]),
        ("<2026-10", ["2026-09-30"], ["2026-10-01", "2026-10"]),
        ("<=2026-10", ["2026-10-31"], ["2026-11-01"]),
        ("2026-01..2026-03", ["2026-01-01", "2026-03-31"], ["2025-12-31", "2026-04-01"]),
        ("..2026-03", ["1999-01-01"], ["2026-04-01"]),
        ("week", ["2026-11-21", "2026-11-14"], ["2026-11-13"]),
        ("yesterday", ["2026-11-20"], ["2026-11-19"]),
    ],
)
def test_a_date_filter_names_a_span_of_days(
    value: str, inside: list[str], outside: list[str]
) -> None:
    span = date_bounds(value, today=date(2026, 11, 21))
    assert span is not None
    since, until = span
    assert all(since <= day <= until for day in inside)
    assert not any(since <= day <= until for day in outside)


@pytest.mark.parametrize("value", ["soon", "2026-13-1x", "", "26"])
def test_what_names_no_days_is_no_date_filter(value: str) -> None:
    assert date_bounds(value) is None


@pytest.mark.parametrize("text", ['"lost encryption password', 'lost "encryption password'])
def test_what_follows_a_quotation_mark_that_nobody_closed_is_words(text: str) -> None:
    asked = parse(text)
    assert asked.words == tuple(text.replace('"', "").split())
    assert not asked.phrases


def test_a_lonely_quotation_mark_asks_nothing() -> None:
    assert not parse('"').has_words
    assert parse('sync "').words == ("sync",)


def test_after_and_before_are_days_of_the_last_change() -> None:
    found = parse("after:2026-03 before:week folder:projects")
    week = local_day() - timedelta(days=7)
    assert str(found.operators).startswith("+updated:[2026-03 TO ~] +updated:[ TO ")
    assert f"{(week - timedelta(days=1)).isoformat()[:9]}" in str(found.operators)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("haeuser", "haus"),
        ("Häuser", "haus"),
        ("Haus", "haus"),
        ("Gaerten", "garten"),
        ("garten", "garten"),
        ("книга", "kniga"),
        ("книгами", "kniga"),
    ],
)
def test_words_of_german_and_russian_notes_find_their_other_forms(
    desk: Desk, query: str, name: str
) -> None:
    desk.write("knowledge/haus.md", "# Bau\n\nDie Häuser und der See.\n")
    desk.write("knowledge/garten.md", "# Beete\n\nIn den Gärten und vor der Tür.\n")
    desk.write("knowledge/kniga.md", "# kniga\n\nкниги.\n")  # noqa: RUF001
    hits = desk.index().search(query).hits
    assert [hit.path for hit in hits] == [f"knowledge/{name}.md"]
    assert hits[0].matches


@pytest.mark.parametrize(("query", "name"), [("cheval", "fr"), ("árbol", "es"), ("libro", "es2")])
def test_words_of_french_and_spanish_notes_find_their_other_forms(
    desk: Desk, query: str, name: str
) -> None:
    desk.write("knowledge/fr.md", "# Ferme\n\nLes chevaux mangent une pomme.\n")
    desk.write("knowledge/fr2.md", "# Ville\n\nLes rues ont une place.\n")
    desk.write("knowledge/es.md", "# Campo\n\nLos árboles de una finca.\n")
    desk.write("knowledge/es2.md", "# Sala\n\nLos libros de una amiga.\n")
    assert paths(desk.index().search(query)) == [f"knowledge/{name}.md"]


def test_an_english_workspace_knows_no_other_forms(desk: Desk) -> None:
    desk.write("knowledge/a.md", "# A\n\nVan der Berg keeps bees.\n")
    index = desk.index()
    assert not index.search("Baeren").hits
    assert index._generations().serving.corpus().languages == ()
