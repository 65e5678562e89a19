"""What kbtui works around in onnxruntime, tokenizers and watchfiles, and in SQLite."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

import onnxruntime
import pytest
import tokenizers
import watchfiles
from tokenizers.models import WordLevel

if TYPE_CHECKING:
    from pathlib import Path

_EMBEDDER = "kbtui/search/embedding/embedder.py"


def test_errors_of_onnxruntime_share_no_base_but_exception() -> None:
    with pytest.raises(Exception, match="ONNXRuntimeError") as raised:
        onnxruntime.InferenceSession(b"no graph")
    assert type(raised.value).__mro__[1] is Exception, f"{_EMBEDDER} may catch a class of its own"


def test_tokenizers_raises_a_bare_exception() -> None:
    with pytest.raises(Exception, match="line 1") as raised:
        tokenizers.Tokenizer.from_str("{}")
    assert type(raised.value) is Exception, f"`_load_tokenizer` of {_EMBEDDER} may catch its class"


def test_tokenizers_takes_no_half_of_a_character() -> None:
    tokenizer = tokenizers.Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    with pytest.raises(TypeError):  # when it does: `_readable` of the embedder can go
        tokenizer.encode("\ud800")


def test_sqlite_stores_no_half_of_a_character() -> None:
    with pytest.raises(UnicodeEncodeError):  # when it does: that of search/index/chunk_rows.py can
        sqlite3.connect(":memory:").execute("SELECT ?", ("\ud800",))


def test_only_a_timeout_tells_that_a_folder_is_watched(tmp_path: Path) -> None:
    options = {"stop_event": threading.Event(), "rust_timeout": 20, "debounce": 20, "step": 5}
    watching = watchfiles.watch(tmp_path, **options, yield_on_timeout=True)
    assert next(watching) == set(), (
        "`yield_on_timeout` in kbtui/search/background.py can go: what tells it instead?"
    )
    (tmp_path / "a").touch()
    assert {path for changes in (next(watching), next(watching)) for _, path in changes} == {
        str(tmp_path / "a")
    }


def test_a_folder_that_is_gone_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No path was found"):
        next(watchfiles.watch(tmp_path / "gone"))
