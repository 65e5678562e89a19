"""Setting up a workspace, and keeping it in order."""

from __future__ import annotations

import errno
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command


def test_init_makes_a_workspace_and_prints_where(kbtui: Command, tmp_path: Path) -> None:
    done = kbtui.bare("init", str(tmp_path / "a b"))
    assert (done.status, done.out) == (0, f"{tmp_path / 'a b'}\n")
    assert (tmp_path / "a b/knowledge/topics").is_dir()
    assert (tmp_path / "a b/.kbtui/history.git").is_dir()
    assert kbtui.bare("init", str(tmp_path / "a b")).status == 0
    assert f"kbtui -w '{tmp_path / 'a b'}'" in done.err  # as a shell takes it


def test_init_names_what_else_could_be_searched_beside_its_own_folders(
    kbtui: Command, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    (vault / "knowledge").mkdir(parents=True)
    (vault / "Journal").mkdir()
    (vault / 'My "old" notes').mkdir()
    for name in ("Journal/one.md", 'My "old" notes/two.md'):
        (vault / name).write_text("# One\n")
    done = kbtui.bare("init", str(vault))
    [roots] = [line for line in done.err.splitlines() if "roots =" in line]
    assert tomllib.loads(roots) == {"roots": ["Journal", 'My "old" notes']}
    assert (vault / "Journal/one.md").read_text() == "# One\n"


def test_the_demo_is_for_a_new_workspace(kbtui: Command, tmp_path: Path) -> None:
    done = kbtui.bare("init", str(tmp_path / "demo"), "--demo")
    assert done.status == 0
    listed = kbtui.bare("-w", str(tmp_path / "demo"), "list", "--json").json
    assert 8 <= len(listed) <= 12
    assert kbtui.bare("init", str(tmp_path / "demo"), "--demo").status == 2
    assert len(kbtui.bare("-w", str(tmp_path / "demo"), "list", "--json").json) == len(listed)


def test_without_a_name_the_nearest_workspace_is_used_else_ones_own(
    kbtui: Command, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("new", "topic", "Here")
    below = kbtui.file("docs/deep")
    below.mkdir()
    monkeypatch.chdir(below)
    assert len(kbtui.bare("list", "--json").json) == 1
    monkeypatch.chdir(tmp_path)
    assert kbtui.bare("list", "--json").json == []
    assert (home / ".local/share/kbtui/workspace/.kbtui").is_dir()
    monkeypatch.setenv("KBTUI_WORKSPACE", str(kbtui.root))
    assert len(kbtui.bare("list", "--json").json) == 1
    monkeypatch.setenv("KBTUI_WORKSPACE", str(tmp_path / "none"))
    assert kbtui.bare("list").status == 3


def test_reindex_builds_everything_again(kbtui: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    kbtui.ok("new", "topic", "Walrus", "-b", "Eats clams.")
    before = kbtui.ok("search", "clams", "--json").json["hits"]
    done = kbtui.ok("reindex")
    assert "1 file" in done.out
    assert kbtui.ok("search", "clams", "--json").json["hits"] == before
    assert len(kbtui.ok("log", "knowledge", "--json").json) == 1


def test_reindex_says_once_what_is_out_of_order(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    kbtui.file("knowledge/topics/link.md").symlink_to("/etc/hosts")
    told = kbtui.ok("reindex").err
    assert told.count("link.md (it is a link)") == 1


def test_a_cache_that_cannot_be_cleared_is_a_sentence(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("log")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", _refuse)
        done = kbtui("reindex")
    assert done.status == 3
    assert "permission denied" in done.err


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_reindex_keeps_the_vectors_and_the_index_that_others_have_open(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.knowledge_base import KnowledgeBase

    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    kbtui.ok("new", "topic", "Walrus", "-b", "Eats clams.")
    with KnowledgeBase.open(kbtui.root) as kb:
        assert len(kb.search.search("clams").hits) == 1
        vectors = kb.workspace.cache / "search" / "vectors" / "kept"
        vectors.mkdir(parents=True)
        damaged = kb.workspace.cache / "search" / "lock"
        damaged.write_text("")
        inode = damaged.stat().st_ino
    kbtui.ok("reindex")
    assert vectors.is_dir()
    assert damaged.stat().st_ino == inode
    (database,) = vectors.parents[1].rglob("state.sqlite")
    database.write_bytes(b"no database" * 1000)
    assert "1 file, " in kbtui.ok("reindex").out
    assert kbtui.ok("search", "clams", "--json").json["hits"]


def test_doctor_names_what_is_out_of_order(kbtui: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    kbtui.ok("new", "topic", "Fine")
    found = kbtui("doctor", "--json").json
    assert all(set(finding) == {"area", "ok", "text", "hint"} for finding in found)
    assert any("1 entry" in f["text"] for f in found)
    kbtui.file("knowledge/topics/broken.md").write_text("---\na: [\n---\n")
    done = kbtui("doctor")
    assert done.status == 1
    assert "broken.md" in done.out
    gone = kbtui.bare("-w", "/no/such/place", "doctor")
    assert gone.status == 3
    assert "/no/such/place" in gone.out


def test_what_only_reads_writes_nothing_in_a_workspace(
    kbtui: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "walrus.md").write_text("# Walrus\n\nEats clams.\n")
    kbtui.ok("new", "topic", "Walrus", "-b", "Eats clams.")
    for root in (kbtui.root, vault):
        kbtui.bare("-w", str(root), "list")  # records the vault
        lock = root / ".kbtui/lock"
        lock.unlink()
        before = _times(root)
        for command in ("list", "show walrus", "links walrus", "search clams", "log", "diff HEAD",
                        "sessions", "inbox", "audit", "doctor", "check"):  # fmt: skip
            done = kbtui.bare("-w", str(root), *command.split())
            assert done.status < 2, done
            assert _times(root) == before, command
        (root / ".kbtui/history.git/config").write_text("[core]\nbare = true\n")
        assert kbtui.bare("-w", str(root), "list").status == 0
        assert lock.exists(), "what must be mended is mended under the lock"


def _times(root: Path) -> dict[str, int]:
    return {str(file): file.lstat().st_ctime_ns for file in [root, *root.rglob("*")]}


def test_a_read_only_workspace_can_be_read(
    kbtui: Command, forbid_writing: Callable[[Path], None]
) -> None:
    kbtui.ok("new", "topic", "Docker")
    forbid_writing(kbtui.root)
    done = kbtui.ok("list", "--json")
    assert len(done.json) == 1
    assert "read-only" in done.err
    refused = kbtui("new", "topic", "Git")
    assert refused.status == 3
    assert "read-only" in refused.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(kbtui: Command, shell: str) -> None:
    assert "_KBTUI_COMPLETE" in kbtui.bare("completion", shell).out
    assert kbtui.bare("completion", "tcsh").status == 2


def test_completion_knows_commands_and_entries(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("new", "topic", "Docker")
    monkeypatch.setenv("_KBTUI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"kbtui -w {kbtui.root} show doc")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert "plain,topics/docker" in kbtui.bare().out
    monkeypatch.setenv("COMP_WORDS", "kbtui rest")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "plain,restore" in kbtui.bare().out


def test_init_tells_of_dendrons_vaults(kbtui: Command, tmp_path: Path) -> None:
    (tmp_path / "ws" / "vault").mkdir(parents=True)
    (tmp_path / "ws" / "dendron.yml").write_text(
        "workspace:\n  vaults:\n  - {fsPath: vault}\n  - {fsPath: b, name: Work}\n"
    )
    (tmp_path / "ws" / "vault" / "root.md").write_text("# Root\n")
    assert "2 vaults: vault, Work." in kbtui.bare("init", str(tmp_path / "ws")).err
    assert "has the others too" in kbtui.bare("init", str(tmp_path / "ws" / "vault")).err


def test_init_and_doctor_name_texts_that_are_no_notes(kbtui: Command, tmp_path: Path) -> None:
    (tmp_path / "vault" / "lib").mkdir(parents=True)
    for name in ("A.md", "b.txt", "c.ORG", "d.markdown", "e.txt", "lib/requirements.txt", "f.pdf"):
        (tmp_path / "vault" / name).write_text("x\n")
    done = kbtui.bare("init", str(tmp_path / "vault"))
    assert "are notes: b.txt, c.ORG, d.markdown and 1 more can be read" in done.err
    told = kbtui.bare("-w", str(tmp_path / "vault"), "doctor").out
    assert "no notes, as they don't end in .md: b.txt, c.ORG, d.markdown, e.txt\n" in told


def test_completion_knows_titles_by_any_word(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("new", "decision", "Solar power [red]instead\u202e of a cable")
    kbtui.ok("new", "topic", "Docker")
    monkeypatch.setenv("_KBTUI_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_CWORD", "4")
    for typed in ("powe", "SOL", "inst", "dec"):
        monkeypatch.setenv("COMP_WORDS", f"kbtui -w {kbtui.root} show {typed}")
        kind, name, title = kbtui.bare().out.splitlines()
        assert (kind, title) == ("plain", "Solar power [red]instead of a cable")
        assert name.startswith("decisions/")
    monkeypatch.setenv("COMP_WORDS", f"kbtui -w {kbtui.root} show ower")
    assert kbtui.bare().out.strip() == ""


def test_check_mends_links_to_what_another_program_moved_when_asked(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Leek", "-b", "A vegetable that stands in the bed for the winter.")
    kbtui.ok("new", "topic", "Soup", "-b", "Needs [[topics/leek]].")
    place = kbtui.file("knowledge/beds")
    place.mkdir()
    kbtui.file("knowledge/topics/leek.md").rename(place / "leek.md")
    found = kbtui("check")
    assert found.status == 1
    assert "`kbtui check --mend`" in found.out
    done = kbtui.ok("check", "--mend")
    assert "kbtui undo" in done.err
    assert "[[beds/leek]]" in kbtui.file("knowledge/topics/soup.md").read_text("utf-8")


def test_init_and_doctor_name_conflict_copies_of_syncthing(kbtui: Command, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    for name in ("n.md", "n.sync-conflict-20261126-101010-ABCDEFG.md"):
        (vault / name).write_text("text\n", "utf-8")
    assert "n.sync-conflict-20261126" in kbtui("init", str(vault)).err
    shown = kbtui("-w", str(vault), "doctor").out
    assert "other versions of files that two wrote at once: n.sync-conflict-20261126" in shown
