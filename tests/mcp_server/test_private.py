"""Nobody knows where a client sends what it reads: what is private isn't even named to it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kbtui.agent.tools.toolbox import ToolOutcome

SECRET = "walrus"
NAME = "diary"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A workspace in which somebody keeps a diary, beside what everybody may know."""
    overrides = {
        "search": {"semantic": False},
        "privacy": {"private_paths": ["docs/clients/", "knowledge/people/xenia.md"]},
    }
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        opened.library.create(
            "topic", "Zoo", body="Opens at ten.\n\nSee [[topics/seals]].", actor=Actor.MCP
        )
        opened.library.create("topic", "Seals", body="They bark.")
        opened.library.create("person", "Xenia", body=f"Keeps the {SECRET}.")
        opened.library.create("topic", "Diary", body=f"Dear {SECRET}. See [[topics/zoo]].")
        for client in ("clients/xenia.md", "open/readme.md"):
            file = opened.workspace.docs / client
            file.parent.mkdir(parents=True)
            file.write_text(f"The {'walrus' if 'clients' in client else 'penguin'} contract.\n")
        _make_private(opened, "diary")
        yield opened


def _make_private(kb: KnowledgeBase, ref: str) -> None:
    file = kb.workspace.root / kb.library.find_path(ref)
    file.write_text(file.read_text().replace("---\n", "---\nprivate: true\n", 1))
    kb.history.adopt(settle=0)
    kb.library.refresh()


@pytest.fixture
def call(kb: KnowledgeBase) -> Callable[..., ToolOutcome]:
    backend = Backend(lambda: kb, "mcp-test")

    def run(name: str, **arguments: Any) -> ToolOutcome:
        return backend.call(name, json.dumps(arguments), "tester")

    return run


EVERY_WAY: list[tuple[str, dict[str, Any]]] = [
    ("list_entries", {}),
    ("list_entries", {"category": "topics"}),
    ("read_entry", {"entry": "diary"}),
    ("read_entry", {"entry": "topics/diary"}),
    ("read_entry", {"entry": "knowledge/topics/diary.md"}),
    ("read_entry", {"entry": "dairy"}),
    ("read_entry", {"entry": "zoo"}),
    ("read_entry", {"entry": "knowledge/INDEX.md"}),
    ("read_file", {"path": "knowledge/topics/diary.md"}),
    ("read_file", {"path": "knowledge/INDEX.md"}),
    ("read_file", {"path": "docs/clients/xenia.md"}),
    ("grep", {"pattern": "dear"}),
    ("grep", {"pattern": "(private)"}),
    ("grep", {"pattern": "d.ar", "regex": True}),
    ("grep", {"pattern": "e", "path": "knowledge/topics/diary.md"}),
    ("grep", {"pattern": "e", "path": "docs/clients"}),
    ("memory_search", {"query": "dear"}),
    ("memory_search", {"query": "walr"}),
    ("vector_search", {"query": "contract"}),
    ("vector_search", {"query": "contract", "project": "cleints"}),
    ("edit_entry", {"entry": "diary", "append": "x"}),
    ("rename_entry", {"entry": "diary", "new_name": "Log"}),
    ("entry_history", {}),
    ("entry_history", {"entry": "diary"}),
    ("entry_history", {"entry": "knowledge/topics/diary.md"}),
    ("entry_history", {"text": "walrus"}),
    ("show_change", {"commit": "HEAD"}),
    ("explain_line", {"entry": "diary", "line": 3}),
    ("undo_change", {"commit": "HEAD"}),
    ("search", {"query": "dear"}),
    ("search", {"query": "contract"}),
    ("fetch", {"id": "topics/diary"}),
    ("fetch", {"id": "knowledge/topics/diary.md"}),
    ("fetch", {"id": "docs/clients/xenia.md"}),
    ("entry_links", {"entry": "diary"}),
    ("entry_links", {"entry": "zoo", "depth": 2}),
    ("entry_links", {"entry": "seals", "depth": 2}),
    ("edit_entry", {"entry": "diary", "append": "x", "base_hash": "0" * 40}),
    ("move_entry", {"entry": "diary", "category": "facts"}),
    ("delete_entry", {"entry": "diary"}),
    ("delete_entry", {"entry": "topics/diary"}),
]


def _told(call: Callable[..., ToolOutcome], name: str, arguments: dict[str, Any]) -> str:
    """All that a client could see, without what it said itself."""
    told = json.dumps(asdict(call(name, **arguments)))
    for word in sorted(map(str, arguments.values()), key=len, reverse=True):
        told = told.replace(json.dumps(str(word))[1:-1], "").replace(f"topics/{word}", "")
    return told.lower()


def test_no_tool_tells_of_a_private_entry(call: Callable[..., ToolOutcome]) -> None:
    for name, arguments in EVERY_WAY:
        told = _told(call, name, arguments)
        for word in (SECRET, NAME, "xenia", "(private", "clients/"):
            assert word not in told, (name, arguments)


def test_what_is_private_is_answered_as_what_is_not_there(call: Callable[..., ToolOutcome]) -> None:
    for name, key, hidden, absent in (
        ("read_entry", "entry", "topics/diary", "topics/qwxyz"),
        ("read_file", "path", "knowledge/topics/diary.md", "knowledge/topics/qwxyz.md"),
        ("entry_history", "entry", "topics/diary", "topics/qwxyz"),
        ("grep", "path", "docs/clients", "docs/qwxyz"),
    ):
        more = {"pattern": "x"} if name == "grep" else {}
        told = call(name, **{key: hidden}, **more).output.replace(hidden, "IT")
        assert told == call(name, **{key: absent}, **more).output.replace(absent, "IT")
        assert told.startswith("Error: There is no")


def test_the_same_tools_show_what_is_public(call: Callable[..., ToolOutcome]) -> None:
    """Otherwise the tests above would pass for tools that show nothing."""
    listed = sorted(each["path"] for each in call("list_entries").data["entries"])
    assert listed == ["knowledge/topics/seals.md", "knowledge/topics/zoo.md"]
    assert "zoo" in call("read_file", path="knowledge/INDEX.md").output
    assert "penguin" in call("vector_search", query="contract").output
    assert call("read_entry", entry="zoo").data["links"] == ["knowledge/topics/seals.md"]
    assert call("read_entry", entry="seals").data["backlinks"] == ["knowledge/topics/zoo.md"]
    assert call("grep", pattern="ten").data["matches"]


def test_a_new_entry_may_be_called_as_a_private_one_is(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    before = (kb.workspace.root / "knowledge/topics/diary.md").read_bytes()
    done = call("write_entry", type="topic", title="Diary", body="About diaries.")
    assert done.ok
    assert done.data["path"] == "knowledge/topics/diary-2.md"
    assert (kb.workspace.root / "knowledge/topics/diary.md").read_bytes() == before
    assert "About diaries." in call("read_entry", entry="diary").output


def test_a_rename_repairs_links_of_private_entries_without_telling(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    done = call("rename_entry", entry="zoo", new_name="menagerie")
    assert done.ok
    assert NAME not in json.dumps(asdict(done))
    assert "[[topics/menagerie]]" in (kb.workspace.root / "knowledge/topics/diary.md").read_text()
    (shown,) = call("entry_history", limit=1).data["commits"]
    assert NAME not in json.dumps(shown)
    assert NAME not in call("show_change", commit=shown["commit"]).output
    told = call("undo_change", commit=shown["commit"])
    assert not told.ok
    assert NAME not in told.output


def test_resources_leave_out_what_is_private(kb: KnowledgeBase) -> None:
    resources = Resources(kb.workspace, kb.library)
    uris = [each.uri for each in resources.page(None).resources]
    assert uris == ["kb://index", "kb://entry/topics/seals", "kb://entry/topics/zoo"]
    assert resources.suggest("") == ["topics/seals", "topics/zoo"]
    assert "- zoo: Opens at ten." in resources.read("kb://index")
    assert NAME not in resources.read("kb://index")
    for uri in ("kb://entry/topics/diary", "kb://entry/diary", "kb://entry/people/xenia"):
        with pytest.raises(NotFoundError) as raised:
            resources.read(uri)
        assert SECRET not in str(raised.value)


def test_earlier_versions_of_what_is_private_today_are_not_shown(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    kb.library.create("topic", "Plans", body="To buy a yacht.")
    kb.library.rename("plans", "Dreams")
    ids = [each["commit"] for each in call("entry_history").data["commits"]]
    assert "yacht" in call("show_change", commit=ids[1]).output
    _make_private(kb, "dreams")
    told = json.dumps(asdict(call("entry_history", limit=50)))
    assert "plans" not in told
    assert "dreams" not in told
    for commit in ids[:2]:
        assert "yacht" not in json.dumps(asdict(call("show_change", commit=commit)))
    kb.library.delete("dreams")
    told = json.dumps(asdict(call("entry_history", limit=50)))
    assert "plans" not in told
    assert "dreams" not in told
    assert not call("entry_history", entry="plans").ok


def test_a_version_that_was_private_stays_so_when_the_entry_is_not_any_more(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    file = kb.workspace.root / "knowledge/topics/diary.md"
    file.write_text(file.read_text().replace("private: true\n", "").replace(SECRET, "reader"))
    kb.history.adopt(settle=0)
    assert "Dear reader" in call("read_entry", entry="diary").output
    assert call("entry_history", entry="diary").data["commits"] == []
    file.write_text(file.read_text() + "\nNothing to hide.\n")
    kb.history.adopt(settle=0)
    (shown,) = call("entry_history", entry="diary").data["commits"]
    assert "+Nothing to hide." in call("show_change", commit=shown["commit"]).output
    for commit in kb.history.log():
        told = json.dumps(asdict(call("show_change", commit=commit.id)))
        assert SECRET not in told


def test_frontmatter_that_is_broken_keeps_an_entry_private(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    file = kb.workspace.root / "knowledge/topics/log.md"
    file.write_text("---\nprivate: true\ntags: [a\n---\nDear walrus.\n")
    assert not call("read_entry", entry="log").ok
    assert not call("read_file", path="knowledge/topics/log.md").ok
    assert not call("grep", pattern="dear").data["matches"]


def test_the_other_version_of_a_private_entry_is_private_too(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    copies = [f"knowledge/topics/{name}.conflict-20261122-120000.md" for name in ("diary", "gone")]
    for path in copies:
        flag = "private: true\n" if "gone" in path else ""
        (kb.workspace.root / path).write_text(f"---\n{flag}type: topic\n---\nDear walrus.\n")
    for path in copies:
        assert call("read_file", path=path).output.startswith("Error: There is no")
        assert call("read_entry", entry=path).output.startswith("Error: There is no")


def test_talk_that_drew_on_a_private_entry_is_not_shown(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    session = kb.sessions.create("test")
    session.append("user", "What does my diary say about the sealion?", turn="t1")
    session.append(
        "assistant", "That the sealion sings.", turn="t1", meta={"private": ["topics/diary"]}
    )
    origin = Origin(session.id, (1, 2), "t1", "local")
    entry = kb.library.get(
        kb.library.create(
            "fact", "Concert", body="There is singing.", actor=Actor.AGENT, origin=origin
        ).path
    )
    kb.search.sync()
    assert "That the sealion" not in call("memory_search", query="sealion sings").output
    line = entry.text.splitlines().index("There is singing.") + 1
    why = call("explain_line", entry="concert", line=line)
    assert why.data["messages"] == []
    assert "sealion" not in json.dumps(asdict(why))
    assert "drew on a private entry" in why.output


def test_a_page_of_resources_goes_on_where_the_one_before_ended(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.mcp_server.resources.PAGE", 1)
    resources = Resources(kb.workspace, kb.library)
    first = resources.page(None)
    assert [each.uri for each in first.resources] == ["kb://index", "kb://entry/topics/seals"]
    kb.library.create("person", "Early", body="Comes before.")
    second = resources.page(first.cursor)
    assert [each.uri for each in second.resources] == ["kb://entry/topics/zoo"]
    assert second.cursor is None
    with pytest.raises(KbtuiError, match="is no cursor"):
        resources.page("ß")


def test_a_commit_of_very_many_files_is_shown_in_part_and_soon(
    kb: KnowledgeBase, call: Callable[..., ToolOutcome]
) -> None:
    with kb.history.change(Actor.IMPORT, "imported") as change:
        for number in range(300):
            change.write(f"knowledge/facts/f{number:03}.md", f"Fact {number}.\n")
    (shown,) = call("entry_history", limit=1).data["commits"]
    assert len(shown["paths"]) == 50
    assert shown["subject"].endswith("and 250 more")
    assert "+Fact 3." in call("show_change", commit=shown["commit"], entry="facts/f003").output


class Moved:
    """A note that lay in a private folder, and what a client is told of its history since."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.folder = kb.workspace.knowledge
        self._backend = Backend(lambda: kb, "mcp-test")

    def write(self, name: str, text: str, *, instead: str = "") -> None:
        """Have a person write a note, and take another one away."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if instead:
            (self.folder / instead).unlink()
        self.kb.history.adopt(settle=0)
        self.kb.library.refresh()

    def call(self, name: str, **arguments: Any) -> ToolOutcome:
        return self._backend.call(name, json.dumps(arguments), "tester")

    def told(self) -> str:
        """All that the tools of the history tell, of every commit and every line."""
        kb = self.kb
        paths = [info.path for info in kb.library.infos() if not info.private]
        asked: list[tuple[str, dict[str, Any]]] = [("entry_history", {"limit": 200})]
        asked += [("show_change", {"commit": commit.id}) for commit in kb.history.log()]
        asked += [("entry_history", {"entry": path, "limit": 200}) for path in paths]
        asked += [
            ("explain_line", {"entry": path, "line": number + 1})
            for path in paths
            for number, _ in enumerate(kb.library.get(path).text.splitlines())
        ]
        return json.dumps([asdict(self.call(name, **arguments)) for name, arguments in asked])


_TEXT = "# Note\n\nThe first line of it stays.\nThe second one too.\nAnd a third.\n"
_FULL = f"{_TEXT}The walrus is ill.\n"


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[Moved]:
    overrides = {
        "search": {"semantic": False},
        "privacy": {"private_paths": ["knowledge/mine/", "knowledge/*-own.md"]},
    }
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        yield Moved(opened)


def test_what_was_scrubbed_before_a_note_left_a_private_folder_is_told_by_no_history(
    moved: Moved,
) -> None:
    moved.write("mine/note.md", _FULL)
    moved.write("mine/note.md", _TEXT)
    moved.write("topics/note.md", _TEXT, instead="mine/note.md")
    told = moved.told()
    assert "The second one too" in moved.call("read_entry", entry="topics/note").output
    assert SECRET not in told
    assert "mine" not in told
    assert not moved.call("entry_history", entry="knowledge/mine/note.md").ok


def test_what_is_scrubbed_after_a_note_left_a_private_folder_is_told_by_no_history(
    moved: Moved,
) -> None:
    moved.write("mine/note.md", _FULL)
    moved.write("topics/note.md", _FULL, instead="mine/note.md")
    moved.write("topics/note.md", f"{_TEXT}It is well.\n")
    told = moved.told()
    assert "+It is well." in told
    assert SECRET not in told
    assert "mine" not in told


def test_a_line_of_a_private_version_stays_out_of_later_differences(moved: Moved) -> None:
    moved.write("topics/note.md", f"---\nprivate: true\n---\n{_FULL}")
    moved.write("topics/note.md", _FULL)
    moved.write("topics/note.md", f"{_TEXT}It is well.\n")
    moved.write("topics/note.md", f"{_TEXT}- The  walrus is ill.\nIt is very well.\n")
    told = moved.told()
    assert "-It is well." in told
    assert "+It is very well." in told
    assert "\\n-The walrus is ill." not in told


def test_a_line_written_in_a_private_note_is_explained_by_no_conversation(moved: Moved) -> None:
    kb = moved.kb
    session = kb.sessions.create("About the sealion")
    session.append("user", "Note that the sealion sings.", turn="t1")
    with kb.history.change(Actor.AGENT, "as asked", Origin(session.id, (1, 1), "t1")) as change:
        change.write("knowledge/mine/note.md", _TEXT)
    moved.write("topics/note.md", _TEXT, instead="mine/note.md")
    why = moved.call("explain_line", entry="topics/note", line=3)
    assert "was private when it was written" in why.output
    assert "sealion" not in json.dumps(asdict(why))
    assert "The first line" in why.output


def test_a_note_that_is_private_under_a_new_name_was_so_under_the_name_that_is_taken_again(
    moved: Moved,
) -> None:
    moved.write("topics/note.md", _FULL)
    moved.write("topics/log.md", _FULL, instead="topics/note.md")
    moved.write("topics/note.md", "# Another\n\nNothing to hide.\n")
    assert SECRET in moved.told()
    moved.write("topics/log.md", f"---\nprivate: true\n---\n{_FULL}")
    told = moved.told()
    assert "Nothing to hide." in told
    assert SECRET not in told
    assert "/log" not in told


def test_a_copy_of_a_note_that_was_private_then_stays_out_of_the_history(moved: Moved) -> None:
    moved.write("note-own.md", _TEXT)
    moved.write("note-own.md.bak.md", _FULL)
    moved.write("topics/note.md", _TEXT, instead="note-own.md.bak.md")
    told = moved.told()
    assert SECRET not in told
    assert "-own" not in told
