"""The library: entries by name, new ones, writing, dates, and what it costs."""

from __future__ import annotations

import threading
from datetime import date
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError, NotFoundError, UnreadableError, UnsafePathError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge.entries.templates import ENTRY_TYPES
from kbtui.knowledge.format.frontmatter import parse
from kbtui.workspace import files

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import Library
    from kbtui.workspace.layout import Layout
    from tests.knowledge.conftest import Room


def test_a_new_entry_of_each_type_lies_in_its_folder_with_its_template(library: Library) -> None:
    for type_, folder in ENTRY_TYPES.items():
        entry = library.get(library.create(type_, f"A {type_}").path)
        assert entry.type == type_
        assert entry.category == folder
        assert entry.created == entry.updated == "2026-11-21"
        assert entry.text.startswith(f"---\ntype: {type_}\ncreated: 2026-11-21\n")
        assert f"\n# A {type_}\n" in entry.text
    decision = library.find("A decision")
    assert decision.path == "knowledge/decisions/2026-11-a-decision.md"
    headings = [line for line in decision.text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Context",
        "## Decision",
        "## Alternatives considered",
        "## Evolution",
    ]
    assert library.find("people/a-person").body == (
        "# A person\n\n## Role\n\n## Works on\n\n## Notes\n"
    )


def test_a_new_entry_holds_what_it_is_given(library: Library) -> None:
    entry = library.get(
        library.create(
            "decision",
            "Use: PostgreSQL",
            sections={"Context": "Analytics grows.", "decision": "PostgreSQL.", "Cost": "None."},
            tags=["db", "a: b"],
            related=["people/alice"],
            aliases=["PG"],
            sources=["cli_1#1-2"],
            summary="For its JSON operators",
            day=date(2025, 3, 9),
            actor=Actor.AGENT,
            origin=Origin(session="cli_1", messages=(1, 2)),
        ).path
    )
    assert entry.path == "knowledge/decisions/2025-03-use-postgresql.md"
    assert (entry.created, entry.tags, entry.related) == (
        "2025-03-09",
        ("db", "a: b"),
        ("people/alice",),
    )
    assert entry.summary == "For its JSON operators"
    assert entry.frontmatter["sources"] == ["cli_1#1-2"]
    assert entry.body == (
        "# Use: PostgreSQL\n\n## Context\nAnalytics grows.\n\n## Decision\nPostgreSQL.\n\n"
        "## Cost\nNone.\n"
    ), "headings of the template that nothing is said under aren't written"


def test_names_never_collide_not_even_by_case(room: Room) -> None:
    room.put("knowledge/topics/Docker.md", "# Mine\n")
    room.adopt()
    paths = [room.library.create("topic", title).path for title in ("docker", "Docker", "DOCKER!")]
    assert paths == [f"knowledge/topics/docker-{n}.md" for n in (2, 3, 4)]
    long = [
        room.library.get(room.library.create("decision", "word " * 60).path).slug for _ in range(2)
    ]
    assert all(len(slug) <= 80 for slug in long)
    assert len(set(long)) == 2


def test_an_unknown_type_or_no_title_is_a_usage_error(library: Library) -> None:
    with pytest.raises(UsageError, match="recipe"):
        library.create("recipe", "Soup")
    with pytest.raises(UsageError, match="title"):
        library.create("topic", " \n ")
    assert library.get(library.create("topics", "By folder").path).type == "topic"


@pytest.fixture
def found(room: Room) -> Library:
    room.put("knowledge/people/alice.md", "---\naliases: [Al, A. Liddell]\n---\n# Alice Liddell\n")
    room.put("knowledge/projects/alice.md", "# Project Alice\n")
    room.put("knowledge/topics/docker.md", "# Containers\n")
    room.put("memory/MEMORY.md", "# Memory\nSee [[docker]].\n")
    room.adopt()
    return room.library


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("knowledge/topics/docker.md", "knowledge/topics/docker.md"),
        ("knowledge/topics/docker", "knowledge/topics/docker.md"),
        ("topics/docker", "knowledge/topics/docker.md"),
        ("Docker", "knowledge/topics/docker.md"),
        ("docker.md:14", "knowledge/topics/docker.md"),
        ("knowledge/topics/docker.md:14-20", "knowledge/topics/docker.md"),
        ("containers", "knowledge/topics/docker.md"),
        ("al", "knowledge/people/alice.md"),
        ("ALICE LIDDELL", "knowledge/people/alice.md"),
        ("people/alice", "knowledge/people/alice.md"),
        ("memory/MEMORY.md", "memory/MEMORY.md"),
    ],
)
def test_an_entry_is_found_by_path_slug_title_or_alias(found: Library, ref: str, path: str) -> None:
    assert found.find(ref).path == path


def test_a_name_of_two_entries_lists_both(found: Library) -> None:
    with pytest.raises(UsageError) as caught:
        found.find("alice")
    assert "people/alice" in caught.value.hint
    assert "projects/alice" in caught.value.hint


def test_a_name_of_none_names_the_nearest(found: Library) -> None:
    with pytest.raises(NotFoundError) as caught:
        found.find("dokcer")
    assert "topics/docker" in caught.value.hint
    with pytest.raises(NotFoundError):
        found.get("knowledge/topics/none.md")
    for bad in ("../../etc/passwd.md", "knowledge/../../x.md", "/etc/x.md"):
        with pytest.raises((UnsafePathError, NotFoundError)):
            found.find(bad)


def test_writing_sets_updated_and_nothing_else(room: Room) -> None:
    entry = room.library.get(room.library.create("topic", "Docker", tags=["a"]).path)
    room.clock.pass_days(3)
    text = entry.text + "\nMore.\n"
    commit = room.library.write(
        entry.path, text, expecting=entry.blob, actor=Actor.YOU, reason="more"
    )
    assert commit is not None
    assert room.text(entry.path) == text.replace("updated: 2026-11-21", "updated: 2026-11-24")


def test_writing_the_same_text_is_no_change(room: Room) -> None:
    entry = room.library.get(room.library.create("topic", "Docker").path)
    room.clock.pass_days(3)
    head = room.history.head()
    assert (
        room.library.write(entry.path, entry.text, expecting=entry.blob, actor=Actor.YOU, reason="")
        is None
    )
    assert room.history.head() == head


@pytest.mark.parametrize(
    ("written", "stamped"),
    [
        ("2024-01-01", "2026-11-22"),
        ("'2024-01-01'", "'2026-11-22'"),
        ("2024-01-01T10:00:00Z", "2026-11-22T12:00:00Z"),
        ("2024-01-01 10:00", "2026-11-22 12:00"),
        ("2024-1-5", "2026-11-22"),
        ("2024/1/5", "2026/11/22"),
        ("20240105", "20261122"),
        ("20241399", "20241399"),
        ("March 4, 2024", "March 4, 2024"),
        ("2024-01-01T10:00+02:00", "2024-01-01T10:00+02:00"),
        ("", "2026-11-22"),
    ],
)
def test_the_date_keeps_the_form_that_it_had(room: Room, written: str, stamped: str) -> None:
    path = room.put("knowledge/topics/x.md", f"---\nupdated:{written and f' {written}'}\n---\nx\n")
    room.adopt()
    room.clock.pass_days(1)
    entry = room.library.get(path)
    room.library.write(path, entry.text + "y\n", expecting=entry.blob, actor=Actor.AGENT, reason="")
    assert room.text(path) == f"---\nupdated: {stamped}\n---\nx\ny\n"


def test_a_date_that_the_writer_sets_stands(room: Room) -> None:
    entry = room.library.get(room.library.create("fact", "Old").path)
    text = entry.text.replace("updated: 2026-11-21", "updated: 2020-02-02")
    room.library.write(entry.path, text, expecting=entry.blob, actor=Actor.YOU, reason="")
    assert room.text(entry.path) == text


def test_outside_edits_and_notes_without_frontmatter_keep_their_bytes(room: Room) -> None:
    entry = room.library.get(room.library.create("topic", "Docker").path)
    room.clock.pass_days(2)
    outside = entry.text + "by vim\n"
    room.put(entry.path, outside)
    plain = room.put("knowledge/topics/plain.md", "no frontmatter\r\n")
    room.adopt()
    assert room.text(entry.path) == outside
    note = room.library.get(plain)
    room.library.write(plain, "changed\n", expecting=note.blob, actor=Actor.YOU, reason="")
    assert room.bytes(plain) == b"changed\r\n"


def test_undo_and_restore_bring_back_the_very_bytes(room: Room) -> None:
    first = "---\nupdated: 2020-01-01\n---\nfirst\n"
    path = room.put("knowledge/topics/x.md", first)
    room.adopt()
    start = room.history.head()
    assert start is not None
    room.put(path, first + "by vim\n")
    room.adopt()
    room.clock.pass_days(1)
    room.history.restore(path, start)
    assert room.text(path) == first
    head = room.history.head()
    assert head is not None
    room.history.undo(head)
    assert room.text(path) == first + "by vim\n"


def test_what_a_machine_writes_without_frontmatter_gets_it(room: Room) -> None:
    room.library.write(
        "knowledge/facts/raw.md", "# Raw\nA fact.\n", expecting=None, actor=Actor.AGENT, reason=""
    )
    assert room.text("knowledge/facts/raw.md") == (
        "---\ntype: fact\ncreated: 2026-11-21\nupdated: 2026-11-21\n---\n# Raw\nA fact.\n"
    )


def test_line_ends_and_byte_order_mark_stay(room: Room) -> None:
    path = room.put("knowledge/topics/win.md", b"\xef\xbb\xbf---\r\na: b\r\n---\r\none\r\n")
    room.adopt()
    entry = room.library.get(path)
    assert not entry.text.startswith("\ufeff")
    edited = entry.text.replace("\r\n", "\n") + "two\n"
    room.library.write(path, edited, expecting=entry.blob, actor=Actor.YOU, reason="")
    assert room.bytes(path) == (
        b"\xef\xbb\xbf---\r\na: b\r\nupdated: 2026-11-21\r\n---\r\none\r\ntwo\r\n"
    )


def test_what_would_lose_characters_is_not_written(room: Room) -> None:
    wide = "# Wide\n".encode("utf-16")
    path = room.put("knowledge/topics/wide.md", wide)
    room.adopt()
    entry = room.library.get(path)
    with pytest.raises(UnreadableError, match="UTF-8"):
        room.library.write(path, "# Wide!\n", expecting=entry.blob, actor=Actor.YOU, reason="")
    assert room.bytes(path) == wide


def test_a_conflict_keeps_both_versions(room: Room) -> None:
    entry = room.library.get(room.library.create("topic", "Docker").path)
    room.put(entry.path, entry.text + "theirs\n")
    with pytest.raises(ConflictError):
        room.library.write(
            entry.path, entry.text + "mine\n", expecting=entry.blob, actor=Actor.AGENT, reason=""
        )
    assert room.text(entry.path).endswith("theirs\n")
    copies = list((room.workspace.root / "knowledge/topics").glob("*.conflict-*"))
    assert len(copies) == 1
    assert copies[0].read_text().endswith("mine\n")
    room.library.refresh()
    assert [info.slug for info in room.library.infos()] == ["docker"]


def test_infos_and_tags_follow_every_change(room: Room) -> None:
    library = room.library
    assert library.infos() == []
    library.create("topic", "Docker", tags=["ops", "dev"])
    room.put("knowledge/topics/git.md", "---\ntags: [dev]\n---\n# Git\nVersion control. #vcs\n")
    room.adopt()
    assert [(i.name, i.title) for i in library.infos()] == [
        ("topics/docker", "Docker"),
        ("topics/git", "Git"),
    ]
    assert library.tags() == {"dev": 2, "ops": 1, "vcs": 1}
    library.delete("git")
    assert library.tags() == {"dev": 1, "ops": 1}


def test_what_was_written_here_is_known_without_reading_unless_somebody_wrote_since(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = room.library
    library.infos()
    read: list[str] = []
    real = files.read_bytes

    def spy(root: Layout, path: str, limit: int = files.READ_LIMIT) -> bytes:
        read.append(path)
        return real(root, path, limit)

    path = library.create("topic", "Docker").path
    with monkeypatch.context() as patch:
        patch.setattr(files, "read_bytes", spy)
        assert [info.title for info in library.infos()] == ["Docker"]
    assert read in ([], [path])  # by the scan, where the clock hasn't ticked since the write
    other = library.create("topic", "Helm").path
    room.put(other, "# Podman\n")
    assert [info.title for info in library.infos()] == ["Docker", "Podman"]


def test_another_process_sees_the_same_and_any_damage_heals(room: Room) -> None:
    room.library.create("topic", "Docker", tags=["ops"], aliases=["Moby"])
    room.library.create("person", "Ann")
    expected = room.library.infos()
    assert room.reopened().library.infos() == expected
    cache = room.workspace.cache / "entries.sqlite"
    assert cache.exists()
    for damage in (b"garbage" * 1000, b"", cache.read_bytes()[:100]):
        for file in room.workspace.cache.glob("entries.sqlite*"):
            file.unlink()
        cache.write_bytes(damage)
        assert room.reopened().library.infos() == expected


def test_private_is_what_says_so_or_what_the_settings_name(room: Room) -> None:
    from kbtui.knowledge.library.library import Library
    from kbtui.workspace.scan import Scanner

    room.put("knowledge/facts/pin.md", "---\nprivate: true\n---\n# Pin\n1234\n")
    room.put("knowledge/people/ann.md", "# Ann\n")
    room.put("knowledge/topics/open.md", "# Open\n")
    room.adopt()
    library = Library(
        room.workspace, room.history, Scanner(room.workspace), private_paths=["people/*"]
    )
    for _ in range(2):
        assert {i.slug: i.private for i in library.infos()} == {
            "pin": True,
            "ann": True,
            "open": False,
        }
        library.refresh()


def test_many_threads_read_and_write_at_once(room: Room) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(4):
                room.library.create("topic", "Same title" if turn % 2 else f"Topic {number} {turn}")
                room.library.infos()
                room.library.tags()
        except BaseException as error:  # noqa: BLE001  # reported below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(room.library.infos()) == 16
    assert len(room.reopened().library.infos()) == 16


def test_broken_entries_are_listed_and_only_links_in_their_body_are_mended(room: Room) -> None:
    broken = "---\ntags: [a, [[docker]]\n---\n# Broken\n[[docker]]\n"
    room.put("knowledge/topics/broken.md", broken)
    room.library.create("topic", "Docker")
    room.adopt()
    done = room.library.rename("docker", "Containers")
    mended = broken.replace("\n[[docker]]", "\n[[containers]]")
    assert room.text("knowledge/topics/broken.md") == mended
    assert done.unmended == ("knowledge/topics/broken.md",)
    room.library.delete("containers")
    (info,) = room.library.infos()
    assert info.problem is not None
    assert parse(broken).problem is not None


def test_what_takes_the_path_of_a_new_entry_meanwhile_is_not_overwritten(room: Room) -> None:
    overlay, day = room.library.overlay(), date(2026, 11, 21)
    path = overlay.free_path("person", "Alice", day)
    room.put(path, "# Alice, as somebody else wrote of her\n")
    overlay.apply({path: b"# Alice\n"})
    with pytest.raises(ConflictError), room.history.change(Actor.YOU, "write") as change:
        overlay.stage(change)
    assert room.text(path) == "# Alice, as somebody else wrote of her\n"
    assert room.library.overlay().free_path("person", "Alice", day) != path


def test_relating_an_entry_leaves_what_is_related_as_it_is_written(room: Room) -> None:
    text = '---\ntype: topic\nrelated:\n  - "[[bob|Bobby]]"  # since school\n---\n# Tea\n'
    room.put("knowledge/topics/tea.md", text)
    room.put("knowledge/people/bob.md", "# Bob\n")
    room.put("knowledge/topics/milk.md", "# Milk\n")
    room.adopt()
    assert room.library.relate("topics/tea", "topics/milk") is not None
    after = room.text("knowledge/topics/tea.md")
    assert '  - "[[bob|Bobby]]"  # since school\n' in after
    assert room.library.get("knowledge/topics/tea.md").related == ("bob", "topics/milk")
    assert room.library.relate("topics/tea", "topics/milk") is None
    assert room.text("knowledge/topics/tea.md") == after
