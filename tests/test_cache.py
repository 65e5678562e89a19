"""What is compiled once and kept: never a stale, damaged or foreign one, and none is no trouble."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kbtui.cache import COMPILED, cache_folder, compiled

ROOT = Path(__file__).resolve().parents[1]
CODE = ("kbtui.text",)


class Built:
    """What is built, and how often it was."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.times = 0

    def __call__(self) -> Any:
        self.times += 1
        return self.result


@pytest.fixture
def kept() -> Path:
    """The file in which a first call has kept its result."""
    assert compiled("words", [b"a"], CODE, lambda: ["kept", "ä"]) == ["kept", "ä"]
    return cache_folder(COMPILED) / "words.json"


def test_what_was_compiled_is_not_built_again(kept: Path) -> None:
    again = Built(["other"])
    assert compiled("words", [b"a"], CODE, again) == ["kept", "ä"]
    assert not again.times
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("files", "code"), [([b"b"], CODE), ([b"a", b""], CODE), ([b"a"], ("kbtui.errors",))]
)
def test_of_other_files_or_by_other_code_it_is_stale(
    kept: Path, files: list[bytes], code: tuple[str, ...]
) -> None:
    before = kept.read_bytes()
    assert compiled("words", files, code, Built(["new"])) == ["new"]
    assert kept.read_bytes() != before
    assert compiled("words", [b"a"], CODE, Built(["back"])) == ["back"]


def test_by_another_version_of_a_module_it_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "splitter_of_words.py"
    source.write_text("LEAST = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert compiled("words", [], ["splitter_of_words"], Built(3)) == 3
    assert compiled("words", [], ["splitter_of_words"], Built(4)) == 3
    source.write_text("LEAST = 4\n")
    assert compiled("words", [], ["splitter_of_words"], Built(4)) == 4


def test_by_a_module_without_source_it_is_built_each_time() -> None:
    built = Built(["new"])
    for _ in range(2):
        assert compiled("words", [], ["kbtui.no_such_module"], built) == ["new"]
    assert built.times == 2
    assert not (cache_folder(COMPILED) / "words.json").exists()


def test_damaged_anywhere_it_is_never_taken(kept: Path) -> None:
    whole = kept.read_bytes()
    damaged = [whole[:end] for end in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole + b" ", json.dumps(["kept", "planted"]).encode(), b"\x80\x04."]
    for data in damaged:
        kept.write_bytes(data)
        assert compiled("words", [b"a"], CODE, Built(["new"])) == ["new"], data
    assert compiled("words", [b"a"], CODE, Built(["newer"])) == ["new"]


def test_where_others_may_write_it_is_not_taken(kept: Path) -> None:
    kept.parent.chmod(0o777)
    assert compiled("words", [b"a"], CODE, Built(["new"])) == ["new"]
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_of_somebody_else_it_is_not_taken(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept.read_bytes()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    built = Built(["new"])
    for _ in range(2):
        assert compiled("words", [b"a"], CODE, built) == ["new"]
    assert built.times == 2
    assert kept.read_bytes() == before


def test_without_a_cache_folder_it_is_built_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    built = Built(["new"])
    for _ in range(2):
        assert compiled("words", [b"a"], CODE, built) == ["new"]
    assert built.times == 2


def test_where_nothing_can_be_written_it_is_built_each_time(kept: Path) -> None:
    kept.unlink()
    kept.mkdir()
    (kept / "in the way").touch()
    built = Built(["new"])
    for _ in range(2):
        assert compiled("words", [b"a"], CODE, built) == ["new"]
    assert built.times == 2
    assert [each.name for each in kept.parent.iterdir()] == ["words.json"]


def test_processes_that_compile_at_once_all_have_the_same(tmp_path: Path) -> None:
    code = (
        "from kbtui.offline.language import known_stems, languages\n"
        "from kbtui.redaction.redact import redact\n"
        "print(sorted(known_stems()), [sorted(each.known) for each in languages()])\n"
        "print(redact('the key is ghp_16C7e42F292c6912E7710c838347Ae178B4a').text)"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def run(_number: int) -> bytes:
        argv = [sys.executable, "-c", code]
        return subprocess.run(argv, env=env, capture_output=True, check=True).stdout

    with ThreadPoolExecutor(4) as pool:
        said = {*pool.map(run, range(4)), run(4)}
    assert len(said) == 1
    assert b"[redacted: " in next(iter(said))
    assert sorted(each.name for each in (tmp_path / "kbtui" / COMPILED).iterdir()) == [
        "languages.json",
        "secrets.json",
    ]
