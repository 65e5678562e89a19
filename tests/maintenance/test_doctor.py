"""The check-up says what works and what doesn't."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.fetching import search_offer
from kbtui.search.embedding.child_embedder import ChildEmbedder
from kbtui.search.embedding.embedder import ModelIdentity
from kbtui.search.results import Preparation
from kbtui.settings import BUNDLED_EMBEDDING_MODEL, load_settings
from tests.models.local_servers import llama_cpp, ollama, serving, vllm
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import GERMAN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.maintenance.doctor import DoctorFinding


class _NoModel:
    def preparation(self) -> Preparation:
        return Preparation("prepared")

    def load(self, _stop: object) -> WordEmbedder:
        from kbtui.errors import ModelError

        raise ModelError("There is no model called moon.", "Choose another.")


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
        kb.library.create("topic", "Walrus", body="Eats clams.")
        kb.search.rebuild()
        yield kb


def _of_search(kb: KnowledgeBase) -> list[DoctorFinding]:
    return [finding for finding in kb.doctor() if finding.area == "search"]


def _use(model: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtui.search.embedding.prepared.ConfiguredModel", lambda _role: model)


def test_search_by_meaning_that_nobody_has_used_yet_is_tried(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(ReadyModel(WordEmbedder()), monkeypatch)
    *_, meaning = _of_search(kb)
    assert meaning.ok is True
    assert "embedded by words" in meaning.text
    kb.search.embed_missing()
    *_, meaning = _of_search(kb)
    assert meaning.text == "1 passage embedded by words"


def test_what_the_bundled_model_cannot_do_is_said(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = WordEmbedder()
    bundled.name = BUNDLED_EMBEDDING_MODEL
    _use(ReadyModel(bundled), monkeypatch)
    _of_search(kb)
    kb.search.embed_missing()
    *_, meaning = _of_search(kb)
    assert meaning.ok is True
    assert "English is read by meaning by all-MiniLM-L6-v2" in meaning.text
    assert "German" in meaning.text
    assert "universal-sentence-encoder-multilingual-3" in meaning.text
    assert "models.embed.model" in meaning.hint


def _german(kb: KnowledgeBase) -> None:
    for number in range(40):
        kb.library.create("topic", f"Notiz {number}", body=f"{number}. {GERMAN}")


def test_where_most_notes_are_german_a_larger_model_is_named_with_the_way_to_it(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = WordEmbedder()
    bundled.name = BUNDLED_EMBEDDING_MODEL
    _use(ReadyModel(bundled), monkeypatch)
    _german(kb)
    monkeypatch.delenv("KBTUI_MODEL")
    monkeypatch.setattr(kb, "settings", load_settings())
    *_, offered = _of_search(kb)
    assert offered.ok is None
    assert offered.text == (
        "most passages are in German; intfloat/multilingual-e5-small (493 MB, MIT licence)"
        " reads 94 languages"
    )
    assert "`kbtui setup --search` fetches it" in offered.hint
    monkeypatch.setenv("KBTUI_MODEL", "offline")
    monkeypatch.setattr(kb, "settings", load_settings())
    *_, offered = _of_search(kb)
    assert "so that nothing is fetched" in offered.hint


def test_the_languages_of_the_model_that_can_be_fetched_are_said(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger = WordEmbedder()
    larger.name = search_offer().name
    _use(ReadyModel(larger), monkeypatch)
    _german(kb)
    *_, meaning = _of_search(kb)
    assert meaning.ok is True
    assert meaning.text == f"94 languages are read by meaning by {search_offer().name}"


def test_why_the_model_multiplies_floats_is_said(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "no module named onnxruntime.quantization"
    identity = ModelIdentity("moon", "f" * 24, "", 2, 256, "mean", (), 0, (), in_floats=why)
    _use(ReadyModel(ChildEmbedder(identity, tmp_path)), monkeypatch)  # type: ignore[arg-type]
    said = next(finding for finding in _of_search(kb) if why in finding.text)
    assert said.text == f"moon multiplies floats: {why}."
    assert "twice as long" in said.hint


def test_a_model_that_cannot_be_loaded_is_named_with_the_reason(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(_NoModel(), monkeypatch)
    *_, meaning = _of_search(kb)
    assert meaning.ok is False
    assert meaning.text == "searching by words alone"
    assert "no model called moon" in meaning.hint


class _Unprepared:
    def __init__(self, *found: str) -> None:
        self._found = found

    def preparation(self) -> Preparation:
        return Preparation(*self._found)  # type: ignore[arg-type]

    def load(self, _stop: object) -> WordEmbedder:
        raise AssertionError("a check-up prepares nothing")


@pytest.mark.parametrize(
    ("found", "ok", "text", "hint"),
    [
        (["preparing"], None, "is being prepared", "by words meanwhile"),
        (["waiting"], None, "isn't prepared yet", "in the background"),
        (["waiting", "There is no room."], None, "isn't prepared yet", "There is no room."),
        (["failed", "It died.", "Try again."], False, "by words alone", "It died. Try again."),
    ],
)
def test_how_far_the_embedding_model_is_is_said(
    kb: KnowledgeBase,
    monkeypatch: pytest.MonkeyPatch,
    found: list[str],
    ok: bool | None,
    text: str,
    hint: str,
) -> None:
    _use(_Unprepared(*found), monkeypatch)
    monkeypatch.setenv("KBTUI_SEARCH__BACKGROUND", "true")
    monkeypatch.setattr(kb, "settings", load_settings())
    *_, meaning = _of_search(kb)
    assert meaning.ok is ok
    assert text in meaning.text
    assert hint in meaning.hint


def test_why_nothing_prepares_the_model_is_said(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(_Unprepared("waiting"), monkeypatch)
    *_, meaning = _of_search(kb)
    assert meaning.ok is None
    assert "search.background is off" in meaning.hint


def test_what_is_left_to_embed_is_counted(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(ReadyModel(WordEmbedder()), monkeypatch)
    *_, meaning = _of_search(kb)
    assert meaning.text == "0 passages embedded by words, 1 to go"
    assert "search.background is off" in meaning.hint


def test_what_can_be_used_here_is_what_the_chat_would_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KBTUI_MODEL")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-4f9aVq81LmZx07PdRt53WcYb")
    with serving(llama_cpp(8192), vllm(16_384)) as at:
        monkeypatch.setenv("KBTUI_MODELS__SERVERS", str([each.url for each in at]))
        with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
            chat, *others = [each for each in kb.doctor() if each.area == "models"]
            assert chat.text == f"chat: {kb.models.chat().name}"
            assert chat.ok is True
    model_here = f"llama.cpp on this machine ({at[0].host}), 5.0 GB, holds 8,192 tokens"
    assert model_here in chat.hint
    assert [each.text for each in others] == [
        f"openai//models/qwen3.gguf, {model_here}",
        f"openai/qwen/qwen3-8b, vLLM on this machine ({at[1].host}), holds 16,384 tokens",
        "openai/gpt-5.4-mini, through OPENAI_API_KEY",
    ]


def test_an_ollama_without_a_model_is_told_with_the_way_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(ollama()) as (at,):
        monkeypatch.setenv("OLLAMA_HOST", at.origin)
        with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
            *_, last = [each for each in kb.doctor() if each.area == "models"]
    assert last.text == "Ollama answers and has no model"
    assert "kbtui setup" in last.hint
