"""ShareGPT's lists of turns, in each of the forms they come in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, Skipped
from kbtui.importers.sources.sharegpt import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

TURNS = [
    {"from": "system", "value": "Be good."},
    {"from": "human", "value": "Hello"},
    {"from": "gpt", "value": "Hi"},
    {"from": "tool", "value": "{}"},
]
ONE = {"id": "a", "conversations": TURNS}


def read_text(read: Any, folder: Path, text: str) -> list[Any]:
    (folder / "x.dat").write_text(text)
    return list(read(SOURCE, folder / "x.dat"))


def texts(found: Any) -> list[str]:
    assert isinstance(found, ImportedConversation)
    return [each.text for each in found.messages]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ONE]),
        json.dumps([ONE], indent=2),
        json.dumps(ONE),
        json.dumps(ONE, indent=2),
        json.dumps(ONE) + "\n",
        json.dumps([{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]}]),
        json.dumps([{"conversation": [{"human": "Hello", "assistant": "Hi"}]}]),
        json.dumps([{"items": [{"value": "Hello", "from": "human"}, {"value": '<div class="markdown prose"><p>Hi</p></div>', "from": "gpt"}]}]),
    ],
)  # fmt: skip
def test_each_form_says_the_same(text: str, tmp_path: Path, read: Any) -> None:
    assert [texts(each) for each in read_text(read, tmp_path, text)] == [["Hello", "Hi"]]


def test_conversations_without_ids_that_begin_alike_stay_apart(tmp_path: Path, read: Any) -> None:
    lines = "\n".join(json.dumps({"conversations": TURNS}) for _ in range(3))
    found = read_text(read, tmp_path, lines)
    assert len({each.id for each in found}) == 3
    grown = read_text(read, tmp_path, f"{lines}\n{json.dumps({'conversations': TURNS})}")
    assert [each.id for each in grown[:3]] == [each.id for each in found]


def test_bad_ones_are_told_of_and_the_rest_is_read(tmp_path: Path, read: Any) -> None:
    lines = [
        json.dumps(ONE),
        "{wrong",
        json.dumps({"conversations": [{"from": "human", "value": None}]}),
    ]
    found = read_text(read, tmp_path, "\n".join(lines))
    assert [type(each) for each in found] == [ImportedConversation, Skipped, Skipped]


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{}", "x", '{"conversations": [{"mapping": {}}]}', '[{"messages": null}]'),
        '[{"id": "a", "chat": {"messages": [{"id": "m", "role": "user", "content": "Hi"}]}}]',
    ],
)
def test_other_json_is_not_recognised(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    with OpenedExport(tmp_path / "x") as opened:
        assert not SOURCE.recognises(opened)
