"""Writes the chosen model into the user's own settings, leaving everything else as it is."""

from __future__ import annotations

import os

import tomlkit
import tomlkit.exceptions

from kbtui.errors import ConfigurationError, StorageError
from kbtui.settings import config_folder


def remember_model(name: str, api_base: str | None) -> None:
    """Set ``models.chat.model`` and ``api_base`` in config.toml; comments and order stay.

    A key that stands there for another endpoint is removed, so that it isn't sent to this one.

    Raises:
        ConfigurationError: the file isn't TOML; it is left as it is.
        StorageError: it can't be written.
    """
    file = config_folder() / "config.toml"
    try:
        document = tomlkit.parse(file.read_text("utf-8")) if file.exists() else tomlkit.document()
        models = document.setdefault("models", tomlkit.table(is_super_table=True))
        chat = models.setdefault("chat", tomlkit.table())
        if chat.get("api_base") != api_base:
            chat.pop("api_key", None)
        chat["model"] = name
        if api_base:
            chat["api_base"] = api_base
        else:
            chat.pop("api_base", None)
    except (
        tomlkit.exceptions.TOMLKitError,
        UnicodeDecodeError,
        AttributeError,
        TypeError,
    ) as error:
        raise ConfigurationError(
            f"{file} can't be changed: {error}.", "Correct it, then choose the model again."
        ) from None
    except OSError as error:
        raise StorageError(f"Can't read {file}: {error.strerror}.") from error
    scratch = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(tomlkit.dumps(document))
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(file)
    except OSError as error:
        raise StorageError(f"Can't write {file}: {error.strerror}.") from error
