"""The answers where a name means no entry, or more than one; and what else a link may mean."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.text import clean_line, fold, shorten
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from kbtui.knowledge.info import EntryInfo
    from kbtui.knowledge.links import Link

_SHOWN = 8
_NEAREST = 3
_LIKENESS = 55
_LINE = re.compile(r"(\.md|[^/\s]):\d+(?:-\d+)?$")


def without_line(ref: str) -> str:
    """Take ``:14`` or ``:14-20`` off a reference that was copied from a search."""
    return _LINE.sub(r"\1", ref)


def ambiguous(ref: str, paths: Sequence[str]) -> UsageError:
    """Say which entries a name may mean."""
    names = [short_name(path) for path in sorted(set(paths))]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return UsageError(
        f"{_shown(ref)} is the name of {len(names)} entries.",
        f"Say which one: {', '.join(names[:_SHOWN])}{rest}.",
    )


def not_found(ref: str, infos: Iterable[EntryInfo]) -> NotFoundError:
    """Say that nothing is called so, and what is called nearly so."""
    near = nearest(ref, infos)
    hint = f"Did you mean {' or '.join(near)}?" if near else "See `kbtui list` for what there is."
    return NotFoundError(f"There is no entry {_shown(ref)}.", hint)


def nearest(ref: str, infos: Iterable[EntryInfo]) -> list[str]:
    """The names of the entries that are called most like `ref`."""
    from rapidfuzz import fuzz, process

    known = list(infos)
    wanted = fold(short_name(ref))
    by_name = {number: fold(info.slug) for number, info in enumerate(known)}
    by_title = {number: fold(info.title) for number, info in enumerate(known)}
    best: dict[int, float] = {}
    for choices in (by_name, by_title):
        found = process.extract(
            wanted.rpartition("/")[2], choices, scorer=fuzz.WRatio, limit=_NEAREST
        )
        for _text, score, number in found:
            best[number] = max(best.get(number, 0.0), score)
    ranked = sorted(best, key=lambda number: -best[number])
    return [known[n].name for n in ranked if best[n] >= _LIKENESS][:_NEAREST]


def attachment(root: Path, source: str, link: Link) -> str | None:
    """The file that is no entry which a link leads to: a picture, a document."""
    target = unquote(link.target) if link.kind == "markdown" else link.target
    if "." not in target.rpartition("/")[2]:
        return None
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    for path in (beside, f"knowledge/{target.lstrip('/')}", target.lstrip("/")):
        try:
            if files.exists(root, path):
                return path
        except KbtuiError:
            continue
    return None


def _shown(ref: str) -> str:
    return repr(shorten(clean_line(ref), 80))
