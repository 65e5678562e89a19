"""What sources read of records whose values may be of any kind."""

from __future__ import annotations

import io
import json
import tracemalloc
import weakref
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import UnreadableError
from kbtui.importers.engine import sources_of
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.json_stream import Broken, elements
from kbtui.importers.port import Item, Skipped
from kbtui.importers.reading import (
    Record,
    data_of,
    json_lines,
    json_list,
    paragraphs,
    read_each,
    read_records,
    role_of,
    texts_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@pytest.mark.parametrize("value", [None, 3, True, [], ["a"], {"a": 1}, ""])
def test_a_value_of_another_kind_counts_as_missing(value: Any) -> None:
    record = Record(title=value, name="Soup")
    assert (record.text("title"), record.text("title", "name")) == ("", "Soup")
    assert (record.words("title"), record.line("title", "name")) == ("", "Soup")


@pytest.mark.parametrize("value", [None, 3, "a", [1, "a", None]])
def test_what_is_no_object_has_no_fields(value: Any) -> None:
    record = Record(author=value, files=value)
    assert record.record("author").text("name") == ""
    assert record.records("files") == []
    assert record.lines("files", "name") == []


def test_lines_are_those_of_the_objects_that_have_one() -> None:
    record = Record(files=[{"name": " a\nb "}, {"name": ""}, {"name": 3}, "c", {"title": "d"}])
    assert record.lines("files", "name", "title") == ["a b", "d"]


def test_the_first_time_that_is_one_counts() -> None:
    record = Record(created="soon", begun=1_700_000_000)
    assert record.time("created", "begun") == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_an_object_that_is_asked_for_twice_is_the_same() -> None:
    record = Record(author={"role": "user"})
    assert record.record("author") is record.record("author")


@pytest.mark.parametrize(
    ("name", "role"), [("human", "user"), ("assistant", "assistant"), ("tool", None), (["a"], None)]
)
def test_who_speaks_is_the_user_or_the_assistant(name: Any, role: str | None) -> None:
    assert role_of(name) == role


def test_paragraphs_leave_out_what_is_empty() -> None:
    assert paragraphs([" a ", "", "\n", "b\n"]) == "a\n\nb"


def test_a_small_member_is_read_from_the_disk_once(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    (tmp_path / "b.md").write_text("Words." * 20_000)
    with OpenedExport(tmp_path) as opened:
        assert opened.head("a.md") == b"Words."
        assert len(opened.head("b.md")) == opened.head_size
        (tmp_path / "a.md").write_text("Others.")
        with opened.open("a.md") as first, opened.open("b.md") as large:
            assert (first.read(), len(large.read())) == (b"Words.", 120_000)
        with opened.open("a.md") as again:
            assert again.read() == b"Others."


def test_an_emoji_in_a_long_conversation_does_not_make_all_of_it_four_times_as_large() -> None:
    texts = [f"{number} \N{SLIGHTLY SMILING FACE}" for number in range(3)]
    long = {"texts": ["x" * 1000] * 9_000, "more": texts, "end": "\U0001f1e9\U0001f1ea\\"}
    data = json.dumps([texts, long, texts, {"n": 1}], ensure_ascii=False).encode()
    tracemalloc.start()
    assert list(elements(io.BytesIO(data))) == [texts, long, texts, {"n": 1}]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(data)


def test_a_text_in_two_notations_is_kept_once() -> None:
    texts = [f"{n} 🙂 {'word ' * 300}" for n in range(1_500)]
    said = [{"text": each, "content": [{"type": "text", "text": each}]} for each in texts]
    data = json.dumps([{"chat_messages": said}], ensure_ascii=False).encode()

    (found,) = elements(io.BytesIO(data), make=dict)

    twice = [(each["text"], each["content"][0]["text"]) for each in found["chat_messages"]]
    assert [one.decode() for one, _ in twice] == texts
    assert all(one is other for one, other in twice)


EMOJI = "\N{SLIGHTLY SMILING FACE}"


def _wide(size: int = 6_000) -> dict[str, Any]:
    """A conversation of so many messages with an emoji in each, all of half a kilobyte."""
    texts = [f"{n} {EMOJI} {'word ' * 100}" for n in range(size)]
    return {
        "id": "c",
        "messages": [{"n": each[:9], "text": each, "parts": [each]} for each in texts],
    }


@pytest.mark.parametrize("form", ["list", "lines"])
def test_the_texts_of_a_long_conversation_take_what_they_take_in_the_file(
    tmp_path: Path, form: str
) -> None:
    value = _wide()
    data = json.dumps([value] if form == "list" else value, ensure_ascii=False).encode()
    (tmp_path / "a").write_bytes(data)
    expected = json.dumps(value)
    del value
    with OpenedExport(tmp_path / "a") as opened:
        tracemalloc.start()
        reader = json_list if form == "list" else json_lines
        (record,) = reader(opened, opened.names[0])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held < 1.3 * len(data)
    assert json.dumps(record) == expected


@pytest.mark.parametrize("form", ["list", "object", "lines"])
def test_a_message_that_was_taken_out_of_a_record_is_held_by_nobody(
    tmp_path: Path, form: str
) -> None:
    value = _wide()
    (tmp_path / "a").write_text(json.dumps([value] if form == "list" else value), "utf-8")
    with OpenedExport(tmp_path / "a") as opened:
        for record in (json_lines if form == "lines" else json_list)(opened, "a"):
            assert isinstance(record, Record)
            messages = record.drain("messages")
            known = weakref.ref(next(messages))
            assert known() is None
            assert len([*messages]) == 5_999


def test_nobody_notices_that_a_record_is_packed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([_wide()], ensure_ascii=False), "utf-8")
    with OpenedExport(tmp_path / "a.json") as opened:
        (record,) = json_list(opened, "a.json")
    assert isinstance(record, Record)
    message = record.records("messages")[7]
    text = f"7 {EMOJI} {'word ' * 100}"
    plain = {"n": text[:9], "text": text, "parts": [text]}
    assert (message["text"], message.get("text"), message.text("text")) == (text, text, text)
    assert message.words("text") == text.strip()
    assert {**message} == dict(message) == Record(message) == plain
    assert [*message.items()] == [*plain.items()]
    assert [*message.values()] == [*plain.values()]
    assert message.pop("parts") == [text]
    assert message.get("parts", "none") == "none"


def test_what_is_drained_of_a_record_is_not_held_by_it() -> None:
    record = Record(said=[{"n": 1}, "none", {"n": 2}])
    found = record.drain("said")
    assert "said" not in record
    first = next(found)
    known = weakref.ref(first)
    del first
    assert known() is None
    assert [*found] == [{"n": 2}]
    assert [*record.drain("said")] == []


@pytest.mark.parametrize(
    ("more", "why"), [(b"}", "more follows"), (b' {"a": 1}', "more follows"), (b"", "breaks off")]
)
def test_a_long_line_that_is_broken_is_named(tmp_path: Path, more: bytes, why: str) -> None:
    line = json.dumps(_wide()).encode()
    file = tmp_path / "a.jsonl"
    file.write_bytes((line + more if more else line[:-1]) + b'\n{"id": 2}\n')
    with OpenedExport(file) as opened:
        found, broken = json_lines(opened, opened.names[0])
    assert found == {"id": 2}
    assert isinstance(broken, Skipped)
    assert why in broken.why


def _long(last: str, size: int = 4_000) -> bytes:
    """A list of an element of so many kilobytes, and another one."""
    messages = [{"id": number, "text": "word \\ [{" * 100} for number in range(size)]
    return json.dumps([{"messages": messages, "last": last}, last]).encode()


def test_a_long_conversation_takes_memory_once_while_it_is_read() -> None:
    data = _long("}", 16_000)
    tracemalloc.start()
    first, last = elements(io.BytesIO(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [first, last] == json.loads(data)
    assert peak < 1.6 * len(data)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (b"{,}", "not valid JSON"),
        (b'{"a" 1}', "not valid JSON"),
        (b"[1 2]", "not valid JSON"),
        (b"[1}, 2", "not valid JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_broken_deep_in_a_long_conversation_hides_none_behind_it(
    broken: bytes, why: str
) -> None:
    data = _long("it is here").replace(b'"last": "it is here"', b'"last": ' + broken)
    first, *more = elements(io.BytesIO(data))
    assert isinstance(first, Broken)
    assert why in first.why
    assert broken == b"[1}, 2" or more == ["it is here"]


def test_a_long_conversation_that_breaks_off_says_so() -> None:
    data = _long("here")
    for end in (len(data) - 20, len(data) - 2_000, 3_000_000):
        (first,) = elements(io.BytesIO(data[:end]))
        assert isinstance(first, Broken)
        assert first.ends
        assert "breaks off" in first.why


def test_a_conversation_longer_than_the_limit_is_named_and_the_next_one_read() -> None:
    many = json.dumps([{"text": "x" * 1_000}] * 36_000)
    first, last = elements(io.BytesIO(f'[{many}, {{"id": 2}}]'.encode()))
    assert isinstance(first, Broken)
    assert "longer than 32 MB" in first.why
    assert last == {"id": 2}


def test_a_record_is_let_go_of_before_the_next_one_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"id": number} for number in range(3)]))
    known: list[weakref.ref[Record]] = []
    alive: list[bool] = []

    class Account:
        def begin(self, _name: str) -> bool:
            return True

        def add(self, _name: str, _record: Mapping[str, Any]) -> None:
            alive.extend(each() is not None for each in known)

    def read(record: Record) -> Iterator[Item]:
        known.append(weakref.ref(record))
        yield Skipped(str(record["id"]), "seen")

    with OpenedExport(file) as opened:
        opened.account = Account()
        items = read_each(
            opened, ["a.json"], lambda opened, name: read_records(json_list(opened, name), read)
        )
        assert [item.place for item in items if isinstance(item, Skipped)] == ["0", "1", "2"]
    assert alive == [False] * 3


def test_folders_of_a_zip_may_be_written_as_windows_does(tmp_path: Path) -> None:
    for name, names in (("a.zip", ["x\\a.json", "x\\y\\", "b"]), ("b.zip", ["x/a\\b"])):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            for each in names:
                file.writestr(each, each)
    with OpenedExport(tmp_path / "a.zip") as opened:
        assert opened.names == ["b", "x/a.json"]
        assert opened.open("x/a.json").read() == b"x\\a.json"
        assert opened.size("x/a.json") == 8
    with OpenedExport(tmp_path / "b.zip") as opened:
        assert opened.names == ["x/a\\b"]


def test_a_member_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(bytes((1 << 20) + 1))
    with OpenedExport(tmp_path) as opened:
        assert len(data_of(opened, "a.md", 2 << 20)) == (1 << 20) + 1
        with pytest.raises(UnreadableError, match="larger than 1 MB"):
            data_of(opened, "a.md", 1 << 20)


@pytest.mark.parametrize("size", [70_000, 1_200_000])
@pytest.mark.parametrize(
    ("export", "name"),
    [
        ({"conversations": [{"conversation": {"id": "1"}, "responses": []}]}, "Grok"),
        ([{"mapping": {}, "title": "", "create_time": 1, "current_node": ""}], "ChatGPT"),
        ({"version": 1, "blocks": [{"page-name": "a", "id": "b"}]}, "Logseq"),
    ],
)
def test_what_tells_a_file_may_stand_behind_much(
    tmp_path: Path, export: Any, name: str, size: int
) -> None:
    more = [{"text": "x [{" * (size // 8)}, {"text": '\\"]}' * (size // 8)}]
    record = export[0] if isinstance(export, list) else export
    late = {"projects": more, "n": [1, []], **record}
    file = tmp_path / "export.json"
    file.write_text(json.dumps([late, late] if isinstance(export, list) else late), "utf-8")
    with OpenedExport(file) as opened:
        assert [each.name for each in sources_of(opened)][:1] == [name]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("a", ["a"]),
        (["a", {"type": "text", "text": "b"}, ["c"]], ["a", "b", "c"]),
        ({"text": {"value": "a"}}, ["a"]),
        ([{"type": "thinking", "text": "no"}, {"type": "text", "text": "a"}, None, 3], ["a"]),
        (None, []),
    ],
)
def test_a_content_is_a_text_or_blocks_or_both(content: Any, texts: list[str]) -> None:
    found = texts_in(content, lambda block: block.get("type") != "thinking")
    assert [*filter(None, found)] == texts


def test_links_to_other_places_are_named_and_not_followed(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "in"
    elsewhere.mkdir()
    (elsewhere / "b.md").write_text("# B\n")
    folder.mkdir()
    (folder / "a.md").write_text("# A\n")
    for name, to in {
        "again.md": folder / "a.md",
        "b.md": elsewhere / "b.md",
        "more": elsewhere,
        "self": folder,
        "gone.md": tmp_path / "gone",
    }.items():
        (folder / name).symlink_to(to)
    with OpenedExport(folder) as opened:
        assert opened.names == ["a.md"]
        assert [name for name, _ in opened.refused] == ["b.md", "more"]


def test_what_a_zip_has_beyond_the_most_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.importers.export_files._MAX_MEMBERS", 2)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for name in "abcde":
            packed.writestr(f"{name}.md", "# A\n")
    with OpenedExport(tmp_path / "a.zip") as opened:
        assert len(opened.names) == 2
        assert opened.refused == [("3 more files", "The first 2 of a zip are read.")]
