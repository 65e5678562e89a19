"""Fetching a model for search by meaning from a hub on loopback, by a real child process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import KbtuiError, ModelError, ModelUnreachableError, StorageError, UsageError
from kbtui.models import hub as hub_program
from kbtui.models.fetching import fetch, hub_folder, hub_name, search_offer, why_offline
from kbtui.models.model_files import is_needed, why_unsafe
from kbtui.settings import Settings
from tests.models.hub_server import UNWANTED, WEIGHTS, Hub, serving, write_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "moon/tiny"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


@pytest.fixture
def hub(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving({NAME: model}, tmp_path / "hf", monkeypatch) as hub:
        yield hub


Told = list[tuple[str, int, int]]


def _fetch(told: Told | None = None, name: str = NAME, **options: Any) -> bool:
    into: Told = [] if told is None else told
    return fetch(name, Settings(), lambda *step: into.append(step), **options)


def _refused(hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str = NAME) -> dict[str, Any]:
    """Fetch in this process, as starting another takes longer than all else, and is said once."""
    template = f"{hub.origin}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(hub_program.constants, "ENDPOINT", hub.origin)
    monkeypatch.setattr(hub_program.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    *_, last = hub_program._answers(name, hub_folder())
    return last


def _snapshot(hub: Hub) -> Path:
    folder = hub_folder() / "models--moon--tiny"
    assert (folder / "refs/main").read_text() == hub.revision(NAME)
    return folder / "snapshots" / hub.revision(NAME)


def test_a_model_is_fetched_without_pickles_code_and_copies_for_other_programs(
    hub: Hub, model: Path
) -> None:
    told: Told = []
    assert _fetch(told)
    snapshot = _snapshot(hub)
    found = {
        file.relative_to(snapshot).as_posix() for file in snapshot.rglob("*") if file.is_file()
    }
    assert found == {each for each in hub.files(NAME) if each not in UNWANTED}
    assert all((snapshot / each).read_bytes() == (model / each).read_bytes() for each in found)
    whole = sum(len(hub.files(NAME)[each]) for each in found)
    assert told[-1] == (f"Fetching {NAME}", whole, whole)
    assert not [path for _, path, _ in hub.asked if path.endswith(UNWANTED)]
    assert not list(snapshot.parents[1].glob("blobs/*-part.*"))


def test_what_is_there_is_not_fetched_again(hub: Hub) -> None:
    assert _fetch()
    hub.asked.clear()
    assert _fetch()
    assert not [path for method, path, _ in hub.asked if method == "GET" and "/resolve/" in path]


def test_a_connection_that_breaks_goes_on_where_it_was(hub: Hub, model: Path) -> None:
    hub.cut[WEIGHTS] = 100_000
    assert _fetch()
    assert hub.fetched(WEIGHTS) == ["", "bytes=100000-"]
    assert (_snapshot(hub) / WEIGHTS).read_bytes() == (model / WEIGHTS).read_bytes()


def test_a_fetch_that_is_stopped_goes_on_where_it_was_the_next_time(hub: Hub, model: Path) -> None:
    hub.slow.clear()  # nothing comes after the first 65,536 bytes
    weights = hub.files(NAME)[WEIGHTS]
    part = (
        hub_folder()
        / "models--moon--tiny/blobs"
        / f"{hashlib.sha256(weights).hexdigest()}{hub_program._PARTIAL}"
    )

    def has_begun() -> bool:
        return part.exists() and part.stat().st_size > 0

    hub.changed[WEIGHTS] = weights  # sent as it is
    assert not _fetch(is_stopped=has_begun)
    assert not (hub_folder() / "models--moon--tiny/snapshots").exists()
    begun = part.stat().st_size
    assert 0 < begun < len(weights)
    hub.slow.set()
    assert _fetch()
    assert hub.fetched(WEIGHTS) == ["", f"bytes={begun}-"]
    assert (_snapshot(hub) / WEIGHTS).read_bytes() == (model / WEIGHTS).read_bytes()


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_file_with_another_hash_is_refused_and_not_kept(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    data = hub.files(NAME)[name]
    hub.changed[name] = data[:-2] + b"!!"
    assert f"{name} of {NAME} isn't what the hub has listed" in _refused(hub, monkeypatch)["error"]
    blobs = hub_folder() / "models--moon--tiny/blobs"
    assert not [file for file in blobs.iterdir() if file.read_bytes() == hub.changed[name]]
    assert not (hub_folder() / "models--moon--tiny/snapshots").exists()
    hub.changed.clear()
    assert "ok" in _refused(hub, monkeypatch), "the next time is not spoilt by it"


def test_weights_that_kbtui_does_not_know_are_refused_under_the_name_that_it_offers(
    model: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub({search_offer().name: model}) as other:
        said = _refused(other, monkeypatch, search_offer().name)
        assert "isn't the one that kbtui knows" in said["error"]
        assert not [path for _, path, _ in other.asked if "/resolve/" in path]


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        (
            401,
            "RepoNotFound",
            ModelError,
            "has no model moon/tiny, or only for those who are logged",
        ),
        (401, "", ModelError, "has no model moon/tiny, or only for those who are logged"),
        (403, "GatedRepo", ModelError, "only to those who have agreed to its terms"),
        (404, "RepoNotFound", ModelError, "has no model moon/tiny"),
        (500, "", ModelUnreachableError, "failed with 500"),
        (503, "", ModelUnreachableError, "failed with 503"),
    ],
)
def test_what_the_hub_refuses_is_a_sentence(
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    kind: type[KbtuiError],
    words: str,
) -> None:
    hub.status, hub.code = status, code
    said = _refused(hub, monkeypatch)
    assert words in said["error"]
    assert said["kind"] == kind.__name__
    assert said["hint"]
    assert not hub_folder().exists()


def test_a_hub_that_cannot_be_reached_is_a_sentence(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnreachableError, match=r"127\.0\.0\.1:9 can't be reached") as caught:
        _fetch()
    assert "Do it again" in caught.value.hint


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "a b", "a/b/c", ""])
def test_what_is_no_name_of_a_model_is_said(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert _refused(hub, monkeypatch, hub_name(name))["kind"] == ModelError.__name__
    assert not [path for _, path, _ in hub.asked if "/resolve/" in path]


def _has_only_pickles(folder: Path) -> None:
    (folder / WEIGHTS).unlink()


def _has_a_pickled_module(folder: Path) -> None:
    (folder / "1_Pooling/pytorch_model.bin").write_bytes(b"pickle")


def _brings_a_module(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "custom_pooling.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))


def _needs_code(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "modeling.Own"}}))


def _is_damaged(folder: Path) -> None:
    (folder / "modules.json").write_text('{"idx": ')


def _is_another_shape(folder: Path) -> None:
    (folder / "modules.json").write_text('["Transformer"]')


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_has_only_pickles, "pickled"),
        (_has_a_pickled_module, "pickled"),
        (_brings_a_module, "code of its own"),
        (_needs_code, "code of its own"),
        (_is_damaged, "can't be read"),
        (_is_another_shape, "can't be read"),
    ],
)
def test_a_model_with_pickles_or_code_is_refused_before_its_weights_are_fetched(
    model: Path,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    words: str,
) -> None:
    change(model)
    with Hub({NAME: model}) as changed:
        assert words in _refused(changed, monkeypatch)["error"]
        assert not changed.fetched(WEIGHTS)
    assert not (hub_folder() / "models--moon--tiny/snapshots").exists()


def test_too_little_room_is_said_before_anything_is_fetched(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_program.shutil, "disk_usage", lambda _: _Usage())
    said = _refused(hub, monkeypatch)
    assert said["kind"] == StorageError.__name__
    assert "fetching and preparing it takes 1 MB" in said["error"]
    assert not [path for _, path, _ in hub.asked if "/resolve/" in path]


class _Usage:
    free = 900_000  # enough to fetch it, and too little to prepare it


@pytest.mark.parametrize(
    ("variable", "settings", "words"),
    [
        ("HF_HUB_OFFLINE", {}, "HF_HUB_OFFLINE is set"),
        ("TRANSFORMERS_OFFLINE", {}, "TRANSFORMERS_OFFLINE is set"),
        ("", {"models": {"chat": {"model": "offline"}}}, "models.chat.model is `offline`"),
    ],
)
def test_offline_nothing_is_fetched(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, variable: str, settings: dict[str, Any], words: str
) -> None:
    if variable:
        monkeypatch.setenv(variable, "1")
    chosen = Settings(**settings)
    assert words in why_offline(chosen)
    with pytest.raises(UsageError, match=words):
        fetch(NAME, chosen, lambda *_: None)
    assert not hub.asked


def test_two_at_once_do_not_write_the_same_files(hub: Hub) -> None:
    hub.slow.clear()
    part = hub_folder() / "models--moon--tiny/blobs"

    def has_begun() -> bool:
        if not any(part.glob(f"{'[0-9a-f]' * 64}{hub_program._PARTIAL}")):
            return False
        with pytest.raises(ModelError, match="is being fetched already"):
            _fetch()
        return True

    assert not _fetch(is_stopped=has_begun)


def test_fetching_imports_no_torch_and_the_app_no_hub() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = (
        "import sys, kbtui.models.fetching\n"
        "assert not {'huggingface_hub', 'httpx', 'urllib.request'} & set(sys.modules)\n"
        "import kbtui.models.hub\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-800:]


def test_the_model_that_is_offered_is_one_of_the_hub() -> None:
    offer = search_offer()
    assert hub_name(offer.name) == offer.name
    assert hub_name("tiny") == "sentence-transformers/tiny"
    assert len(offer.sha256) == 64
    assert offer.describe() == "intfloat/multilingual-e5-small (493 MB, MIT licence)"


@pytest.mark.parametrize(
    ("path", "is_wanted"),
    [
        ("config.json", True),
        ("sentencepiece.bpe.model", True),
        ("vocab.txt", True),
        ("2_Dense/model.safetensors", True),
        ("2_Dense/pytorch_model.bin", False),
        ("onnx/config.json", False),
        ("modeling.py", False),
        ("../config.json", False),
        ("a/1_Pooling/config.json", False),
    ],
)
def test_which_files_are_needed(path: str, is_wanted: bool) -> None:
    assert is_needed(path) is is_wanted


def test_a_model_without_modules_is_a_transformer_alone() -> None:
    assert not why_unsafe([WEIGHTS, "config.json"], lambda _: "{}")
    assert "no config.json" in why_unsafe([WEIGHTS], lambda _: "{}")
