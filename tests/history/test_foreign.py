"""Other people's repositories: real packs, merges, odd commits, and what is broken in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UsageError
from kbtui.history.history import History
from kbtui.history.queries.diff import as_patch
from kbtui.history.queries.reader import open_foreign
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.history.queries.reader import HistoryReader

WHO = ["-c", "user.name=Zoe", "-c", "user.email=z@example.org", "-c", "commit.gpgsign=false"]


def git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    run = subprocess.run(
        ["git", *WHO, "-c", "safe.directory=*", *arguments],
        cwd=folder, env=env, input=data, check=True, capture_output=True,
    )  # fmt: skip
    return run.stdout.decode("utf-8", "replace").strip()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a working tree and a few commits on `trunk`."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    for number in range(3):
        (folder / "a.md").write_text("".join(f"line {n}\n" for n in range(number + 1)))
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"commit {number}")
    return folder


@pytest.mark.data
def test_a_real_history_is_browsed_whole_and_nothing_is_written(
    data_dir: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kepano.git"
    shutil.copytree(data_dir / "git" / "kepano-obsidian.git", folder)
    before = contents(folder)
    history = open_foreign(folder)
    commits = list(history.log())
    (folder / "refs").mkdir(exist_ok=True)  # real git wants it, empty as it is
    assert {commit.id for commit in commits} == set(git(folder, "rev-list", "HEAD").split())
    assert sum(bool(commit.merged) for commit in commits) == 13
    for number, commit in enumerate(commits):
        as_patch(history.changes_of(commit.id))
        tree = history.tree(commit.id)
        if number % 10 == 0:
            theirs = git(folder, "ls-tree", "-r", "-z", commit.id).split("\0")
            assert tree == {line.split("\t", 1)[1]: line.split()[2] for line in theirs if line}, (
                commit.id
            )
    path = "Categories/Books.md"
    assert history.read(path, "HEAD").decode().strip() == git(folder, "show", f"HEAD:{path}")
    ours = [commit.id for commit in history.log(path)]
    theirs = git(folder, "rev-list", "HEAD", "--", path).split()
    assert set(theirs) <= set(ours)
    assert contents(folder) == before


@pytest.mark.data
def test_a_workspace_may_go_on_from_a_real_history(data_dir: Path, tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "notes")
    shutil.rmtree(workspace.repository, ignore_errors=True)
    shutil.copytree(data_dir / "git" / "kepano-obsidian.git", workspace.repository)
    history = History(workspace, Scanner(workspace))
    history.open()
    merge = next(commit for commit in history.log() if commit.merged)
    side = history.commit(merge.merged[0])
    theirs = open_foreign(data_dir / "git" / "kepano-obsidian.git").tree("HEAD")
    beside = {path.partition("/")[0] for path in theirs}
    (workspace.knowledge / "topics").mkdir(parents=True, exist_ok=True)
    (workspace.knowledge / "topics/mine.md").write_text("# Mine\n")
    assert history.adopt(settle=0) is not None
    assert history.tree("HEAD").keys() == {"knowledge/topics/mine.md"}
    now = set(git(workspace.repository, "ls-tree", "-z", "HEAD", "--name-only").split("\0"))
    assert now - {""} == {*beside, "knowledge"}, "what is no part of a workspace is kept"
    assert git(workspace.repository, "fsck", "--full", "--no-dangling") == ""
    assert side.id in {commit.id for commit in history.log()}


def test_what_a_merge_brought_in_is_listed_filtered_and_undone(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "notes")
    history = History(workspace, Scanner(workspace))
    history.open()
    note = workspace.knowledge / "a.md"
    note.write_text("one\n-\nthree\n-\n-\n")
    history.adopt(settle=0)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-b", "main", str(workspace.repository), str(clone))
    for old, new in (("three", "THREE"), ("one", "ONE")):
        file = clone / "knowledge/a.md"
        file.write_text(file.read_text().replace(old, new))
        git(clone, "commit", "-qam", f"left {new}")
    note.write_text("one\n-\nthree\n-\n-\nfour\n")
    history.adopt(settle=0)
    git(clone, "fetch", "-q")
    git(clone, "checkout", "-q", "-b", "merged", "origin/main")
    git(clone, "merge", "-q", "--no-ff", "-m", "Both", "main")
    git(clone, "push", "-q", "origin", "merged:main")
    note.write_text("ONE\n-\nTHREE\n-\n-\nfour\n")
    history.adopt(settle=0)
    subjects = [commit.subject for commit in history.log()]
    assert subjects[:3] == ["Both", "left ONE", "left THREE"]
    assert len(subjects) == 5
    assert [c.subject for c in history.log(text="left")] == ["left ONE", "left THREE"]
    assert "left THREE" in [c.subject for c in history.log("knowledge/a.md")]
    assert [c.subject for c in history.log(text="left", limit=1)] == ["left ONE"]
    side = next(commit for commit in history.log() if commit.subject == "left THREE")
    undo = history.undo(side.id)
    assert note.read_text() == "ONE\n-\nthree\n-\n-\nfour\n"
    history.undo(undo.id)
    assert note.read_text() == "ONE\n-\nTHREE\n-\n-\nfour\n"


def test_a_branch_of_any_name_a_detached_head_and_one_without_commits(
    repo: Path, tmp_path: Path
) -> None:
    assert [c.subject for c in open_foreign(repo).log()] == ["commit 2", "commit 1", "commit 0"]
    git(repo, "checkout", "-q", "--detach", "HEAD~1")
    assert [c.subject for c in open_foreign(repo).log()] == ["commit 1", "commit 0"]
    git(repo, "checkout", "-q", "trunk")
    git(repo, "pack-refs", "--all")
    assert len(list(open_foreign(repo).log())) == 3
    git(repo, "symbolic-ref", "HEAD", "refs/heads/unborn")
    unborn = open_foreign(repo)
    assert list(unborn.log()) == []
    with pytest.raises(NotFoundError, match="no commit yet"):
        unborn.resolve("HEAD")


def test_odd_commits_are_read(repo: Path) -> None:
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    latin = f"tree {tree}\nauthor J\xfcrgen <j> 99999999999999 +0000\n".encode("latin-1")
    latin += b"committer x <x> -5 +0000\nencoding ISO-8859-1\n\nGr\xfc\xdfe\n"
    odd = git(repo, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", data=latin)
    git(repo, "update-ref", "refs/heads/trunk", odd)
    module = git(repo, "mktree", data=f"160000 commit {odd}\tmodule\n".encode())
    second = git(repo, "commit-tree", module, "-p", odd, "-m", "a module and no file")
    git(repo, "update-ref", "refs/heads/trunk", second)
    history = open_foreign(repo)
    newest, first = history.log()
    assert first.subject == "Gr\xfc\xdfe"
    assert [diff.kind for diff in history.changes_of(newest.id)] == ["deleted"]
    assert history.tree(newest.id) == {}


def test_a_name_that_is_no_text_is_shown_as_far_as_it_is(repo: Path) -> None:
    blob = git(repo, "hash-object", "-w", "--stdin", data=b"hello\n")
    data = f"100644 blob {blob}\tJ".encode() + b"\xfcrgen.md\0"
    tree = git(repo, "mktree", "-z", data=data)
    head = git(repo, "rev-parse", "HEAD")
    made = git(repo, "commit-tree", tree, "-p", head, "-m", "an old name")
    git(repo, "update-ref", "refs/heads/trunk", made)
    history = open_foreign(repo)
    newest, *_ = history.log()
    assert {path.path for path in newest.paths} >= {"J\ufffdrgen.md"}
    assert list(history.tree(newest.id)) == ["J\ufffdrgen.md"]


def _browse(history: HistoryReader) -> None:
    for commit in history.log():
        history.changes_of(commit.id)
        for blob in history.tree(commit.id).values():
            history.read_blob(blob)


@pytest.mark.parametrize("damage", ["loose", "missing", "pack", "index", "no pack", "ref"])
def test_what_is_broken_is_said_in_a_sentence(repo: Path, damage: str) -> None:
    if damage in {"pack", "index", "no pack"}:
        git(repo, "gc", "-q")
        suffix = "idx" if damage == "index" else "pack"
        (broken,) = (repo / ".git/objects/pack").glob(f"*.{suffix}")
    elif damage == "ref":
        broken = repo / ".git/refs/heads/trunk"
    else:
        blob = git(repo, "rev-parse", "HEAD~1:a.md")
        broken = repo / ".git/objects" / blob[:2] / blob[2:]
    broken.chmod(0o644)
    if damage in {"missing", "no pack"}:
        broken.unlink()
    else:
        data = bytearray(broken.read_bytes())
        data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
        broken.write_bytes(data)
    with pytest.raises(KbtuiError) as caught:
        _browse(open_foreign(repo))
    assert caught.value.message
    assert caught.value.hint


def test_what_is_no_repository_or_of_another_kind_is_refused(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no git repository"):
        open_foreign(tmp_path)
    with (repo / ".git/config").open("a") as config:
        config.write("[extensions]\n\tobjectFormat = sha256\n")
    with pytest.raises(UnreadableError, match="objectFormat = sha256"):
        open_foreign(repo)


def test_a_branch_that_real_git_moves_meanwhile_is_followed(repo: Path) -> None:
    history = open_foreign(repo)
    assert len(list(history.log())) == 3
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    assert [commit.subject for commit in history.log()] == ["commit 1", "commit 0"]
    with pytest.raises(UsageError, match="no files beside"):
        history.diff("HEAD")


def test_a_commit_that_left_the_branch_cant_be_undone(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "notes")
    history = History(workspace, Scanner(workspace))
    history.open()
    note = workspace.knowledge / "a.md"
    for text in ("one\n", "two\n", "three\n"):
        note.write_text(text)
        history.adopt(settle=0)
    left = history.resolve("HEAD~1")
    git(workspace.repository, "update-ref", "refs/heads/main", "HEAD~2")
    head = history.head()
    with pytest.raises(NotFoundError, match="not part of this history"):
        history.undo(left)
    assert history.head() == head
    assert note.read_text() == "three\n"
