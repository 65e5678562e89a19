from __future__ import annotations

import hashlib
import struct
import time
from typing import TYPE_CHECKING, Any

from kbtui.search.index import analyser
from kbtui.search.results import without_weak
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kbtui.search.embedding.vectors import Vectors
    from kbtui.search.results import Hit, SearchResult


GERMAN = "Der Wagen braucht neue Reifen, und die Werkstatt ist erst am Montag wieder offen.\n"
SPANISH = "La receta lleva harina, agua y sal, y hay que dejar la masa toda la noche.\n"
FRENCH = "Le médecin a dit que je dois prendre les gouttes avec un verre d'eau chaque matin.\n"
ENGLISH = "The tax return is due at the end of May, and the receipts are in the blue folder.\n"
HUNGARIAN = "A kutya és a macska nem szereti egymást, de azért együtt alszanak a konyhában.\n"


class Desk:
    """A temporary workspace with helpers to write files and open indexes, closed at the end."""

    def __init__(self, root: Path, *, in_place: bool = False) -> None:
        self.workspace = create_workspace(root, in_place=in_place)
        self.root = root
        self._open: list[SearchIndex] = []

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def index(self, **options: Any) -> SearchIndex:
        settings = options.pop("settings", SearchSettings(semantic="model" in options))
        role = options.pop("embed", RoleSettings())
        index = SearchIndex(self.workspace, Scanner(self.workspace), settings, role, **options)
        self._open.append(index)
        return index

    @property
    def generation(self) -> Path:
        (folder,) = (self.workspace.cache / "search").glob("g*-*")
        return folder

    def close(self) -> None:
        for index in self._open:
            index.close()


def write_old_segment(folder: Path, keys: Sequence[bytes], made: Vectors) -> None:
    """Write a segment file as versions with float32 vectors did."""
    head = struct.pack("<8sII", b"KBVEC1\0\0", made.shape[1], len(keys))
    body = head + b"".join(keys) + made.astype("<f4").tobytes()
    digest = hashlib.sha256(body)
    (folder / f"{digest.hexdigest()[:24]}.vectors").write_bytes(body + digest.digest())


def paths(result: SearchResult) -> list[str]:
    return [hit.path for hit in result.hits]


def only(result: SearchResult) -> Hit:
    (hit,) = result.hits
    return hit


def eventually(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
    return found


def hits_without(index: SearchIndex, root: Path, word: str) -> list[str]:
    """Return those of the first ten hits for a word, above the line, that have no form of it.

    A hit has what its passage, title, heading and path say, and the properties of its note.
    """
    strong, _ = without_weak(index.search(word, scope="all", wait=True).hits)
    forms = set(analyser.forms_of(word))
    lacking: list[str] = []
    for hit in strong[:10]:
        file = root / hit.path
        note = file.read_text("utf-8", "replace") if file.suffix == ".md" else ""
        head = note.partition("\n---")[0] if note.startswith("---") else ""
        said = f"{hit.title}\n{hit.heading}\n{hit.text}\n{hit.path}\n{head}"
        if forms.isdisjoint([*analyser.terms(said), *analyser.all_second_terms(said, ["de"])]):
            lacking.append(f"{hit.path}: {hit.snippet}")
    return lacking
