"""Exports that are cut, doubled, renamed or nested: what is whole comes, the rest is said."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import KbtuiError
from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import Skipped
from tests.importers import exports
from tests.importers.sources import (
    test_continue_dev,
    test_gemini,
    test_keep,
    test_librechat,
    test_logseq,
    test_open_webui,
    test_roam,
    test_telegram,
    test_whatsapp,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.importers.port import Item


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


EXPORTS = {
    "claude": _json([exports.claude("c1", "Soup?", "Leeks — boil."), exports.claude("c2", "Ho")]),
    "chatgpt": _json(
        [
            exports.chatgpt(id_, exports.node(f"{id_}a", None, "user", "Soup? Leeks — boil."))
            for id_ in ("g1", "g2")
        ]
    ),
    "openwebui": _json(
        [
            test_open_webui.chat(id_, test_open_webui.message("m1", None, "user", "Soup — leeks"))
            for id_ in ("o1", "o2")
        ]
    ),
    "librechat": _json(test_librechat.talk(*test_librechat.MESSAGES)),
    "sharegpt": _json(
        [{"id": id_, "conversations": [{"from": "human", "value": "Soup"}]} for id_ in ("s1", "s2")]
    ),
    "telegram": _json(
        test_telegram.every(
            *(test_telegram.chat(test_telegram.message(1, test_telegram.ME, "Soup"), id=n) for n in (1, 2))
        )
    ),
    "keep": _json(test_keep.note()),
    "roam": _json([test_roam.page(name, test_roam.block("b1", "Soup")) for name in "AB"]),
    "logseq": _json(
        test_logseq.graph(*(test_logseq.page(n, test_logseq.block("b1", "Soup")) for n in "AB"))
    ),
    "gemini": _json([test_gemini.act("Soup", "<p>Leeks</p>", "2026-01-05T10:00:00Z")]),
    "continue": _json(test_continue_dev.SESSION),
    "whatsapp": test_whatsapp.ANDROID.encode(),
}  # fmt: skip
EACH = pytest.mark.parametrize("key", EXPORTS)


def _read(path: Path) -> tuple[str, list[Item]]:
    with OpenedExport(path) as opened:
        source = find_source(opened)
        return (source.key, list(source.read(opened))) if source else ("", [])


def _ids(items: list[Item]) -> set[str]:
    return {each.id for each in items if not isinstance(each, Skipped)}


def _written(file: Path, data: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


@EACH
def test_cut_anywhere_it_gives_nothing_that_is_wrong_and_no_traceback(
    tmp_path: Path, key: str
) -> None:
    data = EXPORTS[key]
    _, whole = _read(_written(tmp_path / "whole", data))
    assert _ids(whole)
    for end in range(0, len(data), max(1, len(data) // 60)):
        try:
            _, found = _read(_written(tmp_path / "cut", data[:end]))
        except KbtuiError:
            continue
        assert len(_ids(found)) <= len(_ids(whole))
        if key != "whatsapp":  # of which a part is as whole as the rest
            is_told = any(isinstance(each, Skipped) for each in found)
            assert is_told or not found or _ids(found) == _ids(whole), end


@EACH
def test_renamed_and_nested_it_is_the_same(tmp_path: Path, key: str) -> None:
    _, whole = _read(_written(tmp_path / "whole", EXPORTS[key]))
    suffix = ".txt" if key == "whatsapp" else ".json"
    folder = _written(tmp_path / f"x/a/b c/d (1){suffix}", EXPORTS[key]).parents[2]
    found_key, nested = _read(folder)
    assert found_key == key
    if key == "keep":  # known by its time and its file's name
        assert len(nested) == len(whole)
    else:
        assert _ids(nested) == _ids(whole)


@EACH
def test_doubled_in_a_folder_it_is_there_once(tmp_path: Path, key: str) -> None:
    suffix = ".txt" if key == "whatsapp" else ".json"
    _, whole = _read(_written(tmp_path / f"x/a{suffix}", EXPORTS[key]))
    _written(tmp_path / f"x/copy/a{suffix}", EXPORTS[key])
    _, both = _read(tmp_path / "x")
    assert _ids(both) == _ids(whole)


@EACH
def test_with_bytes_of_something_else_in_it_there_is_no_traceback(tmp_path: Path, key: str) -> None:
    data = EXPORTS[key]
    for at in range(0, len(data), max(1, len(data) // 25)):
        for wrong in (b"\xff\x00", b"null", b'"', b"{"):
            with suppress(KbtuiError):
                _read(_written(tmp_path / "bad", data[:at] + wrong + data[at + len(wrong) :]))
