"""Takes the README's pictures of the app: ``python -m tests.screenshot``."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PICTURES = Path(__file__).resolve().parent / "data"
SIZE = (132, 38)
TOLD = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"
QUESTION = "why did we choose SQLite for the readings?"
ENTRY = "knowledge/decisions/2026-09-sqlite-for-readings.md"


async def _take(workspace: Path) -> dict[str, str]:
    """Talk, look at the history and search; a picture of each by its name."""
    from kbtui.tui.app.app import KbtuiApp
    from kbtui.tui.messages import OpenEntry

    taken: dict[str, str] = {}
    app = KbtuiApp(workspace)
    async with app.run_test(size=SIZE) as pilot:
        await _until(pilot, lambda: app.kb is not None)
        for message in (TOLD, QUESTION):
            await pilot.press(*message)
            await pilot.press("enter")
            await _until(pilot, lambda: bool(app.main.chat.conversation.session))
            await _until(pilot, lambda: not app.main.chat.conversation.busy)
        app.main.post_message(OpenEntry(ENTRY, 12))
        await _rest(pilot)
        app.main.chat.focus_prompt()
        taken["chat"] = await _picture(app, pilot)
        await pilot.press("f4")
        await _rest(pilot)
        await pilot.press("enter")
        taken["history"] = await _picture(app, pilot)
        await pilot.press("escape", "escape", "f7", *"readings")
        taken["search"] = await _picture(app, pilot)
    return taken


async def _picture(app: Any, pilot: Any) -> str:
    await _rest(pilot)
    return str(app.export_screenshot(title="kbtui"))


async def _rest(pilot: Any, seconds: float = 2.0) -> None:
    for _ in range(int(seconds / 0.05)):
        await pilot.pause(0.05)


async def _until(pilot: Any, condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError
        await pilot.pause(0.05)


def main(argv: list[str]) -> int:
    """Make a demo workspace in a temporary home, use it, and keep the pictures."""
    folder_for_pictures = Path(argv[0]) if argv else PICTURES
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, KBTUI_MODEL="offline", KBTUI_SEARCH__SEMANTIC="false")
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            del os.environ[name]
        from kbtui.cli.root import run

        workspace = Path(folder) / "notes"
        run(["init", str(workspace), "--demo"])
        for name, picture in asyncio.run(_take(workspace)).items():
            file = folder_for_pictures / f"{name}.svg"
            file.write_text(picture, "utf-8")
            print(file)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
