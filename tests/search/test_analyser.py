from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from kbtui.search.index import analyser
from kbtui.search.index.chain import CHAIN


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Decisions", "decision"),
        ("running", "RUNS"),
        ("résumé", "Resume"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("Alice's", "alice"),
        ("Alice\u2019s", "alice"),
        ("\uff21\uff22\uff23", "abc"),
        ("l'homme", "homme"),
    ],
)
def test_words_that_differ_in_form_only_become_one_term(text: str, same: str) -> None:
    assert analyser.terms(text) == analyser.terms(same)


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("kb_tui", {"kb_tui", "kb", "tui"}),
        ("getUserName", {"getusernam", "get", "user", "name"}),
        ("HTTPServer2", {"httpserver2", "http", "server"}),
        ("v1.2.3", {"v1.2.3"}),
        ("node.js", {"node.js", "node", "js"}),
        ("C++", {"c++"}),
        ("C#", {"c#"}),
        ("2026-03-25", {"2026-03-25", "2026", "03", "25"}),
        ("state-of-the-art", {"state-of-the-art", "state", "art"}),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(identifier: str, expected: set[str]) -> None:
    assert expected <= set(analyser.terms(identifier))


def test_a_script_without_blanks_becomes_pairs_of_letters() -> None:
    assert analyser.terms("排名第六") == ["排名", "名第", "第六"]
    assert "ดี" in analyser.terms("ดีมาก")
    assert analyser.terms("在NFL中") == ["在", "nfl", "中"]


def test_vowel_signs_stay_part_of_their_words() -> None:
    assert analyser.terms("हिन्दी में") == ["हिन्दी", "में"]


def test_voiced_japanese_letters_are_not_taken_for_accents() -> None:
    assert analyser.terms("ガ") != analyser.terms("カ")


@given(st.text(max_size=200))
def test_any_text_has_terms_and_every_span_lies_inside_it(text: str) -> None:
    assert all(term and len(term) <= analyser.MAX_TERM for term in analyser.terms(text))
    for start, end, found in analyser.spans(text):
        assert 0 <= start < end <= len(text)
        assert all(found)


@given(st.text(alphabet="abcdefghij ._-'漢字กข2", max_size=60))
def test_the_terms_of_the_spans_are_the_terms_of_the_text(text: str) -> None:
    of_spans = {term for _, _, found in analyser.spans(text) for term in found}
    assert of_spans == set(analyser.terms(text))


@given(st.text(alphabet="abeE ._-'+#é2\u0301\u2019", max_size=40), st.sampled_from("abeé2"))
def test_matches_are_the_words_that_have_a_wanted_term(text: str, letter: str) -> None:
    wanted = {*analyser.terms(letter), "ab", "be"}
    expected = [
        (start, end, next(term for term in terms if term in wanted))
        for start, end, terms in analyser.spans(text)
        if wanted.intersection(terms)
    ]
    assert list(analyser.matches(text, wanted)) == expected


ENDINGS = (
    "ies ied ing ational izer ization biliti bly ogies ement eux aux emment ucion encia heiten uen"
)


@given(
    st.text(alphabet="aeioubdglnrstyz", min_size=1, max_size=6), st.sampled_from(ENDINGS.split())
)
def test_a_stemmed_word_is_found_by_each_of_its_terms(beginning: str, ending: str) -> None:
    word = beginning + ending
    text = f"Das Haus und der See.\n\nLes rues et une place.\n\nLos libros de una amiga.\n\n{word}"
    for term in {*analyser.terms(word), *analyser.second_terms(word, ["de", "fr", "es"])}:
        found = [text[start:end] for start, end, _ in analyser.matches(text, {term})]
        assert word in found, term


@pytest.mark.parametrize(
    "word", ["children", "geese", "Mice", "dying", "skies", "O'Brien", "e-mails"]
)
def test_a_word_that_is_unlike_its_stem_is_found(word: str) -> None:
    for term in analyser.terms(word):
        assert [found[:2] for found in analyser.matches(f"a {word} b", {term})] == [
            (2, 2 + len(word))
        ]


@given(st.text(alphabet="abeE ._-'+#é漢2\u2019", max_size=40), st.sampled_from("abeé2"))
def test_neighbours_are_terms_that_follow_each_other(text: str, letter: str) -> None:
    terms = {*analyser.terms(letter), "ab", "be"}
    wanted = {(one, other) for one in terms for other in terms}
    pairs = set(pairwise(analyser.content_terms(text)))
    assert analyser.neighbours(text, wanted) == pairs & wanted


def test_the_vocabulary_leaves_out_what_nobody_would_misspell() -> None:
    assert analyser.vocabulary("Acceptance of v1.2.3 and kb_tui, naïve") == {"acceptance", "naive"}


def test_telling_terms_are_one_a_word_without_the_stop_words() -> None:
    assert analyser.content_terms("The Decisions of getUserName, and v1.2") == [
        "decis",
        "getusernam",
        "v1.2",
    ]
    assert analyser.content_terms("黑豹队的") == ["黑豹", "豹队", "队的"]


@pytest.mark.parametrize(
    "word", ["What's", "don't", "can't", "they\N{RIGHT SINGLE QUOTATION MARK}re", "for?", "(it)"]
)
def test_contractions_of_stop_words_tell_nothing(word: str) -> None:
    assert analyser.is_stop_word(word)


@pytest.mark.parametrize("word", ["Will's", "Anna's", "d'accord", "c++", "cant"])
def test_possessives_and_other_words_tell_something(word: str) -> None:
    assert not analyser.is_stop_word(word)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("added", "add"),
        ("mice", "mouse"),
        ("Children", "child"),
        ("shelves", "shelf"),
        ("analyses", "analysis"),
        ("criteria", "criterion"),
        ("buses", "bus"),
        ("O'Brien", "OBrien"),
        ("x-rays", "Xray"),
        ("e-mail", "email"),
        ("книгами", "книга"),
        ("синий", "синего"),
        ("u\u0308ber", "über"),
    ],
)
def test_other_forms_and_spellings_of_a_word_become_one_term(text: str, same: str) -> None:
    assert analyser.terms_of(text)[0] == analyser.terms_of(same)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("evening", "even"),
        ("ad", "add"),
        ("internal", "intern"),
        ("organ", "organize"),
        ("universe", "university"),
        ("paste", "past"),
    ],
)
def test_words_of_another_meaning_have_other_terms(one: str, other: str) -> None:
    assert analyser.terms_of(one)[0] != analyser.terms_of(other)[0]


def test_umlauts_are_found_as_they_are_spelt_without_them() -> None:
    assert set(analyser.terms("Mueller")) < set(analyser.terms("Müller"))
    assert set(analyser.terms("Muller")) < set(analyser.terms("Müller"))


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", ["Häuser", "haeuser", "Haus", "hauses"]),
        ("de", ["Straße", "strassen", "STRASSE"]),
        ("fr", ["chevaux", "cheval"]),
        ("es", ["canción", "canciones", "cancion"]),
    ],
)
def test_forms_of_a_word_have_one_second_term_in_their_language(
    language: str, words: list[str]
) -> None:
    assert len({analyser.second_terms(word, [language]) for word in words}) == 1


@given(st.from_regex(r"[A-Za-z][a-z]{0,30}", fullmatch=True))
def test_a_plain_word_has_the_terms_that_the_chain_makes(word: str) -> None:
    made = [token.text for token in CHAIN(word) if token.text]
    assert list(analyser.terms_of(word)) == made
