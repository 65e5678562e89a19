"""Private is private by any spelling, in any copy, on every way out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.attachments import attachments_of
from kbtui.agent.sources import Sources
from kbtui.agent.tools.base import ToolContext
from kbtui.agent.tools.toolbox import Toolbox
from kbtui.history.change import Origin
from kbtui.knowledge.catalog import entry_index
from kbtui.knowledge.entries import entry
from kbtui.knowledge.entries.privacy import originals, says_private
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.resources import Resources
from kbtui.models.port import ToolCall
from kbtui.search.embedding.prepared import ConfiguredModel
from kbtui.search.index.markdown import read_properties
from kbtui.settings import RoleSettings, SearchSettings
from kbtui.views.view import Audience
from kbtui.workspace.layout import short_name
from tests.search.fakes import WordEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from threading import Event

SPELLINGS = {
    "true": "---\nprivate: true\n---\n",
    "True": "---\nprivate: True\n---\n",
    "yes": "---\nPrivate: yes\n---\n",
    "y": "---\nprivate: y\n---\n",
    "on": "---\nPRIVATE: ON\n---\n",
    "one": "---\nprivate: 1\n---\n",
    "quoted": "---\n'private': \"true\"\n---\n",
    "tag": "---\nprivate: !!bool true\n---\n",
    "anchor": "---\nprivate: &p yes\nother: *p\n---\n",
    "tab": "---\n\tprivate:\ttrue\n---\n",
    "gap": "---\nprivate : true # mine\n---\n",
    "unclosed": "---\ntitle: x\nprivate: true\n",
    "blank line": "\n\n---\nprivate: true\n---\n",
    "mark": "\ufeff---\nprivate: true\n---\n",
    "flow": "---\n{title: x, private: yes}\n---\n",
    "key and value": "---\n? private\n: true\n---\n",
    "escaped": '---\n"pri\\x76ate": true\n---\n',
    "block": "---\nprivate: |\n  true\n---\n",
    "next line": "---\nprivate:\n  true\n---\n",
    "list": "---\nprivate: [true]\n---\n",
    "twice": "---\nprivate: false\nprivate: true\n---\n",
    "broken": "---\ntitle: [x\nprivate: true\n---\n",
    "in doubt": "---\nprivate: very\n---\n",
    "wide": "---\nprivate\uff1a true\n---\n",
    "Windows": "---\r\nprivate: true\r\n---\r\n",
    "dots": "---\nprivate: true\n...\n",
    "long fence": "-----\nprivate: true\n-----\n",
    "TOML": "+++\nprivate = true\n+++\n",
    "JSON": '{\n "private": true\n}\n',
    "no fence": "Title: x\nPrivate: yes\n\n",
    "tagged key": "---\n!!str private: true\n---\n",
    "hidden sign": "---\npri\u200bvate\u2060: true\n---\n",
    "wide letters": "---\n\uff50\uff52\uff49\uff56\uff41\uff54\uff45: true\n---\n",
    "comment above": "<!-- mine -->\n---\nprivate: true\n---\n",
    "YAML's comment above": "# mine\n---\nprivate: true\n---\n",
    "Org": "#+TITLE: x\n#+PRIVATE: t\n",
    "below": "---\nkbtui:\n  private: true\n---\n",
    "text right below": "private:: true\n",
    "text right below the last of several": "Title: x\nprivate: yes\n",
    "Dataview's": "# Mine\n\nprivate:: yes\n",
    "Dataview's in a list": "- **private**:: yes\n",
    "Dataview's in brackets": "It rained. [private:: true]\n\n",
    "blank lines above": "\n \nprivate:: true\n\n",
    "old Mac's": "---\rtitle: x\rprivate: true\r---\r",
    "other line breaks": "---\u2028private: true\u2028---\u2028",
    "smart dashes": "\u2014\nprivate: true\n\u2014\n",
    "two dashes": "--\nprivate: true\n--\n\n",
    "code fence": "```yaml\nprivate: true\n```\n",
}
# What a slip of a disk, of a sync or of an editor makes of a file that says so.
SLIPS = {
    "a NUL in front": lambda data: b"\0" + data,
    "a NUL behind": lambda data: data + b"\0",
    "a NUL in the text": lambda data: data.replace(b"sleeps", b"sle\0eps"),
    "NULs in its key": lambda data: data.replace(b"true", b"tr\0ue").replace(b"riv", b"r\0iv"),
    "a control sign in front": lambda data: b"\x1b" + data,
    "a byte that is no text in front": lambda data: b"\xff" + data,
    "a byte that is no text in its key": lambda data: data.replace(b"riv", b"r\xfeiv"),
    "a mark twice": lambda data: b"\xef\xbb\xbf" * 2 + data,
    "a mark of UTF-16": lambda data: b"\xff\xfe" + data,
    "Latin-1": lambda data: data.replace(b"sleeps", b"schl\xe4ft"),
    "UTF-16 with a byte lost": lambda data: (
        data.decode().encode("utf-16")[:7] + data.decode().encode("utf-16")[8:]
    ),
    "UTF-16 behind UTF-8": lambda data: b"a\n" + data.decode().encode("utf-16"),
    "CR": lambda data: data.replace(b"\n", b"\r"),
    "CR CR LF": lambda data: data.replace(b"\n", b"\r\r\n"),
    "spaces that are none": lambda data: data.replace(b": ", ":\u00a0".encode()),
}
COPIES = ["{}.md.bak", "{}.md.orig", "{}.md~", "{}.txt", "{}.markdown", "{}.mdx", "{} (1).md"]
COPIES += ["Copy of {}.md", "{}.md.2", ".{}.md.swp", "{}.bak.md", "{} copy.md"]
COPIES += ["{} - Copy.md", "{} - Kopie (2).md", "{} (Anna's conflicted copy 2024-01-01).md"]
COPIES += ["{} 2.md", "{}.2024-01-01.md.bak", "{}.de.md", "{}.json", "{}.md.gz.txt"]
COPIES += ["{}.conflict-20261122T100000000.md"]
PUBLIC = [
    "---\nprivate: false\n---\n",
    "---\nprivate: no\n---\n",
    "---\ntitle: private: yes\n---\n",
]
PUBLIC += [
    "private:: no\n",
    "Use `private::` for it.\n",
    "---\ntitle: x\n---\nimpl private::Sealed for Walrus {}\n",
    "---\nprivate:\n---\n",
    "---\ntitle: x\n---\nprivate: true\n",
    "# Private\n\nprivate: true\n",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_that_says_so_is_private(spelling: str, encoding: str) -> None:
    text = SPELLINGS[spelling] + "# Walrus\n\nIt sleeps.\n"
    assert says_private(text.encode(encoding))
    assert read_properties("docs/x.md", text).private


@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize("spelling", ["true", "TOML", "no fence", "Dataview's", "unclosed"])
def test_one_odd_byte_makes_no_file_public(spelling: str, slip: str) -> None:
    data = f"{SPELLINGS[spelling]}# Walrus\n\nIt sleeps.\n".encode()
    assert says_private(data)
    assert says_private(SLIPS[slip](data))


@pytest.mark.parametrize("slip", SLIPS)
def test_odd_bytes_alone_make_no_file_private(slip: str) -> None:
    assert not says_private(SLIPS[slip](b"---\ntitle: x\n---\n# Private\n\nIt sleeps.\n"))


@pytest.mark.parametrize("head", PUBLIC)
def test_a_file_that_only_speaks_of_it_is_not(head: str) -> None:
    assert not says_private(f"{head}# Walrus\n\nIt sleeps.\n".encode())


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_is_known_by_its_name(copy: str) -> None:
    assert "topics/diary.md" in list(originals(f"topics/{copy.format('diary')}"))


@pytest.mark.parametrize("name", ["diary.md", "diary-2024.md", "my diary.md", "old.md", "a.b.md"])
def test_an_ordinary_name_is_no_copy(name: str) -> None:
    assert not [path for path in originals(name) if path != name]


class Shelf:
    """A workspace with a private entry of each spelling, and copies without a head beside each."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.paths: dict[str, str] = {}  # the word that only it holds, by path
        folder = kb.workspace.knowledge / "topics"
        folder.mkdir(exist_ok=True)
        for n, head in enumerate(SPELLINGS.values()):
            name = f"slugthattells{n:03}"
            texts = {f"{name}.md": head}
            for m, copy in enumerate(COPIES):
                if (n + m) % 3 == 0:  # each copy of a third of the spellings
                    texts[copy.format(name)] = ""
            for file, begin in texts.items():
                word = f"walrus{len(self.paths):04}"
                text = f"{begin}# About {word}\n\nThe {word} sleeps at noon. See [[topics/zoo]].\n"
                encoding = "utf-16" if n % 7 == 6 else "utf-8"
                (folder / file).write_bytes(text.encode(encoding))
                self.paths[f"knowledge/topics/{file}"] = word
        kb.library.create("topic", "Zoo", body="Animals.")
        kb.history.adopt(settle=0)
        kb.library.refresh()
        kb.search.sync()

    def context(self) -> ToolContext:
        kb = self.kb
        return ToolContext(
            *(kb.seen_by(Audience.MODEL_ELSEWHERE), kb.workspace, kb.settings),
            *(Origin(), Sources(), "", 0, lambda: kb.memory.editor),
        )

    def leaks(self, told: str, *, but: str = "") -> list[str]:
        """The paths of which something is told; `but` was said by who asks."""
        told = told.lower().replace(but.lower(), "")
        return [path for path, word in self.paths.items() if word in told] or (
            ["a name"] if "slugthattells" in told else []
        )


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
        yield Shelf(kb)


class Ways:
    """What was told by each way out, and what of it is private."""

    def __init__(self, shelf: Shelf) -> None:
        self.kb = shelf.kb
        self.out: dict[tuple[str, str], list[str]] = {}
        self.cases = 0
        self._shelf = shelf
        self._context = shelf.context()
        self._agent = Toolbox()
        self._backend = Backend(lambda: shelf.kb, "mcp-test")

    def check(self, way: str, about: str, told: str, but: str = "") -> None:
        self.cases += 1
        if found := self._shelf.leaks(told, but=but):
            self.out[way, about] = found

    def ask(self, name: str, **arguments: object) -> None:
        """Have a model elsewhere call a tool in a conversation."""
        call = ToolCall("c", name, json.dumps(arguments))
        self._told(name, asdict(self._agent.run(call, self._context)), arguments)

    def mcp(self, name: str, **arguments: object) -> None:
        """Have a client of MCP call a tool."""
        done = self._backend.call(name, json.dumps(arguments), "tester")
        self._told(f"MCP {name}", asdict(done), arguments)

    def _told(self, way: str, shape: object, arguments: dict[str, object]) -> None:
        about, told = str(next(iter(arguments.values()), "")), json.dumps(shape)
        for word in sorted(map(str, arguments.values()), key=len, reverse=True):
            told = told.replace(word, "").replace(short_name(word), "")
        self.check(way, about, told, about)


@pytest.mark.slow
def test_nothing_private_goes_out_in_any_spelling_or_copy_by_any_way(shelf: Shelf) -> None:
    kb, ways = shelf.kb, Ways(shelf)
    seen = kb.seen_by(Audience.MODEL_ELSEWHERE)
    assert [path for path in shelf.paths if not kb.library.is_private(path)] == []
    for path, word in shelf.paths.items():
        ways.ask("read", path=path)
        ways.ask("read", path=path)
        ways.ask("grep", pattern=word)
        ways.ask("edit_entry", entry=path, old=word[:5], new="x")
        found = attachments_of(f'@"{path}"', seen, kb.workspace)
        ways.check("attachment", path, "".join(each.text for each in found))
        ways.mcp("fetch", id=path)
        if path.endswith("00.md"):
            ways.ask("search", query=word)
            ways.ask("search", query=word)
            ways.ask("read", path=path[17:-4])
    ways.ask("list_entries")
    ways.ask("grep", pattern="sleeps at")
    ways.ask("search", query="walrus sleeps")
    ways.ask("read", path="knowledge/INDEX.md")
    ways.ask("read", path="slugthattell")
    ways.ask("read", path="zoo")  # all of them link to it
    ways.ask("rename_entry", entry="zoo", new_name="Park")
    index = kb.seen_by(Audience.MODEL_ELSEWHERE).catalogue("walrus sleeps", 4000, len)
    ways.check("prompt", "index", index)
    ways.check("catalogue", "text", kb.library.catalog.public_text("knowledge/INDEX.md", ""))
    said = (kb.workspace.knowledge / "INDEX.md").read_text()
    assert "(private)" in said
    assert "walrus" not in said
    assert ways.out == {}
    assert ways.cases > 1000


@pytest.mark.slow
def test_nothing_private_goes_out_over_mcp_by_any_way(shelf: Shelf) -> None:
    kb, ways = shelf.kb, Ways(shelf)
    ways.mcp("list_entries")
    ways.mcp("entry_history")
    ways.mcp("read_entry", entry="zoo")
    ways.mcp("entry_links", entry="zoo", depth=2)
    ways.mcp("rename_entry", entry="zoo", new_name="Park")
    for name, query in (("search", "query"), ("memory_search", "query"), ("grep", "pattern")):
        ways.mcp(name, **{query: "sleeps at noon"})
    for path in kb.history.tree("HEAD"):
        ways.mcp("entry_history", entry=path)
        ways.mcp("explain_line", entry=path, line=5)
        ways.mcp("entry_links", entry=path)
        ways.mcp("edit_entry", entry=path, old="sleeps", new="wakes")
    for commit in kb.history.log():
        ways.mcp("show_change", commit=commit.id)
        ways.mcp("undo_change", commit=commit.id)
    resources = Resources(kb.workspace, kb.library)
    told = [each.uri for each in resources.page(None).resources]
    ways.check("resources", "list", json.dumps(told))
    ways.check("resources", "index", resources.read("kb://index"))
    ways.check("resources", "completion", json.dumps(resources.suggest("")))
    assert ways.out == {}
    assert ways.cases > 400


def test_what_was_private_once_is_told_by_no_change_of_that_time(shelf: Shelf) -> None:
    kb = shelf.kb
    path = "knowledge/topics/slugthattells003.md"
    file = kb.workspace.root / path
    file.write_text("# Open\n\nNothing to hide.\n")
    kb.history.adopt(settle=0)
    kb.library.refresh()
    assert not kb.library.is_private(path)
    backend = Backend(lambda: kb, "mcp-test")
    for commit in kb.history.log(path):
        told = backend.call("show_change", json.dumps({"commit": commit.id}), "tester")
        assert shelf.paths[path] not in json.dumps(asdict(told))


def test_a_head_that_cannot_be_read_says_that_it_counts_as_private(shelf: Shelf) -> None:
    unclosed = shelf.kb.library.find("slugthattells011")
    assert unclosed.private
    assert "counts as private" in (unclosed.problem or "")


def test_what_older_rules_took_for_public_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notes"
    with monkeypatch.context() as older, KnowledgeBase.open(root, create=True) as kb:
        older.setattr(entry_index, "_IDENTITY", "entries 6 older")
        older.setattr("kbtui.knowledge.entries.entry.says_private", lambda _data: False)
        (kb.workspace.knowledge / "diary.md").write_text("#+PRIVATE: t\n# Diary\n")
        kb.library.refresh()
        assert not kb.library.is_private("knowledge/diary.md")
    entry._parsed.cache_clear()  # newer rules come with a new process
    with KnowledgeBase.open(root) as kb:
        assert kb.library.is_private("knowledge/diary.md")


class Elsewhere:
    """An embedding model on another machine, which keeps what it was sent."""

    name = identity = "elsewhere"
    dimension = 64
    is_local = False

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._words = WordEmbedder()

    def documents(self, texts: Sequence[str]) -> Any:
        self.sent += texts
        return self._words.documents(texts)

    def query(self, text: str) -> Any:
        self.sent.append(text)
        return self._words.query(text)

    def rough(self, stop: Event) -> None:
        """There is none."""

    def close(self) -> None:
        pass


def test_an_embedding_model_elsewhere_is_sent_nothing_private(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb, model = shelf.kb, Elsewhere()
    talk = kb.sessions.create("test")
    talk.append("user", "When does it sleep?", turn="t1")
    talk.append(
        "assistant", "The walrus0000 sleeps at noon.", turn="t1", meta={"private": ["topics/x"]}
    )
    plain = kb.sessions.create("test")
    plain.append("user", "The penguin stays awake.", turn="t1")
    kb.search.close()
    del kb.search
    role = RoleSettings(model="litellm:x/y", api_base="https://embed.example/v1")
    settings = kb.settings.models.model_copy(update={"embed": role})
    kb.settings = kb.settings.model_copy(
        update={"models": settings, "search": SearchSettings(semantic=True)}
    )
    monkeypatch.setattr(ConfiguredModel, "load", lambda _self, _stop: model)
    kb.search.sync()
    kb.search.load_model()
    assert kb.search.embed_missing() > 0
    assert kb.search.search("penguin", "all", wait=True).semantic
    sent = "\n".join(model.sent)
    assert "penguin" in sent
    assert "Animals." in sent
    assert shelf.leaks(sent) == []
    # What a model here asks may come of what it has read.
    local = replace(shelf.context(), view=kb.seen_by(Audience.OWN_MODEL))
    Toolbox().run(ToolCall("c", "search", '{"query": "walrus0001 noon"}'), local)
    assert shelf.leaks("\n".join(model.sent)) == []
    assert not kb.search.search("penguin", sendable=False).semantic
