"""What is written about the program is true of it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest
import yaml

from kbtui.cli.root import cli
from tests.pages import README, ROOT, pages

if TYPE_CHECKING:
    from pathlib import Path

GUIDE = ROOT / "kbtui" / "README.md"


@pytest.mark.parametrize("file", pages(), ids=lambda file: file.name)
def test_the_generated_pages_are_up_to_date(file: Path) -> None:
    assert file.read_text("utf-8") == pages()[file], "run: python -m tests.pages"


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 200


@pytest.mark.parametrize("document", [README, GUIDE], ids=["README.md", "kbtui/README.md"])
def test_every_file_that_a_document_links_to_exists(document: Path) -> None:
    text = document.read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)|src=\"([^\"]+)\"", text):
        assert (document.parent / (target[0] or target[1])).exists(), target


def test_every_command_that_the_readme_names_exists() -> None:
    text = README.read_text("utf-8")
    named = set(re.findall(r"(?:^|`)kbtui(?: -w [^\s`]+)? ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named
    assert named <= set(cli.commands)


def test_the_commands_of_the_readme_take_the_options_it_gives_them() -> None:
    block = re.search(r"```sh\n(kbtui ask.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert block
    for line in block[1].splitlines():
        _, name, *rest = shlex.split(line, comments=True)
        command = cli.commands[name]
        if isinstance(command, click.Group):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(name, rest)


def test_the_hooks_before_a_commit_are_the_gates_linters() -> None:
    config = yaml.safe_load((ROOT / ".ci" / "pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    found = re.search(r"^checks=\((.*)\)$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert found
    assert [hook["entry"].removeprefix(".venv/bin/") for hook in hooks] == shlex.split(found[1])
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in hooks)


def test_every_file_that_the_guide_names_exists() -> None:
    named = re.findall(r"`([\w./]+(?:/|\.(?:py|yaml|toml)))`", GUIDE.read_text("utf-8"))
    assert len(named) > 40
    for name in named:
        assert (ROOT / name).exists() or (GUIDE.parent / name).exists(), name


def test_the_guide_shows_every_package() -> None:
    picture = GUIDE.read_text("utf-8").partition("```\n")[2].partition("```")[0]
    names = {
        f"{item.name}/" if item.is_dir() else item.name
        for item in GUIDE.parent.iterdir()
        if (item.is_dir() and any(item.glob("*.py"))) or item.suffix == ".py"
    } - {"__init__.py"}
    assert names
    assert not [name for name in names if name not in picture]


def test_every_test_that_the_guide_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", GUIDE.read_text("utf-8"))
    assert len(named) > 15
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"
