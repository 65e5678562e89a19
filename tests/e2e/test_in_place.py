"""Somebody's own folder of notes: everything works in it, and nothing in it changes unasked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError, UnreadableError
from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.resources import Resources
from kbtui.search.results import SearchResult
from tests.e2e.program import ROOT, kbtui, ok
from tests.patience import PATIENCE
from tests.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.agent.tools.toolbox import ToolOutcome

VAULTS = ["foam", "jackyzha0-site", "kepano-obsidian", "obsidian-help-en", "odd-frontmatter"]
_NOTES = {
    "Home.md": "# Home\n\nSee [[My Great Note]] and [the plan](Work/The%20Plan.md).\n",
    "My Great Note.md": "A kestrel hovers over the motorway.\n\n![[falcon.png]]\n",
    "Work/The Plan.md": "---\ntags: plan\n---\nBuild it in spring. Back [home](../Home.md).\n",
    "Work/falcon.png": "\x89PNG",
    "INDEX.md": "My own index: [[Home]].\n",
    ".obsidian/app.json": "{}\n",
}


def tree_of(root: Path) -> dict[str, str]:
    """Every file outside of kbtui's own folder with its SHA-256, and every folder."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in root.rglob("*")
        if path.relative_to(root).parts[0] != ".kbtui"
    }


def modes_of(root: Path) -> dict[str, int]:
    """The mode of every note."""
    return {path.name: path.stat().st_mode for path in root.glob("*.md")}


def undo(vault: Path) -> None:
    """Take back the newest change."""
    newest = ok("log", "--json", workspace=vault).json[0]
    ok("undo", newest["commit"], workspace=vault)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for name, text in _NOTES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return root


@pytest.mark.data
@pytest.mark.parametrize("name", VAULTS)
def test_a_vault_is_byte_for_byte_the_same_after_looking_and_after_each_undo(
    data_dir: Path, tmp_path: Path, name: str
) -> None:
    root = tmp_path / name
    shutil.copytree(data_dir / "vaults" / name, root, symlinks=True)
    before = tree_of(root)
    with KnowledgeBase.open(root, create=True) as kb:
        infos = kb.library.infos()
        notes = [path for path in before if path.endswith(".md") and "/." not in path]
        assert {kb.workspace.file(info.path) for info in infos} == set(notes)
        for info in infos:
            kb.library.get(info.path)
            kb.library.outgoing(info.path)
            kb.library.backlinks(info.path)
        kb.search.sync()
        found = kb.search.search("the", "default", 5, semantic=False)
        assert isinstance(found, SearchResult)
        assert found.hits
        assert tree_of(root) == before

        def undone(write: Callable[[], str]) -> None:
            kb.history.undo(write())
            assert tree_of(root) == before

        chosen = random.Random(1).sample(infos, 12)
        for info in chosen:
            undone(lambda path=info.path: kb.library.rename(path, "Some Better Name").commit.id)
            undone(lambda path=info.path: kb.library.delete(path).id)
        undone(
            lambda: kb.library.create("topic", "New", actor=Actor.AGENT, body="A fact.").commit.id
        )
    assert tree_of(root) == before


def test_notes_are_listed_before_they_are_read_and_changed_before_they_are_adopted(
    vault: Path,
) -> None:
    before = tree_of(vault)
    lexical = {"search": {"semantic": False}}
    with KnowledgeBase.open(vault, create=True, overrides=lexical, starts=True) as kb:
        listed = {info.path: info.title for info in kb.library.listing()}
        assert listed["knowledge/Work/The Plan.md"] == "The Plan"
        assert listed.keys() == {info.path for info in kb.library.infos()}
        assert "knowledge/Home.md" not in kb.history.tree("HEAD")
        kb.library.rename("My Great Note", "Falcons")
        assert "[[Falcons]]" in (vault / "Home.md").read_text()
        kb.history.undo("HEAD")
        assert tree_of(vault) == before
        kb.start()
        deadline = time.monotonic() + PATIENCE
        while "knowledge/Work/The Plan.md" not in kb.history.tree("HEAD"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert tree_of(vault) == before


def test_notes_are_listed_shown_linked_searched_and_logged_where_they_lie(vault: Path) -> None:
    before = tree_of(vault)
    assert "4 entries" in ok("init", vault).err
    listed = {row["path"]: row["title"] for row in ok("list", "--json", workspace=vault).json}
    assert listed.keys() == {"Home.md", "My Great Note.md", "Work/The Plan.md", "INDEX.md"}
    assert "kestrel" in ok("show", "My Great Note", workspace=vault).out
    assert "Build it" in ok("show", "Work/The Plan.md", workspace=vault).out
    links = ok("links", "home", workspace=vault).out
    assert "My Great Note" in links
    assert "The Plan" in links
    hits = ok("search", "kestrel motorway", "--json", workspace=vault).json["hits"]
    assert hits[0]["path"] == "My Great Note.md"
    assert "had ○ My Great Note" in ok("log", "My Great Note", workspace=vault).out
    assert ok("check", workspace=vault).status == 0
    assert tree_of(vault) == before


def test_an_edit_a_rename_and_a_deletion_are_recorded_and_undone(vault: Path) -> None:
    before = tree_of(vault)
    ok("init", vault)
    ok("edit", "My Great Note", workspace=vault, EDITOR="sed -i s/hovers/glides/")
    assert "glides" in (vault / "My Great Note.md").read_text()
    undo(vault)
    ok("rename", "My Great Note", "My Better Note", workspace=vault)
    assert "[[My Better Note]]" in (vault / "Home.md").read_text()
    assert "renamed" in ok("log", workspace=vault).out.splitlines()[0]
    undo(vault)
    ok("delete", "The Plan", workspace=vault)
    undo(vault)
    assert tree_of(vault) == before


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_note_that_nobody_else_may_read_stays_so_when_it_is_renamed_and_brought_back(
    vault: Path, mode: int
) -> None:
    (vault / "My Great Note.md").chmod(mode)
    before = modes_of(vault)
    with KnowledgeBase.open(vault, create=True) as kb:
        kb.library.rename("My Great Note", "Falcons")
        assert modes_of(vault)["Falcons.md"] == before["My Great Note.md"]
        kb.history.undo("HEAD")
        assert modes_of(vault) == before
        kb.library.delete("My Great Note")
        kb.history.undo("HEAD")
        assert modes_of(vault) == before


def test_a_folder_that_nobody_named_a_workspace_is_one_when_it_is_opened(vault: Path) -> None:
    assert "Home" in ok("list", workspace=vault).out
    assert kbtui("list", workspace=vault.parent).status != 0


def test_a_question_is_answered_with_a_citation_of_the_file(vault: Path) -> None:
    before = tree_of(vault)
    done = ok("ask", "what do I know about the kestrel?", workspace=vault, KBTUI_MODEL="offline")
    assert "My Great Note.md:1" in done.out
    assert tree_of(vault) == before


def test_another_agent_finds_reads_and_writes_notes(vault: Path) -> None:
    with KnowledgeBase.open(vault, create=True, overrides={"search": {"semantic": False}}) as kb:
        backend = Backend(lambda: kb, "b")

        def call(tool: str, **arguments: object) -> ToolOutcome:
            return backend.call(tool, json.dumps(arguments), "codex")

        assert "My Great Note" in call("memory_search", query="kestrel").output
        assert "Build it in spring" in call("read_entry", entry="The Plan").output
        assert "Build it in spring" in call("read_file", path="Work/The Plan.md").output
        assert "in spring" in call("grep", pattern="build it", path="Work").output
        again = call("write_entry", type="topic", title="My Great Note", body="Other.")
        assert "already" in again.output
        made = call("write_entry", type="topic", title="A New Thing", body="Said by Codex.")
        assert made.ok
        assert "Said by Codex." in (vault / "A New Thing.md").read_text()
        change = call("show_change", commit="HEAD").output
        assert "+++ b/A New Thing.md" in change
        assert not call("read_file", path=".obsidian/app.json").ok
        catalogue = Resources(kb.workspace, kb.library).read("kb://index")
        assert "My Great Note" in catalogue
        assert "A kestrel hovers" in catalogue


def test_two_vaults_in_place_are_one_after_sync(vault: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    ok("init", vault)
    ok("sync", remote, workspace=vault)
    other = tmp_path / "other"
    ok("init", other, "--in-place")
    ok("sync", remote, workspace=other)
    put(other / "Mine.md", "Mine.\n")
    ok("sync", workspace=other)
    ok("sync", workspace=vault)
    assert (other / "Work/The Plan.md").read_bytes() == (vault / "Work/The Plan.md").read_bytes()
    assert (vault / "Mine.md").read_text() == "Mine.\n"
    assert not (vault / "knowledge").exists()
    assert not (other / "INDEX.md").read_text().startswith("#")


def test_canvases_and_bases_have_a_history_and_travel(vault: Path, tmp_path: Path) -> None:
    canvas = '{"nodes":[{"id":"1","type":"file","file":"Home.md"}],"edges":[]}\n'
    put(vault / "Boards/Map.canvas", canvas)
    put(vault / "All.base", "views:\r\n  - type: table\r\n")
    ok("init", vault)
    remote, other = tmp_path / "remote", tmp_path / "other"
    ok("sync", remote, workspace=vault)
    ok("init", other, "--in-place")
    ok("sync", remote, workspace=other)
    for name in ("Boards/Map.canvas", "All.base"):
        assert (other / name).read_bytes() == (vault / name).read_bytes()
    ok("rename", "Home", "House", workspace=other)
    ok("sync", workspace=other)
    ok("sync", workspace=vault)
    assert "House.md" in (vault / "Boards/Map.canvas").read_text()
    (vault / "All.base").unlink()
    deleted = ok("log", "--json", workspace=vault).json[0]
    assert deleted["paths"] == ["All.base"]
    ok("undo", deleted["commit"], workspace=vault)
    assert (vault / "All.base").read_bytes() == b"views:\r\n  - type: table\r\n"
    ok("check", workspace=vault)


def test_pictures_and_papers_have_a_history_and_travel_and_large_ones_are_named(
    vault: Path, tmp_path: Path
) -> None:
    picture, film = bytes(range(256)) * 40, b"film" * (3 << 20)
    fill(vault, {"Work/The Nest.png": picture, "Film.mp4": film, "program.py": "print()\n"})
    ok("init", vault)
    remote, other = tmp_path / "remote", tmp_path / "other"
    said = ok("sync", remote, workspace=vault).err
    assert "Film.mp4" in said
    assert "sync.attachment_megabytes" in said
    assert "Film.mp4" in ok("doctor", workspace=vault).out
    ok("init", other, "--in-place")
    ok("sync", remote, workspace=other)
    assert (other / "Work/The Nest.png").read_bytes() == picture
    assert not (other / "Film.mp4").exists()
    assert not (other / "program.py").exists()
    (other / "Work/The Nest.png").write_bytes(picture[::-1])
    ok("sync", workspace=other)
    ok("sync", workspace=vault)
    assert (vault / "Work/The Nest.png").read_bytes() == picture[::-1]
    changed = ok("log", "--json", workspace=vault).json[0]
    assert changed["paths"] == ["Work/The Nest.png"]
    ok("undo", changed["commit"], workspace=vault)
    assert (vault / "Work/The Nest.png").read_bytes() == picture
    ok("check", workspace=vault)
    ok("check", workspace=other)


def test_many_pictures_wait_for_a_sync_and_are_recorded_a_few_at_a_time(
    vault: Path, tmp_path: Path
) -> None:
    fill(vault, {f"Pictures/{n}.png": bytes([n]) * (5 << 20) for n in range(12)})
    ok("init", vault)
    assert "Pictures" not in ok("log", "--json", workspace=vault).out
    ok("sync", tmp_path / "remote", workspace=vault)
    log = ok("log", "--json", workspace=vault).json
    made = [each["paths"] for each in log if each["paths"][0].startswith("Pictures")]
    assert len(made) == 2
    assert sum(path.startswith("Pictures") for paths in made for path in paths) == 12
    assert kbtui("undo", log[0]["commit"], workspace=vault).status != 0  # it would delete them
    ok("check", workspace=vault)


def test_of_many_pictures_of_which_some_are_recorded_no_undo_deletes_the_rest(
    vault: Path, tmp_path: Path
) -> None:
    fill(vault, {"Pictures/first.png": b"first"})
    ok("init", vault)
    fill(vault, {f"Pictures/{n}.png": bytes([n]) * (5 << 20) for n in range(12)})
    ok("sync", tmp_path / "remote", workspace=vault)
    for each in ok("log", "--json", workspace=vault).json:
        if any(path.startswith("Pictures/") for path in each["paths"]):
            assert kbtui("undo", each["commit"], workspace=vault).status != 0, each["subject"]
    assert len(list((vault / "Pictures").iterdir())) == 13
    fill(vault, {"Pictures/new.png": b"new"})
    newest = ok("log", "--json", workspace=vault).json[0]
    ok("undo", newest["commit"], workspace=vault)
    assert not (vault / "Pictures/new.png").exists(), "what was put there since can be taken back"
    assert len(list((vault / "Pictures").iterdir())) == 13


@pytest.mark.pty
def test_the_app_shows_the_notes_at_the_root_and_in_folders(vault: Path) -> None:
    before = tree_of(vault)
    command = [sys.executable, "-m", "kbtui", "-w", str(vault)]
    with Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as app:
        app.wait_for("─ Notes", "Home", "My Great Note", "Work")
    assert tree_of(vault) == before


def fill(root: Path, notes: dict[str, str | bytes]) -> None:
    for name, text in notes.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())


VARIED: dict[str, dict[str, str | bytes]] = {
    "logseq": {
        "logseq/config.edn": "{}",
        "pages/Kestrel.md": "alias:: Windhover\n\n- A kestrel\n  id:: 65a1b2c3\n\t- ((65a1b2c3))\n"
        "- See [[projects/Nest box]] and [[a/B]]\n",
        "pages/projects___Nest box.md": "- For [[Kestrel]]\n",
        "pages/a%2FB.md": "- For [[Windhover]]\n",
        "journals/2026_11_20.md": "- Saw a [[Kestrel]]\n",
    },
    "zettelkasten": {
        "202401010930 Kestrels.md": "# Kestrels\n\nSee [[202401010931]].\n",
        "202401010931-voles.md": "Eaten by [[202401010930]].\n",
        "1a2b Luhmann.md": "Next: [[1a2c]].\n",
        "1a2c.md": "Back: [[1a2b Luhmann]].",
    },
    "joplin": {
        "A/Kestrel.md": "---\ntitle: Kestrel\ncreated: 2024-01-01 09:00:00Z\n---\n\n"
        "![f.png](../_resources/f.png) [Vole](../B%20b/Vole.md)\n",
        "B b/Vole.md": "[Kestrel](<../A/Kestrel.md>)\n",
        "_resources/f.png": b"\x89PNG",
    },
    "bytes": {
        "crlf.md": "---\r\ntitle: CRLF\r\ntags: [a, b]\r\n---\r\n# CRLF\r\n\r\n[[bom]]\r\n",
        "bom.md": "\ufeff---\ntitle: BOM\n---\n[[crlf]] [[tabs]]\n",
        "tabs.md": "---\ntitle:\tTabbed\ntags:\n\t- a\n---\n[[bom]]\n",
        "toml.md": '+++\ntitle = "Toml"\n+++\n[[crlf]]\n',
        "org.md": ":PROPERTIES:\n:ID: 1\n:END:\n#+title: Org\n\n[[toml]]",
        "mixed.md": "# Mixed\r\none [[toml]]\ntwo\r\n",
        "latin.md": "# Caf\xe9\n[[toml]]\n".encode("latin-1"),
        "open.md": "---\ntitle: open\n\n[[toml]]\n",
        "empty.md": "",
    },
    "names": {
        "\N{EAGLE} Kestrel.md": "[[Two  spaces]] [[U\u0308bermut]]\n",
        "U\u0308bermut.md": "[[\N{EAGLE} Kestrel]]\n",
        "  Lead.md": "[[\N{EAGLE} Kestrel]]\n",
        "Two  spaces.md": "[[\N{EAGLE} Kestrel]]\n",
        "What (yes) #1 & 100%.md": "[k](%F0%9F%A6%85%20Kestrel.md)\n",
        "a/b/c/d/e/f/deep.md": "[up](../../../../../../%F0%9F%A6%85%20Kestrel.md)\n",
        "UPPER.MD": "[[deep]]\n",
        "memory/of dad.md": "[[deep]]\n",
    },
}


@pytest.mark.parametrize("layout", VARIED)
def test_whatever_the_layout_each_note_is_found_and_each_change_undone_to_the_byte(
    tmp_path: Path, layout: str
) -> None:
    root = tmp_path / "vault"
    fill(root, VARIED[layout])
    (root / "link.md").symlink_to("nowhere.md")
    (root / "elsewhere").symlink_to("/")

    def state() -> dict[str, str]:
        return {name: is_ for name, is_ in tree_of(root).items() if is_ != "folder"}

    before = state()
    with KnowledgeBase.open(root, create=True) as kb:
        kb.search.sync()
        dead = set()
        for info in kb.library.infos():
            hits = kb.search.search(info.title, limit=50, semantic=False).hits
            assert not info.title or info.path in {hit.path for hit in hits}
            dead |= {each.link.target for each in kb.library.outgoing(info.path) if not each.path}
            for change in (
                lambda path: kb.library.rename(path, "A New Name"),
                lambda path: kb.library.rename(path, "Elsewhere/Moved"),
                kb.library.delete,
            ):
                with contextlib.suppress(UnreadableError):
                    change(info.path)
                    assert state() != before
                    kb.history.undo("HEAD")
                assert state() == before, info.path
        assert not dead


# What lies in other people's folders ---------------------------------------------------------------


def names(vault: Path) -> set[str]:
    return {row["path"] for row in ok("list", "--json", workspace=vault).json}


def put(file: Path, text: str = "Text.\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def test_what_other_programs_keep_in_a_vault_is_no_note(vault: Path) -> None:
    for name in (
        ".obsidian/plugins/x/README.md",
        ".trash/Old.md",
        "node_modules/left-pad/README.md",
        "Home.sync-conflict-20240102-030405-ABCDEFG.md",
        ".Evicted.md.icloud",
    ):
        put(vault / name)
    before = tree_of(vault)
    assert names(vault) == {"Home.md", "My Great Note.md", "Work/The Plan.md", "INDEX.md"}
    assert "other version of a file" in kbtui("check", workspace=vault).out
    assert tree_of(vault) == before


def test_a_note_that_icloud_takes_away_is_not_recorded_as_deleted(vault: Path) -> None:
    ok("init", vault)
    (vault / "Home.md").rename(vault / ".Home.md.icloud")
    ok("list", workspace=vault)
    assert "deleted" not in ok("log", workspace=vault).out


def test_a_repository_around_a_vault_sees_nothing_of_it(vault: Path) -> None:
    def git(*arguments: str) -> str:
        name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *name, *arguments], cwd=vault, check=True, capture_output=True, text=True
        )
        return done.stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "mine")
    before = git("rev-parse", "HEAD"), tree_of(vault / ".git")
    ok("init", vault)
    ok("rename", "My Great Note", "My Better Note", workspace=vault)
    undo(vault)
    assert git("rev-parse", "HEAD") == before[0]
    assert git("status", "--porcelain") == ""
    assert tree_of(vault / ".git").keys() == before[1].keys()


def test_names_that_differ_only_in_case_are_two_notes(vault: Path) -> None:
    put(vault / "home.md", "The small one.\n")
    before = tree_of(vault)
    assert {"Home.md", "home.md"} <= names(vault)
    assert ok("show", "home.md", workspace=vault).out == "The small one.\n"
    assert "See [[" in ok("show", "Home.md", workspace=vault).out
    ok("delete", "home.md", workspace=vault)
    undo(vault)
    assert tree_of(vault) == before


def test_a_workspace_in_a_workspace_keeps_its_notes_to_itself(vault: Path) -> None:
    ok("init", vault)
    inner = ok("init", vault / "Work")
    assert str(vault) in inner.err
    assert names(vault / "Work") == {"The Plan.md"}
    assert "Work/The Plan.md" not in names(vault)
    assert "deleted" not in ok("log", workspace=vault).out


def test_a_vault_beside_which_an_older_version_was_begun_is_moved_in_place(vault: Path) -> None:
    before = tree_of(vault)
    for folder in ("knowledge/topics", "memory", "sessions", "docs", ".kbtui"):
        (vault / folder).mkdir(parents=True)
    (vault / ".kbtui/format").write_text("1\n")
    with KnowledgeBase.open(vault) as kb:
        assert not kb.library.infos()
        assert "kbtui init --in-place" in kb.notices[0]
        with kb.history.change(Actor.AGENT, "noted") as change:
            change.write("memory/MEMORY.md", "A kestrel.\n", expecting=None)
    said = ok("init", "--in-place", str(vault)).err
    assert said.startswith("4 entries.")
    assert tree_of(vault) == before
    with KnowledgeBase.open(vault) as kb:
        assert kb.library.read("memory/MEMORY.md") == b"A kestrel.\n"
        assert kb.notices == []
    assert ok("check", workspace=vault).err == "All is well.\n"


@pytest.mark.parametrize("folder", ["knowledge", "memory"])
def test_notes_in_our_folders_are_never_moved(tmp_path: Path, folder: str) -> None:
    for name in (folder, "knowledge"):
        (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / folder / "a.md").write_text("Text.\n")
    (tmp_path / "b.md").write_text("Text.\n")
    ok("init", str(tmp_path))
    refused = kbtui("init", "--in-place", str(tmp_path))
    assert refused.status == 2
    assert f"{folder}/a.md is yours already" in refused.err
    assert (tmp_path / ".kbtui/format").read_text() == "1\n"


def test_a_vault_with_a_folder_called_knowledge_is_still_in_place(vault: Path) -> None:
    put(vault / "knowledge/Physics.md")
    assert {"Home.md", "knowledge/Physics.md"} <= names(vault)


def test_fifty_thousand_other_files_cost_next_to_nothing(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    put(root / "Home.md", "![[picture-7.png]]\n")
    folder = root / "files"
    folder.mkdir()
    for number in range(50_000):
        (folder / f"picture-{number}.png").touch()
    with KnowledgeBase.open(root, create=True) as kb:
        started = time.process_time()
        kb.library.refresh()
        [link] = kb.library.outgoing("knowledge/Home.md")
        assert link.path == "knowledge/files/picture-7.png"
        assert time.process_time() - started < PATIENCE


def test_a_vault_that_may_not_be_written_is_read(
    vault: Path, forbid_writing: Callable[[Path], None]
) -> None:
    forbid_writing(vault)
    before = tree_of(vault)
    with KnowledgeBase.open(vault) as kb:
        assert not kb.workspace.writable
        assert {info.slug for info in kb.library.infos()} >= {"Home", "My Great Note"}
        kb.search.sync()
        assert kb.search.search("kestrel", "default", 5, semantic=False).hits
        with pytest.raises(KbtuiError):
            kb.library.rename("Home", "House")
    assert tree_of(vault) == before
    assert not (vault / ".kbtui").exists()


# A disk that no longer answers, as of a network share that is away ----------------------------------

_DEAD_DISK = """
import os, sys, threading
def asked(call):
    def answer(path, *args, **more):
        if str(path).startswith(sys.argv[-1]):
            threading.Event().wait()
        return call(path, *args, **more)
    return answer
for name in ("stat", "lstat", "statvfs", "scandir"):
    setattr(os, name, asked(getattr(os, name)))
from kbtui.__main__ import main
raise SystemExit(main())
"""


def test_on_a_disk_that_does_not_answer_the_app_paints_says_so_and_quits(vault: Path) -> None:
    command = [sys.executable, "-c", _DEAD_DISK, "-w", str(vault)]
    with Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as app:
        app.wait_for("─ Notes", "Ask, tell")
        app.wait_for("doesn't", "answer")
        app.send("\x11")
        assert app.wait_exit() == 3
        assert b"\x1b[?1049l" in app.output  # the terminal is as it was
        assert b"Left without waiting" in app.output
