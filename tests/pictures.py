"""Takes pictures of every screen: ``python -m tests.pictures OUT_DIR``.

They are SVG files, named by screen, size and theme, of the demo or of the vault that is named.
With ``--readme`` it takes those of the README instead.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.tui import at_rest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.pilot import Pilot

PICTURES = Path(__file__).resolve().parent / "data"
SIZES = ("80x24", "140x42", "220x60")
THEMES = ("kbtui-dark", "kbtui-light", "kbtui-contrast")
README_SIZE = (140, 44)
README = ("chat", "map", "history", "search", "inbox", "memory")
SAID = (
    "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it",
    "why did we choose SQLite for the readings?",
    "when does the allotment association meet?",
)
SCREENS: dict[str, tuple[str, ...]] = {
    "chat": (),
    "notes": ("f3", "down"),
    "note": ("f3", "down", "enter"),
    "edit": ("f3", "down", "enter", "e"),
    "map": ("f5", *"kestrel", "enter", "f3", "g"),
    "tags": ("f3", "t"),
    "today": (*"/today", "enter"),
    "tasks": (*"/tasks", "enter"),
    "keys": ("f3", "question_mark"),
    "delete": ("f3", "down", "d"),
    "history": ("f4",),
    "year": ("f4", "h"),
    "change": ("f4", "enter"),
    "past": ("f4", "T"),
    "open": ("f5", *"the"),
    "inbox": ("f6",),
    "search": ("f7", *"readings"),
    "palette": ("f8",),
    "help": ("f1",),
    "sessions": (*"/sessions", "enter"),
    "memory": (*"/memory", "enter"),
    "settings": (*"/config", "enter"),
    "setting-keys": (*"/config", "enter", "left", "end", "right"),
    "theme": (*"/theme", "enter"),
}
"""What leads to each screen from the prompt, by its name."""


async def take(
    workspace: Path, size: tuple[int, int], screens: Sequence[str], said: Sequence[str] = SAID
) -> dict[str, str]:
    """A picture of each screen by its name, each of them in an app of its own.

    Args:
        workspace: The notes; what is `said` is written into them.
        size: Columns and rows.
        screens: Names of `SCREENS`.
        said: The messages of the conversation.
    """
    from kbtui.tui.app.app import KbtuiApp

    taken: dict[str, str] = {}
    for number, name in enumerate(screens):
        app = KbtuiApp(workspace)
        async with app.run_test(size=size) as pilot:
            await at_rest.until(app, lambda app=app: app.kb is not None and app.main.chat.model)
            if number == 0:
                await _talk(app, pilot, said)
            taken[name] = await _picture(app, pilot, SCREENS[name])
        app.close_knowledge()
    return taken


async def _talk(app: Any, pilot: Pilot[Any], messages: Sequence[str]) -> None:
    for message in messages:
        app.main.chat.prompt.replace_text(message)
        await pilot.press("enter")
        await at_rest.until(app, lambda: app.main.chat.conversation.session is not None)
        await at_rest.until(app, lambda: not app.main.chat.conversation.busy)


async def _picture(app: Any, pilot: Pilot[Any], keys: Sequence[str]) -> str:
    for key in keys:
        await pilot.press(key)
        await at_rest.rest(app)
    return str(app.export_screenshot(title="kbtui"))


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=PICTURES)
    parser.add_argument("--size", action="append", help="such as 140x42; may be given again")
    parser.add_argument("--theme", action="append", help="its name; may be given again")
    parser.add_argument("--screen", action="append", choices=SCREENS, help="only this one")
    parser.add_argument("--vault", type=Path, help="a vault; a copy of it is looked at")
    parser.add_argument("--readme", action="store_true", help="the pictures of the README")
    return parser.parse_args(argv)


def _workspace(home: Path, vault: Path | None) -> Path:
    """A new demo, or a copy of a vault."""
    from kbtui.cli.root import run

    workspace = home / "notes"
    if vault is None:
        run(["init", str(workspace), "--demo"])
    else:
        shutil.copytree(vault, workspace)
    return workspace


def _pictures(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Each picture with the name of its file."""
    if options.readme:
        with tempfile.TemporaryDirectory() as home:
            _settle_in(Path(home), THEMES[0])
            taken = asyncio.run(take(_workspace(Path(home), None), README_SIZE, README))
            yield from taken.items()
        return
    for theme in options.theme or THEMES:
        for size in options.size or SIZES:
            columns, _, rows = size.partition("x")
            with tempfile.TemporaryDirectory() as home:
                _settle_in(Path(home), theme)
                workspace = _workspace(Path(home), options.vault)
                screens = options.screen or tuple(SCREENS)
                taken = asyncio.run(take(workspace, (int(columns), int(rows)), screens))
                yield from ((f"{name}-{size}-{theme}", each) for name, each in taken.items())


def _settle_in(home: Path, theme: str) -> None:
    """Live in a home of its own, without a model, so that nothing of this machine is seen."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "KBTUI_UI"))]:
        del os.environ[name]
    os.environ.update(
        HOME=str(home),
        KBTUI_MODEL="offline",
        KBTUI_SEARCH__SEMANTIC="false",
        KBTUI_UI__THEME=theme,
    )


def main(argv: Sequence[str]) -> int:
    """Take the pictures that are asked for, and say where they are."""
    options = _options(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    with at_rest.jobs_watched():
        for name, picture in _pictures(options):
            file = options.folder / f"{name}.svg"
            file.write_text(picture, "utf-8")
            print(file)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
