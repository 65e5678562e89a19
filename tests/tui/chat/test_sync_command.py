"""``/sync`` in the app: it runs beside the chat, says what came of it, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import RemoteError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.app.background_work import BackgroundScreen
from tests.tui.at_rest import Door
from tests.tui.notes_support import text_of
from tests.tui.shell import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

A = "knowledge/topics/a.md"


async def test_sync_brings_two_workspaces_together_and_hands_over_what_clashes(
    tmp_path: Path,
) -> None:
    place = str(tmp_path / "remote.git")
    with KnowledgeBase.open(tmp_path / "other", create=True) as other:
        file = other.workspace.root / A
        file.write_text("# A\n\nOne line.\n")
        other.syncing.run(place)
        async with running(tmp_path / "notes") as shell:
            await shell.say(f"/sync {place}", wait=False)
            await shell.until(lambda: "Syncing with" in shell.text)
            await shell.until(lambda: "received" in shell.text)
            mine = tmp_path / "notes" / A
            assert mine.read_text() == "# A\n\nOne line.\n"
            file.write_text("# A\n\nOne line there.\n")
            other.syncing.run()
            mine.write_text("# A\n\nOne line here.\n")
            await shell.say("/sync", wait=False)
            await shell.until(lambda: "theirs" in shell.text)
            assert mine.read_text() == "# A\n\nOne line here.\n"
            [proposal] = shell.app.kb.memory.inbox.list()
            assert "One line there." in (proposal.edits[0].wanted or b"").decode()


async def test_a_sync_that_fails_says_why(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        await shell.say("/sync", wait=False)
        await shell.until(lambda: "place to sync" in shell.text)
        await shell.say("/sync git://127.0.0.1:1/x", wait=False)
        await shell.until(lambda: "refused" in shell.text)
        await shell.say("/sync stop", wait=False)
        await shell.until(lambda: "No sync" in shell.text)


class _LongSync:
    """A sync that goes on until it is told to stop and the test lets it."""

    def __init__(self) -> None:
        self.door = Door()
        self.stopped: Callable[[], bool] = lambda: False

    def __call__(
        self,
        _remote: str | None,
        *,
        tell: Callable[[str], None],
        stopped: Callable[[], bool],
        count: Callable[[str, int, int], None],
    ) -> None:
        self.stopped = stopped
        tell("connecting")
        count("Fetching", 7, 9)
        self.door.wait()
        raise RemoteError("The sync was stopped.", "Nothing is lost.")


async def test_a_sync_is_one_of_the_tasks_and_can_be_stopped_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = _LongSync()
    async with running(tmp_path / "notes") as shell:
        monkeypatch.setattr(shell.app.kb.syncing, "run", sync)
        await shell.say("/sync", wait=False)
        await shell.say("/background", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, BackgroundScreen))
        tasks = shell.app.screen.choices
        await shell.until(lambda: "Sync: fetching ▰▰▰▰▰▰▱▱" in text_of(tasks))
        await shell.press("x")
        await shell.until(sync.stopped)
        sync.door.open()
        await shell.until(lambda: "Nothing runs" in text_of(tasks))
        await shell.press("escape")
        await shell.until(lambda: "The sync was stopped." in shell.text)


async def test_escape_says_how_to_stop_a_sync_and_the_second_one_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = _LongSync()
    async with running(tmp_path / "notes") as shell:
        monkeypatch.setattr(shell.app.kb.syncing, "run", sync)
        await shell.press("escape")  # meant for nothing yet
        await shell.say("/sync", wait=False)
        await shell.until(lambda: shell.chat.syncing.running)
        await shell.press("escape")
        await shell.notified("Esc again stops the sync.")
        assert not sync.stopped()
        await shell.press("escape")
        await shell.until(sync.stopped)
        sync.door.open()
        await shell.until(lambda: "The sync was stopped." in shell.text)


async def test_leaving_stops_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = _LongSync()
    async with running(tmp_path / "notes") as shell:
        monkeypatch.setattr(shell.app.kb.syncing, "run", sync)
        await shell.say("/sync", wait=False)
        await shell.until(lambda: shell.chat.syncing.text)
        assert not sync.stopped()
        shell.app.exit()
        await shell.until(sync.stopped)
        sync.door.open()
