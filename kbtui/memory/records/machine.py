"""The name under which this machine writes into archives that may be shared with others."""

from __future__ import annotations

import platform
import secrets

import platformdirs

from kbtui.text import slugify

_MAX_NAME = 32


def machine_name() -> str:
    """The machine's name: its host name and four digits, made once and kept in the user's state.

    Where the state can't be written the bare host name has to do.
    """
    host = slugify(platform.node().partition(".")[0] or "machine", _MAX_NAME)
    file = platformdirs.user_state_path("kbtui", appauthor=False) / "machine"
    try:
        if name := file.read_text("utf-8").strip():
            return slugify(name, _MAX_NAME + 8)
    except (OSError, UnicodeDecodeError):
        pass
    name = f"{host}-{secrets.token_hex(2)}"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as made:
            made.write(name + "\n")
    except FileExistsError:
        return slugify(file.read_text("utf-8").strip() or host, _MAX_NAME + 8)
    except OSError:
        return host
    return name
