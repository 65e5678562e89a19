"""The example: a month that came about through the real door, and can be used as any other."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.maintenance.demo import StoryClock, plant
from kbtui.memory.recall.remembered import remembered
from kbtui.search.search_index import SearchIndex
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.workspace.opening import pop_first_note, set_first_note
from kbtui.workspace.scan import Scanner
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import hits_without

if TYPE_CHECKING:
    from collections.abc import Iterator

QUIET = {"search": {"semantic": False}}
WORDS_LISTED = """
    boiler antenna mira decided meeting tomato water winter key garden
    sensor letter week money repair called bread evening plan notes
"""
WORDS = WORDS_LISTED.split()


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("demo") / "notes"
    clock = StoryClock()
    with KnowledgeBase.open(root, create=True, overrides=QUIET, clock=clock) as planting:
        plant(planting.services, planting.memory, clock)
    with KnowledgeBase.open(root, overrides=QUIET) as kb:
        yield kb


def test_its_history_is_a_month_of_several_hands_in_order(kb):
    commits = list(kb.history.log())
    hands = {each.actor for each in commits}
    assert {Actor.YOU, Actor.AGENT, Actor.DREAM, Actor.IMPORT} <= hands
    times = [each.time for each in commits]
    assert times == sorted(times, reverse=True)
    now = datetime.now().astimezone()
    assert timedelta(days=26) < now - times[-1] < timedelta(days=30)
    assert now - times[0] < timedelta(days=3)
    assert len({each.date() for each in times}) >= 10


def test_dream_ran_once_and_has_read_all(kb):
    (dreamt,) = kb.history.log(actor=Actor.DREAM)
    assert dreamt.body.startswith("Dream read archive entries")
    assert "spare antenna" in kb.library.get("knowledge/people/mira-okafor.md").text
    assert not kb.memory.dream.has_news()


def test_two_proposals_wait_and_can_be_taken(kb):
    first, second = kb.memory.inbox.list()
    assert (first.actor, second.actor) == (Actor.DREAM, Actor.MCP)
    assert second.origin.model == "Claude Code"
    for each in (first, second):
        plan = kb.history.proposals.preview(each.id)
        assert len(plan.places) == 1
        assert not plan.conflicts


def test_every_message_is_accounted_for(kb):
    audit = kb.memory.audit()
    assert (audit.sessions, audit.unaccounted, audit.pending) == (4, 0, 0)
    assert audit.archived == audit.messages


def test_citations_lead_to_the_lines_that_say_so(kb):
    (info,) = [each for each in kb.sessions.list() if each.title == "Why SQLite"]
    cited = [c for m in kb.sessions.read(info.id) for c in m.meta.get("citations", ())]
    assert len(cited) == 3
    said = [_line(kb, each["path"], each["lines"][0]) for each in cited]
    assert "needs no server" in said[0]
    assert "InfluxDB" in said[1]
    assert "90 days" in said[2]


def _line(kb: KnowledgeBase, path: str, number: int) -> str:
    return kb.library.get(path).text.split("\n")[number - 1]


def test_why_leads_from_a_line_of_dreams_to_what_was_said(kb):
    text = kb.library.get("knowledge/people/mira-okafor.md").text.split("\n")
    at = next(n for n, line in enumerate(text, 1) if "spare antenna" in line)
    why = kb.provenance.why("knowledge/people/mira-okafor.md", at)
    assert why.commit is not None
    assert why.commit.actor is Actor.DREAM
    assert any("spare antenna" in each.content for each in why.messages)


def test_its_memory_has_lines_of_the_users_and_one_that_kbtui_kept(kb):
    origins = [each.origin for each in remembered(kb.history, kb.library) if each.origin]
    assert [each.actor for each in origins] == [Actor.YOU] * 3 + [Actor.AGENT]


def test_no_link_of_it_is_dead_and_all_is_well(kb):
    assert kb.checking.run() == []


def test_it_is_told_in_letters_only(kb):
    for info in kb.library.infos():
        text = kb.library.get(info.path).text
        assert not re.search(r"[\U0001f000-\U0001faff\u2600-\u27bf]", text)


def test_its_texts_are_the_same_each_time(kb, tmp_path):
    clock = StoryClock()
    with KnowledgeBase.open(tmp_path, create=True, overrides=QUIET, clock=clock) as again:
        plant(again.services, again.memory, clock)
        for info in kb.library.infos():
            assert again.library.get(info.path).text == kb.library.get(info.path).text
        assert [c.subject for c in again.history.log()] == [c.subject for c in kb.history.log()]


def test_what_happened_can_be_undone(tmp_path):
    clock = StoryClock()
    with KnowledgeBase.open(tmp_path, create=True, overrides=QUIET, clock=clock) as kb:
        plant(kb.services, kb.memory, clock)
    with KnowledgeBase.open(tmp_path, overrides=QUIET) as kb:
        kb.history.undo(next(kb.history.log()).id)
        assert "not the one before" not in kb.library.get("knowledge/topics/time-series.md").text


def test_the_first_look_is_given_once_and_only_at_what_is_there(kb):
    assert pop_first_note(kb.workspace) == "knowledge/topics/start-here.md"
    assert pop_first_note(kb.workspace) is None
    for path in ("knowledge/gone.md", "../outside.md", "/etc/passwd", "", "a\x00b"):
        set_first_note(kb.workspace, path)
        assert pop_first_note(kb.workspace) is None
    (Path(kb.workspace.root) / ".kbtui" / "first-look").write_bytes(b"\xff\xfe")
    assert pop_first_note(kb.workspace) is None


def test_no_hit_above_the_line_lacks_the_word(kb):
    model = ReadyModel(WordEmbedder())
    index = SearchIndex(
        kb.workspace, Scanner(kb.workspace), SearchSettings(), RoleSettings(), model=model
    )
    found = {word: hits_without(index, kb.workspace.root, word) for word in WORDS}
    index.close()
    assert found == {word: [] for word in WORDS}
