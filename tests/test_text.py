"""Text from outside: safe to show, safe to name files after."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, strategies as st

from kbtui.text import (
    MAX_SLUG,
    clean,
    clean_line,
    counted,
    fold,
    holds_any,
    pack,
    shorten,
    slugify,
    storable,
    unpack,
    without_escapes,
)


@given(st.text("`%$]:a", max_size=9), st.lists(st.sampled_from(("```", "%%", "]:", "$$"))))
def test_signs_are_found_as_anything_is(text: str, signs: list[str]) -> None:
    assert holds_any(text, signs) == any(each in text for each in signs)


@given(st.text())
def test_clean_text_can_neither_steer_a_terminal_nor_hide(text: str) -> None:
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0020]", clean(text)
    )
    assert clean(clean(text)) == clean(text)


def test_clean_keeps_what_people_write() -> None:
    assert clean("a\tb\r\nc é 漢字 👩‍👩‍👧") == "a\tb\nc é 漢字 👩‍👩‍👧"


@given(st.text())
def test_a_slug_is_never_empty_never_long_and_has_one_form(text: str) -> None:
    slug = slugify(text)
    assert 0 < len(slug) <= MAX_SLUG
    assert slugify(slug) == slug
    assert "/" not in slug
    assert not slug.startswith(("-", "."))


def test_slugs_read_like_their_titles() -> None:
    assert slugify("Use LiteLLM as Provider Abstraction!") == "use-litellm-as-provider-abstraction"
    assert slugify("Überraschung: café") == "uberraschung-cafe"
    assert slugify("知识 库") == "知识-库"
    assert slugify("../../etc/passwd") == "etc-passwd"
    assert slugify("word " * 40) == "-".join(["word"] * 16)


def test_folding_ignores_case_and_accents() -> None:
    assert fold("ÉCOLE Straße") == fold("école STRASSE")


def test_shortening_keeps_whole_words() -> None:
    assert shorten("one two three four", 12) == "one two…"
    assert shorten("fits", 12) == "fits"
    assert clean_line(" a\n b\x1b[31m ") == "a b[31m"


def test_what_is_counted_has_the_right_number() -> None:
    assert counted(1, "file") == "1 file"
    assert counted(0, "file") == "0 files"
    assert counted(2000, "entry", "entries") == "2,000 entries"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[1;38;5;9mred\x1b[0m and \x1b(Bplain", "red and plain"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b", ""),
        ("no escape", "no escape"),
    ],
)
def test_escape_sequences_are_taken_out_of_a_text(text: str, left: str) -> None:
    plain, count = without_escapes(text)
    assert plain == left
    assert count == text.count("\x1b") - text.count("\x1b\\")


@given(st.text(st.characters(), max_size=120))
def test_a_packed_text_is_the_same_and_never_larger(text: str) -> None:
    kept = pack(text)
    assert unpack(kept) == text
    assert sys.getsizeof(kept) <= sys.getsizeof(text)
    assert pack(unpack(kept)) == kept


def test_a_text_that_an_emoji_widens_is_packed_and_kept_once() -> None:
    kept = pack("word " * 100 + "\N{SLIGHTLY SMILING FACE}")
    assert isinstance(kept, bytes)
    assert pack(unpack(kept)) is kept
    assert isinstance(pack("文" * 100), str)  # UTF-8 would take more
    assert isinstance(pack("word " * 100), str)


def test_texts_with_half_a_character_can_be_packed() -> None:
    text = "\ud83d" + "word " * 100
    assert unpack(pack(text)) == text


def test_lone_surrogates_are_replaced_and_any_other_text_is_returned_itself() -> None:
    assert storable("a\ud800b") == "a?b"
    for text in ("plain", "schön", "\N{GRINNING FACE}"):
        assert storable(text) is text
