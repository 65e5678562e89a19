"""Each row of ``secrets.tsv`` by its own example and counterexample."""

from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import from_regex

from kbtui.redaction import table
from kbtui.redaction.forms import SECTIONS, Form, Issued, Text, forms, issued_forms
from kbtui.redaction.heads import DIGIT, heads_of
from kbtui.redaction.redact import redact

_LETTERS = string.ascii_letters + 3 * string.digits
_CLASSES = {
    "w": _LETTERS,
    "u": string.ascii_uppercase + string.digits,
    "x": string.hexdigits.lower()[:16],
    "b": _LETTERS + "-_",
    "t": _LETTERS + ".-_",
    "e": _LETTERS + "+/",
}
_SECRET = re.compile("‹(.*?)›", re.DOTALL)
SHAPES = [form for section in SECTIONS for form in forms(section)]
ROWS = [tuple(row) for section in (*SECTIONS, "links") for row in table.rows(section)]


def made(kind: str, count: int) -> str:
    """So many characters of a class: no key stands in a file, where a scanner would find it."""
    draw = random.Random(f"{kind}{count}")
    chars = _CLASSES[kind]
    ends = [char for char in chars if char.isalnum()]
    return "".join(draw.choice(chars) for _ in range(count - 1)) + draw.choice(ends)


def written(text: str) -> str:
    """An example as a person would write it."""
    text = re.sub(r"\{([wuxbte])(\d+)\}", lambda found: made(found[1], int(found[2])), text)
    return text.replace("\\n", "\n")


def examples(row: tuple[str, ...]) -> tuple[str, str]:
    """The example and the counterexample of a row."""
    return written(row[3]), written(row[4])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[3][:60])
def test_the_secret_of_an_example_is_taken_out_whole(row: tuple[str, ...]) -> None:
    example, _ = examples(row)
    expected = re.escape(_SECRET.sub("\0", example)).replace("\0", r"\[redacted: [\w -]+\]")
    assert "‹" in example
    assert re.fullmatch(expected, redact(re.sub("[‹›]", "", example)).text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[4][:60])
def test_a_counterexample_stays_as_it_is(row: tuple[str, ...]) -> None:
    _, other = examples(row)
    assert redact(other).text == other


@pytest.mark.parametrize("form", SHAPES, ids=lambda form: form.source[:60])
def test_a_row_finds_its_example_by_itself(form: Form) -> None:
    row = next(row for row in ROWS if table.whole(row[2]) == form.source)
    text = re.sub("[‹›]", "", examples(row)[0])
    small = form in (*forms("told"), *forms("columns"))
    matches = list(Text(text).matches(form, small=small))
    assert matches if small else any(map(form.secret_in, matches))


@pytest.mark.parametrize("form", issued_forms(), ids=lambda form: form.prefix)
def test_a_key_is_known_by_how_it_begins_and_by_its_length(form: Issued) -> None:
    kind, least = form.rest[0], int(re.findall(r"\d+", form.rest)[0])
    key = form.prefix + made(kind, least)
    assert key not in redact(f"my key is {key}, I think").text
    assert list(form.spans(key)) == [(0, len(key), form.kind)]
    assert not list(form.spans(key[:-1]))
    assert not list(form.spans(f"x{key}"))


@pytest.mark.slow
@pytest.mark.parametrize("form", SHAPES, ids=lambda form: form.source[:60])
def test_each_match_holds_what_the_pattern_cannot_do_without(form: Form) -> None:
    heads = heads_of(form.source)

    # How long it takes to make a text of a long pattern, or how many are thrown away, says nothing.
    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(from_regex(form.pattern))
    def check(text: str) -> None:
        for match in form.pattern.finditer(text):
            small = Text(match[0]).lowered
            both = (small, re.sub(r"\d", DIGIT, small))
            assert any(head in each for head in heads.texts or [""] for each in both)
            assert not heads.also or any(head in each for head in heads.also for each in both)
            begins = [each.startswith(tuple(heads.texts or [""])) for each in both]
            assert not heads.begin or any(begins)
            assert heads.crosses or "\n" not in match[0].rstrip("\n")
            assert not heads.word or max(map(len, match[0].split())) >= heads.word

    check()


def test_a_secret_is_found_however_often_the_words_around_it_were_read_before() -> None:
    told = ("hunter2 is the wifi password", "the gate code\tis 2580", "xapi key: x, pin 4411")
    first = [redact(text).text for text in told]
    for start in range(0, 40_000, 1000):  # more words than are remembered
        redact(" ".join(f"word{n}" for n in range(start, start + 1000)))
    assert [redact(text).text for text in told] == first
    assert not any(secret in text for text in first for secret in ("hunter2", "2580", "4411"))


@pytest.mark.parametrize("form", SHAPES, ids=lambda form: form.source[:60])
def test_no_pattern_is_tried_at_each_character_of_a_text(form: Form) -> None:
    assert form.heads.texts or form.heads.word > 40


@pytest.mark.parametrize(
    "text",
    [
        "my card: \u0664\u0661\u0661\u0661 1111 1111 1111",
        "card 4111-1111-1111-1111, as ever",
        "x 4111111111111111 x",
        "it is DE89 3704 0044 0532 0130 00",
        "host:*:bob:x:hunter2hunter",
    ],
)
def test_what_is_known_by_its_digits_is_found_as_by_its_pattern_alone(text: str) -> None:
    scan = Text(text)
    for section in SECTIONS:
        for form in forms(section):
            found = [match.span() for match in scan.matches(form, small=section == "told")]
            assert found == [
                match.span()
                for match in form.pattern.finditer(scan.lowered if section == "told" else text)
            ]


@pytest.mark.parametrize(
    "text", ["the wpa2 key is Tr0ub4dor", "wpa key: Tr0ub4dor", "wpa2key: Tr0ub4dor3"]
)
def test_a_name_of_a_secret_is_known_with_what_may_stand_in_it(text: str) -> None:
    assert "Tr0ub4dor" not in redact(text).text
