"""Links: found, resolved as Obsidian does, and kept whole by rename and delete."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError, UnsafePathError, UsageError
from kbtui.history.change import Actor
from kbtui.knowledge.entries.entry import parse_entry
from kbtui.knowledge.library.reader import PastLibrary
from kbtui.workspace.files import blob_id

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.knowledge.library.library import Library
    from tests.knowledge.conftest import Room


@pytest.fixture
def vault(room: Room) -> Room:
    room.put("knowledge/topics/docker.md", "---\naliases: [Moby]\n---\n# Docker Engine\n\nRuns.\n")
    room.put("knowledge/topics/sub/docker.md", "# Other\n")
    room.put("knowledge/people/bob b.md", "# Bob\n")
    room.put("knowledge/people/docker.md", "# Docker the dog\n")
    room.put("knowledge/people/picture.png", b"\x89PNG")
    room.adopt()
    return room


def _resolved(room: Room, body: str, source: str = "knowledge/people/me.md") -> list[str | None]:
    room.put(source, body)
    room.adopt()
    return [found.path for found in room.library.outgoing(source)]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("[[topics/docker]]", "topics/docker.md"),
        ("[[knowledge/topics/docker.md]]", "topics/docker.md"),
        ("[[/topics/docker|d]]", "topics/docker.md"),
        ("[[TOPICS/Docker#Part^x|d]]", "topics/docker.md"),
        ("![[sub/docker]]", "topics/sub/docker.md"),
        ("[[docker]]", "people/docker.md"),  # its own folder comes first
        ("[[moby]]", "topics/docker.md"),
        ("[[Docker Engine]]", "topics/docker.md"),
        ("[[Bob B]]", "people/bob b.md"),
        ("[[Bob]]", "people/bob b.md"),
        ("[x](../topics/docker.md)", "topics/docker.md"),
        ("[x](docker.md#part)", "people/docker.md"),
        ("[x\ny\nz](docker.md)", "people/docker.md"),
        ("[x](docker.md (why))", "people/docker.md"),
        ("> [x](\n> docker.md\n> 'why')", "people/docker.md"),
        ("[x]:\n  docker.md\n", "people/docker.md"),
        ("[x]:\ndocker.md 'why'\n", "people/docker.md"),
        ("> [x\n> y](docker.md)", "people/docker.md"),
        ("[x](./docker)", "people/docker.md"),
        ("[x](bob%20b.md)", "people/bob b.md"),
        ("[x](<bob b.md>)", "people/bob b.md"),
        ("[x](/topics/docker.md)", "topics/docker.md"),
        ("[x](topics/docker.md)", "topics/docker.md"),
        ("![x](picture.png)", "people/picture.png"),
        ("[[nowhere]]", None),
        ("[x](../nowhere.md)", None),
        ("[[#Heading]]", "people/me.md"),
        ("---\nrelated: [topics/docker]\n---\n", "topics/docker.md"),
        ("---\nrelated: [[docker]]\n---\n", "people/docker.md"),
        ('---\nup: "[[Moby|m]]"\n---\n', "topics/docker.md"),
    ],
)
def test_a_link_leads_where_obsidian_would_go(vault: Room, written: str, path: str | None) -> None:
    assert _resolved(vault, written) == [path and f"knowledge/{path}"]


@pytest.mark.parametrize(
    "written",
    ["`[[docker]]`", "```\n[[docker]]\n```", "~~~\n[x](docker.md)\n", "\\[[docker]]",
     "[x](https://e.org/docker.md)", "[x](mailto:a@b)", "[x](#here)", "[^1]: docker.md"],
)  # fmt: skip
def test_code_and_addresses_are_no_links(vault: Room, written: str) -> None:
    assert _resolved(vault, written) == []


def test_backlinks_show_the_line_they_stand_on(vault: Room) -> None:
    vault.put("knowledge/projects/p.md", "# P\n\nUses [[Moby]] and [[topics/docker]].\n")
    vault.put("memory/MEMORY.md", "- likes [[topics/docker]]\n")
    vault.adopt()
    found = vault.library.backlinks("knowledge/topics/docker.md")
    assert [(b.path, b.title, b.line, b.text) for b in found] == [
        ("knowledge/projects/p.md", "P", 3, "Uses [[Moby]] and [[topics/docker]]."),
        ("memory/MEMORY.md", "MEMORY", 1, "- likes [[topics/docker]]"),
    ]


# Rename ----------------------------------------------------------------------------------------

LINKS = """---
related: [ topics/docker ,people/ann, '[[topics/docker|d]]']  # mine
up: "[[docker#A|b]] and [[Docker Engine]]"
---
# Ann
[[docker]] [[docker|the engine]] ![[topics/docker#Part]] [[Docker Engine]] [[Moby]]
`[[docker]]` [a](../topics/docker.md#x "t") [b](<../topics/docker.md>) [c](/topics/docker)
| [[docker\\|d]] |

[r]: ../topics/docker.md
[[knowledge/topics/docker.md]] [[ docker ]] [[Docker]]
"""


@pytest.fixture
def linked(room: Room) -> Room:
    body = "# Docker Engine\n\nRuns what is packed into images, each in a world of its own.\n"
    room.put("knowledge/topics/docker.md", f"---\naliases: [Moby]\n---\n{body}")
    room.put("knowledge/people/ann.md", LINKS)
    room.put("memory/MEMORY.md", "See [[docker]].\n")
    room.adopt()
    return room


def test_a_new_slug_is_written_wherever_the_old_one_was(linked: Room) -> None:
    commits = len(list(linked.history.log()))
    entry = linked.library.get(linked.library.rename("docker", "container-engine").path)
    assert entry.path == "knowledge/topics/container-engine.md"
    assert entry.aliases == ("Moby", "docker")
    expected = LINKS.replace("[[docker", "[[container-engine").replace(
        "topics/docker", "topics/container-engine"
    )
    expected = expected.replace("[[ docker ]]", "[[ container-engine ]]")
    expected = expected.replace("[[Docker]]", "[[container-engine]]")
    expected = expected.replace("`[[container-engine]]`", "`[[docker]]`")
    assert linked.text("knowledge/people/ann.md") == expected
    assert linked.text("memory/MEMORY.md") == "See [[container-engine]].\n"
    assert len(list(linked.history.log())) == commits + 1
    assert not (linked.workspace.root / "knowledge/topics/docker.md").exists()
    assert linked.library.find("docker").path == entry.path


def test_a_new_title_renames_heading_file_and_links_by_title(linked: Room) -> None:
    entry = linked.library.get(linked.library.rename("docker", "Podman (Rootless)").path)
    assert entry.path == "knowledge/topics/podman-rootless.md"
    assert entry.title == "Podman (Rootless)"
    assert "\n# Podman (Rootless)\n" in entry.text
    assert entry.aliases == ("Moby", "Docker Engine")
    text = linked.text("knowledge/people/ann.md")
    assert "[[podman-rootless]] [[podman-rootless|the engine]]" in text
    assert "[[Podman (Rootless)]] [[Moby]]" in text
    assert "[a](../topics/podman-rootless.md#x" in text


@pytest.mark.parametrize("heading", ["# Build", "Build\n====="])
def test_a_new_title_renames_the_heading_and_no_comment_in_code(room: Room, heading: str) -> None:
    room.put(
        "knowledge/topics/build.md", f"```sh\n# Build\nmake\n```\n\n{heading}\n\nIt is slow.\n"
    )
    room.adopt()
    entry = room.library.get(room.library.rename("build", "Make").path)
    expected = heading.replace("Build", "Make")
    assert entry.text.endswith(f"```sh\n# Build\nmake\n```\n\n{expected}\n\nIt is slow.\n")


def test_a_move_to_another_folder_rewrites_paths_and_its_own_relative_links(room: Room) -> None:
    room.put("knowledge/topics/a.md", "[b](b.md) [[b]] ![p](img/p%20q.png) [s](a.md)\n")
    room.put("knowledge/topics/b.md", "[[a]] [[topics/a]] [a](a.md) [a](./a.md)\n")
    room.put("knowledge/topics/img/p q.png", b"png")
    room.adopt()
    room.library.rename("topics/a", "projects/a")
    assert room.text("knowledge/projects/a.md") == (
        "[b](../topics/b.md) [[b]] ![p](../topics/img/p%20q.png) [s](a.md)\n"
    )
    assert room.text("knowledge/topics/b.md") == (
        "[[a]] [[projects/a]] [a](../projects/a.md) [a](../projects/a.md)\n"
    )


def test_a_dot_before_a_path_upwards_stays_where_a_person_wrote_one(room: Room) -> None:
    room.put("knowledge/topics/a.md", "# A\n")
    room.put("knowledge/people/x.md", "[a](./../topics/a.md) [b](../topics/a.md)\n")
    room.adopt()
    room.library.rename("topics/a", "topics/z")
    assert room.text("knowledge/people/x.md") == "[a](./../topics/z.md) [b](../topics/z.md)\n"
    room.library.rename("topics/z", "people/z")
    assert room.text("knowledge/people/x.md") == "[a](./z.md) [b](z.md)\n"


def test_a_name_that_became_ambiguous_is_written_with_its_folder(room: Room) -> None:
    room.put("knowledge/topics/old.md", "# Old\n")
    room.put("knowledge/people/new.md", "# New one\n")
    room.put("knowledge/people/x.md", "[[old]] [[new]]\n")
    room.put("knowledge/topics/y.md", "[[old]] [[new]]\n")
    room.adopt()
    room.library.rename("old", "new")
    assert room.text("knowledge/people/x.md") == "[[topics/new]] [[new]]\n"
    assert room.text("knowledge/topics/y.md") == "[[new]] [[people/new]]\n"


def test_a_decision_keeps_its_date(room: Room) -> None:
    room.library.create("decision", "Use MySQL")
    assert room.library.rename("Use MySQL", "Use PostgreSQL").path == (
        "knowledge/decisions/2026-11-use-postgresql.md"
    )


def test_half_a_character_in_a_new_title_is_no_defect(linked: Room) -> None:
    entry = linked.library.get(linked.library.rename("docker", "Pod\udcffman").path)
    assert entry.title == "Pod?man"


def test_repaired_files_keep_their_date_and_the_renamed_one_is_followed(linked: Room) -> None:
    linked.put("knowledge/topics/z.md", "---\nupdated: 2020-01-01\n---\n[[docker]]\n")
    linked.adopt()
    linked.library.rename("docker", "engine")
    assert linked.text("knowledge/topics/z.md") == "---\nupdated: 2020-01-01\n---\n[[engine]]\n"
    log = list(linked.history.log("knowledge/topics/engine.md"))
    assert len(log) == 2


def test_a_taken_name_and_a_bad_one_change_nothing(linked: Room) -> None:
    head = linked.history.head()
    with pytest.raises(UsageError, match="already"):
        linked.library.rename("docker", "people/ann")
    with pytest.raises(UnsafePathError):
        linked.library.rename("docker", "../../ann")
    with pytest.raises(UsageError):
        linked.library.rename("docker", " ")
    with pytest.raises(NotFoundError):
        linked.library.rename("nothing-like-it", "x")
    with pytest.raises(UnsafePathError):
        linked.library.rename("memory/MEMORY.md", "x")
    assert linked.history.head() == head


def test_only_the_case_of_a_name_changes(linked: Room) -> None:
    entry = linked.library.get(linked.library.rename("docker", "topics/Docker").path)
    assert entry.title in {"Docker", "Docker Engine"}
    assert linked.library.find("docker").path == entry.path


def test_an_entry_that_cannot_be_read_moves_byte_for_byte(room: Room) -> None:
    broken = "---\ntags: [a\n---\n# Broken\n[[x]]\n"
    room.put("knowledge/topics/broken.md", broken)
    room.put("knowledge/topics/x.md", "[[broken]]\n")
    room.adopt()
    room.library.rename("broken", "projects/mended")
    assert room.text("knowledge/projects/mended.md") == broken
    assert room.text("knowledge/topics/x.md") == "[[mended]]\n"
    assert not (room.workspace.root / "knowledge/topics/broken.md").exists()


def test_undo_of_a_rename_brings_name_and_links_back(linked: Room) -> None:
    before = {path: linked.text(path) for path in ("knowledge/people/ann.md", "memory/MEMORY.md")}
    docker = linked.text("knowledge/topics/docker.md")
    linked.library.rename("docker", "Podman")
    linked.history.undo(linked.history.head() or "")
    assert {path: linked.text(path) for path in before} == before
    assert linked.text("knowledge/topics/docker.md") == docker
    assert linked.library.find("docker").path == "knowledge/topics/docker.md"
    assert [info.name for info in linked.library.infos()] == ["people/ann", "topics/docker"]


# Delete ----------------------------------------------------------------------------------------


def test_delete_cleans_related_lists_and_leaves_the_words(linked: Room) -> None:
    before = linked.text("knowledge/people/ann.md")
    commit = linked.library.delete("docker")
    assert {path.path for path in commit.paths} >= {
        "knowledge/topics/docker.md",
        "knowledge/people/ann.md",
        "memory/MEMORY.md",
    }
    text = linked.text("knowledge/people/ann.md")
    assert "related: [ people/ann]  # mine\n" in text
    assert 'up: "b and Docker Engine"' in text
    assert "\nDocker Engine the engine Docker Engine Docker Engine Moby\n" in text
    assert "`[[docker]]` a b c\n" in text
    assert "| d |" in text
    assert linked.text("memory/MEMORY.md") == "See Docker Engine.\n"
    assert linked.library.outgoing("knowledge/people/ann.md")[0].path == "knowledge/people/ann.md"
    assert before != text


def test_a_title_with_a_bar_that_is_left_in_a_table_makes_no_column(room: Room) -> None:
    room.put("knowledge/topics/kestrel.md", "# Kestrel | Birds\n")
    room.put("knowledge/topics/b.md", "| a | b |\n| - | - |\n| [[kestrel]] | c |\n\n[[kestrel]]\n")
    room.library.delete("kestrel")
    left = "| a | b |\n| - | - |\n| Kestrel \\| Birds | c |\n\nKestrel | Birds\n"
    assert room.text("knowledge/topics/b.md") == left


def test_the_title_of_a_private_note_is_not_left_in_others_where_it_is_deleted(room: Room) -> None:
    room.put("knowledge/topics/case-12.md", "---\nprivate: true\n---\n# The divorce\n")
    room.put("knowledge/topics/b.md", "See [[case-12]].\n")
    room.library.delete("case-12")
    assert room.text("knowledge/topics/b.md") == "See case-12.\n"


def test_undo_of_a_deletion_gives_the_links_back_byte_for_byte(linked: Room) -> None:
    before = {path: linked.text(path) for path in ("knowledge/people/ann.md", "memory/MEMORY.md")}
    deleted = linked.library.delete("docker")
    linked.history.undo(deleted.id)
    assert {path: linked.text(path) for path in before} == before


def test_a_single_related_value_goes_with_its_key(room: Room) -> None:
    room.put("knowledge/topics/a.md", "# A\n")
    room.put("knowledge/topics/b.md", "---\nrelated: '[[a]]'\ntags: x\n---\nB\n")
    room.put("knowledge/topics/c.md", "---\nrelated:\n  - a # why\n  - b\n---\nC\n")
    room.put("knowledge/topics/d.md", "---\nrelated: [[a]]\n---\nD\n")
    room.adopt()
    room.library.delete("a")
    assert room.text("knowledge/topics/b.md") == "---\ntags: x\n---\nB\n"
    assert room.text("knowledge/topics/c.md") == "---\nrelated:\n  - b\n---\nC\n"
    assert room.text("knowledge/topics/d.md") == "---\nrelated: []\n---\nD\n"


def test_links_follow_every_change(room: Room) -> None:
    library: Library = room.library
    library.create("topic", "One", body="[[two]]")
    one = "knowledge/topics/one.md"
    assert [link.path for link in library.outgoing(one)] == [None]
    two = library.create("topic", "Two").path
    assert [link.path for link in library.outgoing(one)] == [two]
    assert [link.path for link in library.backlinks(two)] == [one]
    room.put(one, "nothing now\n")
    room.adopt()
    assert library.backlinks(two) == []


def test_links_follow_a_heading_that_reads_otherwise_in_each_of_their_forms(room: Room) -> None:
    path = room.put("knowledge/topics/kestrel.md", "# Kestrel\n\n## Its food\n\n[[#Its food]]\n")
    text = (
        "[[Kestrel#Its food]] [[Kestrel#Its food|eats]] [x](kestrel.md#its-food)"
        " [[Kestrel#Kestrel#Its food]] [[Kestrel#Nest]] [[Other#Its food]]\n"
    )
    other = room.put("knowledge/topics/other.md", text)
    room.library.refresh()
    assert room.library.notes_naming(path, ["Its food"]) == [other, path]
    assert room.library.notes_naming(path, ["Nothing"]) == []
    new = room.text(path).replace("## Its food", "## What it eats")
    room.library.write(
        path,
        new,
        expecting=blob_id(room.bytes(path)),
        actor=Actor.YOU,
        reason="edited",
        headings={"Its food": "What it eats"},
    )
    assert room.text(other).endswith(
        "[[Kestrel#What it eats]] [[Kestrel#What it eats|eats]] [x](kestrel.md#what-it-eats)"
        " [[Kestrel#Kestrel#What it eats]] [[Kestrel#Nest]] [[Other#Its food]]\n"
    )
    assert "[[#What it eats]]" in room.text(path)


def test_who_linked_to_whom_at_a_commit_is_told_by_what_differs_since(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.put("knowledge/people/alice.md", "---\naliases: [Al]\n---\n# Alice\n\nSee [[docker]].\n")
    room.put(
        "knowledge/topics/docker.md", "# Docker\n\nBy [[Al]], and [her](../people/alice.md).\n"
    )
    room.put("knowledge/topics/ships.md", "# Ships\n\n[[Containers]] and [[Alice]].\n")
    room.put("knowledge/topics/gone.md", "# Gone\n\n[[alice]]\n")
    room.put("memory/MEMORY.md", "# Memory\n\n[[alice]]\n")
    room.adopt()
    then = room.history.resolve("HEAD")
    room.put("knowledge/topics/docker.md", "---\naliases: [Containers]\n---\n# Docker\n")
    room.put("knowledge/people/al.md", "# Al\n")  # then it was Alice's name
    (room.workspace.root / "knowledge/topics/gone.md").unlink()
    room.adopt()
    read: list[str] = []
    real = type(room.history).read_blob

    def counted(history: History, blob: str) -> bytes:
        read.append(blob)
        return real(history, blob)

    monkeypatch.setattr(type(room.history), "read_blob", counted)
    past = PastLibrary(room.history, then, room.library)
    alice = "knowledge/people/alice.md"
    assert past.neighbours(alice).incoming == (
        "knowledge/topics/docker.md",
        "knowledge/topics/gone.md",
        "knowledge/topics/ships.md",
    )
    assert past.blobs["knowledge/topics/ships.md"] not in read, "it is as it was then"
    assert past.blobs["knowledge/topics/docker.md"] in read
    whole = PastLibrary(room.history, then)
    for info in whole.infos():
        assert past.outgoing(info.path) == whole.outgoing(info.path)
        assert past.backlinks(info.path) == whole.backlinks(info.path)
    ships = {link.link.target: link.path for link in past.outgoing("knowledge/topics/ships.md")}
    assert ships == {"Containers": None, "Alice": alice}


def test_the_garbage_collector_visits_none_of_a_workspaces_links(room: Room) -> None:
    for number in range(50):
        near = " ".join(f"[[note-{(number + step) % 50}|near]]" for step in range(1, 9))
        room.put(f"knowledge/topics/note-{number}.md", f"# Note {number}\n\n{near}\n")
    room.adopt()
    room.library.infos()
    gc.collect()
    before = len(gc.get_objects())
    assert len(room.library.neighbours("knowledge/topics/note-0.md").incoming) == 8
    gc.collect()
    assert len(gc.get_objects()) - before < 50, "400 links"


@pytest.mark.parametrize("text", ["{% link a.md %}", '{{% ref "a.md" %}}', '{{< ref "a.md" >}}'])
def test_a_tag_alone_in_a_note_is_a_link(text: str) -> None:
    entry = parse_entry("knowledge/topics/b.md", text.encode())
    assert [each.target for each in entry.links] == ["a.md"]
