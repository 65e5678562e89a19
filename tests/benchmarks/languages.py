"""How well notes in German, Spanish, French, Italian are found by other words, asked in English.

Twenty notes a language (`languages.txt`) stand among 2,000 others, three quarters of them in that
language and the rest in English. Counted is how often the right note is among the first three hits,
asked in the note's own language and in English. The first set of three languages was there when
ranking was tuned; `more` was written before, and its figures were seen then; the Italian notes
were asked once, when all was done.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.search.search_index import SearchIndex
from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL, RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.benchmarks.embedding_cache import RememberingModel
from tests.benchmarks.report import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.workspace.layout import Workspace

FILE = Path(__file__).with_suffix(".txt")
NAMES = ("de", "de more", "es", "es more", "fr", "fr more", "it")
BAR = 16  # of 20
_FIRST = 3
_ENGLISH_SHARE = 4  # one in so many others


@dataclass(frozen=True)
class Target:
    """A note, and two questions that it answers: in its language, and in English."""

    note: str
    own: str
    english: str


def targets(name: str) -> list[Target]:
    """The notes of one of `NAMES`."""
    return [Target(*row) for row in _rows(name)]


def others(language: str, count: int) -> Iterator[str]:
    """Made notes of two sentences, no two the same; every fourth one is in English."""
    for number in range(count):
        subjects, ends = _rows("others " + ("en" if number % _ENGLISH_SHARE == 0 else language))
        of = len(subjects)
        first = f"{subjects[number % of]} {ends[number // of % of]}."
        second = f"{subjects[(number // of**2 + number + 1) % of]} {ends[(number + 7) % of]}."
        yield f"{first} {second}"


def _rows(name: str) -> list[list[str]]:
    part = FILE.read_text("utf-8").split(f"[{name}]\n")[1].partition("\n[")[0]
    return [[cell.strip() for cell in line.split(" | ")] for line in part.splitlines()]


def write(workspace: Workspace, name: str, count: int) -> None:
    """Write the notes and the others as entries."""
    folder = workspace.root / "knowledge" / "topics"
    folder.mkdir(parents=True, exist_ok=True)
    for number, target in enumerate(targets(name)):
        (folder / f"target{number}.md").write_text(f"{target.note}\n", "utf-8")
    for number, text in enumerate(others(name.split(maxsplit=1)[0], count)):
        (folder / f"other{number}.md").write_text(f"{text}\n", "utf-8")


def found(index: SearchIndex, name: str, way: str) -> list[bool]:
    """Whether each note is among the first three hits, asked ``own`` or in ``english``."""
    found = []
    for number, target in enumerate(targets(name)):
        hits = index.search(getattr(target, way), "all", _FIRST, wait=True).hits
        found.append(f"knowledge/topics/target{number}.md" in {hit.path for hit in hits})
    return found


def run(argv: list[str]) -> dict[str, Any]:
    """Measure the named languages, or all."""
    cli = argparse.ArgumentParser(prog="languages", description=__doc__)
    cli.add_argument("languages", nargs="*", help=f"of {', '.join(NAMES)}; a beginning will do")
    cli.add_argument("--others", type=int, default=2000, help="notes besides the 20")
    cli.add_argument("--words", action="store_true", help="leave both embedding models out")
    cli.add_argument("--alone", action="store_true", help="leave the multilingual model out")
    asked = cli.parse_args(argv)
    model = None if asked.words else RememberingModel()
    is_alone = asked.words or asked.alone
    second = None if is_alone else RememberingModel(MULTILINGUAL_EMBEDDING_MODEL)
    table = Table("Languages", ["notes", "asked", "first three", "bar"])
    figures: dict[str, int] = {}
    for name in (n for n in NAMES if not asked.languages or n.startswith(tuple(asked.languages))):
        with tempfile.TemporaryDirectory(prefix="kbtui-languages-") as folder:
            workspace = create_workspace(Path(folder) / "kb")
            write(workspace, name, asked.others)
            index = SearchIndex(
                workspace,
                Scanner(workspace),
                SearchSettings(semantic=model is not None),
                RoleSettings(),
                model=model,
                second=second,
            )
            for way in ("own", "english"):
                right = found(index, name, way)
                figures[f"{name} {way}"] = sum(right)
                met = "held" if sum(right) >= BAR else "MISSED"
                table.row(name, way, f"{sum(right)} of {len(right)}", f"{BAR} {met}")
            index.close()
    return {"tables": [table], "figures": figures}
