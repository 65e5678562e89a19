"""The state of the embedding model: preparation, recorded failures, and obstacles."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui import child_process
from kbtui.errors import ModelError
from kbtui.search.embedding import attempts
from kbtui.search.embedding.prepared import ConfiguredModel, locate, models_folder
from kbtui.search.results import Preparation
from kbtui.settings import RoleSettings

if TYPE_CHECKING:
    from collections.abc import Callable

TIRED = ModelError("The machine was out of memory.", "Close other programs.")


def state() -> Preparation:
    return ConfiguredModel(RoleSettings()).preparation()


def test_a_model_that_nobody_has_prepared_waits() -> None:
    assert state() == Preparation("waiting")


def test_a_model_elsewhere_needs_no_preparation() -> None:
    role = RoleSettings(model="litellm:openai/text-embedding-3-small")
    assert ConfiguredModel(role).preparation().is_done


def test_a_model_that_is_not_there_is_named_with_what_to_do() -> None:
    found = ConfiguredModel(RoleSettings(model="BAAI/bge-m3")).preparation()
    assert found.state == "failed"
    assert "BAAI/bge-m3" in found.why
    assert "kbtui setup --search BAAI/bge-m3" in found.hint


def test_it_is_being_prepared_while_some_process_is_at_it() -> None:
    models_folder().mkdir(parents=True)
    with attempts.write_lock(models_folder()):
        assert state() == Preparation("preparing")
    assert state() == Preparation("waiting")


def test_only_one_process_goes_on_after_commands() -> None:
    first = attempts.claim(models_folder())
    assert first is not None
    assert attempts.claim(models_folder()) is None
    assert state() == Preparation("preparing")
    os.close(first)
    assert state() == Preparation("waiting")
    again = attempts.claim(models_folder())
    assert again is not None
    os.close(again)


@pytest.mark.faults
def test_a_failure_is_remembered_for_a_while_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = tmp_path / "dying"
    dying.write_text(f"#!{sys.executable}\nraise SystemExit('out of memory, perhaps')\n")
    dying.chmod(0o755)
    monkeypatch.setattr(child_process.sys, "executable", str(dying))
    models_folder().mkdir(parents=True)
    with pytest.raises(ModelError):
        ConfiguredModel(RoleSettings()).load(threading.Event())
    found = state()
    assert found.state == "failed"
    assert "out of memory, perhaps" in found.why
    assert "in 60 min" in found.hint
    monkeypatch.setattr(attempts, "REMEMBERED_SECONDS", 0.0)
    assert state() == Preparation("waiting")


def test_a_failure_counts_for_its_own_model_and_until_it_is_forgotten() -> None:
    models = models_folder()
    models.mkdir(parents=True)
    attempts.remember_failure(models, "another", TIRED)
    assert state() == Preparation("waiting")
    attempts.remember_failure(models, locate("").fingerprint, TIRED)
    assert state().why == TIRED.message
    attempts.forget_failure(models)
    assert state() == Preparation("waiting")


@pytest.mark.parametrize("kept", ["", "[]", '{"at": "now"}', '{"at": 1}', "\0"])
def test_what_is_remembered_of_a_failure_may_be_damaged(kept: str) -> None:
    models_folder().mkdir(parents=True)
    (models_folder() / "failed.json").write_text(kept)
    assert state() == Preparation("waiting")


def test_a_failure_of_a_time_to_come_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    models_folder().mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(attempts.time, "time", lambda: 4e9)
        attempts.remember_failure(models_folder(), locate("").fingerprint, TIRED)
        assert state().state == "failed"
    assert state() == Preparation("waiting")


def _by_others() -> None:
    models_folder().mkdir(parents=True)
    models_folder().chmod(0o777)


def _a_file() -> None:
    models_folder().parent.parent.mkdir(parents=True)
    models_folder().parent.write_text("no folder")


@pytest.mark.parametrize(
    ("arrange", "why"), [(_by_others, "can be written by others"), (_a_file, "can't be written")]
)
def test_what_is_in_the_way_is_said(arrange: Callable[[], None], why: str) -> None:
    arrange()
    found = state()
    assert found.state == "waiting"
    assert why in found.why
    assert str(models_folder().parent) in found.why


def test_too_little_room_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(Path.home())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=50 << 20))
    found = state()
    assert found.state == "waiting"
    assert "has 50 MB free" in found.why
