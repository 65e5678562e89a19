"""What sentence-transformers' hub's library leaves to kbtui when a model is fetched."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.models.hub_server import WEIGHTS, serving, write_model

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAME = "moon/tiny"
FETCH = f"from huggingface_hub import snapshot_download; print(snapshot_download({NAME!r}))"


def test_a_file_with_another_hash_of_the_right_size_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving({NAME: write_model(tmp_path / "model")}, tmp_path / "hf", monkeypatch) as hub:
        data = hub.files(NAME)[WEIGHTS]
        hub.changed[WEIGHTS] = data[:-2] + b"!!"
        done = subprocess.run(
            [sys.executable, "-c", FETCH], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (
            "it compares hashes now: `_receive` of kbtui/models/hub.py can leave files to it"
            f" if it also goes on where a file was cut ({done.stderr[-300:]})"
        )
        found = tmp_path / "hf"
        (taken,) = {file.read_bytes() for file in found.rglob(WEIGHTS) if file.is_file()}
        assert taken == hub.changed[WEIGHTS]
