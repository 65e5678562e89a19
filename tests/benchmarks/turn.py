"""Turn: what one turn that keeps something runs through: files, calls, switches of file.

    python -m tests.benchmarks turn [--files] [--model | --first | --edit]

The third message of a conversation is counted, so that what is imported and read once isn't.
``--files`` lists the files by how many calls they take. With ``--model`` a model answers, and each
of its turns looks for something, writes two entries, and says so. With ``--first`` it is the first
turn of a process without a model, which asks for what another process was told. With ``--edit`` it is
one call of ``edit_entry``, the third of its conversation, from its arguments to the commit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import kbtui
from kbtui.models.port import (
    Message,
    Reply,
    ReplyEvent,
    ReplyText,
    ToolCall,
    ToolSpec,
    Usage,
)
from tests.benchmarks.report import Table, versions

_ROOT = str(Path(kbtui.__file__).parent) + os.sep
_SAID = (
    "The boiler man comes on Thursday at 10.",
    "Silke moved to the third floor in March.",
    "No alcohol for dad with the new tablets.",
)
_ASKED = "Which floor did Silke move to?"
_PAUSE = 3.0  # seconds
_CALL = ("agent/tools/toolbox.py", "run")
_DOOR = ("history/change.py", "put")
# What a model writes of each: the type and the title of an entry, and its text.
_WRITTEN = (
    (
        ("topic", "Boiler", "The boiler man comes on Thursday at 10."),
        ("fact", "Thursday at 10", ""),
    ),
    (("person", "Silke", "Moved to the third floor in March."), ("topic", "Third floor", "")),
    (("person", "Dad", "No alcohol for dad."), ("topic", "New tablets", "No alcohol with them.")),
)

_ENTRIES = (
    ("topic", "Boiler", "It is in the cellar, behind the door with the broken lock.\n"),
    ("person", "Silke", "## Notes\n- Lives above us\n"),
    ("person", "Dad", "## Notes\n- Born in Ghent\n- Walks to the harbour each morning\n"),
)
"""What `edit_entry` adds a message to, each to its entry."""


class _Counting:
    """Counts calls of functions of kbtui, in all threads that run while it is on."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.named: Counter[str] = Counter()
        self.switches = 0
        self.stops = 0
        self.on = False
        self._names: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not self.on:
            return
        name = self._file(frame.f_code)
        if not name:
            return
        self.files[name] += 1
        self.named[f"{name}:{frame.f_code.co_name}"] += 1
        if (name, frame.f_code.co_name) == _DOOR:
            self.stops = max(self.stops, self._stops(frame))
        caller = frame.f_back
        before = self._file(caller.f_code) if caller is not None else ""
        self.switches += before not in {"", name}

    def _file(self, code: CodeType) -> str:
        if code not in self._names:
            path = code.co_filename
            self._names[code] = path.removeprefix(_ROOT) if path.startswith(_ROOT) else ""
        return self._names[code]

    def _stops(self, frame: FrameType | None) -> int:
        """How many functions lead from the call of a tool to this one, both included."""
        found: list[tuple[str, str]] = []
        while frame is not None:
            found.append((self._file(frame.f_code), frame.f_code.co_name))
            frame = frame.f_back
        return found.index(_CALL) + 1 if _CALL in found else 0

    def calls_of(self, name: str) -> int:
        """How often a function was called, by its file and its name."""
        return self.named[name]


def run(argv: list[str]) -> dict[str, Any]:
    """Count the turn."""
    parser = argparse.ArgumentParser(prog="turn")
    parser.add_argument("--files", action="store_true")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--model", action="store_true")
    what.add_argument("--first", action="store_true")
    what.add_argument("--edit", action="store_true")
    options = parser.parse_args(argv)
    counting = _Counting()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ.update(KBTUI_MODEL="offline", HOME=folder, HF_HUB_OFFLINE="1")
        os.environ["KBTUI_SEARCH__BACKGROUND"] = "false"  # no process that outlives this
        place = Path(folder) / "ws"
        if options.first:
            _tell_elsewhere(place)
        threading.setprofile(counting)
        sys.setprofile(counting)
        try:
            if options.first:
                asyncio.run(_ask_first(place, counting))
            elif options.edit:
                _edit(place, counting)
            else:
                asyncio.run(_talk(place, counting, by_model=options.model))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    figures = {
        "files": len(counting.files),
        "calls": counting.files.total(),
        "switches": counting.switches,
        "file reads": counting.calls_of("workspace/files.py:_read"),
        "YAML parsed": counting.calls_of("knowledge/format/yaml_edit.py:read_tree"),
        "redaction passes": counting.calls_of("redaction/redact.py:redact"),
        "stops": counting.stops,
        "searches": counting.calls_of("search/search_index.py:search"),
    }
    titles = {"model": "two entries", "first": "a first question", "edit": "one call of edit_entry"}
    chosen = [title for name, title in titles.items() if getattr(options, name)]
    table = Table(*chosen or ["one kept message"], ["what", "count"])
    for name, count in figures.items():
        table.row(name, count)
    tables = [table]
    if options.files:
        tables.append(Table("calls by file", ["file", "calls"]))
        for name, count in counting.files.most_common():
            tables[-1].row(name, count)
    return {"tables": tables, "figures": {**figures, **versions()}}


async def _talk(place: Path, counting: _Counting, *, by_model: bool) -> None:
    from kbtui.knowledge_base import KnowledgeBase

    with KnowledgeBase.open(place, create=True) as kb:
        session = kb.sessions.create("counted")
        for number, text in enumerate(_SAID, 1):
            model = _Writing(_WRITTEN[number - 1]) if by_model else None
            if number == len(_SAID):
                await asyncio.sleep(
                    _PAUSE
                )  # nobody types at once; what was just written is read again
                counting.on = True
            async for _ in kb.agent.turn(session, text, model=model):
                pass
            counting.on = False
            assert not by_model or len(kb.library.infos()) == 2 * number, "it wrote two entries"


def _tell_elsewhere(place: Path) -> None:
    """Say everything in other processes, as scripts do."""
    for arguments in (["init"], *(["ask", text] for text in _SAID)):
        subprocess.run(
            [sys.executable, "-m", "kbtui", "-w", str(place), *arguments],
            env={**os.environ, "PYTHONPATH": str(Path(_ROOT).parent)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )


def _edit(place: Path, counting: _Counting) -> None:
    from kbtui.knowledge_base import KnowledgeBase

    with KnowledgeBase.open(place, create=True) as kb:
        session = kb.sessions.create("counted")
        for number, (said, entry) in enumerate(zip(_SAID, _ENTRIES, strict=True), 1):
            message = session.append("user", said)
            context = kb.agent.tool_context(session, message, said, f"t{number}", _Writing(()))
            kind, title, body = entry
            kb.library.create(kind, title, body=body)
            append = {"entry": title, "append": f"- {said}"}
            call = ToolCall("e", "edit_entry", json.dumps(append))
            if number == len(_SAID):
                time.sleep(_PAUSE)
                counting.on = True
            outcome = kb.agent.toolbox.run(call, context)
            counting.on = False
            assert outcome.changes, outcome


async def _ask_first(place: Path, counting: _Counting) -> None:
    from kbtui.knowledge_base import KnowledgeBase

    with KnowledgeBase.open(place) as kb:
        session = kb.sessions.create("counted")
        counting.on = True
        async for _ in kb.agent.turn(session, _ASKED):
            pass
        counting.on = False
        assert _SAID[1] in session.messages[-1].content, "it found the line"


class _Writing:
    """A model that looks for what it was told, writes two entries, and says that it has."""

    name = "writing"
    is_local = True
    sees = False
    takes_tools = True
    context_window = 32_000

    def __init__(self, entries: Sequence[tuple[str, str, str]]) -> None:
        self._rounds = [
            [("search", {"query": " ".join(title for _, title, _ in entries)})],
            [
                ("write_entry", {"kind": kind, "title": title, "body": body})
                for kind, title, body in entries
            ],
        ]

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def stream(
        self, _messages: Sequence[Message], _tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        asked = self._rounds.pop(0) if self._rounds else []
        calls = [
            ToolCall(f"c{len(self._rounds)}{n}", name, json.dumps(arguments))
            for n, (name, arguments) in enumerate(asked)
        ]
        text = "" if calls else "Both are kept."
        if text:
            yield ReplyText(text)
        yield Reply(text, tuple(calls), "tool_calls" if calls else "stop", Usage())

    async def complete(self, *_: object, **__: object) -> Reply:
        raise AssertionError("a turn streams")
