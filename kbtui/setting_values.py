"""Reads, explains and changes individual settings."""

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
    hint_at,
    load_settings,
    setting_names,
)

HIDDEN = "(hidden)"
_TABLES = ("ui.keys", "search.decay_days")
"""Settings that are tables: the rest of a name is one key, dots included."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as shown to the user.

    Attributes:
        name: Its full name, ``section.name``.
        about: A description.
        value: The current value; an API key is `HIDDEN`.
        default: The default value.
        source: The file or variable that sets the value; empty for the default.
        choices: The allowed values, if they are enumerable.
        title: A short label.
        section: The label of its section.
        role: The label of the role whose model it is about, or "".
        unset: What is used while a role's model isn't set.
    """

    name: str
    about: str
    value: Any
    default: Any
    source: str
    choices: tuple[Any, ...] = ()
    title: str = ""
    section: str = ""
    role: str = ""
    unset: str = ""

    @property
    def is_model(self) -> bool:
        """Whether it is the model of a role."""
        return bool(self.role) and self.name.endswith(".model")


def all_settings(workspace: Path | None, settings: Settings | None = None) -> list[Setting]:
    """Return all settings with their values and sources, in the order of their definition.

    Args:
        workspace: The workspace whose ``kbtui.toml`` is read as well.
        settings: The values to show if the files are invalid.

    Raises:
        ConfigurationError: A file is invalid, and no `settings` are given.
    """
    in_force = settings or load_settings(workspace)
    sources = {} if settings is not None else _sources(workspace)
    defaults = Settings()
    found = []
    for name, field, (section, *roles) in described_fields():
        role = roles[0] if roles else None
        about = role.description if role is not None and name.endswith(".model") else ""
        extra = role.json_schema_extra if role is not None else None
        found.append(
            Setting(
                name,
                about or field.description or "",
                value_of(in_force, name),
                value_of(defaults, name),
                sources.get(name, ""),
                _choices(field.annotation),
                field.title or "",
                section.title or name.partition(".")[0].capitalize(),
                (role.title or "") if role is not None else "",
                str(extra.get("unset", "")) if isinstance(extra, dict) else "",
            )
        )
    return found


def _choices(annotation: Any) -> tuple[Any, ...]:
    if annotation is bool:
        return (True, False)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _sources(workspace: Path | None) -> dict[str, str]:
    """Return the source of each setting that isn't the default."""
    found: dict[str, str] = {}
    for source, values in given_values(workspace, os.environ):
        found |= {name: source for name in setting_names() if _contains(values, name)}
    return found


def _contains(values: Mapping[str, Any], name: str) -> bool:
    inner: Any = values
    for part in name.split("."):
        if not isinstance(inner, dict) or part not in inner:
            return False
        inner = inner[part]
    return True


def _attribute_named(section: Any, name: str) -> str:
    """Return the attribute of a section that holds a setting; empty if there is none."""
    fields = getattr(type(section), "model_fields", {})
    return next((key for key, field in fields.items() if (field.alias or key) == name), "")


def value_of(settings: Settings, name: str) -> Any:
    """Return the value of ``section.name``, with API keys hidden.

    Raises:
        NotFoundError: There is no such setting.
    """
    value: Any = settings
    for part in split_name(name):
        if isinstance(value, dict):
            value = value.get(part)
        elif attribute := _attribute_named(value, part):
            value = getattr(value, attribute)
        else:
            raise unknown_setting(name)
    if isinstance(value, SecretStr):
        return HIDDEN
    if hasattr(value, "model_dump"):
        raise unknown_setting(name)
    return list(value) if isinstance(value, tuple) else value


def split_name(name: str) -> list[str]:
    """Split a setting's name into the tables that contain it and its key."""
    for table in _TABLES:
        if name.startswith(f"{table}."):
            return [*table.split("."), name.removeprefix(f"{table}.")]
    return name.split(".")


def unknown_setting(name: str) -> NotFoundError:
    """Return the error for an unknown setting, with the most similar name as a hint."""
    return NotFoundError(f"There is no setting `{name}`.", hint_at(name, setting_names()))


def check_name(name: str) -> None:
    """Validate a setting's name.

    Raises:
        NotFoundError: There is no such setting.
    """
    if name not in setting_names() and not any(name.startswith(f"{each}.") for each in _TABLES):
        raise unknown_setting(name)


def parse_value(name: str, text: str) -> Any:
    """Parse and validate the text of a setting's value.

    Raises:
        ConfigurationError: The value is invalid, or the user's file is.
    """
    nested: dict[str, Any] = {}
    inner = nested
    *parents, last = split_name(name)
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
    """Set a value in the user's file, or remove it if None, preserving the rest of the file.

    Raises:
        ConfigurationError: The file isn't TOML; it is left unchanged.
        StorageError: The file can't be read or written.
    """
    import tomlkit

    *parents, last = split_name(name)
    with changed_config() as table:
        for part in parents:
            if value is None and part not in table:
                return
            table = table.setdefault(part, tomlkit.table())  # noqa: PLW2901
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value


def to_toml(value: Any) -> str:
    """Format a value as TOML; a string without quotes."""
    import tomlkit

    return value if isinstance(value, str) else tomlkit.item(value).as_string()
