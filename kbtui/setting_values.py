"""One setting at a time: its value, where that comes from, and changing it in the user's file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr

from kbtui.errors import ConfigurationError, NotFoundError
from kbtui.settings import (
    Settings,
    changed_config,
    described_fields,
    given_values,
    load_settings,
    setting_names,
)

HIDDEN = "(hidden)"
_TABLES = ("ui.keys", "search.decay_days")
"""Settings that are tables: what follows their name is one name, whatever dots it has."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as a person sees it.

    Attributes:
        name: As in ``section.name``.
        about: What it means.
        value: What is in force; a key is `HIDDEN`.
        default: What is in force where nobody says anything.
        source: Where the value comes from: a file, a variable; empty for the default.
        choices: What it may be, where that is a list.
        title: What it is called, in a few words.
    """

    name: str
    about: str
    value: Any
    default: Any
    source: str
    choices: tuple[Any, ...] = ()
    title: str = ""


def all_settings(workspace: Path | None, settings: Settings | None = None) -> list[Setting]:
    """Every setting with its value and its source, in the order of the code.

    Args:
        workspace: Whose own file counts as well.
        settings: Values in place of those of the files, where these are wrong.

    Raises:
        ConfigurationError: A file is wrong, and no `settings` are given.
    """
    in_force = settings or load_settings(workspace)
    sources = {} if settings is not None else _sources(workspace)
    defaults = Settings()
    return [
        Setting(
            name,
            field.description or "",
            value_of(in_force, name),
            value_of(defaults, name),
            sources.get(name, ""),
            _choices(field.annotation),
            field.title or "",
        )
        for name, field in described_fields()
    ]


def _choices(annotation: Any) -> tuple[Any, ...]:
    if annotation is bool:
        return (True, False)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _sources(workspace: Path | None) -> dict[str, str]:
    """Which source gives each setting that isn't the default; later ones win."""
    found: dict[str, str] = {}
    for source, values in given_values(workspace, os.environ):
        found |= {name: source for name in setting_names() if _is_given(values, name)}
    return found


def _is_given(values: Mapping[str, Any], name: str) -> bool:
    inner: Any = values
    for part in name.split("."):
        if not isinstance(inner, dict) or part not in inner:
            return False
        inner = inner[part]
    return True


def value_of(settings: Settings, name: str) -> Any:
    """The value of ``section.name``; keys are never shown.

    Raises:
        NotFoundError: There is no such setting.
    """
    value: Any = settings
    for part in parts_of(name):
        if isinstance(value, dict):
            value = value.get(part)
        else:
            fields = type(value).model_fields if hasattr(type(value), "model_fields") else {}
            attribute = next(
                (key for key, field in fields.items() if (field.alias or key) == part), ""
            )
            if not attribute:
                raise unknown_setting(name)
            value = getattr(value, attribute)
    if isinstance(value, SecretStr):
        return HIDDEN
    if hasattr(value, "model_dump"):
        raise unknown_setting(name)
    return list(value) if isinstance(value, tuple) else value


def parts_of(name: str) -> list[str]:
    """The tables that lead to a setting, and its own name."""
    for table in _TABLES:
        if name.startswith(f"{table}."):
            return [*table.split("."), name.removeprefix(f"{table}.")]
    return name.split(".")


def unknown_setting(name: str) -> NotFoundError:
    """There is no such setting; names the nearest."""
    from rapidfuzz import process

    near = process.extractOne(name, setting_names(), score_cutoff=60)
    hint = f"Did you mean `{near[0]}`?" if near else "`kbtui config list` shows all settings."
    return NotFoundError(f"There is no setting `{name}`.", hint)


def check_name(name: str) -> None:
    """Make sure that there is a setting of that name.

    Raises:
        NotFoundError: There is none.
    """
    if name not in setting_names() and not any(name.startswith(f"{each}.") for each in _TABLES):
        raise unknown_setting(name)


def checked(name: str, text: str) -> Any:
    """Read a value as its setting wants it, with all checks of the settings.

    Raises:
        ConfigurationError: It can't be that, or the user's file is wrong elsewhere.
    """
    nested: dict[str, Any] = {}
    inner = nested
    *parents, last = parts_of(name)
    for part in parents:
        inner = inner.setdefault(part, {})
    inner[last] = _typed(name, text)
    value = value_of(load_settings(None, environment={}, overrides=nested), name)
    return text if value == HIDDEN else value


def _typed(name: str, text: str) -> Any:
    if text[:1] not in {"[", "{"}:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"{name}: {text!r} is no list or table as TOML has them: {error}.",
            'A list is written ["a", "b"].',
        ) from error


def write_setting(name: str, value: Any) -> None:
    """Put a setting into the user's file, or take it out with None; the rest of it stays.

    Raises:
        ConfigurationError: The file isn't TOML; it is left as it is.
        StorageError: It can't be read or written.
    """
    import tomlkit

    *parents, last = parts_of(name)
    with changed_config() as table:
        for part in parents:
            if value is None and part not in table:
                return
            table = table.setdefault(part, tomlkit.table())  # noqa: PLW2901
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value


def as_toml(value: Any) -> str:
    """A value as it is written in a settings file; a text without its quotes."""
    import tomlkit

    return value if isinstance(value, str) else tomlkit.item(value).as_string()
