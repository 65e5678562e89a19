"""``/tag``: tags come and go, and everything else stays as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import UnreadableError, UsageError
from kbtui.knowledge.library.library import retag

if TYPE_CHECKING:
    from tests.knowledge.conftest import Room

PATH = "knowledge/topics/docker.md"


def tagged(room: Room, head: str, body: str = "# Docker\n\nSee #ops.\n") -> None:
    room.put(PATH, f"---\n{head}\n---\n{body}")
    room.adopt()


def head_of(room: Room) -> str:
    return room.text(PATH).split("---\n")[1].partition("updated:")[0].strip()


def test_tags_are_added_and_taken_away_whatever_their_case(room: Room) -> None:
    tagged(room, "tags: [work, Draft]")
    assert retag(room.library, PATH, ["#new", "-draft", "WORK"]) == ("work", "new", "ops")
    assert head_of(room) == "tags: [work, new]"


def test_tags_of_the_text_stay_there(room: Room) -> None:
    tagged(room, "tags: [work]")
    assert retag(room.library, PATH, ["new", "ops"]) == ("work", "new", "ops")
    assert head_of(room) == "tags: [work, new]"


def test_a_tag_that_stands_in_the_text_alone_is_not_taken_away_and_that_is_said(
    room: Room,
) -> None:
    tagged(room, "tags: [work]")
    before = room.bytes(PATH)
    with pytest.raises(UsageError, match="#ops stands in the text of topics/docker"):
        retag(room.library, PATH, ["-ops", "new"])
    assert room.bytes(PATH) == before


def test_a_tag_that_the_text_has_as_well_is_still_told(room: Room) -> None:
    tagged(room, "tags: [ops, work]")
    assert retag(room.library, PATH, ["-ops"]) == ("work", "ops")
    assert head_of(room) == "tags: [work]"


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("tags:\n  - '#work'  # the job\n  - b/", "tags:\n  - '#work'  # the job\n  - b/\n  - new"),
        ("tags: work, b", "tags: work, b, new"),
        ("tags: work b", "tags: work b new"),
        ("tags: '#work,#b'", "tags: '#work,#b,#new'"),
        ("tag: work", "tag: work, new"),
        ("title: Docker", "title: Docker\ntags: [new]"),
    ],
)
def test_what_is_written_otherwise_keeps_its_form(room: Room, head: str, after: str) -> None:
    tagged(room, head)
    assert "new" in retag(room.library, PATH, ["new"])
    assert head_of(room) == after


def test_tags_in_one_line_stay_so_when_one_is_taken_away(room: Room) -> None:
    tagged(room, "tags: work, b, c")
    assert retag(room.library, PATH, ["-b"]) == ("work", "c", "ops")
    assert head_of(room) == "tags: work, c"


def test_a_change_of_other_things_leaves_tags_in_one_line_as_they_are(room: Room) -> None:
    tagged(room, "tags: work,  b")
    room.library.rename(PATH, "Containers")
    text = room.text("knowledge/topics/containers.md")
    assert "tags: work,  b\n" in text
    assert "# Containers" in text


def test_no_tag_and_a_broken_frontmatter_are_refused(room: Room) -> None:
    tagged(room, "tags: [open")
    with pytest.raises(UnreadableError, match="can't be tagged"):
        retag(room.library, PATH, ["new"])
    tagged(room, "tags: [work]")
    with pytest.raises(UsageError, match="There is no tag"):
        retag(room.library, PATH, ["#", "-"])
