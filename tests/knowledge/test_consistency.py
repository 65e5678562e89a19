"""After any series of changes the library knows what a new one would read from the files."""

from __future__ import annotations

import random
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from kbtui.knowledge.entries.entry import parse_entry
from kbtui.knowledge.format.links import links_in_body

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.knowledge.conftest import Room

NAMES = ["Docker", "Git", "docker compose", "Ann Lee", "Café", "Use C++", "2.4.0", "日本"]
STYLES: list[Callable[[str, str], str]] = [
    lambda path, title: f"[[{path}]]",
    lambda path, title: f"[[{path.rpartition('/')[2]}|shown]]",
    lambda path, title: f"[[{title}#Part]]",
    lambda path, title: f"[x](../{path.replace(' ', '%20')}.md)",
    lambda path, title: f"![[{path}]]",
]


def _known(room: Room) -> tuple[object, ...]:
    library = room.library
    infos = library.infos()
    return (
        infos,
        library.tags(),
        {info.path: library.outgoing(info.path) for info in infos},
        {info.path: library.backlinks(info.path) for info in infos},
    )


def _some_link(room: Room, rng: random.Random) -> str:
    infos = room.library.infos()
    if not infos:
        return "[[nowhere]]"
    info = rng.choice(infos)
    return rng.choice(STYLES)(info.name, info.title)


def _step(room: Room, rng: random.Random) -> None:
    library = room.library
    infos = library.infos()
    action = rng.randrange(7) if infos else 0
    if action <= 1:
        links = [_some_link(room, rng) for _ in range(rng.randrange(4))]
        related = [rng.choice(infos).name] if infos else []
        library.create(
            rng.choice(["topic", "person"]),
            rng.choice(NAMES),
            body=" ".join(links),
            related=related,
            aliases=rng.sample(["al", "bo"], rng.randrange(2)),
        )
        return
    info = rng.choice(infos)
    if action == 2:
        library.delete(info.path)
    elif action == 3:
        folder = rng.choice(["topics/", "people/", ""])
        try_name = f"{folder}{rng.choice(['a', 'b', 'docker', 'x-y'])}"
        if all(i.name != try_name for i in infos) and folder:
            library.rename(info.path, try_name)
    elif action == 4:
        library.rename(info.path, f"{rng.choice(NAMES)} {rng.randrange(1000)}")
    elif action == 5:
        room.put(info.path, f"# {rng.choice(NAMES)}\n{_some_link(room, rng)}\n")
        room.adopt()
    else:
        entry = library.get(info.path)
        text = f"{entry.text}\n{_some_link(room, rng)}\n"
        library.write(info.path, text, expecting=entry.blob, actor=Actor.AGENT, reason="")


@pytest.mark.parametrize("seed", range(4))
def test_a_long_life_leaves_the_library_as_a_new_one_would_see_it(room: Room, seed: int) -> None:
    rng = random.Random(seed)
    for turn in range(30):
        _step(room, rng)
        if turn % 3 == 0:
            room.library.backlinks("knowledge/topics/docker.md")
    again = room.reopened()
    again.library.reindex()
    assert _known(room) == _known(again)
    assert not room.history.diff(room.history.head())
    slugs = {info.slug for info in room.library.infos()}
    index = (room.workspace.root / "knowledge/INDEX.md").read_text()
    assert set(re.findall(r"^- (.+?):(?: |$)", index, re.MULTILINE)) == slugs


def _targets(room: Room) -> dict[str, list[str | None]]:
    return {
        info.path: [found.path for found in room.library.outgoing(info.path)]
        for info in room.library.infos()
        if not info.problem
    }


@pytest.mark.data
@pytest.mark.parametrize("vault", ["obsidian-help-en", "foam", "kepano-obsidian"])
def test_renames_in_a_real_vault_break_no_link(data_dir: Path, room: Room, vault: str) -> None:
    folder = room.workspace.knowledge
    shutil.copytree(data_dir / "vaults" / vault, folder, dirs_exist_ok=True)
    room.adopt()
    rng = random.Random(7)
    for number in range(6):
        infos = [info for info in room.library.infos() if not info.problem]
        info = max(rng.sample(infos, 12), key=lambda i: len(room.library.backlinks(i.path)))
        before = _targets(room)
        new = rng.choice([f"Renamed Note {number}", f"moved/place-{number}", f"place-{number}"])
        path = room.library.rename(info.path, new).path
        expected = {
            path if source == info.path else source: [
                path if target == info.path else target for target in targets
            ]
            for source, targets in before.items()
        }
        assert _targets(room) == expected


@pytest.mark.data
@pytest.mark.parametrize("vault", ["obsidian-help-en", "jackyzha0-site"])
def test_deleting_in_a_real_vault_leaves_no_link_to_what_is_gone(
    data_dir: Path, room: Room, vault: str
) -> None:
    shutil.copytree(data_dir / "vaults" / vault, room.workspace.knowledge, dirs_exist_ok=True)
    room.adopt()
    rng = random.Random(3)
    for _ in range(3):
        infos = rng.sample(room.library.infos(), 12)
        info = max(infos, key=lambda i: len(room.library.backlinks(i.path)))
        sources = {b.path: room.text(b.path) for b in room.library.backlinks(info.path)}
        dangling = sum(path is None for found in _targets(room).values() for path in found)
        room.library.delete(info.path)
        own = 0
        for source, text in sources.items():
            before = links_in_body(text)
            after = links_in_body(room.text(source))
            assert len(after) < len(before) or "[[" in text.split("---")[1]
            own += sum(placed.definition for placed in after)
        left = sum(path is None for found in _targets(room).values() for path in found)
        assert left <= dangling + own
        restored = room.history.undo(room.history.head() or "")
        assert restored.paths
        assert {source: room.text(source) for source in sources} == sources
        room.library.refresh()


def test_two_libraries_on_one_workspace_see_each_others_changes(room: Room) -> None:
    other = room.reopened()
    entry = room.library.create("topic", "Docker")
    other.library.refresh()
    assert [info.slug for info in other.library.infos()] == ["docker"]
    other.library.rename("docker", "podman")
    room.library.refresh()
    assert [info.slug for info in room.library.infos()] == ["podman"]
    assert parse_entry(entry.path, b"").slug == "docker"
