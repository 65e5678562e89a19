"""Differences: hunks, words, renames, patches that a real git applies."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError
from kbtui.history.queries.diff import as_patch, diff_file, emphasize, find_renames, split_lines
from kbtui.history.queries.matching import matching_blocks, opcodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"


def numbered(count: int) -> list[str]:
    return [f"line {number}\n" for number in range(1, count + 1)]


def changed(lines: list[str], *numbers: int) -> list[str]:
    return [f"new {line}" if n in numbers else line for n, line in enumerate(lines, 1)]


def apply_with_git(patch: str, folder: Path) -> None:
    run = subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"],
        input=patch.encode(),
        cwd=folder,
        capture_output=True,
        check=False,
        env={"GIT_CEILING_DIRECTORIES": str(folder.parent), "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stderr.decode() + patch


def test_a_hunk_has_three_lines_around_it() -> None:
    old = numbered(20)
    diff = diff_file(A, "".join(old).encode(), "".join(changed(old, 10)).encode())
    (hunk,) = diff.hunks
    assert hunk.header == "@@ -7,7 +7,7 @@"
    assert [(line.kind, line.old, line.new) for line in hunk.lines[3:5]] == [
        ("-", 10, None),
        ("+", None, 10),
    ]
    assert (diff.added, diff.removed, diff.kind) == (1, 1, "modified")


@pytest.mark.parametrize(("apart", "hunks"), [(6, 1), (7, 1), (8, 2), (20, 2)])
def test_changes_that_are_near_share_a_hunk(apart: int, hunks: int) -> None:
    old = numbered(60)
    new = "".join(changed(old, 20, 20 + apart)).encode()
    assert len(diff_file(A, "".join(old).encode(), new).hunks) == hunks


def test_created_and_deleted_files() -> None:
    made, gone = diff_file(A, None, b"one\n"), diff_file(A, b"one\n", None)
    assert (made.kind, made.hunks[0].header, made.old_blob) == ("added", "@@ -0,0 +1 @@", None)
    assert (gone.kind, gone.hunks[0].header, gone.new_blob) == ("deleted", "@@ -1 +0,0 @@", None)
    assert diff_file(A, None, b"").hunks == ()


def test_bytes_that_are_no_text_are_called_binary() -> None:
    assert diff_file(A, b"\0\1", b"\0\2").hunks == ()
    assert diff_file(A, b"\0\1", b"\0\2").binary
    latin = diff_file(A, b"caf\xe9\n...", b"caf\xe9!\n...")
    assert latin.binary
    assert latin.hunks[0].lines[0].text == "café"
    wide = diff_file(A, "one\n".encode("utf-16"), "two\n".encode("utf-16"))
    assert [line.text for line in wide.hunks[0].lines] == ["one", "two"]


def test_words_are_pointed_at() -> None:
    old, new = emphasize("the cat sat on the mat", "the dog sat on the big mat")
    assert [("the cat sat on the mat")[a:b] for a, b in old] == ["cat"]
    assert [("the dog sat on the big mat")[a:b] for a, b in new] == ["dog", " big"]
    assert emphasize("nothing alike", "1234 5678 9") == ([], [])
    assert emphasize("same", "same") == ([], [])
    assert emphasize("x " * 5000, "y " * 5000) == ([], [])


def test_matching_finds_what_difflib_is_slow_at() -> None:
    rng = random.Random(4)
    old = [line for n in range(4000) for line in (f"- item {n}", "")]
    new = [line for n, line in enumerate(old) if rng.random() > 0.01 or n % 2]
    blocks = matching_blocks(old, new)
    assert sum(size for *_, size in blocks) > 0.95 * len(new)


def test_opcodes_turn_one_text_into_the_other() -> None:
    rng = random.Random(7)
    for _ in range(300):
        old = [rng.choice("abcdefg") for _ in range(rng.randint(0, 30))]
        new = [rng.choice("abcdefg") for _ in range(rng.randint(0, 30))]
        built: list[str] = []
        end = 0
        for tag, a1, a2, b1, b2 in opcodes(old, new):
            assert a1 == end
            end = a2
            assert (tag == "equal") == (old[a1:a2] == new[b1:b2])
            built += old[a1:a2] if tag == "equal" else new[b1:b2]
        assert (built, end) == (new, len(old))


def test_git_applies_every_patch(tmp_path: Path) -> None:
    rng = random.Random(11)
    for case in range(60):
        folder = tmp_path / str(case)
        folder.mkdir()
        old = [rng.choice(["a", "b", "c", "", "ü x", "tab\t"]) for _ in range(rng.randint(0, 40))]
        new = [line for line in old if rng.random() > 0.2]
        for _ in range(rng.randint(0, 6)):
            new.insert(rng.randint(0, len(new)), rng.choice(["a", "new", "", "z\r"]))
        before = ("\n".join(old) + rng.choice(["", "\n"])).encode()
        after = ("\n".join(new) + rng.choice(["", "\n"])).encode()
        name = rng.choice(["a.md", "with blank.md", "ü.md", 'quo"te.md'])
        (folder / name).write_bytes(before)
        if before != after:
            apply_with_git(as_patch([diff_file(name, before, after)]), folder)
        assert (folder / name).read_bytes() == after


def test_git_applies_creations_deletions_and_renames(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("bye\n")
    (tmp_path / "old.md").write_text("1\n2\n3\n")
    patch = as_patch(
        [
            diff_file("gone.md", b"bye\n", None),
            diff_file("made.md", None, b"hi\n"),
            diff_file("sub/new.md", b"1\n2\n3\n", b"1\n2\n3\n4\n", "old.md"),
        ]
    )
    apply_with_git(patch, tmp_path)
    assert (tmp_path / "made.md").read_text() == "hi\n"
    assert (tmp_path / "sub" / "new.md").read_text() == "1\n2\n3\n4\n"
    assert not (tmp_path / "gone.md").exists()
    assert not (tmp_path / "old.md").exists()


def test_renames_are_found_by_content() -> None:
    long = "".join(numbered(20)).encode()
    assert find_renames({"new": long}, {"old": long, "other": b"x"}) == {"new": "old"}
    edited = "".join(changed(numbered(20), 3)).encode()
    assert find_renames({"new": edited}, {"old": long}) == {"new": "old"}
    assert find_renames({"new": b"quite\ndifferent\n"}, {"old": long}) == {}
    assert find_renames({"new": b""}, {"old": b""}) == {}
    same = {"a/x.md": long, "a/y.md": long}
    assert find_renames({"b/y.md": long, "b/x.md": long}, same) == {
        "b/x.md": "a/x.md",
        "b/y.md": "a/y.md",
    }


def test_many_large_texts_are_not_compared_with_each_other() -> None:
    numbers = "".join(f"{number}\n" for number in range(15_000)).encode()
    new = {f"new-{n}.csv": numbers + f"new {n}\n".encode() for n in range(50)}
    old = {f"old-{n}.csv": numbers + f"old {n}\n".encode() for n in range(50)}
    new["as-it-was.csv"] = old["old-0.csv"]
    assert find_renames(new, old) == {"as-it-was.csv": "old-0.csv"}
    assert len(find_renames(dict([*new.items()][:2]), dict([*old.items()][:2]))) == 2


def test_lines_end_at_newlines_only() -> None:
    assert split_lines("a\u2028b\x0cc\r\nd") == ["a\u2028b\x0cc\r\n", "d"]
    assert split_lines("") == []


def test_any_two_points_can_be_compared(notes: Notes) -> None:
    notes.write(A, "one\n")
    notes.write(B, "bee\n")
    notes.write(A, "two\n")
    with_files = notes.history.diff("HEAD~1", "HEAD")
    assert [(diff.path, diff.kind) for diff in with_files] == [(A, "modified")]
    assert [diff.kind for diff in notes.history.diff(None, "HEAD")] == ["added", "added"]
    assert [diff.kind for diff in notes.history.diff("HEAD", "HEAD~2")] == ["modified", "deleted"]
    assert notes.history.diff("HEAD", "HEAD") == ()


def test_the_working_tree_is_a_point_too(notes: Notes) -> None:
    notes.write(A, "one\n" * 5)
    notes.put(A, None)
    notes.put("knowledge/people/a.md", "one\n" * 5 + "two\n")
    notes.put("knowledge/topics/new.md", "new\n")
    diffs = notes.history.diff("HEAD")
    assert [(diff.path, diff.kind, diff.old_path) for diff in diffs] == [
        ("knowledge/people/a.md", "renamed", A),
        ("knowledge/topics/new.md", "added", None),
    ]
    (chosen,) = notes.history.diff("HEAD", paths=["knowledge/topics/new.md"])
    assert chosen.path == "knowledge/topics/new.md"
    assert [diff.path for diff in notes.history.diff("HEAD", paths=["knowledge/people"])] == [
        "knowledge/people/a.md"
    ]
    assert len(notes.history.diff(None)) == 2


def test_a_commit_is_compared_with_its_parent(notes: Notes) -> None:
    first = notes.write(A, "one\n")
    second = notes.write(A, "two\n")
    assert [diff.kind for diff in notes.history.changes_of(first.id)] == ["added"]
    (diff,) = notes.history.changes_of(second.id)
    assert [line.kind + line.text for line in diff.hunks[0].lines] == ["-one", "+two"]


def test_a_file_can_be_read_as_it_was(notes: Notes) -> None:
    notes.write(A, "one\n")
    notes.write(A, None)
    assert notes.history.read(A, "HEAD~1") == b"one\n"
    with pytest.raises(NotFoundError, match="topics/a did not exist"):
        notes.history.read(A, "HEAD")
    assert notes.history.tree("HEAD~1").keys() == {A}
    assert notes.history.tree("HEAD") == {}


@pytest.mark.data
def test_the_history_of_a_real_vault_is_compared_losslessly(data_dir: Path, tmp_path: Path) -> None:
    """The lines that we call added and removed turn each old text into the new one."""
    pairs = list(modified_texts(data_dir / "git" / "kepano-obsidian.git", tmp_path))
    assert len(pairs) > 20
    for old, new in pairs:
        lines = split_lines(old.decode("utf-8", "replace"))
        for hunk in reversed(diff_file("x.md", old, new).hunks):
            start = hunk.old_start - (1 if hunk.old_count else 0)
            lines[start : start + hunk.old_count] = [
                line.text + ("\n" if line.newline else "")
                for line in hunk.lines
                if line.kind != "-"
            ]
        assert "".join(lines) == new.decode("utf-8", "replace")


def modified_texts(source: Path, tmp_path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of old and new text out of a bare repository that came without its empty folders."""

    def git(*arguments: str) -> bytes:
        command = ["git", "--git-dir", tmp_path / "copy.git", *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "copy.git"], check=True)
    alternates = tmp_path / "copy.git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{source / 'objects'}\n")
    refs = [line.split() for line in (source / "packed-refs").read_text().splitlines()]
    tip = next(line[0] for line in refs if len(line) == 2 and line[1].startswith("refs/heads/"))
    commits = git("log", "-n40", "--format=%H", "--diff-filter=M", tip, "--", "*.md")
    for commit in commits.decode().split():
        listed = git("diff-tree", "-r", "--no-commit-id", "--diff-filter=M", commit)
        for line in listed.decode().splitlines()[:5]:
            _, _, old, new, _ = line.split(maxsplit=4)
            contents = [git("cat-file", "blob", blob) for blob in (old, new)]
            if all(b"\0" not in content[:8000] for content in contents):
                yield contents[0], contents[1]
