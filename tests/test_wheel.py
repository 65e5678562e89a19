"""The wheel holds what the program needs and nothing that it doesn't."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_themes_ship(names: set[str]) -> None:
    shipped = {name for name in names if name.startswith("kbtui/themes/")}
    assert shipped == {f"kbtui/themes/{file.name}" for file in (ROOT / "themes").glob("*.yaml")}
    assert len(shipped) >= 6


def test_every_source_and_style_ships_and_no_test_does(names: set[str]) -> None:
    sources = {
        str(file.relative_to(ROOT))
        for pattern in ("*.py", "*.tcss", "*.md", "*.toml")
        for file in (ROOT / "kbtui").rglob(pattern)
    }
    assert sources <= names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_manual_page_ships_where_man_looks(names: set[str]) -> None:
    assert any(name.endswith(".data/data/share/man/man1/kbtui.1") for name in names)


def test_the_licence_and_the_console_script_ship(names: set[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("entry_points.txt") for name in names)
