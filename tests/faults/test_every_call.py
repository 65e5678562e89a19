"""Killed at each call of each kind of work: no text lost, no hand needed, no litter."""

from __future__ import annotations

import shutil
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from kbtui.errors import ConflictError, NotFoundError, UsageError
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.history.objects.packing import Packing
from kbtui.history.sync import shared_folder
from kbtui.history.sync.sync import SyncRules, UnversionedRules, parse_address
from kbtui.importers.engine import find_source, run
from kbtui.importers.export_files import OpenedExport
from kbtui.knowledge.library.library import Library
from kbtui.knowledge_base import KnowledgeBase
from kbtui.maintenance.purge import Purging
from kbtui.redaction.secret import Secret
from kbtui.search.search_index import SearchIndex
from kbtui.sessions.store import SessionStore
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import create_workspace, open_workspace
from kbtui.workspace.scan import Scanner
from tests.faults.every_call import Case, Kind, kill_everywhere
from tests.faults.world import GONE, A, B, apply, make_world
from tests.importers.exports import claude, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.every_call import Tally

_SAID = ("What is a quince?", "A fruit.", "And a medlar?", "Another one.")
SECRET = "hunter2-of-the-long-evening"


def _world(at: Case) -> None:
    make_world(at.notes)


def _changed(at: Case) -> None:
    make_world(at.notes)
    apply(at.history(), 1)


def _change(at: Case) -> None:
    apply(at.history(), 1)
    at.told.append("begin knowledge/topics/a.md 1")


def _conflict(at: Case) -> None:
    workspace = open_workspace(at.notes)
    clock = lambda: datetime(2026, 11, 22, tzinfo=UTC)  # noqa: E731
    history = History(workspace, Scanner(workspace), clock)
    history.open()
    with suppress(ConflictError), history.change(Actor.AGENT, "late") as change:
        change.write(A, "what lost\n", expecting="0" * 40)
    at.told.append("what lost")


def _linked(at: Case) -> None:
    create_workspace(at.notes)
    with at.history().change(Actor.YOU, "notes") as change:
        change.write("knowledge/topics/bridge.md", "# Bridge\n\nWood.\n")
        for number in range(3):
            change.write(f"knowledge/topics/note-{number}.md", f"# {number}\n\n[[bridge]]\n")


def _library(at: Case) -> Library:
    history = at.history()
    workspace = open_workspace(at.notes)
    return Library(workspace, history, Scanner(workspace))


def _rename(at: Case) -> None:
    with suppress(NotFoundError):
        _library(at).rename("topics/bridge", "Old bridge")
    at.told.append("[[old-bridge")


def _delete(at: Case) -> None:
    with suppress(NotFoundError):
        _library(at).delete("topics/bridge")


def _undo(at: Case) -> None:
    history = at.history()
    made = next(each for each in history.log() if "change 1" in each.body)
    with suppress(UsageError):
        history.undo(made.id)


def _restore(at: Case) -> None:
    history = at.history()
    first = [each.id for each in history.log()][-1]
    history.restore(A, first)
    history.restore(B, first)


def _rewind(at: Case) -> None:
    history = at.history()
    made = next(each for each in history.log() if "change 1" in each.body)
    history.restore_before(made.id)


def _propose(at: Case) -> None:
    history = at.history()
    with history.change(
        Actor.DREAM, "perhaps", sink=lambda change: history.proposals.add(change, id="p")
    ) as change:
        change.write(A, "proposed\n")


def _proposed(at: Case) -> None:
    make_world(at.notes)
    _propose(at)


def _accept(at: Case) -> None:
    with suppress(NotFoundError):
        at.history().proposals.accept("p")
    at.told.append("proposed")


def _drop(at: Case) -> None:
    with suppress(NotFoundError):
        at.history().proposals.drop("p")


def _edited(at: Case) -> None:
    make_world(at.notes)
    (at.notes / A).write_text("by hand\n")
    (at.notes / "knowledge/topics/new.md").write_text("a new one\n")
    (at.notes / B).unlink()


def _adopt(at: Case) -> None:
    history = at.history()
    history.adopt(settle=0)
    head = history.tree("HEAD")
    assert "knowledge/topics/new.md" in head
    assert B not in head


def _sync(at: Case) -> None:
    at.history().sync(parse_address(str(at.remote)))


def _apart(at: Case) -> None:
    """Both machines have gone on since they were in step."""
    make_world(at.notes)
    _sync(at)
    _clone(at)
    other = at.history(at.other)
    _write(other, "knowledge/topics/theirs.md", "theirs\n")
    other.sync(parse_address(str(at.remote)))
    _write(at.history(), "knowledge/topics/ours.md", "ours\n")


def _clone(at: Case) -> None:
    create_workspace(at.other)
    at.history(at.other).sync(parse_address(str(at.remote)))


def _write(history: History, path: str, text: str) -> None:
    with history.change(Actor.YOU, "more") as change:
        change.write(path, text)


def _behind(at: Case) -> None:
    make_world(at.notes)
    _sync(at)
    _clone(at)
    other = at.history(at.other)
    apply(other, 1)
    other.sync(parse_address(str(at.remote)))


def _sync_after_the_other(at: Case) -> None:
    """The other machine syncs first: what a dead one left must not keep it from that."""
    if at.other.exists():
        at.history(at.other).sync(parse_address(str(at.remote)))
    _sync(at)


def _sync_joining(at: Case) -> None:
    """The folder has more packs than it is to have."""
    with patch.object(shared_folder, "MAX_PACKS", 1):
        _sync(at)


def _sync_all(at: Case, root: Path | None = None) -> None:
    along = UnversionedRules(("docs", "sessions"), lambda _: nullcontext())
    at.history(root).sync(parse_address(str(at.remote)), rules=SyncRules(companions=along))


def _apart_with_documents(at: Case) -> None:
    """Both machines have other documents and have gone on with conversations."""
    make_world(at.notes)
    create_workspace(at.other)
    names = (
        "docs/a.txt",
        "docs/b.txt",
        "docs/gone.txt",
        "sessions/one.jsonl",
        "sessions/two.jsonl",
    )
    for name in names:
        (at.notes / name).write_text(f"{name}\n")
    _sync_all(at)
    _sync_all(at, at.other)
    for root, side in ((at.other, "theirs"), (at.notes, "ours")):
        (root / f"docs/{side}.txt").write_text(f"{side}\n")
        (root / "docs/a.txt").write_text(f"a of {side}\n")
        with (root / "sessions/one.jsonl").open("a") as log:
            log.write(f"{side}\n")
    with (at.other / "sessions/two.jsonl").open("a") as log:
        log.write("more\n")
    (at.other / "docs/gone.txt").unlink()
    _sync_all(at, at.other)


def _secret(at: Case) -> None:
    make_world(at.notes)
    history = at.history()
    _write(history, "knowledge/topics/leak.md", f"the key is {SECRET}, see\n")
    _write(history, A, f"# A\n\n{SECRET}\n")
    session = at.notes / "sessions" / "s.jsonl"
    session.write_text('{"role": "user", "content": "it is ' + SECRET + '"}\n')


def _purge(at: Case) -> None:
    workspace = open_workspace(at.notes)
    done = Purging(workspace, at.history()).run(Secret(SECRET))
    assert done.left == ()


def _many(at: Case) -> None:
    make_world(at.notes)
    history = at.history()
    for number in range(1, 4):
        apply(history, number)


def _tidy(at: Case) -> None:
    history = at.history()
    Packing(history._repository, enough=0, alone=history.alone, whole=True).run()


def _talk(at: Case) -> None:
    store = SessionStore(open_workspace(at.notes), lambda: datetime(2026, 11, 22, tzinfo=UTC))
    try:
        session = store.open("s1")
    except NotFoundError:
        session = store.create("tui", id="s1")
    said = {message.content for message in session.messages}
    for number in range(3):
        text = f"message number {number}"
        if text not in said:
            session.append("user", text)
        at.told.append(text)
    session.close()


def _exported(at: Case) -> None:
    _world(at)
    written(at.folder / "export.json", [claude("c1", *_SAID[:2]), claude("c2", *_SAID[2:])])


def _import(at: Case) -> None:
    overrides = {"search": {"semantic": False}}
    with (
        KnowledgeBase.open(at.notes, overrides=overrides) as kb,
        OpenedExport(at.folder / "export.json") as opened,
    ):
        source = find_source(opened)
        assert source is not None
        run(kb.services, opened, source)


def _search(at: Case, word: str) -> list[str]:
    workspace, settings = open_workspace(at.notes), SearchSettings(semantic=False)
    index = SearchIndex(workspace, Scanner(workspace), settings, RoleSettings())
    try:
        return [hit.path for hit in index.search(word).hits]
    finally:
        index.close()


def _indexed(at: Case) -> None:
    make_world(at.notes)
    (at.notes / A).write_text("a medlar\n")
    assert _search(at, "medlar") == [A]
    (at.notes / A).write_text("a quince\n")
    (at.notes / B).unlink()


def _index(at: Case) -> None:
    assert _search(at, "quince") == [A]
    assert _search(at, "medlar") == []
    assert _search(at, "line") == [GONE]


def _large(at: Case) -> None:
    create_workspace(at.notes)
    with at.history().change(Actor.YOU, "notes") as change:
        for number in range(60):
            change.write(f"knowledge/topics/note-{number}.md", f"# {number}\n")


def _rewrite(at: Case) -> None:
    with at.history().change(Actor.YOU, "rewritten") as change:
        for number in range(60):
            change.write(f"knowledge/topics/note-{number}.md", f"# {number}\n\nMore.\n")
    at.told.append("More.")


def _begin(at: Case) -> None:
    create_workspace(at.notes)
    apply(at.history(), 1)


KINDS = {
    "a new workspace": Kind(lambda at: at.folder.mkdir(exist_ok=True), _begin),
    "a change": Kind(_world, _change),
    "a conflict": Kind(_world, _conflict),
    "a rename with links": Kind(_linked, _rename),
    "a delete with links": Kind(_linked, _delete),
    "an undo": Kind(_changed, _undo),
    "two restores": Kind(_changed, _restore, partly=True),
    "back to before": Kind(_changed, _rewind),
    "a proposal": Kind(_world, _propose),
    "an acceptance": Kind(_proposed, _accept),
    "a rejection": Kind(_proposed, _drop),
    "an adoption": Kind(_edited, _adopt, adopts=True),
    "a first sync": Kind(_world, _sync),
    "a sync that merges": Kind(_apart, _sync),
    "a sync that follows": Kind(_behind, _sync),
    "a sync, then the other's": Kind(_apart, _sync_after_the_other),
    "a sync that joins packs": Kind(_apart, _sync_joining),
    "a sync with documents": Kind(_apart_with_documents, _sync_all, partly=True),
    "a purge": Kind(_secret, _purge, purges=True, partly=True),
    "packing": Kind(_many, _tidy),
    "a change of sixty files": Kind(_large, _rewrite),
    "an import": Kind(_exported, _import, says=_SAID, partly=True),
    "a conversation": Kind(_world, _talk, appends=True),
    "an indexing": Kind(_indexed, _index, adopts=True),
}


@pytest.mark.parametrize("name", KINDS)
def test_killed_at_any_call_it_goes_on_by_itself(
    name: str,
    place: Path,
    kills_a_kind: int | None,
    monkeypatch: pytest.MonkeyPatch,
    figures: list[tuple[str, Tally]],
) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, "")  # to be put back
    tally = kill_everywhere(KINDS[name], place / "stage", place / "case", most=kills_a_kind)
    shutil.rmtree(place / "case")
    figures.append((name, tally))
    assert tally.wrong == []
    assert tally.kills > 3
