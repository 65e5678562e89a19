"""Bytes that nobody meant: every reader takes them, or says one sentence, and loses nothing.

Each target has a few good inputs, which are bent, cut, swapped and repeated in ways that a number
decides, so that a find can be repeated. What was ever found lies in ``seeds/TARGET/`` and is tried
first. ``--long`` tries a hundred times as many.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import random
import re
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError
from kbtui.history.merging.tree_merge import merge_three
from kbtui.history.queries.diff import diff_file, without_hunks
from kbtui.importers.engine import SOURCES, find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.search.query.parser import parse
from kbtui.sessions.log_records import SessionLog
from kbtui.workspace.jsonl import read_lines
from tests.importers.exports import chatgpt, claude, node

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = Path(__file__).parent / "seeds"
TRIES = 30_000 if os.environ.get("KBTUI_LONG") else 300
_NASTY = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\r", b"---\n", b"...\n", b"\n\n", b"\t"),
    *(b'"', b"'", b"{", b"}", b"[", b"]", b":", b"&a ", b"*a", b"!!python/object:os.system "),
    *(
        b"null",
        b"-1",
        b"1e999",
        b"9" * 400,
        b"NaN",
        b"true",
        b"[[[[[[[[",
        "\u202e\U000e0041".encode(),
    ),
    *(b"\\ud800", b"<!ENTITY x 'y'>", b"]]>", b"../../etc/passwd", b"type:", b"-", b"*", b"(" * 50),
)
_ONE_OF_ALL = re.compile(  # of dates one is chosen, and lists become one
    r"(updated|created) ?:[\s\d'\"T:.,/+Z-]*|\w+: ?\[[^\[\]{}\"'#]*\]"
)
Target = Callable[[bytes, Path], None]

NOTE = b"---\ntitle: One\ntags: [a, b]\nupdated: 2026-01-02\nlist:\n  - x\n---\n# One\n\n- a\n- b\n"
HEAD = (
    b"---\ntitle: a\ncreated: 2026-01-01\n# note\n  more\naliases:\n- x y\n- z\n\n"
    b"updated: 2026-03-02T10:00:00Z\nnested:\n  a: 1\n  b: [1,2]\n---\nBody\n- a\n"
)
SESSION = (
    b'{"kind":"session","format":1,"id":"s1","channel":"tui","created":"2026-11-22T00:00:00+00:00"}\n'
    b'{"id":1,"time":"2026-11-22T00:00:00.000+00:00","role":"user","content":"hello"}\n'
    b'{"id":2,"time":"2026-11-22T00:00:01.000+00:00","role":"assistant","content":"you"}\n'
    b'{"kind":"undo","upto":1}\n'
)
CLAUDE = json.dumps([claude("c1", "hello", "you", "again"), claude("c2", "more")]).encode()
CHATGPT = json.dumps(
    [chatgpt("g1", node("a", None, "user", "hello"), node("b", "a", "assistant", "you"))]
).encode()
ENEX = (
    b"<?xml version='1.0'?><en-export><note><title>T</title><content><![CDATA[<en-note><div>x"
    b"</div></en-note>]]></content><created>20210803T051500Z</created></note></en-export>"
)
QUERY = b'type:decision tag:auth "exact phrase" -draft updated:2026-01..2026-03 NOT path:x archi*'
ARGUMENTS = [
    b'{"query": "box on the shelf", "limit": 3}',
    b'{"entry": "bridge", "append": "- old", "section": "Facts"}',
    b'{"type": "fact", "title": "Sky", "body": "blue", "tags": ["a"], "sections": {"A": "b"}}',
    b'{"commit": "HEAD~1", "entry": "bridge"}',
    b'{"pattern": "a+", "regex": true, "path": "memory"}',
    b'{"entry": "bridge", "new_name": "people/Bob", "base_hash": "x"}',
]


def _zip(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file.getvalue()


def _frontmatter(data: bytes, _: Path) -> None:
    parts = frontmatter.split(data)
    try:
        changed = frontmatter.set_keys(data, {"title": "another"})
    except KbtuiError:
        return
    again = frontmatter.split(changed)
    assert again.body == parts.body
    assert frontmatter.read(again).values["title"] == "another"


def _sessions(data: bytes, folder: Path) -> None:
    file = folder / "s1.jsonl"
    file.write_bytes(data)
    log = SessionLog.of(read_lines(file).records)
    aside = sorted(folder.glob("s1.jsonl.torn-*"))
    whole = file.read_bytes() + b"".join(each.read_bytes() for each in aside)
    assert whole.replace(b"\n", b"") == data.replace(b"\n", b""), "a torn end is set aside"
    for each in aside:
        each.unlink()
    assert all(message.content is not None for message in log.messages)


def _patches(data: bytes, _: Path) -> None:
    old, _, new = data.partition(b"# One")
    for one, other in ((old, new), (NOTE, data), (data, b"")):
        diff = diff_file("knowledge/topics/a.md", one, other)
        marks = {codecs.BOM_UTF8, codecs.BOM_UTF16_LE}  # alone they are no line
        if not diff.binary and marks.isdisjoint({one, other}):
            assert without_hunks(one, other, diff.hunks) == one


def _merges(data: bytes, _: Path) -> None:
    rng = random.Random(data)
    for base, ours in ((None, NOTE), (None, bent(HEAD, rng)), (HEAD, bent(HEAD, rng))):
        merged = merge_three("knowledge/topics/a.md", base, ours, data)
        if merged is None:
            continue
        said = "\n".join(_lines(merged.data) + _lines(merged.theirs or b""))
        for line in {*_lines(ours), *_lines(data)} - {*_lines(base or b""), "---", "..."}:
            if not _ONE_OF_ALL.fullmatch(line):
                assert line in said, (ours, line)


def _lines(data: bytes) -> list[str]:
    """Its lines without blanks that only part words, and without byte order marks."""
    text = data.decode("utf-8", "surrogateescape").replace("\ufeff", "")
    return [" ".join(line.split()) for line in text.split("\n")]


def _imports(data: bytes, folder: Path) -> None:
    for name in ("export.json", "export.jsonl", "Journal.enex", "note.md"):
        file = folder / name
        file.write_bytes(data)
        with OpenedExport(file) as opened:
            source = find_source(opened)
            for item in source.read(opened) if source else ():
                assert isinstance(item, ImportedConversation | ImportedNote | Skipped)
        file.unlink()


def _each_importer(data: bytes, folder: Path) -> None:
    """Also where another one would have recognised it."""
    file = folder / "export"
    file.write_bytes(data)
    with OpenedExport(file) as opened:
        for name in SOURCES:
            source = import_module(name).SOURCE
            try:
                for item in source.read(opened) if source.recognises(opened) else ():
                    assert isinstance(item, ImportedConversation | ImportedNote | Skipped)
            except KbtuiError:
                continue


def _queries(data: bytes, _: Path) -> None:
    asked = parse(data.decode("utf-8", "replace"))
    assert len(asked.terms()) <= 256


TARGETS: dict[str, tuple[Target, list[bytes]]] = {
    "frontmatter": (_frontmatter, [NOTE, b"---\na: |\n  x\n  y\nb: {c: [d, e]}\n---\ntext\n"]),
    "sessions": (_sessions, [SESSION]),
    "patches": (_patches, [NOTE + NOTE, b"one\ntwo\n# One\nthree\r\nfour"]),
    "merge": (_merges, [NOTE, HEAD, NOTE.replace(b"- a", b"- c"), b"other\n"]),
    "importers": (
        _imports,
        [CLAUDE, CHATGPT, ENEX, NOTE, SESSION, _zip(**{"conversations.json": CLAUDE})],
    ),
    "each importer": (_each_importer, [CLAUDE, CHATGPT, ENEX, SESSION]),
    "queries": (_queries, [QUERY]),
}


def bent(data: bytes, rng: random.Random) -> bytes:
    """The same, changed in one to four ways."""
    for _ in range(rng.randint(1, 4)):
        first, last = sorted(rng.randint(0, len(data)) for _ in range(2))
        match rng.randint(0, 6):
            case 0:
                data = data[:first] + rng.choice(_NASTY) + data[first:]
            case 1:
                data = data[:first] + rng.choice(_NASTY) + data[last:]
            case 2:
                data = data[:first] + data[last:]
            case 3:
                data = data[:last] + data[first:last] * rng.randint(1, 3) + data[last:]
            case 4 if first < len(data):
                data = data[:first] + bytes([rng.randrange(256)]) + data[first + 1 :]
            case 5:
                words = data.split(b",")
                rng.shuffle(words)
                data = b",".join(words)
            case _:
                data = data[: max(1, last)]
    return data


def tries(name: str, good: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """What was found before, what is good, and what comes of that."""
    for file in sorted((SEEDS / name).glob("*")):
        yield file.name, file.read_bytes()
    for number, data in enumerate(good):
        yield f"good {number}", data
    for number in range(TRIES):
        rng = random.Random(f"{name} {number}")
        yield f"{number}", bent(rng.choice(good), rng)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_taken_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    target, good = TARGETS[name]
    for number, data in tries(name, good):
        try:
            target(data, tmp_path)
        except KbtuiError as refused:
            sentence = refused.message
        except Exception as error:
            raise AssertionError(f"{name}, {number}: {data!r}") from error
        else:
            sentence = "taken"
        assert sentence


def test_any_arguments_of_a_tool_are_taken_or_refused_in_a_sentence(tmp_path: Path) -> None:
    overrides = {"search": {"semantic": False}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
        kb.library.create("topic", "Bridge", body="Wood.")
        backend = Backend(lambda: kb, "fuzz")
        names = [offer.spec.name for offer in backend.offers()]
        for number, data in tries("arguments", ARGUMENTS):
            if number.startswith("good") or int(number) % 3 == 0 or TRIES > 1000:
                name = random.Random(number).choice(names)
                text = data.decode("utf-8", "replace")
                try:
                    done = backend.call(name, text, "fuzzer")
                except Exception as error:
                    raise AssertionError(f"{name}, {number}: {text!r}") from error
                assert done.output
                assert "Traceback" not in done.output
        outside = [path for path in tmp_path.iterdir() if path.name != "notes"]
        assert outside == []
        assert [each for each in kb.checking.run() if each.area in {"history", "files"}] == []
