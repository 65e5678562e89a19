"""``/sync`` in the app: it runs beside the chat, says what came of it, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.knowledge_base import KnowledgeBase
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path

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
            assert "One line there." in (proposal.edits[0].text or "")


async def test_a_sync_that_fails_says_why(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        await shell.say("/sync", wait=False)
        await shell.until(lambda: "place to sync" in shell.text)
        await shell.say("/sync git://127.0.0.1:1/x", wait=False)
        await shell.until(lambda: "refused" in shell.text)
        await shell.say("/sync stop", wait=False)
        await shell.until(lambda: "No sync" in shell.text)
