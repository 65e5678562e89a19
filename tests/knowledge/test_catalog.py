"""INDEX.md: always true, never over the user's own words, and cheap where there is much."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.history.door import Door
from kbtui.knowledge.catalog import catalog
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from kbtui.history.change import Change, Commit
    from tests.knowledge.conftest import Room

INDEX = "knowledge/INDEX.md"


def _lines(room: Room, path: str = INDEX) -> list[str]:
    return [line for line in room.text(path).splitlines() if line.startswith(("- ", "## "))]


def _count(text: str) -> int:
    return len(text) // 4 + 1


def test_every_entry_has_its_line_under_its_category(room: Room) -> None:
    library = room.library
    library.create("decision", "Use PKCE", summary="Because of [[x|public]] clients")
    library.create("topic", "Docker", body="Runs **containers**. And more.")
    library.create("topic", "Bare")
    room.put("knowledge/recipes/soup.md", "Hot.\n")
    room.put("knowledge/loose.md", "Loose.\n")
    room.adopt()
    assert _lines(room) == [
        "## Topics",
        "- bare: Bare",
        "- docker: Runs containers.",
        "## Decisions",
        "- 2026-11-use-pkce: Because of public clients",
        "## Recipes",
        "- soup: Hot.",
        "## Other",
        "- loose: Loose.",
    ]
    assert room.text(INDEX).startswith("# Knowledge Index\n\n<!-- index: ")


def test_it_follows_in_the_same_commit_and_only_when_a_line_changes(room: Room) -> None:
    entry = room.library.get(
        room.library.create("topic", "Docker", body="Runs containers.\n\nMore.").path
    )
    (commit,) = room.history.log()
    assert [path.path for path in commit.paths] == [INDEX, entry.path]
    text = entry.text.replace("More.", "Even more.")
    commit_ = room.library.write(
        entry.path, text, expecting=entry.blob, actor=Actor.YOU, reason="x"
    )
    assert commit_ is not None
    assert [path.path for path in commit_.paths] == [entry.path]
    entry = room.library.get(entry.path)
    text = entry.text.replace("Runs", "Builds")
    room.library.write(entry.path, text, expecting=entry.blob, actor=Actor.YOU, reason="x")
    assert "- docker: Builds containers." in _lines(room)
    room.library.rename("docker", "podman")
    assert "- podman: Builds containers." in _lines(room)
    room.library.delete("podman")
    assert _lines(room) == []


def test_a_summary_that_changes_back_is_written_back(room: Room) -> None:
    path = room.library.create("topic", "Docker", body="One.").path
    for word in ("Two.", "One.", "Two."):
        entry = room.library.get(path)
        text = re.sub(r"(One|Two)\.", word, entry.text)
        room.library.write(path, text, expecting=entry.blob, actor=Actor.YOU, reason="x")
        assert f"- docker: {word}" in _lines(room)


def test_outside_edits_are_followed_even_when_they_were_seen_before(room: Room) -> None:
    path = room.library.create("topic", "Docker", body="One.").path
    room.put(path, room.text(path).replace("One.", "Two."))
    room.library.refresh()
    room.library.infos()
    room.adopt()
    assert "- docker: Two." in _lines(room)
    (room.workspace.root / path).unlink()
    room.adopt()
    assert _lines(room) == []


def test_text_around_the_block_is_the_users(room: Room) -> None:
    room.library.create("topic", "Docker")
    text = room.text(INDEX)
    room.put(INDEX, "My words\n\n" + text + "\nMore of mine\n")
    room.adopt()
    room.library.create("person", "Ann", body="A friend.")
    changed = room.text(INDEX)
    assert changed.startswith("My words\n\n# Knowledge Index")
    assert changed.endswith("<!-- /index -->\n\nMore of mine\n")
    assert "- ann: A friend." in changed


def test_an_index_of_the_users_is_only_added_to_by_a_change_of_his_own(room: Room) -> None:
    mine = "# My index\r\n- [[docker]]\r\n"
    room.put(INDEX, mine)
    room.put("knowledge/topics/docker.md", "Runs.\n")
    room.adopt()
    assert room.text(INDEX) == mine
    room.library.create("person", "Ann")
    assert room.text(INDEX).startswith(mine.rstrip("\r\n"))
    assert "- docker: Runs." in room.text(INDEX)
    room.put(INDEX, b"\xff\xfe not text")
    room.library.create("person", "Bob")
    assert room.bytes(INDEX) == b"\xff\xfe not text"


def test_beside_an_index_of_another_case_there_is_none(room: Room) -> None:
    room.put("knowledge/index.md", "# Home\n[[docker]]\n")
    room.adopt()
    room.library.create("topic", "Docker")
    assert not (room.workspace.root / INDEX).exists()
    assert room.text("knowledge/index.md") == "# Home\n[[docker]]\n"
    assert [info.name for info in room.library.infos()] == ["index", "topics/docker"]


def test_an_index_of_the_seeds_form_is_taken_over(room: Room) -> None:
    room.put(INDEX, "# Knowledge Index\n\n## Topics\n- docker: Old words\n\n## People\n")
    room.put("knowledge/topics/docker.md", "Runs.\n")
    room.adopt()
    room.library.create("topic", "Git", body="Versions.")
    assert _lines(room) == ["## Topics", "- docker: Runs.", "- git: Versions."]
    assert room.text(INDEX).count("# Knowledge Index") == 1


def test_a_private_entry_is_named_but_not_described(room: Room) -> None:
    room.put("knowledge/facts/pin.md", "---\nprivate: true\n---\nThe pin is 1234.\n")
    room.library.create("topic", "Docker", body="Runs.")
    room.adopt()
    assert "- pin: (private)" in _lines(room)
    assert "1234" not in room.text(INDEX)
    assert "1234" not in room.library.prompt_index("pin", 500, _count, room.library.public)
    assert "1234" in room.library.prompt_index("pin", 500, _count)


def test_what_an_entry_says_cannot_end_the_block(room: Room) -> None:
    room.library.create("topic", "Evil", summary="<!-- /index --> # mine\n- fake: x")
    room.library.create("topic", "Good")
    assert room.text(INDEX).count("<!-- /index -->") == 1
    assert len([line for line in _lines(room) if line.startswith("- ")]) == 2


# Many entries ----------------------------------------------------------------------------------


@pytest.fixture
def large(room: Room, monkeypatch: pytest.MonkeyPatch) -> Room:
    """A workspace over the limit, which is lowered so that the test is quick."""
    monkeypatch.setattr(catalog, "SMALL_INDEX_LIMIT", 20)
    monkeypatch.setattr(catalog, "TOP_ENTRIES", 6)
    monkeypatch.setattr(catalog, "IDLE_SECONDS", 3600.0)
    monkeypatch.setattr(catalog, "MAX_DELAY_SECONDS", 3600.0)
    for number in range(24):
        links = "[[hub]] " if number % 2 else ""
        day = f"2026-01-{number + 1:02d}"
        folder = "topics" if number % 3 else "people"
        text = f"---\nupdated: {day}\n---\n# Entry {number}\n{links}Says {number}.\n"
        room.put(f"knowledge/{folder}/e{number:02d}.md", text)
    room.put("knowledge/topics/hub.md", "# Hub\nThe middle.\n")
    room.adopt()
    return room


def test_a_large_index_comes_later_and_in_parts(large: Room) -> None:
    assert not (large.workspace.root / INDEX).exists()
    commit = large.library.flush()
    assert commit is not None
    lines = _lines(large)
    assert "- [Topics](topics/INDEX.md): 17 entries" in lines
    assert "- [People](people/INDEX.md): 8 entries" in lines
    chosen = lines[lines.index("## Most used and recent") + 1 :]
    assert len(chosen) == 6
    assert chosen[0] == "- topics/hub: The middle."
    assert "- topics/e23: hub Says 23." in chosen
    assert len(_lines(large, "knowledge/topics/INDEX.md")) == 17
    assert large.library.flush() is None
    assert all(info.slug != "INDEX" for info in large.library.infos())


def test_a_change_postpones_it_and_closing_writes_it(large: Room) -> None:
    large.library.flush()
    entry = large.library.get(large.library.create("fact", "New fact", body="Brand new.").path)
    assert "new-fact" not in large.text(INDEX)
    large.library.close()
    assert _lines(large, "knowledge/facts/INDEX.md") == [f"- {entry.slug}: Brand new."]
    assert next(iter(large.history.log(limit=1))).actor is Actor.YOU


def test_a_change_of_body_alone_postpones_nothing(large: Room) -> None:
    large.library.flush()
    entry = large.library.find("e05")
    large.library.write(
        entry.path, entry.text + "\nMore.\n", expecting=entry.blob, actor=Actor.AGENT, reason="x"
    )
    assert large.library.flush() is None


def test_what_a_killed_process_left_undone_the_next_one_does(large: Room) -> None:
    large.library.flush()
    large.library.create("fact", "New fact")
    again = large.reopened()
    again.library.close()
    assert "facts/INDEX.md" in again.text(INDEX)


def test_it_is_written_when_nothing_changes_for_a_moment(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    monkeypatch.setattr(catalog, "SMALL_INDEX_LIMIT", 1)
    monkeypatch.setattr(catalog, "IDLE_SECONDS", 0.05)
    written = threading.Event()
    room.history.subscribe(lambda changed: INDEX in changed.paths and written.set())
    room.put("knowledge/topics/a.md", "A.\n")
    room.put("knowledge/topics/b.md", "B.\n")
    room.adopt()
    assert written.wait(PATIENCE)
    assert "- [Topics](topics/INDEX.md): 2 entries" in room.text(INDEX)


def test_a_workspace_that_shrinks_has_one_index_again(
    large: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    large.library.flush()
    monkeypatch.setattr(catalog, "SMALL_INDEX_LIMIT", 100)
    large.library.create("topic", "One more")
    assert "- one-more: One more" in _lines(large)
    assert not (large.workspace.root / "knowledge/people/INDEX.md").exists()


# The prompt ------------------------------------------------------------------------------------


def test_a_small_catalogue_goes_into_the_prompt_whole(room: Room) -> None:
    room.library.create("topic", "Docker", body="Runs.")
    room.library.create("person", "Ann", body="A friend.")
    text = room.library.prompt_index("anything", 500, _count)
    assert text == "## Topics\n- docker: Runs.\n\n## People\n- ann: A friend."
    assert room.library.prompt_index("x", 0, _count) == ""


def test_the_prompt_keeps_to_its_budget_and_ranks_by_the_conversation(large: Room) -> None:
    for budget in (20, 60, 120):
        text = large.library.prompt_index("what was said in entry 7?", budget, _count)
        assert 0 < _count(text) <= budget
        assert "A search finds them." in text
    assert "- e07: hub Says 7." in large.library.prompt_index("e07 what was that?", 60, _count)
    left = sum(int(n) for n in re.findall(r"(\d+) in \w+", text))
    assert left + text.count("\n- ") == 25


def test_a_budget_that_nothing_fits_into_gives_nothing(room: Room) -> None:
    room.library.create("topic", "Docker", body="Runs.")
    assert room.library.prompt_index("x", 1, _count) == ""


def test_a_folder_without_entries_keeps_no_index_but_one_that_a_person_wrote_in(
    large: Room,
) -> None:
    large.library.flush()
    mine = large.text("knowledge/people/INDEX.md") + "\nMy own line.\n"
    large.put("knowledge/people/INDEX.md", mine)
    for info in large.library.infos():
        large.library.delete(info.path)
    large.library.flush()
    assert not (large.workspace.root / "knowledge/topics/INDEX.md").exists()
    assert "My own line." in large.text("knowledge/people/INDEX.md")


def test_an_index_that_a_person_writes_in_as_it_is_about_to_go_stays(
    large: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    large.library.flush()
    mine = large.text("knowledge/people/INDEX.md") + "\nMy own line.\n"
    for info in large.library.infos():
        large.library.delete(info.path)
    apply = Door.apply

    def late(door: Door, change: Change) -> Commit | None:
        large.put("knowledge/people/INDEX.md", mine)
        return apply(door, change)

    with monkeypatch.context() as patch:
        patch.setattr(Door, "apply", late)
        large.library.close()
    large.library.flush()
    assert "My own line." in large.text("knowledge/people/INDEX.md")


def test_what_a_person_writes_around_the_block_as_it_is_written_stays(
    large: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    large.library.flush()
    large.library.create("person", "Zoe Quill", body="Hello")
    mine = large.text(INDEX) + "\nMy own line.\n"
    apply = Door.apply

    def late(door: Door, change: Change) -> Commit | None:
        large.put(INDEX, mine)
        return apply(door, change)

    with monkeypatch.context() as patch:
        patch.setattr(Door, "apply", late)
        large.library.flush()
    assert "My own line." in large.text(INDEX)
    assert "zoe-quill" in large.text(INDEX)


def test_one_that_takes_long_is_written_the_less_often(
    large: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    timer = catalog.threading.Timer
    monkeypatch.setattr(
        catalog.threading, "Timer", lambda wait, do: (waits.append(wait), timer(3600.0, do))[1]
    )
    monkeypatch.setattr(catalog, "IDLE_SECONDS", 3.0)
    clock = iter(range(0, 10_000, 20))  # each look at it is 20 seconds later
    monkeypatch.setattr(catalog.time, "monotonic", lambda: float(next(clock)))
    large.library.create("fact", "First")
    large.library.flush()
    large.library.create("fact", "Second")
    assert waits[0] <= 3.0
    assert waits[1] >= 100.0
    large.library.close()
