"""Diffs between two states: files, hunks, lines, words, and lines moved between files.

Moved lines are found in the actual diff of a commit, never taken from a description of it: a
statement that was removed from one file and added to another, ignoring bullets, leading dates, case
and punctuation. Headings, frontmatter and lines too short to be distinctive don't count.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal, NamedTuple

from kbtui.errors import UsageError
from kbtui.history.objects.commit import Edits, Kind, Moved, PathChange, is_derived, kind_of
from kbtui.history.queries.matching import (
    Opcode as Opcode,
    common_ends,
    keys_of as keys_of,
    lines_of,
    match_lines,
    opcodes as opcodes,
)
from kbtui.workspace import files
from kbtui.workspace.files import blob_id, blob_of, decode, text_of
from kbtui.workspace.scan import has_no_lines

CONTEXT = 3
_SNIFF_BYTES = 8000
_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_MIN_SIMILARITY = 0.3  # the similarity of two lines from which changed words are highlighted
_MAX_WORDS = 2000
_MIN_RENAME_SIMILARITY = 0.5  # git's threshold
# The naming part of a note: frontmatter, and the first heading.
_NAMING_PART = re.compile(
    rb"\A(?:---[ \t]*\r?\n.*?^---[ \t]*\r?\n)?\s*(?:#[ \t][^\n]*\n)?", re.DOTALL | re.MULTILINE
)
_RENAME_PAIRS = 2_500
_RENAME_BYTES = 1 << 28  # of all pairs together: two or three seconds
_EMPTY = blob_id(b"")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: context, added or removed; `newline` is False for a last line without a newline."""

    kind: Literal[" ", "+", "-"]
    old: int | None
    new: int | None
    text: str
    newline: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changed lines with their context; `title` names the place, where known."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]
    title: str = ""

    @property
    def header(self) -> str:
        """The ``@@`` line of the hunk, as in a patch, which may end with a text."""
        old, new = _range(self.old_start, self.old_count), _range(self.new_start, self.new_count)
        return f"@@ -{old} +{new} @@ {self.title}".rstrip()

    @property
    def place(self) -> str:
        """The position of the hunk, for people."""
        return self.title or f"line {self.new_start or self.old_start}"


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The diff of one file; a `binary` one has no hunks if its bytes aren't text.

    `heads` are the numbers of frontmatter lines before and after.
    """

    path: str
    old_path: str | None
    kind: Kind
    hunks: tuple[Hunk, ...]
    old_blob: str | None
    new_blob: str | None
    binary: bool = False
    heads: tuple[int, int] = (0, 0)

    @property
    def added(self) -> int:
        """The number of lines added."""
        return sum(line.kind == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """The number of lines removed."""
        return sum(line.kind == "-" for hunk in self.hunks for line in hunk.lines)


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def split_lines(text: str) -> list[str]:
    r"""Split at ``\n`` only, as git does, keeping line ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def diff_file(
    path: str,
    old: bytes | None,
    new: bytes | None,
    old_path: str | None = None,
    *,
    context: int = CONTEXT,
) -> FileDiff:
    """Compare two contents of one file, None if it doesn't exist.

    `context` unchanged lines surround each change.
    """
    hunks: tuple[Hunk, ...] = ()
    heads = 0, 0
    if not any(_is_opaque(data) for data in (old, new)):
        a, b = split_lines(text_of(old)), split_lines(text_of(new))
        heads = head_length(a), head_length(b)
        hunks = tuple(hunk_of(a, b, group) for group in grouped(opcodes(a, b), context))
    return FileDiff(
        path=path,
        old_path=old_path,
        kind=kind_of(old, new, old_path),
        hunks=hunks,
        old_blob=blob_of(old),
        new_blob=blob_of(new),
        binary=any(_is_binary(data) for data in (old, new)),
        heads=heads,
    )


def diff_files(
    before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
) -> tuple[FileDiff, ...]:
    """Return the diffs of the paths of `after`, with renames paired."""
    renames = _find_renames_between(before, after)
    return tuple(
        diff_file(path, before.get(renames.get(path, path)), data, renames.get(path))
        for path, data in sorted(after.items())
        if path not in renames.values()
    )


def _is_opaque(data: bytes | None) -> bool:
    """Return whether the bytes aren't text in any supported encoding."""
    return b"\0" in (data or b"")[:_SNIFF_BYTES] and decode(data or b"").encoding != "utf-16"


def _is_binary(data: bytes | None) -> bool:
    """Return whether a patch can't represent the bytes."""
    if not data:
        return False
    decoded = decode(data)
    return b"\0" in data[:_SNIFF_BYTES] or not decoded.exact


def grouped(codes: list[Opcode], context: int = CONTEXT) -> Iterator[list[Opcode]]:
    """Group opcodes into hunks; changes at most two contexts apart share one."""
    group: list[Opcode] = []
    last = len(codes) - 1
    for index, (tag, a1, a2, b1, b2) in enumerate(codes):
        if tag != "equal":
            group.append((tag, a1, a2, b1, b2))
            continue
        size = a2 - a1
        if index not in {0, last} and size <= 2 * context:
            group.append((tag, a1, a2, b1, b2))
            continue
        shown = min(size, context)
        if group:
            yield [*group, (tag, a1, a1 + shown, b1, b1 + shown)]
        group = [(tag, a2 - shown, a2, b2 - shown, b2)]
    if any(tag != "equal" for tag, *_ in group):
        yield group


def hunk_of(a: Sequence[str], b: Sequence[str], group: Sequence[Opcode], title: str = "") -> Hunk:
    """Build the hunk of a group of opcodes."""
    lines: list[DiffLine] = []
    for tag, a1, a2, b1, b2 in group:
        if tag == "equal":
            lines += [_line(" ", a[i], i + 1, b1 + i - a1 + 1) for i in range(a1, a2)]
            continue
        lines += [_line("-", a[i], i + 1, None) for i in range(a1, a2)]
        lines += [_line("+", b[j], None, j + 1) for j in range(b1, b2)]
    old_count = group[-1][2] - group[0][1]
    new_count = group[-1][4] - group[0][3]
    return Hunk(
        group[0][1] + (1 if old_count else 0),
        old_count,
        group[0][3] + (1 if new_count else 0),
        new_count,
        tuple(lines),
        title,
    )


def _line(kind: Literal[" ", "+", "-"], text: str, old: int | None, new: int | None) -> DiffLine:
    return DiffLine(kind, old, new, text.removesuffix("\n"), newline=text.endswith("\n"))


def count_lines(old: bytes | None, new: bytes | None) -> tuple[int, int]:
    """Return the numbers of lines added and removed between two contents."""
    if _is_opaque(old) or _is_opaque(new):
        return 0, 0
    a, b = split_lines(text_of(old)), split_lines(text_of(new))
    added = removed = 0
    for tag, a1, a2, b1, b2 in opcodes(a, b):
        if tag != "equal":
            added, removed = added + b2 - b1, removed + a2 - a1
    return added, removed


def find_renames(added: Mapping[str, bytes], deleted: Mapping[str, bytes]) -> dict[str, str]:
    """Pair added files with the deleted ones most similar to them: {new path: old path}."""
    new, old = ({p: blob_id(data) for p, data in each.items()} for each in (added, deleted))
    contents = {new[p]: data for p, data in added.items()}
    contents |= {old[p]: data for p, data in deleted.items()}
    return pair_renames(new, old, contents.__getitem__)


def _find_renames_between(
    before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
) -> dict[str, str]:
    """Pair renames like `find_renames`, from all contents before and after."""
    added = {p: data for p, data in after.items() if data is not None and before.get(p) is None}
    gone = {p: old for p in after if after[p] is None and (old := before.get(p)) is not None}
    return find_renames(added, gone)


def pair_renames(
    added: Mapping[str, str], deleted: Mapping[str, str], read: Callable[[str], bytes]
) -> dict[str, str]:
    """Pair files like `find_renames`, by blob id.

    Files without lines, such as pictures, aren't read.
    """
    pairs = _of_same_blob(added, deleted)
    taken = set(pairs.values())
    left, gone = _readable(added, pairs), _readable(deleted, taken)
    if not left or not gone or len(left) * len(gone) > _RENAME_PAIRS:
        return pairs
    new, old = {p: read(added[p]) for p in left}, {p: read(deleted[p]) for p in gone}
    if len(old) * _size(new) + len(new) * _size(old) > _RENAME_BYTES:
        return pairs
    scores = sorted((-_similarity(old[o], new[n]), n, o) for n in left for o in gone)
    for score, path, was in scores:
        if -score >= _MIN_RENAME_SIMILARITY and path not in pairs and was not in taken:
            pairs[path] = was
            taken.add(was)
    return pairs


def _of_same_blob(added: Mapping[str, str], deleted: Mapping[str, str]) -> dict[str, str]:
    """Pair files of equal content, preferring equal names."""
    by_blob: dict[str, list[str]] = {}
    for path in sorted(deleted):
        by_blob.setdefault(deleted[path], []).append(path)
    pairs: dict[str, str] = {}
    for path in sorted(added):
        same = by_blob.get(added[path])
        if same and added[path] != _EMPTY:
            name = path.rsplit("/", 1)[-1]
            best = next((old for old in same if old.rsplit("/", 1)[-1] == name), same[0])
            same.remove(best)
            pairs[path] = best
    return pairs


def _readable(blobs: Mapping[str, str], known: Collection[str]) -> list[str]:
    """Return the files with lines to compare that aren't in `known`."""
    left = (path for path, blob in blobs.items() if path not in known and blob != _EMPTY)
    return [path for path in left if not has_no_lines(path)]


def _size(contents: Mapping[str, bytes]) -> int:
    return sum(map(len, contents.values()))


def _similarity(old: bytes, new: bytes) -> float:
    """Return the similarity of two contents, ignoring frontmatter and title if those differ.

    A rename changes both.
    """
    similarity = _line_similarity(old, new)
    if similarity < _MIN_RENAME_SIMILARITY:
        old, new = _NAMING_PART.sub(b"", old, count=1), _NAMING_PART.sub(b"", new, count=1)
        similarity = (
            max(similarity, _line_similarity(old, new))
            if old.strip() and new.strip()
            else similarity
        )
    return similarity


def _line_similarity(old: bytes, new: bytes) -> float:
    """Return the share of the larger content that both have in common, by whole lines."""
    counts: dict[bytes, int] = {}
    for line in old.splitlines(keepends=True):
        counts[line] = counts.get(line, 0) + 1
    common = 0
    for line in new.splitlines(keepends=True):
        if counts.get(line, 0) > 0:
            counts[line] -= 1
            common += len(line)
    return common / max(len(old), len(new))


def emphasize(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the changed words of two lines as (start, end) offsets.

    There are none if the lines differ too much.
    """
    a, b = _PIECE.findall(old), _PIECE.findall(new)
    if max(len(a), len(b)) > _MAX_WORDS:
        return [], []
    head, tail = common_ends(a, b)
    left, right = a[head : len(a) - tail], b[head : len(b) - tail]
    codes = _word_codes(left, right)
    same = head + tail + sum(a2 - a1 for tag, a1, a2, _, _ in codes if tag == "equal")
    if 2 * same < _MIN_SIMILARITY * (len(a) + len(b)):
        return [], []
    spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, a1, a2, b1, b2 in codes:
        if tag != "equal":
            _add_span(spans[0], a, head + a1, head + a2)
            _add_span(spans[1], b, head + b1, head + b2)
    return spans


def _word_codes(a: list[str], b: list[str]) -> list[Opcode]:
    """Compute opcodes between words, with a shortcut for simple cases."""
    if not a or not b or (len(a) == 1 and len(b) == 1):
        return [("replace", 0, len(a), 0, len(b))] if a or b else []
    codes: list[Opcode] = list(SequenceMatcher(None, a, b, autojunk=False).get_opcodes())
    return codes


def _add_span(spans: list[tuple[int, int]], words: list[str], first: int, last: int) -> None:
    if first < last:
        start = sum(map(len, words[:first]))
        spans.append((start, start + sum(map(len, words[first:last]))))


def as_patch(diffs: Iterable[FileDiff], named: Callable[[str], str] = str) -> str:
    """Format diffs as a patch that ``git apply`` accepts.

    Args:
        diffs: The diffs.
        named: Maps a workspace path to the file name to show, such as `Layout.file`.
    """
    return "".join(line for diff in diffs for line in _patch_lines(diff, named))


def _patch_lines(diff: FileDiff, named: Callable[[str], str]) -> Iterator[str]:
    old, new = f"a/{named(diff.old_path or diff.path)}", f"b/{named(diff.path)}"
    yield f"diff --git {_quoted(old)} {_quoted(new)}\n"
    if diff.kind == "added":
        yield "new file mode 100644\n"
    elif diff.kind == "deleted":
        yield "deleted file mode 100644\n"
    elif diff.kind == "renamed":
        yield f"rename from {_quoted(old[2:])}\nrename to {_quoted(new[2:])}\n"
    if diff.binary:
        yield f"Binary files {_quoted(old)} and {_quoted(new)} differ\n"
        return
    if not diff.hunks:
        return
    yield f"--- {'/dev/null' if diff.kind == 'added' else _name(old)}\n"
    yield f"+++ {'/dev/null' if diff.kind == 'deleted' else _name(new)}\n"
    for hunk in diff.hunks:
        yield f"{hunk.header}\n"
        for line in hunk.lines:
            end = "" if line.newline else "\n\\ No newline at end of file"
            yield f"{line.kind}{line.text}{end}\n"


def _name(path: str) -> str:
    """Return a path for a ``---`` line: git ends it with a tab if it contains a space."""
    quoted = _quoted(path)
    return f"{quoted}\t" if " " in quoted and quoted == path else quoted


def _quoted(path: str) -> str:
    if '"' in path:
        return '"' + path.replace('"', '\\"') + '"'
    return path


_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def without_hunks(old: bytes, new: bytes, hunks: Iterable[Hunk]) -> bytes:
    """Return `new` with some hunks reverted to `old`.

    Raises:
        UsageError: The bytes can't be split into lines.
    """
    before, after = _lines(old), _lines(new)
    for hunk in sorted(hunks, key=lambda each: -each.new_start):  # keeps line numbers valid
        first = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        start = hunk.new_start - 1 if hunk.new_count else hunk.new_start
        after[start : start + hunk.new_count] = before[first : first + hunk.old_count]
    return b"".join(after)


def _lines(data: bytes) -> list[bytes]:
    """Split bytes into lines; a byte order mark stays on the first one."""
    codec = _WIDE.get(data[:2])
    if codec is None:
        return re.findall(rb"[^\n]*\n|[^\n]+", data)
    try:
        return [line.encode(codec) for line in split_lines(data.decode(codec))]
    except UnicodeDecodeError as error:
        raise UsageError(
            "A hunk of that file can't be told apart: it is damaged.", "Undo the whole file."
        ) from error


MAX_FILES = 2_000
"""The largest number of files in a commit for which moved lines are searched."""
_MAX_MOVES = 100
_MAX_MOVED_LINES = 10_000
_MAX_SOURCES = 8  # for one line: a phrase found everywhere has no origin
_MIN_KEY = 10
_MARKER = re.compile(
    r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:\d{4}-\d{2}-\d{2}:?\s+)?", re.ASCII
)
_WORD = re.compile(r"\w+")


class Rewritten(NamedTuple):
    """A file of a commit, with its text before and after, empty if it didn't exist."""

    path: str
    old_path: str
    old: str
    new: str


class _Line(NamedTuple):
    path: str
    number: int
    key: str


def find_moves_between(files: Iterable[Rewritten]) -> tuple[Moved, ...]:
    """Find lines that moved between the files of a commit.

    A line removed from several files and added to one came from each of them.
    """
    gone: dict[str, list[_Line]] = {}
    come: list[_Line] = []
    for file in files:
        old, new = lines_of(file.old), lines_of(file.new)
        origins = match_lines(old, new)
        kept = set(origins)
        for line in _statements(file.old_path, old, [i not in kept for i in range(len(old))]):
            if len(known := gone.setdefault(line.key, [])) < _MAX_SOURCES:
                known.append(line)
        come += _statements(file.path, new, [origin < 0 for origin in origins])
    found = (
        Moved(source.path, source.number, line.path, line.number)
        for line in come
        for source in gone.get(line.key, ())
        if source.path != line.path
    )
    return tuple(_join_moves(list(islice(found, _MAX_MOVED_LINES))))[:_MAX_MOVES]


def statement_key(line: str) -> str:
    """Return the key to recognise a line in another file, empty if it isn't distinctive."""
    if line.lstrip().startswith("#"):
        return ""
    marker = _MARKER.match(line)
    words = _WORD.findall(line[marker.end() if marker else 0 :].casefold())
    key = " ".join(words)
    return key if len(key) >= _MIN_KEY and len(words) > 1 else ""


def _statements(path: str, lines: Sequence[str], wanted: Sequence[bool]) -> Iterator[_Line]:
    start = head_length(lines)
    for number, line in enumerate(lines[start:], start + 1):
        if wanted[number - 1] and (key := statement_key(line)):
            yield _Line(path, number, key)


def head_length(lines: Sequence[str]) -> int:
    """Return the number of lines of frontmatter."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((n for n, line in enumerate(lines[1:], 2) if line.rstrip() in {"---", "..."}), 0)


def _join_moves(moves: Sequence[Moved]) -> Iterator[Moved]:
    """Combine moves of adjacent lines."""
    runs: dict[tuple[str, int, str, int], Moved] = {}  # by the position of the next line
    for move in sorted(moves, key=lambda m: (m.target, m.source, m.target_line, m.source_line)):
        place = (move.source, move.source_line, move.target, move.target_line)
        run = runs.pop(place, None)
        count = run.count + 1 if run else 1
        first = run or move
        end = (move.source, move.source_line + 1, move.target, move.target_line + 1)
        runs[end] = Moved(first.source, first.source_line, first.target, first.target_line, count)
    return iter(runs.values())


def path_changes(before: Edits, after: Edits) -> tuple[PathChange, ...]:
    """Compute the path changes between contents before and after, with renames paired."""
    renames = _find_renames_between(before, after)
    changes = []
    for path in sorted(after.keys() - set(renames.values())):
        old_path = renames.get(path)
        old, new = before[old_path or path], after[path]
        kind, counts = kind_of(old, new, old_path), count_lines(old, new)
        changes.append(PathChange(path, kind, old_path, *counts, blob_of(new)))
    return tuple(changes)


def moves_of(before: Edits, after: Edits, paths: tuple[PathChange, ...]) -> tuple[Moved, ...]:
    """Find lines moved between files, leaving out derived files."""
    written = [path for path in paths if path.path.endswith(".md") and not is_derived(path.path)]
    changed = [path for path in written if path.removed or path.added]
    if len(changed) < 2 or len(written) > MAX_FILES:
        return ()
    if not any(path.removed for path in changed) or not any(path.added for path in changed):
        return ()
    return find_moves_between(_rewritten(path, before, after) for path in changed)


def _rewritten(change: PathChange, before: Edits, after: Edits) -> Rewritten:
    old = change.old_path or change.path
    texts = files.text_of(before.get(old)), files.text_of(after[change.path])
    return Rewritten(change.path, old, *texts)
