"""Nothing private leaves by any way that there is, those of tomorrow included.

The ways are not listed here but asked of the program: its tools, the requests that its server
answers, the forms of an export. For each there has to be a row of what it is asked; one that has
none fails. The same is asked of the same notes where nothing is private: there each has to tell of
them, else its row asks too little to show anything.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import zipfile
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import click
import mcp_types
import pytest
from mcp.shared.exceptions import MCPError

import kbtui
from kbtui.agent import recall
from kbtui.agent.attachments import attachments_of
from kbtui.agent.context import assemble
from kbtui.agent.quoting import Quoting
from kbtui.agent.sources import Sources
from kbtui.agent.tools.base import ToolContext
from kbtui.agent.tools.searching import Search
from kbtui.agent.tools.toolbox import Toolbox, ToolOutcome, own_tools
from kbtui.cli.export import export
from kbtui.cli.root import cli, run
from kbtui.clock import local_day
from kbtui.errors import ConfigurationError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.lookup_tools import MemorySearch
from kbtui.mcp_server.resources import file_uri
from kbtui.mcp_server.server import PROMPTS, make_server
from kbtui.models import litellm_model
from kbtui.models.port import ToolCall
from kbtui.search.embedding import prepared
from kbtui.views.view import Audience
from tests.agent.conftest import Remote, ask, model_at
from tests.patience import PATIENCE
from tests.scripted_server import Reply, ScriptedServer, call
from tests.search.fakes import ReadyModel, WordEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from kbtui.sessions.store import Session

# Of each private note there are two words that stand in no other; who asks by one, is told by the
# other. A name of one holds a third.
MARKS = re.compile(r"walrus\d|sealion\d|hiddenname\d|hiddenbox|moonseal", re.IGNORECASE)
PUBLIC = "penguin"
BOX = "knowledge/hiddenbox"
DUE = f"{local_day() + timedelta(days=3)}"
SETTINGS = f"""[search]
semantic = true
background = false
roots = ["Journal"]
[privacy]
private_paths = ["{BOX}/", "docs/hiddenname20/"]
"""
# Files by name, with what stands above the text: each is private for a reason of its own.
NOTES: dict[str, bytes] = {
    f"{BOX}/hiddenname01.md": b"",
    "knowledge/topics/hiddenname02.md": b"---\ntype: topic\nprivate: true\ntags: [hiddenname02]\naliases: [Quiet One]\n---\n",
    "knowledge/topics/hiddenname03.md": b"---\ntype: topic\nprivate: yes\n---\n\0",
    "knowledge/topics/hiddenname04.md": b"private:: true\n",
    "knowledge/topics/hiddenname05.md": b"---\nprivate: true\ntags: [hiddenname05\n",
    "knowledge/people/hiddenname06.md": b"\xff---\nprivate: true\n---\n",
    "knowledge/topics/hiddenname02 copy.md": b"",
    "knowledge/topics/hiddenname02.conflict-20261122T100000000.md": b"",
    "docs/guide/hiddenname07.md": b"---\nprivate: true\n---\n",
    "docs/hiddenname20/readme.md": b"",
    "memory/2026-01-02-hiddenname08.md": b"---\nprivate: true\n---\n",
    "skills/hiddenname09/SKILL.md": b"---\nname: hiddenname09\ndescription: sealion09\nprivate: true\n---\n",
    "Journal/hiddenname10.md": b"private: true\n\n",
}


def _text(n: int) -> str:
    return (
        f"# Hiddenname{n:02} of old\n\nThe walrus{n:02} sleeps at noon.\nSo does the sealion{n:02}."
        f"\n\nMoonseals.\n\n- [ ] Feed the walrus{n:02} by {DUE}\n- [ ] Wash the sealion{n:02}\n"
        f"- The walrus{n:02} is weighed on {DUE}.\n"
    )


# What a second model reads, in private notes and in an open one.
GERMAN = "\nDer Zoo ist am Montag nicht offen, und die Tiere schlafen in der Nacht.\n"


@pytest.fixture(autouse=True)
def _models_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search by meaning, with a model of English and a second one beside it."""
    monkeypatch.setattr(
        prepared, "ConfiguredModel", lambda _role: ReadyModel(WordEmbedder(identity="words"))
    )


class World:
    """A workspace with notes that are private for all reasons that there are, or with open ones."""

    def __init__(self, root: Path, *, private: bool) -> None:
        self.root, self.private = root, private
        (root / "knowledge").mkdir(parents=True)
        settings = (
            SETTINGS if private else SETTINGS.replace("private_paths", "private_paths = [] #")
        )
        (root / "kbtui.toml").write_text(settings)
        recalled = {"mcp": {"search_conversations": True}, "context": {"memory_window": 4}}
        self.kb = kb = KnowledgeBase.open(root, create=True, overrides=recalled)
        kb.library.create("topic", "Zoo", body=f"The {PUBLIC} sleeps at noon.", tags=["zoo"])
        kb.library.create("person", "Keeper", body=f"Feeds the {PUBLIC}. See [[topics/zoo]].")
        open_text = f"# Guide\n\nThe {PUBLIC} sleeps at noon.\n{GERMAN}"
        self.write("docs/guide/open.md", open_text.encode())
        self.paths = list(NOTES)
        for n, (path, head) in enumerate(NOTES.items(), 1):
            seen = "See [[topics/zoo]] and ![[hiddenname30.png]].\n"
            self.write(path, head + f"{_text(n)}{seen}{GERMAN}".encode())
        self.write(f"{BOX}/hiddenname30.png", b"\x89PNG walrus30")
        kb.history.adopt(settle=0)
        self._once_private()
        kb.library.refresh()
        self.talk = self._talk()
        self.session = self.talk.id
        kb.search.sync()
        kb.search.search("sleeps", wait=True)

    def write(self, path: str, data: bytes) -> None:
        if not self.private:
            data = data.replace(b"private:", b"keptopen:")
        file = self.kb.workspace.place(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def _once_private(self) -> None:
        """Notes that say nothing private any more, and whose past does; and one that is gone."""
        kb = self.kb
        scrubbed = f"# Open\n\nThe {PUBLIC} is awake.\nAnd it sings.\nAll day long.\n"
        steps: list[dict[str, str | None]] = [
            {
                f"{BOX}/hiddenname11.md": f"{scrubbed}The walrus11 sleeps, the sealion11 too.\n",
                "knowledge/topics/open12.md": f"---\nprivate: true\n---\n{scrubbed}The walrus12.\n",
                "knowledge/topics/hiddenname13.md": f"---\nprivate: true\n---\n{_text(13)}",
                f"{BOX}/hiddenname14.md": f"{scrubbed}The walrus14 sleeps, the sealion14 too.\n",
            },
            {
                f"{BOX}/hiddenname11.md": scrubbed,
                "knowledge/topics/open12.md": f"---\nprivate: true\n---\n{scrubbed}",
                "knowledge/topics/hiddenname13.md": None,
                f"{BOX}/hiddenname14.md": None,
                "knowledge/topics/open14.md": (
                    f"{scrubbed}The walrus14 sleeps, the sealion14 too.\n"
                ),
            },
            {
                f"{BOX}/hiddenname11.md": None,
                "knowledge/topics/open11.md": scrubbed,
                "knowledge/topics/open12.md": scrubbed,
                "knowledge/topics/open14.md": scrubbed,
            },
        ]
        for step in steps:
            for path, text in step.items():
                if text is None:
                    kb.workspace.place(path).unlink()
                else:
                    self.write(path, text.encode())
            kb.history.adopt(settle=0)
        self.paths += [f"{BOX}/hiddenname11.md", "knowledge/topics/hiddenname13.md"]
        self.paths += [f"knowledge/topics/open{n}.md" for n in (11, 12, 14)]

    def _talk(self) -> Session:
        """A conversation that drew on a private note, and an entry that was made in it."""
        talk = self.kb.sessions.create("test", title="Of the walrus15")
        drew = {"private": [f"{BOX}/hiddenname01.md"]} if self.private else {}
        talk.append("user", "When does it sleep?", turn="t1")
        talk.append("assistant", "The walrus15 sleeps as the sealion15 does.", turn="t1", meta=drew)
        for n in range(2, 6):  # the first turn leaves a prompt
            talk.append("user", f"And what is {n} and {n}?", turn=f"t{n}")
            talk.append("assistant", f"That makes {2 * n}.", turn=f"t{n}")
        origin = Origin(talk.id, (1, 2), "t1", "local")
        self.kb.library.create(
            "fact", "Sleep", body="There is sleep.", actor=Actor.AGENT, origin=origin
        )
        return talk

    def context(self, audience: Audience) -> ToolContext:
        kb = self.kb
        return ToolContext(
            *(kb.seen_by(audience), kb.workspace, kb.settings),
            *(Origin(), Sources(), "", 0, lambda: kb.memory.editor),
        )

    def each(self, value: str) -> list[str]:
        """What stands for a value of a row: all names, words or commits, or the value itself."""
        names = [path.rpartition("/")[2].removesuffix(".md") for path in self.paths]
        every: dict[str, Callable[[], list[str]]] = {
            "FILE": lambda: self.paths,
            "NOTE": lambda: [
                *self.paths,
                *names,
                f"{BOX}/hiddenname14.md",
                "Hiddenname01 of old",
                "Quiet One",
            ],
            "ADDRESS": lambda: [
                uri for path in self.paths for uri in (file_uri(path), f"kb://file/{quote(path)}")
            ],
            "FOLDER": lambda: [BOX, "knowledge", "docs/guide", "docs/hiddenname20", "Journal", ""],
            "WORD": lambda: [f"walrus{n:02}" for n in range(1, 16)] + ["sleeps at noon", PUBLIC],
            "COMMIT": lambda: [commit.id for commit in self.kb.history.log()],
            "NAME": lambda: ["hiddenname02"],
        }
        return every[value]() if value in every else [value]


@pytest.fixture(params=["private", "open"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "notes", private=request.param == "private")
    yield made
    made.kb.close()


Rows = tuple[dict[str, Any], ...]
_SEARCHES: Rows = (
    {"query": "WORD"},
    {"query": "moonsealz"},
    {"query": "sleeps", "type": "topic", "limit": 20},
    {"query": "sleeps", "tag": "hiddenname02"},
    {"query": "sleeps", "since": "2001", "until": "2099"},
)
_LISTS: Rows = (
    {"limit": 200},
    {"type": "topic", "offset": 1},
    {"category": "topics"},
    {"category": "hiddenbox"},
    {"tag": "hiddenname02"},
    {"since": "2001", "until": "2099"},
)
_TASKS: Rows = (
    {"limit": 200},
    {"when": "week", "offset": 1},
    {"when": "undated"},
    {"coming": True},
)
_SIMILAR: Rows = (
    {"entry": "NOTE"},
    {"entry": "zoo", "limit": 20},
    {"entry": "docs/guide/open.md", "limit": 20},
)
_GREPS: Rows = (
    {"pattern": "WORD"},
    {"pattern": "e", "path": "FOLDER", "limit": 300},
    {"pattern": "e", "path": "FILE"},
    {"pattern": "w.l.us", "regex": True},
    {"pattern": "Sealion", "case_sensitive": False},
)
_WRITES: Rows = (
    {"kind": "topic", "title": "Quiet One", "body": "Nothing."},
    {"kind": "topic", "title": "NAME", "body": "Nothing.", "summary": "Nothing."},
    {
        "kind": "topic",
        "title": "Fresh",
        "sections": {"Summary": "It is fresh."},
        "tags": ["blue"],
        "related": ["Quiet One"],
        "aliases": ["Quiet One"],
    },
    {"kind": "topic", "title": "Boxed", "body": "Nothing.", "folder": "topics/box"},
)
_EDITS: Rows = (
    {"entry": "NOTE", "old": "sleeps", "new": "wakes"},
    {"entry": "NOTE", "append": "More.", "section": "None"},
    {"entry": "NOTE", "body": "Other."},
    {"entry": "zoo", "old": "at noon", "new": "at nine"},
    {"entry": "zoo", "summary": "Open", "add_tags": ["blue"]},
    {"entry": "zoo", "add_related": ["Quiet One"], "add_aliases": ["Quiet"]},
)
_RENAMES: Rows = ({"entry": "NOTE", "new_name": "Elsewhere"}, {"entry": "zoo", "new_name": "NAME"})
AGENT: Mapping[str, Rows] = {
    "search": (
        *_SEARCHES,
        {"query": "sleeps", "project": "hiddenname20"},
        {"query": "e", "project": "guide"},
    ),
    "list_entries": _LISTS,
    "list_tasks": _TASKS,
    "similar_notes": _SIMILAR,
    "read": (
        {"path": "FILE"},
        {"path": "NOTE", "from_line": 2},
        {"path": "zoo"},
        {"path": "knowledge/INDEX.md"},
    ),
    "write_entry": _WRITES,
    "edit_entry": _EDITS,
    "rename_entry": _RENAMES,
    "grep": _GREPS,
}
BASE = "0" * 40
CLIENTS: Mapping[str, Rows] = {
    "memory_search": _SEARCHES,
    "vector_search": (
        {"query": "WORD"},
        {"query": "sleeps", "project": "hiddenname20", "limit": 20},
        {"query": "sleeps", "project": "nowhere"},
    ),
    "read_entry": (
        {"entry": "NOTE"},
        {"entry": "zoo", "from_line": 1},
        {"entry": "knowledge/INDEX.md"},
    ),
    "read_file": (
        {"path": "FILE", "from_line": 1, "lines": 100},
        {"path": "knowledge/INDEX.md"},
        {"path": "memory/HISTORY.md"},
    ),
    "list_entries": _LISTS,
    "list_tasks": _TASKS,
    "similar_notes": _SIMILAR,
    "grep": _GREPS,
    "search": ({"query": "WORD"},),
    "fetch": ({"id": "NOTE"}, {"id": "knowledge/INDEX.md"}),
    "entry_links": ({"entry": "NOTE"}, {"entry": "zoo", "depth": 2}),
    "entry_history": (
        {"limit": 200},
        {"entry": "NOTE"},
        {"entry": "FOLDER"},
        {"actor": "you", "text": "hiddenname"},
    ),
    "show_change": ({"commit": "COMMIT"}, {"commit": "COMMIT", "entry": "topics/zoo"}),
    "explain_line": (
        *({"entry": "NOTE", "line": n} for n in (1, 5)),
        {"entry": "sleep", "line": 10},
    ),
    "write_entry": _WRITES,
    "edit_entry": (*_EDITS, {"entry": "NOTE", "append": "More.", "base_hash": BASE}),
    "rename_entry": (*_RENAMES, {"entry": "NOTE", "new_name": "There", "base_hash": BASE}),
    "move_entry": (
        {"entry": "NOTE", "category": "facts"},
        {"entry": "zoo", "category": "hiddenbox", "base_hash": BASE},
    ),
    "delete_entry": ({"entry": "NOTE"}, {"entry": "zoo", "base_hash": BASE}),
    "undo_change": ({"commit": "COMMIT"},),
}
# What tells of nothing but what it was asked with, or is done: in the open world as well.
SILENT = {"write_entry", "undo_change"}
_NAMING = ("undo_change", "rename_entry", "write_entry")


def _order(tool: str) -> int:
    """Last what gives names, as entries that are called like private ones are no secret."""
    return (*sorted({*AGENT, *CLIENTS} - {*_NAMING}), *_NAMING).index(tool)


def _calls(world: World, rows: Rows) -> Iterator[dict[str, Any]]:
    for row in rows:
        slot = next(
            (key for key, value in row.items() if isinstance(value, str) and value.isupper()), None
        )
        for value in world.each(row[slot]) if slot else ():
            yield {**row, slot: value}
        if slot is None:
            yield row


def _without(told: str, arguments: Mapping[str, Any]) -> str:
    """What was told, without what was said by who asked."""
    said = [
        str(each)
        for value in arguments.values()
        for each in (value if isinstance(value, list) else [value])
    ]
    said += [part for each in said for part in (unquote(each), *re.split(r"[/.]", unquote(each)))]
    for word in sorted(said, key=len, reverse=True):
        if MARKS.search(word):
            told = re.sub(re.escape(json.dumps(word)[1:-1]), "", told, flags=re.IGNORECASE)
    return told


class Heard:
    """What was told by which way."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.told: dict[str, list[str]] = {}

    def add(self, way: str, told: str, arguments: Mapping[str, Any]) -> None:
        found = MARKS.findall(_without(told, arguments))
        self.told.setdefault(way, []).extend(f"{arguments}: {each}" for each in found[:3])

    def check(self, silent: Collection[str] = ()) -> None:
        """Nothing was told of private notes; of open ones by each way."""
        if self._world.private:
            assert {way: told for way, told in self.told.items() if told} == {}
        else:
            assert {way for way, told in self.told.items() if not told} <= {*silent}


def _asked_with(rows: Rows) -> set[str]:
    return {name for row in rows for name in row}


def test_each_tool_of_the_agent_has_a_row_that_uses_each_argument() -> None:
    wanted = {tool.spec.name: set(tool.spec.parameters["properties"]) for tool in own_tools()}
    assert {name: _asked_with(rows) for name, rows in AGENT.items()} == wanted


def test_each_tool_of_the_server_has_a_row_that_uses_each_argument() -> None:
    offers = Backend(_no_workspace, "test").offers()
    wanted = {offer.spec.name: set(offer.spec.parameters["properties"]) for offer in offers}
    assert {name: _asked_with(rows) for name, rows in CLIENTS.items()} == wanted


def _no_workspace() -> KnowledgeBase:
    raise AssertionError("offers open nothing")


def test_no_tool_of_the_agent_tells_a_model_elsewhere(world: World) -> None:
    heard, toolbox = Heard(world), Toolbox()
    context = world.context(Audience.MODEL_ELSEWHERE)
    for name in sorted(AGENT, key=_order):
        for arguments in _calls(world, AGENT[name]):
            done = toolbox.run(ToolCall("c", name, json.dumps(arguments)), context)
            heard.add(name, _told(done), arguments)
    heard.check(SILENT)


def _told(done: ToolOutcome) -> str:
    return json.dumps([done.output, done.summary, dict(done.data)])


def test_what_a_tool_tells_a_model_here_of_private_notes_is_marked(tmp_path: Path) -> None:
    world, toolbox = World(tmp_path / "notes", private=True), Toolbox()
    context, unmarked, marked = world.context(Audience.OWN_MODEL), [], set()
    for name in sorted(AGENT, key=_order):
        for arguments in _calls(world, AGENT[name]):
            done = toolbox.run(ToolCall("c", name, json.dumps(arguments)), context)
            if MARKS.search(_without(done.output, arguments)) and done.ok:
                (marked.add(name) if done.taint else unmarked.append((name, arguments)))
    world.kb.close()
    assert unmarked == []
    assert marked >= {"search", "list_entries", "list_tasks", "read", "grep", "similar_notes"}


class Client:
    """What a client of the server is told, by requests of the protocol."""

    def __init__(self, world: World) -> None:
        self._backend = Backend(lambda: world.kb, "test")
        self._server = make_server(self._backend)
        session = SimpleNamespace(client_params=None)
        version = "2025-11-25"
        self._request = SimpleNamespace(session=session, request=None, protocol_version=version)

    @property
    def methods(self) -> set[str]:
        """The requests that the server answers."""
        known = {
            field.default
            for each in vars(mcp_types).values()
            if (field := getattr(each, "model_fields", {}).get("method"))
            and isinstance(field.default, str)
        }
        return {method for method in known if self._server.get_request_handler(method)}

    def ask(self, method: str, **params: Any) -> str:
        entry = self._server.get_request_handler(method)
        assert entry is not None
        given = entry.params_type.model_validate(params)
        try:
            answer = asyncio.run(entry.handler(self._request, given))  # type: ignore[arg-type]
        except MCPError as error:
            return str(error)
        return answer.model_dump_json()


def test_no_tool_of_the_server_tells_a_client(world: World) -> None:
    heard, client = Heard(world), Client(world)
    for name in sorted(CLIENTS, key=_order):
        for arguments in _calls(world, CLIENTS[name]):
            told = client.ask("tools/call", name=name, arguments=arguments)
            heard.add(name, told, arguments)
    heard.check(SILENT)


# Whatever the server answers besides tools: what is asked, with the same slots.
_ADDRESSES = ("kb://index", "kb://memory", "ADDRESS", "kb://file/memory/HISTORY.md")
_COMPLETED = ("", "h", "hidden", "quiet")
REQUESTS: Mapping[str, Callable[[World], list[dict[str, Any]]]] = {
    "resources/list": lambda _world: [{}],
    "resources/templates/list": lambda _world: [{}],
    "resources/read": lambda world: [
        {"uri": uri} for each in _ADDRESSES for uri in world.each(each)
    ],
    "completion/complete": lambda _world: [
        {
            "ref": {"type": "ref/resource", "uri": "kb://entry/{+name}"},
            "argument": {"name": "name", "value": value},
        }
        for value in _COMPLETED
    ],
    "prompts/list": lambda _world: [{}],
    "prompts/get": lambda _world: [
        {"name": prompt.name, "arguments": {prompt.about: "the walrus01"}} for prompt in PROMPTS
    ],
    "tools/list": lambda _world: [{}],
}
# These tell of nothing that is in the workspace.
_PLAIN = {"resources/templates/list", "prompts/list", "prompts/get", "tools/list"}
_ASKED_ELSEWHERE = {"tools/call"}
_WITHOUT_CONTENT = {"ping", "server/discover", "initialize"}


def test_each_request_that_the_server_answers_has_a_row(tmp_path: Path) -> None:
    world = World(tmp_path / "notes", private=True)
    answered = Client(world).methods - _ASKED_ELSEWHERE - _WITHOUT_CONTENT
    world.kb.close()
    assert set(REQUESTS) == answered


def test_no_request_to_the_server_tells_a_client(world: World) -> None:
    heard, client = Heard(world), Client(world)
    for method, rows in REQUESTS.items():
        for params in rows(world):
            said = {"params": [str(each) for each in params.values()]}
            if "arguments" in params:
                said["params"] += params["arguments"].values()
            heard.add(method, client.ask(method, **params), said)
    heard.check(_PLAIN)


def _written(target: Path) -> str:
    """All that an export wrote, names included."""
    if target.suffix == ".zip":
        with zipfile.ZipFile(target) as file:
            return "".join(f"{name}\n{file.read(name)!r}" for name in file.namelist())
    if target.is_dir():
        return "".join(
            f"{file.relative_to(target)}\n{file.read_bytes()!r}"
            for file in target.rglob("*")
            if file.is_file()
        )
    return target.read_bytes().decode("utf-8", "replace")


FORMS = ("folder", "obsidian", "md", "zip", "json")
OPTIONS = {"target", "form", "ref", "private", "since", "overwrite", "as_json"}


def test_each_form_of_an_export_is_tried() -> None:
    options = {each.name: each for each in export.params}
    assert set(options) == OPTIONS
    assert isinstance(options["form"].type, click.Choice)
    assert tuple(options["form"].type.choices) == FORMS


@pytest.mark.parametrize("form", FORMS)
def test_no_export_takes_along_what_is_private(
    world: World, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = Heard(world)
    target = tmp_path / f"out.{form}"
    command = ["-w", str(world.root), "export", "-o", str(target), "--format", form, "--json"]
    assert run(command) == 0
    heard.add("all", _written(target), {})
    late = tmp_path / f"late.{form}"
    assert run([*command[:3], "-o", str(late), "--format", form, "--since", "2001-01-01"]) == 0
    heard.add("since a day", _written(late), {})
    if form in ("md", "json"):
        said = tmp_path / f"said.{form}"
        command = ["-w", str(world.root), "export", "--session", world.session, "-o", str(said)]
        assert run([*command, "--format", form]) == 0
        heard.add("conversation", _written(said), {})
    heard.add("output", str(capsys.readouterr()), {})
    heard.check({"output"})


def test_no_calendar_of_tasks_takes_along_what_is_private(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = Heard(world)
    assert run(["-w", str(world.root), "tasks", "--ics"]) == 0
    told = capsys.readouterr()
    assert "BEGIN:VCALENDAR" in told.out
    heard.add("calendar", told.out, {})
    heard.add("output", told.err, {})
    heard.check({"output"})


# What asks a model, by its file, with the tests below that see what it is told.
ASKING = {
    "agent/turn.py": "test_no_prompt_tells_a_model_elsewhere",
    "memory/consolidation/ask.py": "test_no_prompt_of_the_memory_tells_a_model_elsewhere",
    "memory/dream/dream.py": "test_no_prompt_of_the_memory_tells_a_model_elsewhere",
}
# These pass prompts of others on, or have one of their own words alone.
PASSING_ON = {
    *("agent/refit.py", "importers/remembering.py", "memory/background/budget.py"),
    *("maintenance/demo.py", "maintenance/setup.py", "models/port.py", "models/roles.py"),
}


def _asks_a_model(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="ask_tool")):
                return True
            case ast.Call(func=ast.Attribute(value=of, attr="complete" | "stream")):
                if "model" in ast.unparse(of) or ast.unparse(of) in {"self", "super()"}:
                    return True
    return False


def test_each_file_that_asks_a_model_is_known() -> None:
    root = Path(kbtui.__file__).parent
    asking = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if _asks_a_model(ast.parse(file.read_text()))
    }
    assert asking == {*ASKING} | PASSING_ON
    assert {*ASKING.values()} <= {*globals()}


_PARTS = {
    "recalled": re.compile(r"# Found for this message\n.*?</data", re.DOTALL),
    "earlier": re.compile(r"# Earlier in this conversation\n.*?</data", re.DOTALL),
    "attached": re.compile(r"<attachment .*?</attachment>", re.DOTALL),
}


async def test_no_prompt_tells_a_model_elsewhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "WAIT_SECONDS", PATIENCE)
    litellm_model.warm_up()
    heard = Heard(world)
    said = "What sleeps at noon? " + " ".join(f'@"{each}"' for each in world.each("NOTE"))
    asked = (said, "And what does Quiet One say of it?")
    with ScriptedServer([Reply("I don't know."), Reply("Nor now.")]) as server:
        for text in asked:
            await ask(world.kb, world.talk, text, Remote(model_at(server)))
        prompts = [request.messages for request in server.prompts]
    asked_with = {"said": [*world.each("NOTE"), *asked]}
    heard.add("prompts", json.dumps(prompts), asked_with)
    told = "\n".join(message["content"] for prompt in prompts for message in prompt)
    for way, part in _PARTS.items():
        heard.add(way, "\n".join(part.findall(told)), asked_with)
    heard.check()


async def test_an_attached_note_is_called_as_it_was_typed(tmp_path: Path) -> None:
    world = World(tmp_path / "notes", private=True)
    view = world.kb.seen_by(Audience.MODEL_ELSEWHERE)
    found = attachments_of('What says @"Quiet One"?', view, world.kb.workspace)
    world.kb.close()
    assert [(each.path, each.text) for each in found] == [("Quiet One", "")]


async def test_no_prompt_of_the_memory_tells_a_model_elsewhere(world: World) -> None:
    """Condensing and Dream, which are shown what is known of the names that were said."""
    litellm_model.warm_up()
    kb, heard = world.kb, Heard(world)
    names = [each for each in world.each("NOTE") if "/" not in each]
    named = f"What of {', '.join(names)}, Zoo and Keeper? Remember them."
    for text in (named, "They are fine."):
        world.talk.append("user", text, turn="t9")
        world.talk.append("assistant", "All right.", turn="t9")
    world.talk.close()
    kept = call("save_memory", history_entry=named, memory_update="", title="Zoo")
    with ScriptedServer() as server:
        remote = Remote(model_at(server))
        for way, job in (
            ("condensing", lambda: kb.memory.consolidator.run(world.session, everything=True)),
            ("dream", lambda: kb.memory.dream.run(model=remote)),
        ):
            kb.memory.consolidator.model = lambda: remote
            before = len(server.prompts)
            server.enqueue(*(Reply(tool_calls=[kept]) for _ in range(6)))
            await job()
            prompts = [request.messages for request in server.prompts[before:]]
            assert prompts
            heard.add(way, json.dumps(prompts), {"said": [*world.each("NOTE"), named]})
    heard.check()


@pytest.mark.parametrize("root", ["sessions", "sessions/2026", ".kbtui", "../elsewhere"])
def test_no_settings_open_conversations_and_the_like_to_a_search(tmp_path: Path, root: str) -> None:
    KnowledgeBase.open(tmp_path / "notes", create=True).close()
    (tmp_path / "notes/kbtui.toml").write_text(f'[search]\nroots = ["{root}"]\n')
    with pytest.raises(ConfigurationError):
        KnowledgeBase.open(tmp_path / "notes")


# Commands that send something of a workspace elsewhere, with what shows that it holds nothing
# private; all others show it to the person whose it is.
ELSEWHERE = {
    "ask": test_no_prompt_tells_a_model_elsewhere,
    "chat": test_no_prompt_tells_a_model_elsewhere,
    "consolidate": test_no_prompt_of_the_memory_tells_a_model_elsewhere,
    "dream": test_no_prompt_of_the_memory_tells_a_model_elsewhere,
    "export": test_no_export_takes_along_what_is_private,
    "import": test_no_prompt_of_the_memory_tells_a_model_elsewhere,
    "mcp": test_no_tool_of_the_server_tells_a_client,
    "tasks": test_no_calendar_of_tasks_takes_along_what_is_private,
}
# A person's own machines and remotes, which hold the whole history.
OWN = {"sync", "git"}
HERE = {
    *("add", "audit", "check", "completion", "config", "correct", "delete", "diff", "doctor"),
    *(
        "dream-log",
        "dream-restore",
        "edit",
        "forget",
        "help",
        "inbox",
        "init",
        "links",
        "list",
        "log",
        "new",
    ),
    *("purge", "reindex", "remember", "rename", "restore", "search", "sessions", "setup", "show"),
    "similar",
    *("undo", "why", "workspaces"),
}


def test_each_command_is_known_to_stay_here_or_has_a_row() -> None:
    assert set(cli.commands) == {*ELSEWHERE} | OWN | HERE


def test_no_newer_line_of_a_private_note_is_told(world: World) -> None:
    """Behind an older line in a prompt, with a hit, and above an older line of an answer."""
    older, newer = (
        f"The {PUBLIC} feed is in the cellar",
        f"The {PUBLIC} feed is in walrus16 hall now",
    )
    with world.kb.history.change(Actor.YOU, "Older.") as change:
        change.write("memory/MEMORY.md", f"# Facts\n\n- {older}\n")
        change.write("knowledge/topics/feed.md", f"# {older}\n\n{older}\n")
    head = "---\nprivate: true\n---\n" if world.private else ""
    with world.kb.history.change(Actor.YOU, "Newer.") as change:
        change.write(f"{BOX}/hiddenname16.md", f"{head}# Feed of the {PUBLIC}\n\n{newer}\n")
    world.kb.library.refresh()
    world.kb.search.sync()
    world.kb.newer.update()
    heard, asked = Heard(world), {"query": f"where is the {PUBLIC} feed?"}
    for audience, tool in (
        (Audience.MODEL_ELSEWHERE, Search()),
        (Audience.OTHER_AGENT, MemorySearch()),
    ):
        hits = tool.run(world.context(audience), asked).data["hits"]
        heard.add(f"hits for {audience}", json.dumps([each.get("newer") for each in hits]), {})
        view = world.kb.seen_by(audience)
        heard.add(f"view of {audience}", repr(view.newer([older])), {})
        heard.add(f"answer to {audience}", repr(Quoting(world.context(audience)).about(newer)), {})
    prompt = assemble(world.kb.services, None, asked["query"])
    told = "\n".join(each.content for each in prompt.messages)
    heard.add("brackets in prompts", "\n".join(re.findall(r"\[newer, .*\]", told)), {})
    heard.check()
