"""What nobody said isn't written, whatever kind of Markdown it stands in and whoever writes it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import KbtuiError, UsageError
from kbtui.history.change import Actor
from kbtui.knowledge.format.facts import Fact
from kbtui.memory.dream.tools import Wording, make_edits
from kbtui.memory.edits.editor import Author, edit_entry, rename_entry, write_entry
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.keeping import keep_facts
from kbtui.memory.edits.said import UserSentences
from tests.memory.dream_room import add, do, edit, machine
from tests.memory.memory_room import open_room
from tests.memory.plants import BODIES, INVENTION, LINE, SAID, WORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.memory.edits.editor import Operation
    from kbtui.memory.edits.working_copy import WorkingCopy
    from tests.memory.memory_room import Room

DAY = date(2026, 3, 6)
ENTRY = "---\ntype: {}\ntags: [work]\nrelated: []\n---\n# {}\n\n- Lives in Bonn\n"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = open_room(tmp_path_factory.mktemp("planted") / "notes")
    files = {
        "people__alice": ENTRY.format("person", "Alice"),
        "topics__db": ENTRY.format("topic", "DB"),
    }
    machine(room, MEMORY="# Memory\n\n- Likes tea\n", **files)
    room.library.refresh()
    yield room
    room.close()


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A workspace in which the inventions were forgotten."""
    room = open_room(tmp_path_factory.mktemp("forgetful") / "notes")
    machine(room, people__alice=ENTRY.format("person", "Alice"))
    with room.history.change(Actor.YOU, "forget") as change:
        room.pipeline.tombstones.bury(change, [WORD, INVENTION, f"note: {INVENTION}"])
    yield room
    room.close()


def _copy(room: Room, actor: Actor) -> WorkingCopy:
    """Open a working copy for a writer that builds on `SAID` alone."""
    by_tool = actor is Actor.AGENT
    author = Author(
        actor,
        ground=Ground.of([(DAY, SAID)]),
        by_tool=by_tool,
        asked=(lambda _names, _lines: True) if by_tool else None,
    )
    return room.pipeline.editor.open(author)


# Who writes, and how ------------------------------------------------------------------------------

Way = "Callable[[Room, str], tuple[WorkingCopy, str]]"


def _by_agent(room: Room, operation: Operation) -> tuple[WorkingCopy, str]:
    copy = _copy(room, Actor.AGENT)
    return copy, copy.perform(operation).proposed


def _by_dream(room: Room, *edits: dict[str, Any]) -> tuple[WorkingCopy, str]:
    copy = _copy(room, Actor.DREAM)
    _, refused = make_edits(edits, Wording(copy, DAY, UserSentences(())))
    return copy, refused[0][1] if refused else ""


def _condensed(room: Room, text: str = LINE, subject: str = "", **more: Any) -> Any:
    copy = _copy(room, Actor.CONSOLIDATOR)
    fact = Fact(text, more.pop("kind", "topic"), subject, importance=3, **more)
    (outcome,) = keep_facts(copy, [fact], DAY)
    return copy, outcome.why


def _new(**content: Any) -> Operation:
    return write_entry("topic", content.pop("title", LINE), {"body": LINE, **content}, DAY)


def _change(old: str = "", new: str = "", entry: str = "alice", **more: Any) -> Operation:
    lists = more.pop("lists", {})
    return edit_entry(entry, old=old, new=new, lists=lists, **more)


# Every one takes any Markdown.
WAYS: dict[str, Any] = {
    "write_entry": lambda room, text: _by_agent(room, _new(body=text)),
    "write_entry, a section": lambda room, text: _by_agent(
        room, write_entry("person", "Analytics", {"sections": {"Notes": text}}, DAY)
    ),
    "edit_entry, append": lambda room, text: _by_agent(room, _change(append=text)),
    "edit_entry, a section": lambda room, text: _by_agent(
        room, _change(append=text, section="Notes")
    ),
    "edit_entry, body": lambda room, text: _by_agent(
        room, _change(body=f"# Alice\n\n- Lives in Bonn\n\n{text}\n")
    ),
    "edit_entry, a passage": lambda room, text: _by_agent(
        room, _change("- Lives in Bonn", f"- Lives in Bonn\n\n{text}")
    ),
    "edit_entry, MEMORY.md": lambda room, text: _by_agent(
        room, _change(entry="MEMORY.md", append=text)
    ),
    "Dream, create_entry": lambda room, text: _by_dream(
        room, do("create_entry", type="topic", title=LINE, body=text)
    ),
    "Dream, edit_file": lambda room, text: _by_dream(
        room, edit("people/alice", "- Lives in Bonn", f"- Lives in Bonn\n\n{text}")
    ),
    "condensing, a new entry": lambda room, text: _condensed(room, text, "Analytics"),
    "condensing, a known entry": lambda room, text: _condensed(room, text, "Alice", kind="person"),
    "condensing, a decision": lambda room, text: _condensed(
        room, text, "Analytics database", kind="decision"
    ),
    "condensing, MEMORY.md": lambda room, text: _condensed(room, text, place="memory"),
    "condensing, the day's note": _condensed,
    "condensing, a correction": lambda room, text: _condensed(
        room, text, "Alice", replaces="Lives in Bonn"
    ),
}
# These take one line.
LINES: dict[str, Any] = {
    "Dream, add_line": lambda room, text: _by_dream(room, add("people/alice", text)),
    "Dream, add_line to MEMORY.md": lambda room, text: _by_dream(room, add("MEMORY.md", text)),
    "Dream, supersede": lambda room, text: _by_dream(
        room, do("supersede", path="people/alice", old="Lives in Bonn", new=text)
    ),
}
NAMES: dict[str, Any] = {
    "title": lambda room: _by_agent(room, _new(title=INVENTION)),
    "title of one word": lambda room: _by_agent(room, _new(title=WORD)),
    "title that begins with what was said": lambda room: _by_agent(
        room, _new(title=f"Alice {WORD}")
    ),
    "tag": lambda room: _by_agent(room, _new(tags=[WORD])),
    "one of two tags": lambda room: _by_agent(room, _new(tags=["analytics", f"alice/{WORD}"])),
    "alias": lambda room: _by_agent(room, _new(aliases=[INVENTION])),
    "related entry": lambda room: _by_agent(room, _new(related=[f"banks/{WORD}"])),
    "label of a related entry": lambda room: _by_agent(room, _new(related=[f"[[alice|{WORD}]]"])),
    "summary": lambda room: _by_agent(room, _new(summary=f"Alice {INVENTION}.")),
    "folder": lambda room: _by_agent(room, _new(folder=WORD)),
    "heading of a section": lambda room: _by_agent(
        room, write_entry("topic", LINE, {"sections": {INVENTION: LINE}}, DAY)
    ),
    "lines in the heading of a section": lambda room: _by_agent(
        room, write_entry("topic", LINE, {"sections": {f"Notes\n{INVENTION}": LINE}}, DAY)
    ),
    "section": lambda room: _by_agent(room, _change(append=f"- {LINE}", section=INVENTION)),
    "section of MEMORY.md": lambda room: _by_agent(
        room, _change(entry="MEMORY.md", append=f"- {LINE}", section=INVENTION)
    ),
    "added tag": lambda room: _by_agent(room, _change(lists={"tags": (WORD,)})),
    "one of two added tags": lambda room: _by_agent(
        room, _change(lists={"tags": ("analytics", WORD)})
    ),
    "added alias": lambda room: _by_agent(room, _change(lists={"aliases": (f"Alice {WORD}",)})),
    "added related entry": lambda room: _by_agent(room, _change(lists={"related": (WORD,)})),
    "new summary": lambda room: _by_agent(room, _change(summary=f"She {INVENTION}.")),
    "property": lambda room: _by_agent(room, _change("related: []", f"bank: {WORD}")),
    "name of a property": lambda room: _by_agent(room, _change("related: []", f"{WORD}: true")),
    "comment of a property": lambda room: _by_agent(
        room, _change("related: []", f"related: [] # {WORD}")
    ),
    "nested property": lambda room: _by_agent(
        room, _change("related: []", f"bank:\n  - name: {WORD}")
    ),
    "folded property": lambda room: _by_agent(
        room, _change("related: []", f"bank: >\n  {INVENTION}")
    ),
    "quoted property": lambda room: _by_agent(room, _change("related: []", f'bank: "{WORD}"')),
    "type": lambda room: _by_agent(room, _change("type: person", f"type: {WORD}")),
    "tag in brackets": lambda room: _by_agent(
        room, _change("tags: [work]", f"tags: [work, {WORD}]")
    ),
    "title of a known entry": lambda room: _by_agent(room, _change("# Alice", f"# Alice {WORD}")),
    "tag in the text": lambda room: _by_agent(
        room, _change("Lives in Bonn", f"Lives in Bonn #{WORD}")
    ),
    "renamed": lambda room: _by_agent(room, rename_entry("alice", INVENTION)),
    "renamed file": lambda room: _by_agent(room, rename_entry("alice", f"people/alice-{WORD}")),
    "moved": lambda room: _by_agent(room, rename_entry("alice", f"{WORD}/alice")),
    "Dream's section": lambda room: _by_dream(room, add("people/alice", LINE, section=INVENTION)),
    "Dream's section of MEMORY.md": lambda room: _by_dream(
        room, add("MEMORY.md", LINE, section=INVENTION)
    ),
    "Dream's section of what it moves": lambda room: _by_dream(
        room, do("move_line", path="MEMORY.md", old="Likes tea", to="alice", section=INVENTION)
    ),
    "Dream's title": lambda room: _by_dream(
        room, do("create_entry", type="topic", title=f"Alice {WORD}", body=LINE)
    ),
    "Dream's tag": lambda room: _by_dream(
        room, do("create_entry", type="topic", title=LINE, body=LINE, tags=[WORD])
    ),
    "Dream's summary": lambda room: _by_dream(
        room, do("create_entry", type="topic", title=LINE, body=LINE, summary=INVENTION)
    ),
    "Dream's new summary": lambda room: _by_dream(
        room, do("set_summary", path="people/alice", new=INVENTION)
    ),
    "Dream's new name": lambda room: _by_dream(
        room, do("rename_entry", path="people/alice", new=f"Alice {WORD}")
    ),
    "condensed subject": lambda room: _condensed(room, LINE, INVENTION),
    "condensed subject that begins with what was said": lambda room: _condensed(
        room, LINE, f"Alice {WORD}"
    ),
    "condensed tag": lambda room: _condensed(room, LINE, "Analytics", tags=(WORD,)),
    "condensed tag of a known entry": lambda room: _condensed(room, LINE, "Alice", tags=(WORD,)),
    "condensed summary": lambda room: _condensed(room, LINE, "Analytics", summary=INVENTION),
}


# What isn't there can't be linked to.
LINKS: dict[str, Any] = {
    "Dream": lambda room: _by_dream(
        room, do("create_entry", type="topic", title=LINE, body=LINE, related=[f"banks/{WORD}"])
    ),
    "condensing": lambda room: _condensed(room, LINE, "Analytics", related=(WORD,)),
}


def is_written(room: Room, plant: Any, *text: str) -> bool:
    """Return whether an invention would be written, by a plant of `WAYS`, `LINES` or `NAMES`.

    Where it isn't, whoever wrote it is told why, or what was left out.
    """
    try:
        copy, why = plant(room, *text)
    except KbtuiError:
        return False
    if _is_in(copy):
        return True
    assert why or copy.left_out or copy.ungrounded
    return False


def _is_in(copy: WorkingCopy) -> bool:
    files = "".join(f"{path}\n{data!r}\n" for path, data in copy.files.changed.items())
    return WORD in files.casefold()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", BODIES)
def test_an_invention_in_any_kind_of_markdown_isnt_written(room: Room, kind: str, way: str) -> None:
    assert not is_written(room, WAYS[way], BODIES[kind])


@pytest.mark.parametrize("way", LINES)
@pytest.mark.parametrize("kind", [kind for kind, text in BODIES.items() if "\n" not in text])
def test_an_invention_in_any_kind_of_line_isnt_written(room: Room, kind: str, way: str) -> None:
    assert not is_written(room, LINES[way], BODIES[kind])


# A hash is of a whole name: nobody can tell what a part of an address was.
_OF_SEVERAL_PARTS = ("nested tag", "target", "embed", "definition of a link", "autolink")


@pytest.mark.parametrize(
    "kind", [kind for kind in BODIES if not any(map(kind.__contains__, _OF_SEVERAL_PARTS))]
)
def test_what_was_forgotten_is_refused_in_any_kind_of_markdown(forgetful: Room, kind: str) -> None:
    copy = forgetful.pipeline.editor.open(Author(Actor.AGENT, by_tool=True))
    with pytest.raises(UsageError, match="forgotten"):
        copy.perform(_change(append=BODIES[kind]))


@pytest.mark.parametrize("name", NAMES)
def test_an_invented_name_isnt_written(room: Room, name: str) -> None:
    assert not is_written(room, NAMES[name])


@pytest.mark.parametrize("way", LINKS)
def test_a_made_up_related_entry_isnt_written(room: Room, way: str) -> None:
    copy, _ = LINKS[way](room)
    assert copy.files.changed
    assert not _is_in(copy)
