"""The log: order, filters, renames, and a table that can be lost at any time."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.derived import DerivedDatabase
from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor
from kbtui.history.objects.commit import RawCommit
from kbtui.history.queries import log as commit_log
from kbtui.history.queries.log import CommitLog

if TYPE_CHECKING:
    from kbtui.history.objects.commit import Commit
    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"


def rename(notes: Notes, old: str, new: str) -> None:
    with notes.history.change(Actor.YOU, "") as change:
        change.rename(old, new)


@pytest.fixture
def busy(notes: Notes) -> Notes:
    """Six commits: what happens to a note that is renamed twice, between other things."""
    notes.write(A, "first\nsecond\nthird\n", Actor.AGENT, turn="t1")
    notes.write(B, "other\n", Actor.DREAM)
    notes.write(A, "first\nsecond\nthird\nfourth\n")
    rename(notes, A, "knowledge/people/a.md")
    notes.write("knowledge/people/a.md", "first\nsecond\nthird\n4th\n", Actor.AGENT, turn="t1")
    rename(notes, "knowledge/people/a.md", "knowledge/facts/a.md")
    return notes


def subjects(notes: Notes, path: str | None = None, **filters: object) -> list[str]:
    return [commit.subject for commit in notes.history.log(path, **filters)]  # type: ignore[arg-type]


def test_commits_come_newest_first(busy: Notes) -> None:
    assert subjects(busy) == [
        "people/a renamed to facts/a",
        "people/a: +1 -1 lines",
        "topics/a renamed to people/a",
        "topics/a: +1 line",
        "topics/b created",
        "topics/a created",
    ]
    ids = [commit.id for commit in busy.history.log()]
    assert ids == busy.git("rev-list", "HEAD").split()


def test_a_path_is_followed_through_its_renames(busy: Notes) -> None:
    assert subjects(busy, "knowledge/facts/a.md") == [
        "people/a renamed to facts/a",
        "people/a: +1 -1 lines",
        "topics/a renamed to people/a",
        "topics/a: +1 line",
        "topics/a created",
    ]


def test_an_old_name_tells_what_became_of_it(busy: Notes) -> None:
    assert subjects(busy, A)[0] == "topics/a renamed to people/a"
    assert len(subjects(busy, A)) == 3


def test_a_folder_is_a_path_too(busy: Notes) -> None:
    assert subjects(busy, "knowledge/topics") == [
        "topics/a renamed to people/a",
        "topics/a: +1 line",
        "topics/b created",
        "topics/a created",
    ]
    assert subjects(busy, "knowledge/top") == []


def test_filters_narrow_the_log(busy: Notes) -> None:
    assert len(subjects(busy, actor=Actor.AGENT)) == 2
    assert subjects(busy, actor=Actor.DREAM) == ["topics/b created"]
    assert len(subjects(busy, turn="t1")) == 2
    assert subjects(busy, text="CREATED") == ["topics/b created", "topics/a created"]
    assert subjects(busy, text="a reason", limit=1) == ["people/a: +1 -1 lines"]
    assert subjects(busy, "knowledge/facts/a.md", actor=Actor.AGENT) == [
        "people/a: +1 -1 lines",
        "topics/a created",
    ]
    assert subjects(busy, limit=0) == []


def test_the_time_filter_includes_both_ends(busy: Notes) -> None:
    commits = list(busy.history.log())
    found = busy.history.log(since=commits[4].time, until=commits[3].time)
    assert list(found) == commits[3:5]


def test_a_commit_carries_its_paths(busy: Notes) -> None:
    newest = next(busy.history.log())
    assert [(p.path, p.kind, p.old_path) for p in newest.paths] == [
        ("knowledge/facts/a.md", "renamed", "knowledge/people/a.md")
    ]
    assert busy.history.commit("HEAD") == newest


def test_a_new_commit_is_added_without_looking_at_trees(
    busy: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [commit.id for commit in busy.history.log()]
    monkeypatch.setattr(CommitLog, "_paths_between", lambda *_: pytest.fail("looked at trees"))
    made = busy.write(B, "more\n")
    assert [commit.id for commit in busy.history.log()] == [made.id, *expected]


def test_the_log_is_lazy(busy: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        busy.write(B, f"{number}\n")
    monkeypatch.setattr(commit_log, "PAGE", 16)
    pages: list[int] = []
    real = CommitLog._query

    def counted(self: CommitLog, work: Any) -> Any:
        if getattr(work, "func", None) is commit_log.page:
            pages.append(1)
        return real(self, work)

    monkeypatch.setattr(CommitLog, "_query", counted)
    assert len(list(islice(busy.history.log(), 10))) == 10
    assert len(pages) == 1
    assert len(list(busy.history.log())) == 36
    assert len(pages) == 1 + 4


@pytest.mark.parametrize("damage", [b"", b"garbage" * 1000], ids=["empty", "garbage"])
def test_a_damaged_table_is_rebuilt(busy: Notes, damage: bytes) -> None:
    expected = list(busy.history.log())
    busy.history._log._database.close()
    (busy.workspace.cache / "commits.sqlite").write_bytes(damage)
    assert list(busy.reopened().log()) == expected


@pytest.mark.parametrize("error", [sqlite3.OperationalError, sqlite3.DatabaseError])
def test_a_table_that_fails_at_any_moment_tells_all_the_same(
    busy: Notes, monkeypatch: pytest.MonkeyPatch, error: type[sqlite3.Error]
) -> None:
    first = [*busy.history.log()][-1].id
    left, real = 0, DerivedDatabase._attempt

    def attempt(database: DerivedDatabase, work: Any, begin: str) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise error("database is locked")
        return real(database, work, begin)

    monkeypatch.setattr(DerivedDatabase, "_attempt", attempt)
    for moment in count(1):
        history = busy.reopened()
        busy.write(B, f"{moment}\n")  # which the table of `history` lacks
        left = moment
        told = [each.id for each in history.log()], [each.id for each, _ in history.later(first, A)]
        has_failed, left = left <= 0, 0
        ids = busy.git("rev-list", "HEAD").split()
        assert told == (ids, [each.id for each, _ in busy.reopened().later(first, A)]), moment
        if not has_failed:  # it was asked less often
            break
    assert moment > 5


def test_a_wrong_row_is_noticed_and_rebuilt(busy: Notes) -> None:
    expected = list(busy.history.log())
    database = busy.history._log._database
    database.run(lambda db: db.execute("UPDATE commits SET message = 'forged' WHERE seq = 2"))
    assert list(busy.history.log()) == expected


def test_a_history_that_was_rewritten_is_read_again(busy: Notes) -> None:
    expected = list(busy.history.log())[2:]
    busy.git("update-ref", "refs/heads/main", "HEAD~2")
    assert list(busy.history.log()) == expected


def test_a_history_that_vanished_is_empty(busy: Notes) -> None:
    list(busy.history.log())
    busy.git("update-ref", "-d", "refs/heads/main")
    assert list(busy.history.log()) == []


def test_another_process_sees_new_commits(busy: Notes) -> None:
    other = busy.reopened()
    assert len(list(other.log())) == 6
    busy.write(B, "more\n")
    assert len(list(other.log())) == 7


def test_a_commit_of_another_git_program_is_the_users(busy: Notes) -> None:
    tree = busy.git("rev-parse", "HEAD~1^{tree}").strip()
    made = busy.git(
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@y",
        "commit-tree",
        tree,
        "-p",
        "HEAD",
        "-m",
        "By hand\n\nActor: unheard-of",
    ).strip()
    busy.git("update-ref", "refs/heads/main", made)
    newest = next(busy.history.log())
    assert newest.subject == "By hand"
    plain = busy.git(
        "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", tree, "-p", made, "-m", "Plain"
    ).strip()
    busy.git("update-ref", "refs/heads/main", plain)
    newest = next(busy.history.log())
    assert (newest.subject, newest.body, newest.actor) == ("Plain", "", Actor.YOU)


def test_revisions_are_named_in_many_ways(busy: Notes) -> None:
    ids = [commit.id for commit in busy.history.log()]
    resolve = busy.history.resolve
    assert resolve("HEAD") == resolve("head") == resolve("@") == ids[0]
    assert resolve(ids[2]) == resolve(ids[2][:7]) == resolve(ids[2][:7].upper()) == ids[2]
    assert resolve("HEAD~2") == resolve("HEAD^^") == resolve("HEAD~1^") == ids[2]
    assert resolve(f"{ids[1][:8]}~1") == ids[2]
    assert resolve("HEAD~0") == ids[0]


def test_a_date_names_the_last_commit_up_to_it(busy: Notes) -> None:
    commits = list(busy.history.log())
    resolve = busy.history.resolve
    assert resolve(commits[3].time.isoformat()) == commits[3].id
    assert resolve((commits[3].time + timedelta(seconds=59)).isoformat()) == commits[3].id
    local = commits[0].time.astimezone().date().isoformat()
    assert resolve(local) == commits[0].id
    with pytest.raises(NotFoundError, match="no commit up to"):
        resolve("2020-01-01")


@pytest.mark.parametrize(
    "rev", ["", "nonsense", "HEAD~99", "abcd" * 10, "2026-13-45", "../x", "-1"]
)
def test_what_names_no_commit_is_said(busy: Notes, rev: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        busy.history.resolve(rev)
    assert caught.value.hint


def test_an_ambiguous_short_id_asks_for_more(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.write(A, "x\n")
    monkeypatch.setattr(
        type(notes.history._repository),
        "with_prefix",
        lambda *_: ["abcd1" + "0" * 35, "abcd2" + "0" * 35],
    )
    with pytest.raises(UsageError, match="several commits"):
        notes.history.resolve("abcd")


def test_before_the_first_commit_there_is_nothing(notes: Notes) -> None:
    assert notes.history.head() is None
    assert list(notes.history.log()) == []
    with pytest.raises(NotFoundError, match="no commit yet"):
        notes.history.resolve("HEAD")


def test_times_are_aware_and_utc(busy: Notes) -> None:
    newest = next(busy.history.log())
    assert newest.time.tzinfo == UTC
    assert newest.time > datetime(2026, 11, 21, tzinfo=UTC)


def test_that_there_are_merges_is_known_without_reading_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who syncs has thousands of them, and every listing asks."""

    def read(_: object) -> Commit:
        raise AssertionError

    monkeypatch.setattr(commit_log, "_commit", read)
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for statement in commit_log.SCHEMA:
            db.execute(statement)
        assert not commit_log.has_merges(db)
        for number, parents in enumerate([(), ("a",), ("b", "c")]):
            row = (str(number), RawCommit("", parents, datetime.now(UTC), ""), ())
            commit_log.append(db, number, [row])
            assert commit_log.has_merges(db) is (number == 2)
