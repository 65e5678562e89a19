"""What a commit did, said in a sentence, of commits that a real history made."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Commit, Origin
from kbtui.history.objects.commit import SHIPPED
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.actors import committer
from kbtui.presentation.commit_summary import is_upkeep, sentence, summarize
from kbtui.presentation.notes import Names, all_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ALICE = "knowledge/people/alice.md"
AUTH = "knowledge/decisions/auth.md"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb", create=True) as kb:
        yield kb


def _changed(
    kb: KnowledgeBase,
    edits: Mapping[str, str | None],
    actor: Actor = Actor.AGENT,
    origin: Origin | None = None,
) -> Commit:
    with kb.history.change(actor, "", origin or Origin()) as change:
        for path, text in edits.items():
            if text is None:
                change.delete(path)
            else:
                change.write(path, text)
    assert change.result is not None
    return kb.history.commit(change.result.id)


def _names(kb: KnowledgeBase) -> Names:
    return Names(kb.library.infos())


def _person(name: str) -> str:
    return f"---\ntype: person\n---\n# {name}\n\nText.\n"


def test_what_was_written_is_named_by_title_and_sign(kb: KnowledgeBase) -> None:
    commit = _changed(
        kb, {ALICE: _person("Alice"), AUTH: "---\ntype: decision\n---\n# Auth by keys\n"}
    )
    said = sentence(commit, _names(kb))
    assert said in {
        "kbtui wrote ◆ Auth by keys and ● Alice",
        "kbtui wrote ● Alice and ◆ Auth by keys",
    }


def test_what_was_there_is_changed(kb: KnowledgeBase) -> None:
    _changed(kb, {ALICE: _person("Alice")})
    changed = _changed(kb, {ALICE: _person("Alice") + "More.\n"})
    assert str(summarize(changed, _names(kb))) == "changed ● Alice"


def test_a_deletion_is_named_after_it_is_gone_and_what_follows_is_counted(
    kb: KnowledgeBase,
) -> None:
    _changed(kb, {ALICE: _person("Alice"), AUTH: "# Auth\n\n[[alice]]\n"})
    commit = kb.library.delete("alice")
    assert commit is not None
    said = sentence(kb.history.commit(commit.id), _names(kb))
    assert said.startswith("You deleted ● Alice")
    assert "changed" not in said


def test_many_notes_are_counted_and_the_one_asked_about_comes_first(kb: KnowledgeBase) -> None:
    paths = [f"knowledge/topics/t{number}.md" for number in range(6)]
    commit = _changed(kb, dict.fromkeys(paths, "# T\n"), Actor.IMPORT)
    said = str(summarize(commit, Names(), paths[5]))
    assert said == "brought in ■ T5, ■ T0 and 4 more"


def test_a_client_has_its_own_name_and_people_theirs(kb: KnowledgeBase) -> None:
    origin = Origin(model="Claude Code")
    commit = _changed(kb, {ALICE: _person("Alice")}, Actor.MCP, origin)
    assert committer(commit) == "Claude Code"
    assert committer(_changed(kb, {ALICE: None}, Actor.DREAM)) == "Dream"


def test_an_undo_says_that_it_is_one(kb: KnowledgeBase) -> None:
    commit = _changed(kb, {ALICE: _person("Alice")})
    undone = kb.history.undo(commit.id)
    assert str(summarize(kb.history.commit(undone.id), _names(kb))).startswith("undid a change: ")


def test_what_only_follows_from_notes_is_upkeep(kb: KnowledgeBase) -> None:
    _changed(kb, {ALICE: _person("Alice")})
    assert is_upkeep(_changed(kb, {"knowledge/INDEX.md": "# Index\n"}))
    assert not is_upkeep(_changed(kb, {ALICE: None}))


def test_nothing_said_steers_a_terminal(kb: KnowledgeBase) -> None:
    commit = _changed(kb, {ALICE: "---\ntype: person\n---\n# A\x1b[2Jlice\u202e\n"})
    assert "\x1b" not in sentence(commit, _names(kb))
    assert "\u202e" not in sentence(commit, _names(kb))


def test_notes_that_were_found_are_said_to_have_been_there(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    for name in ("One", "Two"):
        (vault / f"{name}.md").write_text(f"# {name}\n")
    with KnowledgeBase.open(vault) as kb:
        *_, first = kb.history.log()
        assert sentence(first, _names(kb)) == "You had ○ One and ○ Two here already"


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(1, "You had ○ One and ○ Two here already"), (-1, "You wrote ○ One and ○ Two")],
    ids=["there before", "came since"],
)
def test_nor_does_it_count_that_something_was_typed_before_a_vault_had_been_read(
    tmp_path: Path, minutes: int, said: str
) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    for name in ("One", "Two"):
        (vault / f"{name}.md").write_text(f"# {name}\n")
    typed_at = datetime.now().astimezone() + timedelta(minutes=minutes)
    with KnowledgeBase.open(vault, starts=True, clock=lambda: typed_at) as kb:
        kb.library.create("topic", "Typed at once")
        kb.history.adopt(settle=0)
        assert sentence(next(iter(kb.history.log())), _names(kb)) == said


def test_nor_do_the_how_tos_count_that_the_app_had_written_before_it_read_a_vault(
    tmp_path: Path,
) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "One.md").write_text("# One\n")
    with KnowledgeBase.open(vault, starts=True) as kb:
        assert [commit.body for commit in kb.history.log()] == [SHIPPED]
        kb.history.adopt()
        assert sentence(next(iter(kb.history.log())), _names(kb)) == "You had ○ One here already"


def test_a_file_with_another_name_alone_is_told_by_the_names_of_files(kb: KnowledgeBase) -> None:
    _changed(kb, {ALICE: _person("Alice")})
    text = (kb.workspace.root / ALICE).read_text()
    other = "knowledge/people/boss.md"
    renamed = _changed(kb, {ALICE: None, other: text})
    assert str(summarize(renamed, _names(kb))) == "renamed ● Alice from alice to boss"
    moved = _changed(kb, {other: None, "knowledge/friends/boss.md": text})
    assert str(summarize(moved, _names(kb))) == "moved ● Alice from people to friends"


def test_the_note_of_a_conversation_is_told_by_what_was_talked_about(kb: KnowledgeBase) -> None:
    session = kb.sessions.create(title="The winter meeting")
    origin = Origin(session=session.id)
    talk = {"memory/2026-11-23-winter-meeting-poster.md": "# Session Memory\n"}
    commit = _changed(kb, talk, Actor.SESSION_MEMORY, origin)
    known = all_names(kb.library.infos(), kb.sessions)
    assert sentence(commit, known) == "kbtui wrote what “The winter meeting” was about"
    assert sentence(commit, _names(kb)) == "kbtui wrote what a conversation was about"
    undone = kb.history.undo(commit.id)
    assert undone is not None
    assert "deleted Conversation of" in sentence(undone, known)
