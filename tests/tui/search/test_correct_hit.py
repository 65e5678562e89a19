"""What a hit says is put right in every place that repeats it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.tui.messages import OpenSearch
from kbtui.tui.search.search import SearchScreen
from tests.tui.diff.test_correct import MEMORY, asked, text, write
from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path


async def test_ctrl_r_corrects_what_a_hit_says(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell)
        shell.app.kb.search.sync()
        shell.app.main.post_message(OpenSearch("rent of the flat in Mainz"))
        await shell.until(lambda: isinstance(shell.app.screen, SearchScreen))
        search = shell.app.screen
        await shell.until(lambda: search.hits.hit is not None and search.answered)
        await shell.press("ctrl+r")
        await asked(shell)
        await shell.press("enter")
        await shell.until(lambda: shell.app.screen is search)
        assert "910" in text(tmp_path, MEMORY)
