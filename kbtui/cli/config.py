"""Settings: where they are, what they are, changing them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import Place, json_option, pass_place, setting_names
from kbtui.cli.output import note, say, say_json, say_line, say_styled, to_terminal
from kbtui.errors import ConfigurationError, KbtuiError, NotFoundError, WorkspaceError

if TYPE_CHECKING:
    from kbtui.settings import Settings

_HIDDEN = "(hidden)"


@click.group()
def config() -> None:
    """Show and change settings."""


@config.command()
def path() -> None:
    """Show where the user's settings are kept."""
    from kbtui.settings import config_file

    say(str(config_file()))


@config.command("list")
@json_option
@pass_place
def list_settings(place: Place, as_json: bool) -> None:
    """List all settings with the values in force."""
    from kbtui.settings import describe_settings

    settings = _settings(place)
    rows = [(name, _value(settings, name), text) for name, text in describe_settings()]
    if as_json:
        say_json({name: value for name, value, _text in rows})
        return
    for name, value, text in rows:
        shown = "" if value is None else _toml(value)
        about = f"  # {text}" if text and to_terminal() else ""
        say_line(say_styled(name, fg="cyan"), " = ", say_styled(shown), say_styled(about, dim=True))


@config.command()
@click.argument("name", shell_complete=setting_names)
@json_option
@pass_place
def get(place: Place, name: str, as_json: bool) -> int:
    """Show the value of one setting; exits with 1 if it has none."""
    value = _value(_settings(place), name)
    if as_json:
        say_json(value)
    elif value is not None:
        say(value if isinstance(value, str) else _toml(value))
    return 1 if value is None else 0


@config.command("set")
@click.argument("name", shell_complete=setting_names)
@click.argument("value")
@pass_place
def set_value(place: Place, name: str, value: str) -> None:
    """Change a setting in the user's file.

    Lists and tables are written as in TOML: ["a", "b"].
    """
    _check_name(name)
    _write(name, _checked(name, value))
    say(f"{name} = {_shown_value(name, value)}")
    _warn_if_hidden(place, name)


@config.command()
@click.argument("name", shell_complete=setting_names)
def unset(name: str) -> None:
    """Take a setting out of the user's file."""
    _check_name(name)
    _write(name, None)


@config.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@pass_place
def import_settings(place: Place, file: Path) -> int:
    """Take over the memory settings of a nanobot config.json."""
    from kbtui.importers.sources.nanobot_workspace import read_nanobot_settings

    try:
        found = read_nanobot_settings(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} can't be read: {error}.") from error
    texts = {name: _text(value) for name, value in found.values.items()}
    checked = {name: _checked(name, text) for name, text in texts.items()}
    for name, value in checked.items():
        _write(name, value)
        say(f"{name} = {_shown_value(name, texts[name])}")
        _warn_if_hidden(place, name)
    for text in found.notes:
        note(f"kbtui: {text}")
    for key in found.unknown:
        note(f"kbtui: {key} is not taken over.")
    return 0 if checked else 1


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings(place: Place) -> Settings:
    """Read the settings in force; without a workspace, those of the user."""
    from kbtui.settings import load_settings
    from kbtui.workspace.opening import find_workspace

    try:
        return load_settings(find_workspace(place.named))
    except WorkspaceError:
        if place.named is not None:
            raise
        return load_settings(None)


def _value(settings: Settings, name: str) -> Any:
    """Look up ``section.name``; keys are never shown."""
    value: Any = settings
    for part in name.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        else:
            fields = type(value).model_fields if hasattr(type(value), "model_fields") else {}
            attribute = next(
                (key for key, field in fields.items() if (field.alias or key) == part), ""
            )
            if not attribute:
                raise _unknown(name)
            value = getattr(value, attribute)
    if hasattr(value, "get_secret_value"):
        return _HIDDEN
    if hasattr(value, "model_dump"):
        raise _unknown(name)
    return list(value) if isinstance(value, tuple) else value


def _unknown(name: str) -> NotFoundError:
    from rapidfuzz import process

    from kbtui import settings

    near = process.extractOne(name, settings.setting_names(), score_cutoff=60)
    hint = f"Did you mean `{near[0]}`?" if near else "`kbtui config list` shows all settings."
    return NotFoundError(f"There is no setting `{name}`.", hint)


def _check_name(name: str) -> None:
    from kbtui import settings

    known = settings.setting_names()
    if name not in known and not any(
        name.startswith(f"{parent}.") and parent == "ui.keys" for parent in known
    ):
        raise _unknown(name)


def _checked(name: str, text: str) -> Any:
    """Read a value as its setting wants it, with all checks of the settings."""
    from kbtui.settings import load_settings

    nested: dict[str, Any] = {}
    inner = nested
    *parents, last = name.split(".")
    for part in parents:
        inner = inner.setdefault(part, {})
    inner[last] = _typed(text)
    checked = load_settings(None, environment={}, overrides=nested)
    value = _value(checked, name)
    return text if value == _HIDDEN else value


def _typed(text: str) -> Any:
    if text[:1] not in {"[", "{"}:
        return text
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"{text!r} is not valid TOML: {error}.", 'A list is written ["a", "b"].'
        ) from error


def _write(name: str, value: Any) -> None:
    import tomlkit

    from kbtui.settings import changed_config

    *parents, last = name.split(".")
    with changed_config() as table:
        for part in parents:
            if value is None and part not in table:
                return
            table = table.setdefault(part, tomlkit.table())  # noqa: PLW2901
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value


def _warn_if_hidden(place: Place, name: str) -> None:
    """Say so when another source overrides what was just set."""
    try:
        in_force = _value(_settings(place), name)
        mine = _checked_in_file(name)
    except KbtuiError:
        return
    if in_force not in {_HIDDEN, mine} if isinstance(mine, str) else in_force != mine:
        note(f"kbtui: The environment or the workspace's kbtui.toml sets {name} to {in_force!r}.")


def _checked_in_file(name: str) -> Any:
    from kbtui.settings import load_settings

    return _value(load_settings(None, environment={}), name)


def _shown_value(name: str, value: str) -> str:
    return _HIDDEN if name.endswith("api_key") else value


def _toml(value: Any) -> str:
    import tomlkit

    return value if isinstance(value, str) else tomlkit.item(value).as_string()
