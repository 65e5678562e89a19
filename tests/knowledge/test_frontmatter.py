"""Frontmatter: read safely, changed key by key, and otherwise the very same bytes."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import assume, given, settings, strategies as st

from kbtui.errors import UnreadableError
from kbtui.knowledge.format import yaml_edit
from kbtui.knowledge.format.frontmatter import parse, replace_scalars, set_keys, split

if TYPE_CHECKING:
    from pathlib import Path

NOTE = """---
# who it is
type: person
created: 2024-01-02   # first met
tags: [a, "b c",  d]
aliases:
  - 'Al'   # short
  - Liddell
updated: "2024-01-02"
quote: |
  keep   this

nested: {x: 1, y: [2, 3]}
---
# Alice
---
not: frontmatter
"""


def test_scalars_are_read_as_they_are_written() -> None:
    text = "---\na: no\nb: 2024-03-15\nc: 1_000\nd: 0x1F\ne:\nf: ~\ng: 1:30\nh: '5'\n---\n"
    assert parse(text).values == {
        "a": "no",
        "b": "2024-03-15",
        "c": "1_000",
        "d": "0x1F",
        "e": "",
        "f": "~",
        "g": "1:30",
        "h": "5",
    }


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("a: *x", "no `&x` stands in front"),
        ("a: &x [*x]", "hold itself"),
        ("a: !!python/object/apply:os.system [ls]", "tags"),
        ("a: ! x", "tags"),
        ("a: 1\na: 2", "twice"),
        ("b: {a: 1, a: 2}", "twice"),
        ("a: " + "[" * 25 + "]" * 25, "levels"),
        ("a: '" + "x" * 70_000 + "'", "64 KB"),
        ("just text", "key: value"),
        ("- a\n- b", "key: value"),
        ("a: [b", "line"),
        ("a: {{date}}", "key must be a word"),
        ("\ta: b", "line 2"),
        ("a: \x07", "characters"),
    ],
)
def test_what_is_refused_is_said_and_never_rewritten(head: str, why: str) -> None:
    text = f"---\n{head}\n---\nbody\n"
    matter = parse(text)
    assert matter.problem is not None
    assert why in matter.problem
    assert matter.values == {}
    with pytest.raises(UnreadableError):
        set_keys(text, {"updated": "2026-01-01"})


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join(['*' + a] * 9)}]" for a, b in pairwise("abcdefghi")]
    assert "aliases" in (parse("---\n" + "\n".join(lines) + "\n---\n").problem or "")


WITH_ANCHORS = (
    'a: &x "[[Old]]"\nb: *x\n',
    'a: &x "[[Old]]" # why\nb: *x # [[Olden]]\n',
    "a: &x '[[Old]]'\nb: [*x, *x]\n",
    'a: &x [p, "[[Old]]"]\nb: *x\n',
    'c: &y\n  - "[[Old]]"\n  - z\nlinks: *y\n',
    'c: &y\n- "[[Old]]"\n- z\nlinks: *y\n',
    'd: &z # why\n  k: "[[Old]]"\n  l: 1\ne: *z\n',
    'd: &z\n  # why\n\n  k: "[[Old]]"\ne: *z\n',
    'e: &q\nf: {g: &r "[[Old]]", h: *r, i: *q}\n',
    'i: [&s "[[Old]]", &t 2, *s]\n',
    "j: &blk |\n  text\n  [[Old]]\nk: *blk\n",
    "j: &blk >-\n  [[Old]]\n  folded\nk: *blk\n",
    'base: &b {s: 1, u: "[[Old]]"}\n<<: *b\n',
    'base: &b\n  s: 1\n  u: "[[Old]]"\nown:\n  <<: *b\n  s: 2\n',
    '{a: &x "[[Old]]", b: *x}\n',
    '&k key: &v "[[Old]]"\nz: *v\ny: *k\n',
    'aliases:\n- &n Anker\n- "[[Old]]"\n- *n\n',
    'a: &x 1\na2: &x 2\nb: *x\nup: "[[Old]]"\n',
    'a: &x\r\n  k: "[[Old]]"\r\nb: *x\r\n',
    'a: &u-n_1 "[[Old]]"\nb: *u-n_1\n',
)


@pytest.mark.parametrize("head", WITH_ANCHORS)
def test_a_head_with_anchors_changes_where_it_is_asked_to_alone(head: str) -> None:
    text = f"---\n{head}---\n[[Old]]\n"
    assert parse(text).problem is None

    def renamed(_key: str, value: str) -> str | None:
        return value.replace("[[Old]]", "[[A new: name]]") if "[[Old]]" in value else None

    assert replace_scalars(text, renamed) == text.replace("[[Old]]", "[[A new: name]]", 1)
    new = set_keys(text, {"status": "done"})
    at = text.index("}") if head.startswith("{") else text.index("---", 4)
    more = ", status: done" if head.startswith("{") else "status: done\n"
    assert new.replace("\r", "") == (text[:at] + more + text[at:]).replace("\r", "")
    assert dict(parse(new).values) == {**parse(text).values, "status": "done"}
    assert set_keys(new, {"status": None}) == text


def test_an_alias_says_what_its_anchor_says() -> None:
    text = "---\na: &x [1, {b: &y two}]\nc: *x\nd: [*y, *x]\ne: &z\nf: *z\n---\n"
    found = ["1", {"b": "two"}]
    values = {"a": found, "c": found, "d": ["two", found], "e": "", "f": ""}
    assert parse(text).values == values


@pytest.mark.parametrize(
    ("head", "changes", "wanted"),
    [
        ("a: &x 1\nb: *x\n", {"b": "2"}, 'a: &x 1\nb: "2"\n'),
        ("a: &x 1\n", {"a": "two"}, "a: &x two\n"),
        ("a: &x\n", {"a": "two"}, "a: &x two\n"),
        ("a: &x\n  - 1\n", {"a": "two"}, "a: &x two\n"),
        ("a: &x [1, 2]\n", {"a": ["one", "2"]}, "a: &x [one, 2]\n"),
        ("a: [&x p, q]\n", {"a": ["r", "q"]}, "a: [&x r, q]\n"),
        ("a: [&x p, q]\nb: *x\n", {"a": ["p", "q", "r"]}, "a: [&x p, q, r]\nb: *x\n"),
        ("a:\n- &x p\n- q\n", {"a": ["r", "q"]}, "a:\n- &x r\n- q\n"),
        ("a: &x [p]\ntags: *x\n", {"tags": ["p", "q"]}, "a: &x [p]\ntags: [p, q]\n"),
        ("{a: &x p, b: *x}\n", {"b": "q"}, "{a: &x p, b: q}\n"),
        ("{a: &x p}\n", {"a": "q"}, "{a: &x q}\n"),
        ("a: &x p\nb: *x\n", {"a": "q"}, "a: &x q\nb: p\n"),
        ("a: &x p\nb: *x\n", {"a": None}, "b: p\n"),
        (
            "a: &x 'p'\nb: [*x, c]\n",
            {"a": "q", "b": ["p", "c", "d"]},
            "a: &x 'q'\nb: ['p', c, d]\n",
        ),
        ("a: [&x 1, q]\nb: *x\n", {"a": ["q"]}, "a: [q]\nb: 1\n"),
        ("a: &x\n- p\n- q\nb: *x\n", {"a": ["r"]}, "a: &x\n- r\nb: [p, q]\n"),
        ("a: &x p\nc: &x r\nb: *x\n", {"a": "q"}, "a: &x q\nc: &x r\nb: *x\n"),
        ("a: &x p\nb: &y [*x]\nc: *y\n", {"a": "q"}, "a: &x q\nb: &y [p]\nc: *y\n"),
    ],
)
def test_an_anchor_is_neither_lost_nor_what_an_alias_says_changed(
    head: str, changes: dict[str, Any], wanted: str
) -> None:
    text = f"---\n{head}---\n"
    assert set_keys(text, changes) == f"---\n{wanted}---\n"


@pytest.mark.parametrize("key", ["aliases", "tags", "related", "alias"])
def test_dates_in_lists_of_texts_are_written_as_text(key: str) -> None:
    day = "2026-11-27"
    new = set_keys("# a\n", {key: [day, "b"]})
    assert f'{key}: ["{day}", b]\n' in new
    assert set_keys(f"---\n{key}: b\n---\n", {key: day}) == f'---\n{key}: "{day}"\n---\n'
    block = f"---\n{key}:\n- {day}\n---\n"
    assert set_keys(block, {key: [day, "2026-01-05"]}) == block.replace(
        f"- {day}\n", f'- {day}\n- "2026-01-05"\n'
    )
    flow = f"---\n{key}: [{day}]\n---\n"
    assert set_keys(flow, {key: [day, "2026-01-05"]}) == flow.replace("]", ', "2026-01-05"]')
    assert set_keys(flow, {key: ["2026-01-05"]}) == f'---\n{key}: ["2026-01-05"]\n---\n'
    assert "dates: [2026-11-27]\n" in set_keys("# a\n", {"dates": [day]})


def test_only_the_value_asked_for_changes() -> None:
    changed = set_keys(NOTE, {"created": "2025-05-05", "updated": dt.date(2026, 11, 21)})
    assert changed == NOTE.replace("2024-01-02   #", "2025-05-05   #").replace(
        '"2024-01-02"', '"2026-11-21"'
    )


def test_a_list_keeps_the_items_that_stay_as_they_are_written() -> None:
    changed = set_keys(NOTE, {"tags": ["a", "b c", "new: one"], "aliases": ["Alicia", "Liddell"]})
    assert 'tags: [a, "b c",  "new: one"]' in changed
    assert "  - 'Alicia'   # short\n  - Liddell\n" in changed
    shorter = set_keys(NOTE, {"tags": ["b c"], "aliases": ["Al"]})
    assert 'tags: ["b c"]\n' in shorter
    assert "aliases:\n  - 'Al'   # short\nupdated" in shorter
    longer = set_keys(NOTE, {"aliases": ["Al", "Liddell", "A. L."]})
    assert "  - Liddell\n  - A. L.\nupdated" in longer
    assert "aliases: []\nupdated" in set_keys(NOTE, {"aliases": []})


def test_a_key_goes_with_its_lines_and_a_new_one_stands_where_it_belongs() -> None:
    assert set_keys(NOTE, {"quote": None, "aliases": None}) == NOTE.replace(
        "quote: |\n  keep   this\n", ""
    ).replace("aliases:\n  - 'Al'   # short\n  - Liddell\n", "")
    text = "---\ntype: fact\ncreated: 2024-01-01\ntags: []\n---\nx"
    assert set_keys(text, {"updated": "2026-01-01", "status": "done"}) == (
        "---\ntype: fact\ncreated: 2024-01-01\nupdated: 2026-01-01\ntags: []\nstatus: done\n---\nx"
    )


def test_values_that_other_programs_would_misread_are_quoted() -> None:
    values = ["no", "12", "a: b", "#x", "", " x", "null", "[[w]]", "1e3", "x # y", "- a", "é\n\x85"]
    text = set_keys("---\n---\n", {f"k{n}": value for n, value in enumerate(values)})
    assert list(parse(text).values.values()) == values
    assert list(yaml.safe_load(split(text.encode()).head).values()) == values


def test_braces_are_changed_in_place_too() -> None:
    text = "---\n{a: 1, 'b': [x, y],  c: 2}\n---\n"
    assert set_keys(text, {"b": ["x", "z"]}) == text.replace("[x, y]", "[x, z]")
    assert set_keys(text, {"b": None, "d": "e f"}) == "---\n{a: 1,  c: 2, d: e f}\n---\n"


def test_no_frontmatter_gets_a_block_and_keeps_bom_and_line_ends() -> None:
    assert set_keys("text\r\nmore", {"a": "b"}) == "---\r\na: b\r\n---\r\ntext\r\nmore"
    data = b"\xef\xbb\xbf---\r\na: 1\r\n---\r\nbody \xff\r\n"
    assert set_keys(data, {"a": 2, "b": 3}) == data.replace(b"a: 1", b"a: 2\r\nb: 3")
    assert set_keys(b"", {"a": True}) == b"---\na: true\n---\n"


def test_a_rule_at_the_top_is_no_frontmatter() -> None:
    for text in (
        "---\ntext without an end",
        "--- \ntext",
        "----\na: b\n---\n",
        "\n---\na: b\n---\n",
    ):
        assert split(text.encode()).opening == b""
        assert parse(text).values == {}
    assert parse("---  \na: b\n---  \n").values == {"a": "b"}
    assert parse("---\na: b\n...\ntext").values == {"a": "b"}
    assert parse("---\na: b\n---").values == {"a": "b"}


def test_offered_values_are_replaced_where_they_stand() -> None:
    changed = replace_scalars(NOTE, lambda key, value: value.upper() if key == "aliases" else None)
    assert changed == NOTE.replace("'Al'", "'AL'").replace("- Liddell", "- LIDDELL")


def test_with_the_line_ends_of_windows_values_change_where_they_stand() -> None:
    note = NOTE.replace("\n", "\r\n")
    changed = replace_scalars(note, lambda key, value: value.upper() if key == "aliases" else None)
    assert changed == note.replace("'Al'", "'AL'").replace("- Liddell", "- LIDDELL")
    assert set_keys(note, {"tags": ["a"]}) == set_keys(NOTE, {"tags": ["a"]}).replace("\n", "\r\n")


# Every file of real vaults, every case of the YAML suite ---------------------------------------

CHANGES: list[dict[str, Any]] = [
    {"updated": "2026-11-21"},
    {"tags": ["one", "two: three"], "created": None},
    {"title": None, "aliases": ["x"]},
]


def check_round_trip(data: bytes) -> bool:
    """Whether all changes could be made; each must touch nothing but its own keys."""
    parts = split(data)
    assert parts.join() == data
    before = parse(data)
    if before.problem:
        with pytest.raises(UnreadableError):
            set_keys(data, CHANGES[0])
        return False
    for change in CHANGES:
        changed = set_keys(data, change)
        check_untouched(data, changed, set(change))
        expected = {**before.values, **change}
        kept = {key: value for key, value in expected.items() if value is not None}
        assert parse(changed).values == kept
        back = set_keys(changed, {key: before.values.get(key) for key in change})
        assert parse(back).values == before.values
    return True


def check_untouched(before: bytes, after: bytes, keys: set[str]) -> None:
    """The body, and all lines that belong to other keys, are the same bytes."""
    old, new = split(before), split(after)
    assert (old.bom, old.body) == (new.bom, new.body)
    if not old.head.lstrip().startswith(b"{"):
        assert _lines_of_others(old.head, keys) == _lines_of_others(new.head, keys)


def _lines_of_others(head: bytes, keys: set[str]) -> list[bytes]:
    """The lines of a block, without those from a changed key to the next key or comment."""
    kept: list[bytes] = []
    inside = False
    for line in head.splitlines(keepends=True):
        key = re.match(rb"""['"]?([^\s'"#:-][^'":]*)['"]?[ \t]*:(?:\s|$)""", line)
        if key or line.startswith(b"#"):
            inside = (
                bool(key) and key is not None and key[1].decode("utf-8", "replace").strip() in keys
            )
        if not inside and line.strip():
            kept.append(line)
    return kept


@pytest.mark.data
@pytest.mark.parametrize(
    "vault", ["foam", "jackyzha0-site", "kepano-obsidian", "obsidian-help-en", "odd-frontmatter"]
)
def test_every_file_of_a_vault_keeps_its_bytes(data_dir: Path, vault: str) -> None:
    files = [file for file in (data_dir / "vaults" / vault).rglob("*") if file.is_file()]
    changed = sum(check_round_trip(file.read_bytes()) for file in files)
    assert changed > len(files) * 0.6


@pytest.mark.data
def test_every_case_of_the_yaml_suite_is_changed_cleanly_or_refused(data_dir: Path) -> None:
    files = sorted((data_dir / "yaml-test-suite").glob("*.yaml"))
    changed = refused = 0
    for file in files:
        for case in yaml.load(file.read_text("utf-8"), Loader=yaml.BaseLoader):
            head = case.get("yaml", "").replace("␣", " ").replace("∎", "")
            head = re.sub("—*»", "\t", head).replace("⇔", "\ufeff").replace("↵", "")
            text = f"---\n{head.rstrip(chr(10))}\n---\nbody\n".encode()
            if split(text).head.decode().rstrip("\n") != head.rstrip("\n"):
                continue
            before = parse(text)
            try:
                after = set_keys(text, {"updated": "2026-11-21"})
            except UnreadableError:
                refused += 1
                continue
            changed += 1
            assert before.problem is None
            assert parse(after).values == {**before.values, "updated": "2026-11-21"}
            assert split(after).body == b"body\n"
            if not head.lstrip().startswith("{"):
                line = rb" *updated: 2026-11-21\n"
                assert re.sub(line, b"", split(after).head) == split(text).head
    assert changed > 60
    assert refused > 60


# Properties ------------------------------------------------------------------------------------

# A text that is a date is written as one, and another program reads it as one.
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30).filter(
    lambda text: not re.match(r"\d{4}-\d", text)
)
KEYS = st.text("abcxyz_-é漢 ", min_size=1, max_size=8).map(str.strip).filter(bool)
VALUES = st.one_of(WORDS, st.lists(WORDS, max_size=4))


@pytest.mark.parametrize("text", ["0000-00-00", "2026-02-31", "2026-13-01"])
def test_what_only_looks_like_a_date_is_written_as_text(text: str) -> None:
    values = {"due": text, "all": [text]}
    data = set_keys(b"body\n", values)
    assert yaml.safe_load(split(data).head) == values
    assert parse(data).values == values


@settings(max_examples=300)
@given(st.dictionaries(KEYS, VALUES, max_size=5), st.binary(max_size=60), st.booleans())
def test_whatever_is_written_is_read_back(
    values: dict[str, Any], body: bytes, windows: bool
) -> None:
    document = b"\r\n" + body if windows else body
    assume(not split(document).opening)
    data = set_keys(document, values)
    assert parse(data).values == values
    assert yaml.safe_load(split(data).head or b"{}") == values
    assert split(data).body == split(document).body


_PIECES = (
    *(
        "a",
        "Z9",
        "é",
        "字",
        "🙂",
        "null",
        "1e3",
        "2026-11-29",
        " ",
        "  ",
        ":",
        ": ",
        "#",
        " #",
        "\t",
    ),
    *('"', "'", "[", "]", "{", "}", ",", ", ", "&", "*", "!", "|", ">", "%", "@", "`", ".", "/"),
    *("\\", "~", "?", "- ", "-", "---", "...", "=", "<", "\u2028", "\xa0", "\ufeff", "\r"),
)
_WRITTEN = st.lists(st.sampled_from(_PIECES), max_size=6).map("".join)
_PLAIN_VALUES = st.one_of(
    _WRITTEN,
    *(_WRITTEN.map(form.format) for form in ("a{}", '"{}"', "'{}'", "[{}]", "[a{}, b]")),
)
_LINES = st.tuples(
    st.sampled_from(("a", "b", "key", "x-y", "_k", "é")),
    st.sampled_from((":", ": ", ":  ")),
    _PLAIN_VALUES,
    st.sampled_from(("", " ")),
).map("".join)


@settings(max_examples=2_000)
@given(st.lists(_LINES, min_size=1, max_size=3))
def test_what_is_read_without_a_parser_is_what_the_parser_reads(lines: list[str]) -> None:
    text = "\n".join([*lines, ""])
    plain = yaml_edit._read_plainly(text)
    assert plain is None or plain == yaml_edit._build(text)


def test_usual_lines_need_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_edit, "_build", lambda _text: pytest.fail("it was asked"))
    head = (
        "type: reference\ntags: [a, b c]\nwhen: 2026-11-28\nurl: https://a.b/#c\nnone:\nq: 'a: b'\n"
    )
    assert parse(f"---\n{head}---\n").values == {
        "type": "reference",
        "tags": ["a", "b c"],
        "when": "2026-11-28",
        "url": "https://a.b/#c",
        "none": "",
        "q": "a: b",
    }


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), KEYS, st.one_of(st.none(), VALUES))
def test_one_key_changes_and_the_lines_of_the_others_stay(
    values: dict[str, Any], key: str, value: Any
) -> None:
    before = set_keys("body\n", values)
    after = set_keys(before, {key: value})
    expected = {k: v for k, v in {**values, key: value}.items() if v is not None}
    assert parse(after).values == expected
    own = [_line(key, dictionary.get(key)) for dictionary in (values, expected)]
    assert [line for line in before.splitlines() if line not in own] == [
        line for line in after.splitlines() if line not in own
    ]


def _line(key: str, value: Any) -> str:
    return set_keys("", {key: value}).splitlines()[1] if value is not None else "none"


@given(st.binary(max_size=300))
def test_any_bytes_split_and_join(data: bytes) -> None:
    for document in (data, b"---\n" + data, b"---\n" + data + b"\n---\n" + data):
        assert split(document).join() == document
        parse(document)


@pytest.mark.parametrize(
    "value",
    [
        ">-\n  see [[Lime]]\n  text",
        "|\n  a\n\n  [[Lime]]\n",
        ">+\n  [[Lime]]\n\n",
        "'it''s\n  [[Lime]]'",
        '"a \\u00e9 [[Lime]] \\"q\\""',
        "plain [[Lime]] text\n  goes on",
        "[x, 'see [[Lime]]', \"[[Lime]]\"]",
        "\n  - >-\n    one [[Lime]]\n  - {deep: '[[Lime]]'}",
    ],
)
@pytest.mark.parametrize("end", ["", "\nk: 1"])
def test_a_link_in_any_scalar_changes_its_own_bytes_only(value: str, end: str) -> None:
    note = f"---\nprivate: true\nd: {value}{end}\n---\nbody [[Lime]]\n"
    mended = replace_scalars(note, lambda _key, each: each.replace("[[Lime]]", "[[Tilia 2]]"))
    head, close, body = note.rpartition("\n---\n")
    assert mended == head.replace("[[Lime]]", "[[Tilia 2]]") + close + body
    assert parse(mended).values["private"] == "true"


def test_a_name_that_a_scalar_cannot_hold_is_quoted_or_leaves_the_note_as_it_is() -> None:
    plain = "---\nd: see [[Lime]]\n---\n"
    assert replace_scalars(plain, lambda _key, each: each.replace("Lime", "a: b")) == (
        '---\nd: "see [[a: b]]"\n---\n'
    )
    block = "---\nd: |\n  [[Lime]]\n---\n"
    with pytest.raises(UnreadableError):
        replace_scalars(block, lambda _key, each: each.replace("Lime", "a\n---\nb"))


@pytest.mark.parametrize(
    "text",
    [
        *("0891234567", "08", "0o7", "0x1F", "1e3", "12e03", "+.5", ".inf", "y", "N", "Off"),
        *("1,000", "1_000", "12:30:45", ":sym", "~", "0b11", "5."),
    ],
)
def test_text_that_some_reader_of_yaml_takes_for_something_else_is_quoted(text: str) -> None:
    note = set_keys("---\na: b\n---\n", {"v": text, "l": [text]})
    assert f'v: "{text}"' in note
    assert f'l: ["{text}"]' in note


@pytest.mark.parametrize("text", ["1.2.3", "2026-11-27", "yes please", "C#", "a:b", "1st", "x1e3"])
def test_text_that_every_reader_takes_for_text_or_a_date_stays_bare(text: str) -> None:
    assert f"v: {text}\n" in set_keys("---\na: b\n---\n", {"v": text})


@pytest.mark.parametrize(
    ("head", "cause"),
    [
        ("title:\u00a0Hello\ntags: [a]", "line 2: a no-break space"),
        ("tags:\n\t- a", "line 3: it is indented by a tab"),
        ("related: [[A]], [[B]]", "line 2: more follows a `[[link]]`"),
        ("a: 1\na: 2", "the key `a` stands in it twice"),
    ],
)
def test_an_unreadable_head_names_the_cause_and_its_line(head: str, cause: str) -> None:
    assert cause in (parse(f"---\n{head}\n---\n").problem or "")


def test_a_date_is_quoted_in_a_property_that_holds_text() -> None:
    changes = {"summary": "2026-11-27", "created": "2026-11-27"}
    text = set_keys("---\ntype: topic\n---\nText\n", changes)
    assert 'summary: "2026-11-27"\n' in text
    assert "created: 2026-11-27\n" in text
    assert set_keys(text, {"summary": "2026-11-28"}).count('"2026-11-28"') == 1
    flow = set_keys("---\n{type: topic}\n---\nText\n", changes)
    assert 'summary: "2026-11-27"' in flow
