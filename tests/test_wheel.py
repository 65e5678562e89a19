"""The wheel holds what the program needs, the source archive what a contributor needs; no more."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_STAND_AT_THE_TOP = {
    *("kbtui", "tests", "themes", ".ci"),
    *("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive, and the wheel from that."""
    out = tmp_path_factory.mktemp("built")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    return out


@pytest.fixture(scope="module")
def names(built: Path) -> set[str]:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_top_level_of_the_repository_holds_only_what_may_stand_there() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not in a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert {name.partition("/")[0] for name in listed.split("\0") if name} == MAY_STAND_AT_THE_TOP


def test_the_top_level_of_the_source_archive_holds_only_what_may_stand_there(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = [name.partition("/")[2] for name in archive.getnames()]
    assert {name.partition("/")[0] for name in inside} == MAY_STAND_AT_THE_TOP | {"PKG-INFO"}


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
