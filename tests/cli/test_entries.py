"""Entries from a script: made, listed, shown, linked, edited, renamed, deleted."""

from __future__ import annotations

import stat
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Command

LISTED = {"path", "type", "title", "tags", "created", "updated", "summary"}


def test_new_prints_the_path_and_list_and_show_know_it(kbtui: Command) -> None:
    done = kbtui.ok("new", "topic", "Docker", "-b", "Runs containers.", "-t", "ops", "-t", "dev/x")
    assert done.out == "knowledge/topics/docker.md\n"
    (listed,) = kbtui.ok("list", "--json").json
    assert set(listed) >= LISTED
    assert listed["path"] == "knowledge/topics/docker.md"
    assert listed["tags"] == ["ops", "dev/x"]
    assert listed["summary"] == "Runs containers."
    shown = kbtui.ok("show", "Docker", "--json").json
    assert set(shown) >= LISTED | {"text", "links", "backlinks"}
    assert shown["text"] == kbtui.file(listed["path"]).read_text()
    assert kbtui.ok("show", "docker").out == shown["text"]
    assert kbtui.ok("list").out == "topics/docker\tDocker\tRuns containers.\n"


def test_the_body_comes_from_standard_input_when_asked(kbtui: Command) -> None:
    kbtui.ok("new", "fact", "Piped", "--body", "-", stdin="From a pipe.\nTwo lines.\n")
    assert "From a pipe.\nTwo lines.\n" in kbtui.ok("show", "piped").out


def test_a_head_given_with_the_body_is_the_head_but_for_what_kbtui_keeps(kbtui: Command) -> None:
    head = "---\nprivate: yes # mine\ntags: [a]\ntype: person\ncreated: 1999-01-01\n"
    head += "imported: x\ntitle: Other\nrating: 5\n---\n"
    kbtui.ok("new", "topic", "Boiler", "-t", "heat", "-b", "-", stdin=f"{head}It leaks.\n")
    (listed,) = kbtui.ok("list", "--json").json
    assert (listed["title"], listed["type"], listed["private"]) == ("Boiler", "topic", True)
    assert listed["tags"] == ["a", "heat"]
    text = kbtui.ok("show", "boiler").out
    assert text.startswith("---\nprivate: yes # mine\n")
    assert "rating: 5\n" in text
    assert "1999" not in text
    assert "imported" not in text
    assert text.endswith("---\n# Boiler\n\nIt leaks.\n")


def test_a_body_between_rules_is_text_and_a_head_that_cannot_be_read_is_refused(
    kbtui: Command,
) -> None:
    kbtui.ok("new", "topic", "Rules", "-b", "---\nonly text\n---\nmore")
    assert kbtui.ok("show", "rules").out.endswith("# Rules\n\n---\nonly text\n---\nmore\n")
    done = kbtui("new", "topic", "Broken", "-b", "---\nprivate: true\nx: [a\n---\nmore")
    assert done.status == 2
    assert "line 4" in done.err
    assert [each["title"] for each in kbtui.ok("list", "--json").json] == ["Rules"]


def test_private_makes_a_private_entry_whatever_its_head_says(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "One", "--private")
    kbtui.ok("new", "topic", "Two", "--private", "-b", "---\nprivate: no\n---\nx")
    kbtui.ok("new", "topic", "Three", "-b", "---\nprivate: no\n---\nx")
    listed = {each["title"]: each["private"] for each in kbtui.ok("list", "--json").json}
    assert listed == {"One": True, "Two": True, "Three": False}


def test_list_filters_by_type_and_tag_and_says_when_nothing_fits(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "A", "-t", "ops/night")
    kbtui.ok("new", "person", "B", "-t", "opsy")
    assert [e["title"] for e in kbtui.ok("list", "--type", "person", "--json").json] == ["B"]
    assert [e["title"] for e in kbtui.ok("list", "--tag", "#OPS", "--json").json] == ["A"]
    done = kbtui("list", "--tag", "none", "--json")
    assert (done.status, done.json) == (1, [])
    assert kbtui("list", "--type", "decision").status == 1


def test_an_empty_workspace_lists_nothing_and_that_is_fine(kbtui: Command) -> None:
    assert kbtui.ok("list", "--json").json == []


def test_links_shows_both_directions(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Docker", "-b", "See [[git]] and [[nowhere]].")
    kbtui.ok("new", "topic", "Git")
    found = kbtui.ok("links", "docker", "--json").json
    assert [(link["target"], link["path"]) for link in found["links"]] == [
        ("git", "knowledge/topics/git.md"),
        ("nowhere", None),
    ]
    (back,) = kbtui.ok("links", "git", "--json").json["backlinks"]
    assert back["path"] == "knowledge/topics/docker.md"
    assert back["text"] == "See [[git]] and [[nowhere]]."
    text = kbtui.ok("links", "docker").out
    assert "-> knowledge/topics/git.md" in text
    assert "nowhere (not there)" in text


def test_show_at_a_revision_even_of_what_is_gone(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Docker", "-b", "First.")
    kbtui.ok("delete", "docker")
    assert kbtui("show", "docker").status == 1
    assert "First." in kbtui.ok("show", "topics/docker", "--at", "HEAD~1").out
    assert kbtui.ok("show", "topics/docker", "--at", "HEAD~1", "--json").json["title"] == "Docker"
    assert kbtui("show", "topics/docker", "--at", "HEAD").status == 1
    assert kbtui("show", "topics/docker", "--at", "nonsense").status == 1


def test_rename_and_delete_say_what_they_did(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Docker")
    assert kbtui.ok("rename", "docker", "Podman").out == "knowledge/topics/podman.md\n"
    assert kbtui.ok("rename", "podman", "projects/podman", "--json").json["path"] == (
        "knowledge/projects/podman.md"
    )
    done = kbtui.ok("delete", "podman")
    assert "deleted ▲ Podman" in done.out
    assert "kbtui undo" in done.err
    assert not kbtui.file("knowledge/projects/podman.md").exists()


def test_bad_requests_are_one_sentence_with_the_listed_code(kbtui: Command) -> None:
    kbtui.ok("new", "person", "Ann Lee")
    for argv, status, word in (
        (["new", "recipe", "Soup"], 2, "topic"),
        (["show", "an lee"], 1, "ann-lee"),
        (["rename", "ann-lee", "../../x"], 2, "can't be used"),
        (["show"], 2, "--help"),
        (["shwo", "x"], 2, "show"),
        (["list", "--nope"], 2, "--help"),
        (["log", "--actor", "ghost"], 2, "consolidator"),
        (["diff", "HEAD", "HEAD", "nothing-like"], 1, "nothing-like"),
    ):
        done = kbtui(*argv)
        assert done.status == status, (argv, done)
        assert done.out == ""
        assert done.err.startswith("kbtui: "), done
        assert len(done.err.splitlines()) <= 2
        assert word in done.err


# The editor ------------------------------------------------------------------------------------


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that a test writes; it is started as the user's editor."""
    script = tmp_path / "my editor"
    monkeypatch.setenv("VISUAL", f"'{script}' --wait")
    monkeypatch.setenv("EDITOR", "false")
    return script


def _script(file: Path, body: str) -> None:
    file.write_text(f"#!/bin/sh\nfile=$2\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_what_the_editor_saves_is_the_users_change(kbtui: Command, editor: Path) -> None:
    kbtui.ok("new", "topic", "Docker", "-b", "Old.")
    _script(editor, 'sed -i s/Old/New/ "$file"')
    done = kbtui.ok("edit", "docker")
    assert "recorded" in done.err
    assert "New." in kbtui.ok("show", "docker").out
    (newest, _first) = kbtui.ok("log", "docker", "--json").json
    assert newest["actor"] == "you"


def test_an_editor_that_changes_nothing_makes_no_commit(kbtui: Command, editor: Path) -> None:
    kbtui.ok("new", "topic", "Docker")
    _script(editor, "true")
    assert "unchanged" in kbtui.ok("edit", "docker").err
    assert len(kbtui.ok("log", "knowledge", "--json").json) == 1


def test_what_kbtui_never_writes_is_not_opened(kbtui: Command, editor: Path) -> None:
    kbtui.file("docs/manual.md").write_text("# Manual\n")
    _script(editor, 'echo lost > "$file"')
    done = kbtui("edit", "docs/manual.md")
    assert done.status == 2
    assert "editor" in done.err
    assert kbtui.ok("show", "docs/manual.md").out == "# Manual\n"


def test_an_editor_that_fails_records_nothing(
    kbtui: Command, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("new", "topic", "Docker", "-b", "Old.")
    _script(editor, 'echo x > "$file"; exit 3')
    assert kbtui("edit", "docker").status == 2
    assert "Old." in kbtui.ok("show", "docker").out
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    assert "EDITOR" in kbtui("edit", "docker").err


def test_a_change_made_meanwhile_keeps_both_versions(kbtui: Command, editor: Path) -> None:
    path = kbtui.file(kbtui.ok("new", "topic", "Docker", "-b", "Old.").out.strip())
    _script(editor, f'sed -i s/Old/Mine/ "$file"; sed -i s/Old/Theirs/ "{path}"')
    done = kbtui("edit", "docker")
    assert done.status == 5
    assert "Theirs." in path.read_text()
    (copy,) = path.parent.glob("*.conflict-*")
    assert "Mine." in copy.read_text()


def test_new_can_open_the_editor_at_once(kbtui: Command, editor: Path) -> None:
    _script(editor, 'echo "By hand." >> "$file"')
    kbtui.ok("new", "person", "Ann", "--edit")
    assert "By hand." in kbtui.ok("show", "ann").out


def test_the_copy_for_the_editor_is_private_and_does_not_stay(
    kbtui: Command, editor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    kbtui.ok("new", "topic", "Docker")
    _script(editor, f'ls -ld "$(dirname "$file")" > {tmp_path}/seen; echo more >> "$file"')
    kbtui.ok("edit", "docker")
    assert (tmp_path / "seen").read_text().startswith("drwx------")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_no_editor_is_opened_where_nothing_can_be_written(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch, forbid_writing: Callable[[Path], None]
) -> None:
    kbtui.ok("new", "topic", "Docker")
    forbid_writing(kbtui.root)
    monkeypatch.setenv("EDITOR", "false")
    done = kbtui("edit", "docker")
    assert done.status == 3
    assert "is read-only" in done.err
    assert "'false'" not in done.err


@pytest.fixture
def vault(kbtui: Command, tmp_path: Path) -> Command:
    """Somebody's own folder, with files that are no notes."""
    root = tmp_path / "vault"
    (root / "trips").mkdir(parents=True)
    (root / "Kestrel.md").write_text("# Kestrel\n\nAt the root.\n")
    (root / "trips" / "Kestrel.md").write_text("# Kestrel\n\nIn a folder.\n")
    (root / "trips" / "Café.md").write_text("# Café\n")
    (root / "list.txt").write_text("bread\n")
    (root / "plan.org").write_text("* Plan\n")
    assert kbtui.bare("init", str(root)).status == 0
    return replace(kbtui, root=root)


def test_a_file_is_named_from_the_current_folder_on_or_by_its_whole_path(
    vault: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault.root / "trips")
    here = "# Kestrel\n\nIn a folder.\n"
    for name in ("./Kestrel.md", "Kestrel.md", str(vault.root / "trips" / "Kestrel.md")):
        assert vault.ok("show", name).out == here, name
    assert "At the root." in vault.ok("show", "../Kestrel.md").out
    assert vault.ok("show", "./Cafe\u0301.md").out == "# Café\n"
    assert vault.ok("why", "./Kestrel.md:3").out.startswith("trips/Kestrel.md:3")
    assert vault.ok("log", "./Kestrel.md").out
    vault.ok("rename", "./Kestrel.md", "Merlin")
    assert (vault.root / "trips" / "Merlin.md").exists()


def test_a_file_elsewhere_or_nowhere_is_said_by_its_name(
    vault: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(vault.root / "trips")
    (tmp_path / "other.md").write_text("secret\n")
    done = vault("show", "../../other.md")
    assert (done.status, done.out) == (2, "")
    assert f"isn't in the workspace {vault.root}" in done.err
    missing = vault("show", "./Kestrl.md")
    assert missing.status == 1
    assert "'trips/Kestrl.md'" in missing.err
    assert "Did you mean" in missing.err
    for odd in ("./\x1b[31m", "/", "./", "~nobody/x", "../" * 40, "\x00/x", "[/b].md"):
        assert vault("show", odd).status in {1, 2, 3}, odd


def test_notes_of_other_programs_are_named_wherever_they_lie(vault: Command) -> None:
    (vault.root / "wiki").mkdir()
    for name in ("a.wiki", "b.norg", "c.adoc", "d.rst"):
        (vault.root / "wiki" / name).write_text("words\n")
    said = vault.ok("doctor").out
    assert all(f"wiki/{name}" in said for name in ("a.wiki", "b.norg", "c.adoc"))
    assert "wiki/d.rst" not in said


def test_a_text_that_is_no_note_is_shown_and_not_renamed(vault: Command) -> None:
    assert vault.ok("show", "list.txt").out == "bread\n"
    assert vault.ok("show", "plan.org").out == "* Plan\n"
    assert "is not an entry" in vault("rename", "list.txt", "Other").err


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("kestrel trip", "projects/kestrel-trip-to-the-north"),
        ("north trip", "projects/kestrel-trip-to-the-north"),
        ("who is jonas", "people/jonas-weber"),
        ("jnas", "people/jonas-weber"),
        ("weber", "people/jonas-weber"),
        ("the north", "projects/kestrel-trip-to-the-north"),
    ],
)
def test_a_name_that_is_nearly_right_is_told_by_its_words(
    kbtui: Command, said: str, meant: str
) -> None:
    kbtui.ok("new", "project", "Kestrel trip to the north")
    kbtui.ok("new", "person", "Jonas Weber")
    kbtui.ok("new", "topic", "Water and weather")
    kbtui.ok("new", "topic", "Noise of the northern town")
    assert f"Did you mean {meant}" in kbtui("show", said).err


def test_a_note_is_made_in_a_folder_of_ones_own(
    vault: Command, kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vault.ok("new", "topic", "Rome", "--in", "TRIPS/2026").out == "trips/2026/Rome.md\n"
    monkeypatch.chdir(vault.root / "trips")
    assert vault.ok("new", "topic", "Bern", "--in", ".").out == "trips/Bern.md\n"
    assert vault.ok("new", "topic", "Oslo", "--in", "../north").out == "north/Oslo.md\n"
    assert vault.ok("new", "topic", "Top", "--in", "..").out == "Top.md\n"
    assert kbtui.ok("new", "topic", "Rome", "--in", "knowledge/trips").out == (
        "knowledge/trips/rome.md\n"
    )
    assert kbtui.ok("list", "--json").json[0]["path"] == "knowledge/trips/rome.md"


@pytest.mark.parametrize("folder", ["../out", "/etc", ".kbtui", "a/../../b", "node_modules/x"])
def test_no_note_is_made_where_it_would_not_be_one(vault: Command, folder: str) -> None:
    before = sorted(vault.root.parent.rglob("*.md"))
    done = vault("new", "topic", "Lost", "--in", folder)
    assert done.status in {2, 3}, done
    assert done.err
    assert sorted(vault.root.parent.rglob("*.md")) == before


def test_notes_of_memory_are_found_by_the_names_that_screens_and_answers_show(
    kbtui: Command,
) -> None:
    kbtui.ok("remember", "I prefer window seats")
    kbtui.ok("ask", "the kettle leaks")
    (day,) = (kbtui.root / "memory").glob("????-??-??.md")
    for name in ("MEMORY.md", "MEMORY", "memory/MEMORY.md"):
        assert "window seats" in kbtui.ok("show", name).out
    for name in (day.stem, f"memory/{day.stem}"):
        assert "the kettle leaks" in kbtui.ok("show", name).out
    assert "the journal of" in kbtui.ok("log", day.stem).out
    kept = kbtui("delete", day.stem)
    assert kept.status
    assert "is not an entry" in kept.err


def test_a_read_only_file_is_not_replaced_without_asking(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("new", "fact", "Fixed", "-b", "It stays.")
    file = kbtui.file("knowledge/facts/fixed.md")
    file.chmod(0o444)
    before = file.read_text()
    monkeypatch.setenv("EDITOR", "sed -i s/stays/goes/")
    done = kbtui("edit", "fixed")
    assert done.status == 3
    assert "read-only" in done.err
    assert "chmod u+w" in done.err
    assert file.read_text() == before
