"""Summaries of commits as sentences without a subject: ``wrote ◆ Auth and ● Alice``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbtui.history.change import SHIPPED, Actor, Commit, PathChange, is_derived
from kbtui.presentation.actors import committer
from kbtui.presentation.notes import Named, Names, names_of
from kbtui.text import clean_line, counted, slugify
from kbtui.workspace.layout import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kbtui.knowledge.library.library import Library

Piece = str | Named
"""A part of a sentence: words, or a note, which a front end colours and links."""
_MAX_NAMED = 3
"""The number of notes named in a part of a sentence; of more, two and the number of others."""
_MAX_LISTED = 20
"""The number of changes above which notes are counted instead of named."""
_RENAMED = re.compile(r"rename \S+ to \S+$")
_SESSION = re.compile(r"What the session \S+ was about\.")
_WHOLE = re.compile(r"Archived whole\..*", re.DOTALL)
"""What was recorded in place of a summary until 0.9, with the words of a program."""
_BRINGS = {Actor.IMPORT: "brought in", Actor.SYNC: "brought"}


class CommitSummary(NamedTuple):
    """The summary of a commit, as a sentence in pieces."""

    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return "".join(str(piece) for piece in self.pieces)


def is_upkeep(commit: Commit) -> bool:
    """Return whether a commit changed only derived files, or kbtui's own documents."""
    follows = bool(commit.paths) and all(is_derived(change.path) for change in commit.paths)
    return follows or commit.body == SHIPPED


def summarize(commit: Commit, names: Names, about: str | None = None) -> CommitSummary:
    """Summarise a commit, with the file `about` first; without paths, return its subject."""
    changes = [change for change in commit.paths if not is_derived(change.path)] or [*commit.paths]
    changes.sort(key=lambda change: about not in {change.path, change.old_path})
    parts = _told_of(commit, names) or [*_parts(commit, changes, names)]
    parts = parts or [[clean_line(commit.subject)]]
    pieces: list[Piece] = [_prefix(commit)] if _prefix(commit) else []
    for number, part in enumerate(parts):
        pieces += ["; ", *part] if number else part
    return CommitSummary(tuple(pieces))


def sentence(commit: Commit, names: Names) -> str:
    """Return the complete sentence as plain text, with the author: ``You deleted ○ Kanban``."""
    return f"{committer(commit)} {summarize(commit, names)}"


def told(library: Library, commit: Commit) -> str:
    """Return what a commit did, as a sentence with the present titles; may read files."""
    paths = [path for change in commit.paths for path in (change.path, change.old_path) if path]
    return sentence(commit, names_of(library, paths))


def reason_of(commit: Commit) -> str:
    """Return why a commit was made, for people; empty where its summary says as much."""
    reason = commit.body.strip()
    is_rename = any(change.kind == "renamed" for change in commit.paths)
    if commit.is_restoration or (is_rename and _RENAMED.match(reason)):
        return ""
    reason = _SESSION.sub("What a conversation was about.", reason)
    return _WHOLE.sub("Kept word for word, as no model had condensed it.", reason)


def _prefix(commit: Commit) -> str:
    if commit.origin.undoes is not None:
        return "undid a change: "
    return "brought back: " if commit.is_restoration else ""


def _moved_paths(commit: Commit) -> set[str]:
    """Return the files that lines were moved from or to."""
    return {path for each in commit.moves for path in (each.target, each.source)}


def _told_of(commit: Commit, names: Names) -> list[list[Piece]]:
    """Return that a conversation was summed up, where that is all that a commit did."""
    if commit.actor is not Actor.SESSION_MEMORY or commit.is_restoration or commit.origin.undoes:
        return []
    known = names.conversation(commit.origin.session or "")
    said: list[Piece] = ["a conversation"] if known is None else ["“", known, "”"]
    return [["wrote what ", *said, " was about"]]


def _parts(commit: Commit, changes: Sequence[PathChange], names: Names) -> Iterator[list[Piece]]:
    by_kind: defaultdict[str, list[PathChange]] = defaultdict(list)
    for change in changes:
        by_kind[change.kind].append(change)
    for change in by_kind["renamed"][:_MAX_NAMED]:
        yield _rename(change, names)
    if more := by_kind["renamed"][_MAX_NAMED:]:
        yield [f"moved {counted(len(more), 'other note')}"]
    if by_kind["deleted"]:
        yield ["deleted ", *_listed(by_kind["deleted"], names)]
    moved = _moved(commit, names)
    if moved:
        yield moved
    if by_kind["added"]:
        verb = "had" if commit.is_found else _BRINGS.get(commit.actor, "wrote")
        before = [" here already"] if commit.is_found else []
        yield [f"{verb} ", *_listed(by_kind["added"], names), *before]
    moved_paths = _moved_paths(commit) if moved else ()
    if changed := [each for each in by_kind["modified"] if each.path not in moved_paths]:
        follows = by_kind["renamed"] or by_kind["deleted"]
        mended = f"{counted(len(changed), 'note')} mended"
        yield [mended] if follows else ["changed ", *_listed(changed, names)]


def _rename(change: PathChange, names: Names) -> list[Piece]:
    old, new = change.old_path or "", change.path
    was, now = (path.rpartition("/")[2].removesuffix(".md") for path in (old, new))
    if was == now:
        return ["moved ", names[new], f" from {_folder(old)} to {_folder(new)}"]
    if slugify(now) != slugify(names[new].title):  # only the file has another name
        return ["renamed ", names[new], f" from {was} to {now}"]
    return [f"renamed {names[old].title} to ", names[new]]


def _folder(path: str) -> str:
    return path.removeprefix(ENTRIES).rpartition("/")[0] or "the top"


def _moved(commit: Commit, names: Names) -> list[Piece]:
    targets = [*dict.fromkeys(move.target for move in commit.moves)]
    count = sum(move.count for move in commit.moves)
    if not targets or commit.actor is Actor.YOU:
        return []
    return [f"moved {counted(count, 'line')} to ", *_joined([names[path] for path in targets])]


def _listed(changes: Sequence[PathChange], names: Names) -> list[Piece]:
    notes = [each for each in changes if each.path.startswith(ENTRIES)]
    if len(changes) > _MAX_LISTED:
        return [counted(len(changes), "note" if len(notes) == len(changes) else "file")]
    return _joined([names[change.path] for change in changes])


def _joined(named: Iterable[Named]) -> list[Piece]:
    several = list(named)
    if len(several) > _MAX_NAMED:
        first, second, *rest = several
        return [first, ", ", second, f" and {len(rest)} more"]
    pieces: list[Piece] = []
    for number, each in enumerate(several):
        if number:
            pieces.append(" and " if number == len(several) - 1 else ", ")
        pieces.append(each)
    return pieces
