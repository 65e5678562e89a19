"""How well notes in German, Spanish and French are found by other words, and asked in English.

Twenty notes a language (`languages.txt`) stand among 2,000 others, three quarters of them in that
language and the rest in English. Counted is how often the right note is among the first three hits,
asked in the note's own language and in English, for the half to tune on and the other.
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
NAMES = ("de", "es", "fr")
BAR = 16  # of 20
_FIRST = 3
_ENGLISH_SHARE = 4  # one in so many others


@dataclass(frozen=True)
class Target:
    """A note, and two questions that it answers: in its language, and in English."""

    note: str
    own: str
    english: str


def targets(language: str) -> list[Target]:
    """The notes of a language."""
    return [Target(*row) for row in _rows(language)]


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


def write(workspace: Workspace, language: str, count: int) -> None:
    """Write the targets and the others as entries."""
    folder = workspace.root / "knowledge" / "topics"
    folder.mkdir(parents=True, exist_ok=True)
    for number, target in enumerate(targets(language)):
        (folder / f"target{number}.md").write_text(f"{target.note}\n", "utf-8")
    for number, text in enumerate(others(language, count)):
        (folder / f"other{number}.md").write_text(f"{text}\n", "utf-8")


def found(index: SearchIndex, language: str, way: str) -> list[bool]:
    """Whether each target is among the first three hits, asked ``own`` or in ``english``."""
    found = []
    for number, target in enumerate(targets(language)):
        hits = index.search(getattr(target, way), "all", _FIRST, wait=True).hits
        found.append(f"knowledge/topics/target{number}.md" in {hit.path for hit in hits})
    return found


def run(argv: list[str]) -> dict[str, Any]:
    """Measure the named languages, or all."""
    cli = argparse.ArgumentParser(prog="languages", description=__doc__)
    cli.add_argument("languages", nargs="*", help=f"of {', '.join(NAMES)}")
    cli.add_argument("--others", type=int, default=2000, help="notes besides the 20")
    cli.add_argument("--words", action="store_true", help="leave both embedding models out")
    cli.add_argument("--alone", action="store_true", help="leave the multilingual model out")
    asked = cli.parse_args(argv)
    model = None if asked.words else RememberingModel()
    is_alone = asked.words or asked.alone
    second = None if is_alone else RememberingModel(MULTILINGUAL_EMBEDDING_MODEL)
    table = Table("Languages", ["language", "asked", "first three", "tuned", "held", "bar"])
    figures: dict[str, int] = {}
    for language in asked.languages or NAMES:
        with tempfile.TemporaryDirectory(prefix="kbtui-languages-") as folder:
            workspace = create_workspace(Path(folder) / "kb")
            write(workspace, language, asked.others)
            index = SearchIndex(
                workspace,
                Scanner(workspace),
                SearchSettings(semantic=model is not None),
                RoleSettings(),
                model=model,
                second=second,
            )
            for way in ("own", "english"):
                right = found(index, language, way)
                figures[f"{language} {way}"] = sum(right)
                tuned, held = sum(right[::2]), sum(right[1::2])
                met = "held" if sum(right) >= BAR else "MISSED"
                table.row(
                    *(language, way, f"{sum(right)} of {len(right)}"),
                    *(f"{tuned} of {len(right[::2])}", f"{held} of {len(right[1::2])}"),
                    f"{BAR} {met}",
                )
            index.close()
    return {"tables": [table], "figures": figures}
