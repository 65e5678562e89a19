"""Files of the user's own are replaced whole, or not at all."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from kbtui.whole_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_replaced_and_only_its_user_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text("old")
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_where_the_disk_refuses_the_old_file_stays_and_nothing_is_left_beside(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "taken"
    (folder / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_file(folder, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]
    assert (folder / "inner").is_dir()
