"""What kbtui works around in Whoosh."""

from __future__ import annotations

import math
from datetime import datetime
from types import SimpleNamespace

import pytest
from whoosh import qparser, query, scoring
from whoosh.analysis import StemmingAnalyzer
from whoosh.fields import DATETIME, TEXT, Schema
from whoosh.lang import porter2
from whoosh.matching import AndNotMatcher, InverseMatcher, ListMatcher
from whoosh.util.times import datetime_to_long


def test_the_stemmer_of_porter_2_is_older_than_snowballs() -> None:
    assert porter2.stem("added") != "add", (
        "whoosh.lang.porter2 can be measured again beside PyStemmer in kbtui/search/index/analyser.py"
    )
    assert porter2.stem("evening") == "even"


def parsed(text: str, *more: type, group: type = qparser.syntax.AndGroup) -> query.Query:
    schema = Schema(body=TEXT(StemmingAnalyzer()), day=DATETIME())
    parser = qparser.QueryParser("body", schema, group=group)
    for plugin in more:
        parser.add_plugin(plugin())
    return parser.parse(text)


ESCAPED = "`_escaped` of kbtui/search/query/operators.py need not write this character otherwise"


def test_quotes_slashes_and_signs_inside_of_words_take_letters_away() -> None:
    assert "n" not in [text for _, text in parsed("rock 'n' roll").iter_all_terms()], ESCAPED
    assert parsed("e-mail", qparser.PlusMinusPlugin) != parsed("e-mail"), ESCAPED
    assert not list(parsed('body:"').iter_all_terms()), ESCAPED


def test_what_stands_before_a_star_is_no_beginning_of_a_stem() -> None:
    stems = {token.text for token in StemmingAnalyzer()("university")}
    prefix = parsed("universit*")
    assert isinstance(prefix, query.Prefix)
    assert not any(stem.startswith(prefix.text) for stem in stems), (
        "the field `written` of kbtui/search/index/segment.py can go"
    )


def test_not_not_is_no_query() -> None:
    with pytest.raises(Exception):  # noqa: B017 — NotImplementedError or its like
        parsed("NOT NOT fox")


def test_not_among_words_that_are_optional_keeps_what_has_both() -> None:
    found = parsed("fox NOT dog", group=qparser.syntax.OrGroup)
    assert isinstance(found, query.Or), (
        "`_split` of kbtui/search/query/operators.py need not tell exclusions from words"
    )


def test_or_joins_a_group_in_brackets_with_what_follows() -> None:
    parser = qparser.QueryParser("body", None, group=qparser.syntax.OrGroup)
    found = parser.parse("(a b) OR c")
    assert len(found) == 3, "`_Side` of kbtui/search/query/operators.py can be an `OrGroup`"


def test_days_and_comparisons_of_them_are_taken_for_others() -> None:
    after = parsed("day:>2026", qparser.GtLtPlugin)
    assert after.start == datetime_to_long(datetime(2026, 1, 1)), (  # noqa: DTZ001
        "`days` of kbtui/search/query/parser.py can leave comparisons to `GtLtPlugin`"
    )


def test_scores_count_documents_that_are_deleted() -> None:
    reader = SimpleNamespace(doc_count_all=lambda: 100, doc_frequency=lambda *_: 9)
    reader.get_parent = lambda: reader
    expected = math.log(100 / 10) + 1
    assert scoring.BM25F().idf(reader, "body", b"fox") == pytest.approx(expected), (
        "`_LiveBM25F` of kbtui/search/index/whoosh_reader.py can be `BM25F`"
    )


def test_a_not_asks_about_a_document_after_the_last() -> None:
    asked: list[int] = []
    matcher = InverseMatcher(
        ListMatcher([0]), 2, missing=lambda number: asked.append(number) or False
    )
    assert list(matcher.all_ids()) == [1]
    assert max(asked) == 2, "`is_deleted` of `CorpusReader` need not compare with the size"


def test_and_not_keeps_an_excluded_document_if_it_is_the_first() -> None:
    matcher = AndNotMatcher(ListMatcher([2, 3]), ListMatcher([1, 2]))
    assert list(matcher.all_ids()) == [2, 3], (
        "`ArrayAndNot` of kbtui/search/index/whoosh_reader.py is then only the quicker one"
    )
