"""What is written about the program is true of it."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from kbtui.cli.root import cli
from kbtui.workspace.layout import MACHINE, RECORDED_FOLDERS
from tests.pages import README, ROOT, pages

GUIDE = ROOT / "kbtui" / "README.md"
OF_OTHERS = {"git", "lint-imports", "json", "--help", "--snapshot-update"}


class Known:
    """The names that the program's code defines or uses; what only docstrings and comments say is none."""

    def __init__(self) -> None:
        self._texts = {file: file.read_text("utf-8") for file in GUIDE.parent.rglob("*.py")}
        self._tools = [file.read_text("utf-8") for file in (ROOT / "tests").glob("p*.py")]

    def has(self, span: str) -> bool:
        """Return whether something is there by this path, name, call, command or option."""
        program, *rest = span.split()
        file, _, test = span.partition("::")
        if span in OF_OTHERS or span == MACHINE:
            return True
        if program == "kbtui":
            return rest[0] in cli.commands
        if program == "python":
            return importlib.util.find_spec(rest[1]) is not None
        if span.startswith("--"):
            return any(f'"{span}"' in text for text in (*self._texts.values(), *self._tools))
        if "/" in file or re.search(r"\.(?:py|md|toml|yaml|tsv|ini|json)$", file):
            return _is_file(file) and (not test or test in self.defined_in(file))
        owner, dot, name = re.sub(r"^@|\(.*\)$|=$", "", span).rpartition(".")
        return self._is_member(owner, name) if dot else self._is_used(*name.partition("<")[:2])

    def defined_in(self, file: str) -> set[str]:
        """Return what a file defines at its top level."""
        path = next(base / file for base in (ROOT, GUIDE.parent) if (base / file).exists())
        return _defined(ast.parse(path.read_text("utf-8")))

    def _is_used(self, name: str, any_end: str) -> bool:
        def matches(found: str) -> bool:
            return found.startswith(name) if any_end else found == name

        trees = self._holding(rf"\b{name}")
        return any(matches(found) for tree in trees for found in _used(tree))

    def _is_member(self, owner: str, name: str) -> bool:
        """Return whether a class defines `name`, which is `owner` if that is one, or its module."""
        if any(name in self.defined_in(str(file)) for file in self._texts if file.stem == owner):
            return True
        is_class = owner[0].isupper()
        pattern = rf"^class {owner}\b" if is_class else rf"^ +(?:async def |def )?{name}\b"
        nodes = (node for tree in self._holding(pattern) for node in ast.walk(tree))
        classes = (node for node in nodes if isinstance(node, ast.ClassDef))
        return any(name in _defined(each) for each in classes if each.name == owner or not is_class)

    def _holding(self, pattern: str) -> Iterator[ast.Module]:
        for text in self._texts.values():
            if re.search(pattern, text, re.MULTILINE):
                yield ast.parse(text)


def _is_file(path: str) -> bool:
    of_a_workspace = path.partition("/")[0] in RECORDED_FOLDERS and path.endswith(".md")
    return of_a_workspace or any((base / path).exists() for base in (ROOT, GUIDE.parent))


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def _defined(owner: ast.Module | ast.ClassDef) -> set[str]:
    names = set()
    for node in owner.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
    return names


@pytest.fixture(scope="module")
def known() -> Known:
    return Known()


def _guide() -> str:
    return GUIDE.read_text("utf-8")


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


def test_every_name_that_the_guide_sets_as_code_exists(known: Known) -> None:
    spans = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", _guide(), flags=re.DOTALL)))
    assert len(spans) > 150
    assert not [span for span in sorted(spans) if not known.has(span)]


@pytest.mark.parametrize(
    "gone",
    [
        "kbtui/tui/goner.py",
        "memory/goner/",
        "tests/test_text.py::test_goner",
        "History.goner",
        "layout.goner(path)",
        "files.goner",
        "GoneIndex",
        "goner=",
        "action_goner_<method>",
        "kbtui goner",
        "python -m tests.goner",
        "--goner",
    ],
)
def test_a_name_that_is_gone_is_noticed(known: Known, gone: str) -> None:
    assert not known.has(gone)


def test_what_the_guide_says_is_in_a_file_is_in_it(known: Known) -> None:
    text = re.sub(r"\s+", " ", _guide())
    pairs = re.findall(r"`(\w+)` (?:of|in) (?:the )?\[?`?([\w./]+\.py)", text)
    assert len(pairs) > 5
    assert not [(name, file) for name, file in pairs if name not in known.defined_in(file)]


def test_the_guide_shows_every_package() -> None:
    picture = GUIDE.read_text("utf-8").partition("```\n")[2].partition("```")[0]
    names = {
        f"{item.name}/" if item.is_dir() else item.name
        for item in GUIDE.parent.iterdir()
        if (item.is_dir() and any(item.glob("*.py"))) or item.suffix == ".py"
    } - {"__init__.py"}
    assert names
    assert not [name for name in names if name not in picture]
