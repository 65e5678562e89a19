"""Two machines and a person with git, who change the same at once in every way there is.

After each of the conflicts all three hold the same, every side's words are somewhere, the histories
are sound, and the next sync goes on: through a bare repository, a folder, and a server like a forge.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

import pytest

from kbtui.history.history import MassDeletionError
from kbtui.knowledge_base import KnowledgeBase
from tests.e2e.forked import run_forked
from tests.e2e.program import ROOT
from tests.history.test_sync_network import web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Files = dict[str, "str | bytes | None"]
ZOE = ["-c", "user.name=Zoe Quist", "-c", "user.email=zoe@example.org", "-c", "core.longpaths=true"]
LONG = "".join(f"line {number}\n" for number in range(40))
PNG = b"\x89PNG\r\n\x1a\n\0" + bytes(range(256)) * 8


class Kind(NamedTuple):
    """What there is, and what each of the three makes of it; None: the file goes."""

    name: str
    base: Files
    here: Files
    there: Files
    zoe: Files = {}  # noqa: RUF012 — never changed


def _kinds() -> Iterator[Kind]:
    text = "# A\n\none\n\ntwo\n\nthree\n"
    yield Kind(
        "one line three times",
        {"a.md": text},
        {"a.md": text.replace("two", "two HERE")},
        {"a.md": text.replace("two", "two THERE")},
        {"a.md": text.replace("two", "two ZOE")},
    )
    yield Kind(
        "lines beside each other",
        {"a.md": "one\ntwo\nthree\n"},
        {"a.md": "one HERE\ntwo\nthree\n"},
        {"a.md": "one\ntwo THERE\nthree\n"},
        {"a.md": "one\ntwo\nthree ZOE\n"},
    )
    yield Kind(
        "all append",
        {"a.md": text},
        {"a.md": f"{text}HERE\n"},
        {"a.md": f"{text}THERE\n"},
        {"a.md": f"{text}ZOE\n"},
    )
    yield Kind("one new name", {}, {"a.md": "HERE\n"}, {"a.md": "THERE\n"}, {"a.md": "ZOE\n"})
    yield Kind("the same new file", {}, {"a.md": "HERE\n"}, {"a.md": "HERE\n"}, {"a.md": "HERE\n"})
    yield Kind("edited and deleted", {"a.md": text}, {"a.md": f"{text}HERE\n"}, {"a.md": None})
    yield Kind("deleted and edited", {"a.md": text}, {"a.md": None}, {"a.md": f"{text}THERE\n"})
    yield Kind("deleted twice", {"a.md": text}, {"a.md": None}, {"a.md": None}, {"a.md": None})
    yield Kind(
        "renamed and edited",
        {"a.md": LONG},
        {"a.md": None, "b.md": LONG},
        {"a.md": f"{LONG}THERE\n"},
        {"a.md": f"ZOE\n{LONG}"},
    )
    yield Kind(
        "renamed to different names",
        {"a.md": LONG},
        {"a.md": None, "b.md": f"{LONG}HERE\n"},
        {"a.md": None, "c.md": f"THERE\n{LONG}"},
        {"a.md": None, "d.md": LONG},
    )
    yield Kind(
        "renamed and deleted",
        {"a.md": LONG},
        {"a.md": None, "b.md": LONG},
        {"a.md": None},
        {"a.md": f"{LONG}ZOE\n"},
    )
    yield Kind(
        "two renamed to one name",
        {"a.md": LONG, "b.md": LONG.replace("line", "verse")},
        {"a.md": None, "c.md": f"{LONG}HERE\n"},
        {"b.md": None, "c.md": LONG.replace("line", "verse") + "THERE\n"},
    )
    yield Kind(
        "a file becomes a folder",
        {"a": "HEAD\n", "b.md": text},
        {"a": None, "a/x.md": "HERE\n"},
        {"a": "HEAD\nTHERE\n"},
        {"b.md": f"{text}ZOE\n"},
    )
    yield Kind(
        "a folder becomes a file",
        {"a/x.md": "x\n"},
        {"a/x.md": None, "a": "HERE\n"},
        {"a/x.md": "x\nTHERE\n"},
        {"a/y.md": "ZOE\n"},
    )
    yield Kind(
        "a file and a folder of one name",
        {},
        {"a": "HERE\n"},
        {"a/x.md": "THERE\n"},
        {"a/y.md": "ZOE\n"},
    )
    yield Kind("twins by case", {}, {"Note.md": "HERE\n"}, {"note.md": "THERE\n"})
    yield Kind("folders by case", {}, {"Sub/a.md": "HERE\n"}, {"sub/b.md": "THERE\n"})
    yield Kind(
        "twins by form",
        {},
        {"Caf\u00e9.md": "HERE\n"},
        {"Cafe\u0301.md": "THERE\n"},
    )
    head = "---\ntags: [a]\n---\n\nText.\n"
    yield Kind(
        "tags",
        {"a.md": head},
        {"a.md": head.replace("[a]", "[a, HERE]")},
        {"a.md": head.replace("[a]", "[a, THERE]")},
        {"a.md": head.replace("[a]", "[a, ZOE]")},
    )
    yield Kind(
        "one property",
        {"a.md": "---\nstatus: a\n---\n\nText.\n"},
        {"a.md": "---\nstatus: HERE\n---\n\nText.\n"},
        {"a.md": "---\nstatus: THERE\n---\n\nText.\n"},
    )
    yield Kind(
        "pictures",
        {"a.png": PNG},
        {"a.png": PNG + b"HERE"},
        {"a.png": PNG + b"THERE"},
        {"a.png": PNG + b"ZOE"},
    )
    yield Kind("a picture is deleted", {"a.png": PNG}, {"a.png": None}, {"a.png": PNG + b"THERE"})
    yield Kind(
        "line ends",
        {"a.md": text},
        {"a.md": text.replace("\n", "\r\n")},
        {"a.md": text.replace("one", "one THERE")},
        {"a.md": text.replace("three", "three ZOE")},
    )
    yield Kind(
        "a byte order mark",
        {"a.md": text},
        {"a.md": f"\ufeff{text}"},
        {"a.md": text.replace("one", "one THERE")},
    )
    yield Kind(
        "an order and an edit",
        {"a.md": "- a\n- b\n- c\n- d\n"},
        {"a.md": "- d\n- c\n- b\n- a\n"},
        {"a.md": "- a\n- b THERE\n- c\n- d\n"},
        {"a.md": "- a\n- b\n- c ZOE\n- d\n"},
    )
    yield Kind(
        "all is new",
        {"a.md": text},
        {"a.md": "HERE\n\nalone\n"},
        {"a.md": "THERE\n\nby itself\n"},
        {"a.md": "ZOE\n\nas well\n"},
    )
    yield Kind("emptied and edited", {"a.md": text}, {"a.md": ""}, {"a.md": f"{text}THERE\n"})
    yield Kind(
        "two swap their names",
        {"a.md": LONG, "b.md": LONG.replace("line", "verse")},
        {"a.md": LONG.replace("line", "verse"), "b.md": LONG},
        {"a.md": f"{LONG}THERE\n"},
        {"b.md": LONG.replace("line", "verse") + "ZOE\n"},
    )
    yield Kind(
        "a folder moves and is written in",
        {"old/a.md": LONG, "old/b.md": LONG.replace("line", "verse")},
        {
            "old/a.md": None,
            "old/b.md": None,
            "new/a.md": LONG,
            "new/b.md": LONG.replace("line", "verse"),
        },
        {"old/a.md": f"{LONG}THERE\n", "old/c.md": "THERE too\n"},
        {"old/b.md": LONG.replace("line", "verse") + "ZOE\n"},
    )
    yield Kind(
        "what is none of a workspace's",
        {"a.md": text},
        {"a.md": text.replace("one", "one HERE")},
        {"a.md": text.replace("three", "three THERE")},
        {".obsidian/app.json": "{}", "a.md": text.replace("two", "two ZOE")},
    )
    yield Kind(
        "a long line and much text",
        {"a.md": "x " * 50_000 + "\n"},
        {"a.md": "x " * 50_000 + "HERE\n"},
        {"a.md": "THERE " + "x " * 50_000 + "\n"},
    )
    yield Kind(
        "memory",
        {},
        {"../../memory/2026-11-20.md": "- HERE\n"},
        {"../../memory/2026-11-20.md": "- THERE\n"},
        {"../../memory/2026-11-20.md": "- ZOE\n"},
    )
    facts = "# Memory\n\n- The boiler is from 1990.\n- Abel has the key.\n"
    yield Kind(
        "MEMORY.md: all add",
        {"../../memory/MEMORY.md": facts},
        {"../../memory/MEMORY.md": f"{facts}- HERE\n"},
        {"../../memory/MEMORY.md": f"{facts}- THERE\n"},
        {"../../memory/MEMORY.md": f"{facts}- ZOE\n"},
    )
    yield Kind(
        "MEMORY.md: one corrects, one takes out, one adds",
        {"../../memory/MEMORY.md": facts},
        {"../../memory/MEMORY.md": facts.replace("1990", "1990 HERE")},
        {"../../memory/MEMORY.md": facts.replace("- Abel has the key.\n", "")},
        {"../../memory/MEMORY.md": facts.replace("Abel", "ZOE")},
    )


KINDS = list(_kinds())


def _change(folder: Path, files: Files) -> None:
    for name, data in sorted(files.items(), key=lambda each: each[1] is not None):
        file = folder / name
        if data is None:
            file.unlink()
            with contextlib.suppress(OSError):
                file.parent.rmdir()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data if isinstance(data, bytes) else data.encode())


def _holds(root: Path) -> dict[str, bytes]:
    """Every file of a workspace's that is there, by name."""
    areas = ("knowledge", "memory", "skills")
    every = [file for area in areas for file in (root / area).rglob("*") if file.is_file()]
    return {
        name: file.read_bytes()
        for file in every
        if "/." not in (name := unicodedata.normalize("NFC", file.relative_to(root).as_posix()))
    }


def _git(folder: Path, *arguments: str | Path) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *ZOE, *arguments], cwd=folder, env=env, check=True, capture_output=True)


class _Machine:
    def __init__(self, root: Path, address: str) -> None:
        self.root = root
        self._address = address
        self.kb = KnowledgeBase.open(root, create=True)

    def sync(self) -> None:
        self.kb.history.adopt(timeout=5, settle=0, confirmed=True)
        with contextlib.suppress(MassDeletionError):
            self.kb.syncing.run(self._address)

    def sync_and_be_killed(self, seconds: float) -> None:
        """Begin a sync in a process of its own, which is killed by then, or gets through."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        run_forked(["-w", str(self.root), "sync", self._address], "", env, seconds)

    def said(self) -> bytes:
        """All that is here: files, versions kept beside them, and what waits for a person."""
        waiting = [
            edit.wanted or b""
            for proposal in self.kb.memory.inbox.list()
            for edit in proposal.edits
        ]
        return b"\n".join([*_holds(self.root).values(), *waiting])


_WAYS = ["bare repository", "folder", "forge"]


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS)
def test_all_end_alike_nothing_is_lost_and_nothing_stands_still(tmp_path: Path, way: str) -> None:
    """Each conflict in each way; in one way at least syncs of it are killed, and in one they aren't."""
    chance = random.Random(7)
    remote = tmp_path / "remote"
    with contextlib.ExitStack() as until:
        address = str(remote)
        if way != "folder":
            subprocess.run(["git", "init", "-q", "--bare", "-b", "main", remote], check=True)
        if way == "forge":
            _git(remote, "config", "http.receivepack", "true")
            address = until.enter_context(web(remote))
        here, there = (_Machine(tmp_path / name, address) for name in ("here", "there"))
        until.callback(here.kb.close)
        until.callback(there.kb.close)
        here.sync()
        there.sync()
        clone = tmp_path / "clone"
        _git(tmp_path, "clone", "-q", "-b", "main", address, clone)
        for number, kind in enumerate(KINDS):
            is_killed = (number + _WAYS.index(way)) % 2
            _conflict(
                kind, f"knowledge/c{number}", here, there, clone, chance if is_killed else None
            )
        for machine in (here, there):
            assert machine.kb.history.check().problems == ()
        _git(remote, "fsck", "--full", "--strict")


def _conflict(
    kind: Kind,
    place: str,
    here: _Machine,
    there: _Machine,
    clone: Path,
    chance: random.Random | None,
) -> None:
    _change(here.root / place, kind.base)
    here.sync()
    there.sync()
    _git(clone, "pull", "-q", "--ff-only")
    if kind.zoe:
        _change(clone / place, kind.zoe)
        _git(clone, "add", "-A")
        _git(clone, "commit", "-q", "-m", kind.name)
        _git(clone, "push", "-q")
    _change(here.root / place, kind.here)
    _change(there.root / place, kind.there)
    for machine in (here, there):
        if chance:
            machine.sync_and_be_killed(chance.random() / 3)
    for machine in (here, there, here, there, here):
        machine.sync()
    _git(clone, "pull", "-q", "--ff-only")
    shared = {name for name in _holds(here.root) if ".conflict-" not in name}
    of_here, of_there, of_zoe = (_holds(root) for root in (here.root, there.root, clone))
    for name in sorted(shared | {n for n in of_there if ".conflict-" not in n} | of_zoe.keys()):
        assert of_here.get(name) == of_there.get(name) == of_zoe.get(name), (kind.name, name)
    said = here.said() + there.said()
    for word, files in (("HERE", kind.here), ("THERE", kind.there), ("ZOE", kind.zoe)):
        for data in files.values():
            if word.encode() in (data.encode() if isinstance(data, str) else data or b""):
                assert word.encode() in said, (kind.name, word)
    head = here.kb.history.head()
    for machine in (here, there):
        machine.sync()
        assert machine.kb.history.head() == head, (kind.name, "a sync without an edit moved on")
