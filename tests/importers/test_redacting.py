"""Secrets are taken out alike, by however many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.importers import redacting
from kbtui.importers.redacting import Redactor
from kbtui.text import Packed, pack, unpack

if TYPE_CHECKING:
    import pytest

KEY = "sk-ant-api03-" + "aB3dE5gH7jK9" * 7 + "-AAAA"


def _logs() -> list[list[Packed]]:
    return [["", f"{n}: {KEY}", "x" * n] for n in range(40)]


def test_many_processes_take_out_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = _logs(), _logs()
    monkeypatch.setattr(redacting, "_PART_SIZE", 500)
    with Redactor() as redactor:
        redactor.redact(alone)
        monkeypatch.setattr(redacting, "_PARALLEL_FROM", 0)
        redactor.redact(together)
    assert KEY not in str(alone)
    assert together == alone


def test_what_helpers_are_asked_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting, "_PARALLEL_FROM", 0)
    texts = [f'a\r\nb\u2028c \ud83d\x00 \\ "{KEY}" {"word " * 20}{end}' for end in ("", "🙂")]
    kept = [pack(each) for each in texts]
    with Redactor() as redactor:
        redactor.redact([kept])
        children = list(redactor._children)
    wanted = [each.replace(KEY, "[redacted: Anthropic key]") for each in texts]
    assert [unpack(each) for each in kept] == wanted
    assert type(kept[1]) is bytes
    assert children
    assert not any(each.is_alive for each in children)


def test_helpers_that_die_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting, "_PARALLEL_FROM", 0)
    logs = _logs()
    with Redactor() as redactor:
        redactor.redact(_logs())
        for child in redactor._children:
            child._process.kill()
            child._process.wait()
        redactor.redact(logs)
    assert KEY not in str(logs)


def test_a_text_without_secrets_stays_the_one_that_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The bed holds leeks. \N{SLIGHTLY SMILING FACE}"
    texts: list[Packed] = [text, KEY]
    with Redactor() as redactor:
        for least in (redacting._PARALLEL_FROM, 0):  # alone, and in helpers
            monkeypatch.setattr(redacting, "_PARALLEL_FROM", least)
            redactor.redact([texts])
            assert texts[0] is text
            assert KEY not in unpack(texts[1])
