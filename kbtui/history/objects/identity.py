"""Who stands as the author of a commit."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from kbtui.history.objects.commit import Actor
from kbtui.text import clean_line

_SECTION = re.compile(r"^\s*\[\s*(?P<name>[^\]\"\s]+)[^\]]*\]")
_VALUE = re.compile(r"^\s*(?P<key>name|email)\s*=\s*(?P<value>.*?)\s*$", re.IGNORECASE)


def author_of(actor: Actor) -> str:
    """``Name <address>`` for an actor; the user's is the one that git knows, else ``You``."""
    if actor is not Actor.YOU:
        return f"kbtui {actor.value} <{actor.value}@kbtui.invalid>"
    return _user(os.environ.get("HOME", ""), os.environ.get("XDG_CONFIG_HOME", ""))


@lru_cache(maxsize=4)
def _user(home: str, config: str) -> str:
    """Read the user's name from git's own files; nothing else of them is ever obeyed."""
    found: dict[str, str] = {}
    folder = Path(config) if config else Path(home) / ".config"
    for file in (folder / "git" / "config", Path(home) / ".gitconfig"):
        found |= _read(file)
    name = re.sub(r"[<>]", "", clean_line(found.get("name", ""))) or "You"
    address = re.sub(r"[<>\s]", "", clean_line(found.get("email", ""))) or "you@kbtui.invalid"
    return f"{name} <{address}>"


def _read(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    section = ""
    for line in lines:
        if match := _SECTION.match(line):
            section = match["name"].lower()
        elif section == "user" and (match := _VALUE.match(line)):
            found[match["key"].lower()] = match["value"].strip('"')
    return found
