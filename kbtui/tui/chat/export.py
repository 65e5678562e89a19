"""A session as a Markdown file that any editor opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import StorageError, UsageError
from kbtui.text import clean, clean_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.sessions.store import Session, SessionMessage

_NAMES = {"user": "You", "assistant": "kbtui"}


def free_file(wanted: str, name: str) -> Path:
    """Where to export to: the file that was named, else a new one in the current folder.

    Raises:
        UsageError: the named file is there already; nothing is ever overwritten.
    """
    if wanted:
        file = Path(wanted).expanduser()
        file = file / f"{name}.md" if file.is_dir() else file
        if file.exists():
            raise UsageError(f"{file} exists already.", "Name another file: /export <file>")
        return file.absolute()
    candidates = (Path.cwd() / f"{name}{suffix}.md" for suffix in ("", *range(2, 1000)))
    return next(file for file in candidates if not file.exists())


def session_markdown(session: Session, file: Path) -> Path:
    """Write what was said, without what the tools said.

    Raises:
        StorageError: the file can't be written.
    """
    text = "\n".join(_lines(session))
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise StorageError(
            f"{file} can't be written: {error.strerror}.", "Name another place: /export <file>"
        ) from None
    return file


def _lines(session: Session) -> Iterator[str]:
    yield f"# {clean_line(session.title)}\n"
    for message in session.messages:
        name = _NAMES.get(message.role)
        if name and message.content.strip():
            yield f"## {name}, {message.time.astimezone():%Y-%m-%d %H:%M}\n"
            yield f"{clean(message.content).strip()}\n"
            yield from _sources(message)


def _sources(message: SessionMessage) -> Iterator[str]:
    cited = [
        f"[{each['n']}] {each['path']}:{each['lines'][0]}  "
        for each in message.meta.get("citations", ())
    ]
    if cited:
        yield "\n".join([*cited, ""])
