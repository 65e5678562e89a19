"""Takes the README's picture of the app: ``python -m tests.screenshot [FILE.svg]``."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

FILE = Path(__file__).resolve().parent / "data" / "screenshot.svg"
SIZE = (132, 38)
QUESTION = "why did we choose SQLite for the readings?"


async def _take(workspace: Path) -> str:
    from kbtui.tui.app.app import KbtuiApp
    from kbtui.tui.messages import OpenEntry

    app = KbtuiApp(workspace)
    async with app.run_test(size=SIZE) as pilot:
        await _until(pilot, lambda: app.kb is not None)
        await pilot.press(*QUESTION.replace(" ", "~").replace("~", " "))
        await pilot.press("enter")
        await _until(pilot, lambda: bool(app.main.chat.conversation.session))
        await _until(pilot, lambda: not app.main.chat.conversation.busy)
        app.main.post_message(OpenEntry("knowledge/decisions/2026-09-sqlite-for-readings.md", 12))
        for _ in range(40):
            await pilot.pause(0.05)
        app.main.chat.focus_prompt()
        await pilot.pause(0.5)
        return app.export_screenshot(title="kbtui")


async def _until(pilot: object, condition: object, seconds: float = 20) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():  # type: ignore[operator]
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError
        await pilot.pause(0.05)  # type: ignore[attr-defined]


def main(argv: list[str]) -> int:
    """Make a demo workspace in a temporary home, talk to it, and keep the picture."""
    file = Path(argv[0]) if argv else FILE
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, KBTUI_MODEL="offline", KBTUI_SEARCH__SEMANTIC="false")
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            del os.environ[name]
        from kbtui.cli.root import run

        workspace = Path(folder) / "notes"
        run(["init", str(workspace), "--demo"])
        file.write_text(asyncio.run(_take(workspace)), "utf-8")
    print(file)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
