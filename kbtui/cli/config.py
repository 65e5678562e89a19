"""`kbtui config`: show and change settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place, setting_names
from kbtui.cli.output import note, say, say_json, say_line, say_styled, to_terminal
from kbtui.errors import ConfigurationError, KbtuiError, WorkspaceError

if TYPE_CHECKING:
    from kbtui.settings import Settings


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
def list_settings(place: WorkspaceOption, as_json: bool) -> None:
    """List all settings with the values in force."""
    from kbtui.setting_values import to_toml, value_of
    from kbtui.settings import describe_settings

    settings = _settings(place)
    rows = [(name, value_of(settings, name), text) for name, text in describe_settings()]
    if as_json:
        say_json({name: value for name, value, _text in rows})
        return
    for name, value, text in rows:
        shown = "" if value is None else to_toml(value)
        about = f"  # {text}" if text and to_terminal() else ""
        say_line(say_styled(name, fg="cyan"), " = ", say_styled(shown), say_styled(about, dim=True))


@config.command()
@click.argument("name", shell_complete=setting_names)
@json_option
@pass_place
def get(place: WorkspaceOption, name: str, as_json: bool) -> int:
    """Show the value of one setting; exits with 1 if it has none."""
    from kbtui.setting_values import to_toml, value_of

    value = value_of(_settings(place), name)
    if as_json:
        say_json(value)
    elif value is not None:
        say(value if isinstance(value, str) else to_toml(value))
    return 1 if value is None else 0


@config.command("set")
@click.argument("name", shell_complete=setting_names)
@click.argument("value")
@pass_place
def set_value(place: WorkspaceOption, name: str, value: str) -> None:
    """Change a setting in the user's file.

    Lists and tables are written as in TOML: ["a", "b"].
    """
    from kbtui.setting_values import check_name, parse_value, write_setting

    check_name(name)
    write_setting(name, parse_value(name, value))
    say(f"{name} = {_shown_value(name, value)}")
    warn_if_hidden(place, name)


@config.command()
@click.argument("name", shell_complete=setting_names)
def unset(name: str) -> None:
    """Take a setting out of the user's file."""
    from kbtui.setting_values import check_name, write_setting

    check_name(name)
    write_setting(name, None)


@config.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@pass_place
def import_settings(place: WorkspaceOption, file: Path) -> int:
    """Take over the memory settings of a nanobot config.json."""
    from kbtui.importers.sources.nanobot_workspace import read_nanobot_settings
    from kbtui.setting_values import parse_value, write_setting

    try:
        found = read_nanobot_settings(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} can't be read: {error}.") from error
    texts = {name: _text(value) for name, value in found.values.items()}
    values = {name: parse_value(name, text) for name, text in texts.items()}
    for name, value in values.items():
        write_setting(name, value)
        say(f"{name} = {_shown_value(name, texts[name])}")
        warn_if_hidden(place, name)
    for text in found.notes:
        note(f"kbtui: {text}")
    for key in found.unknown:
        note(f"kbtui: {key} is not taken over.")
    return 0 if values else 1


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings(place: WorkspaceOption) -> Settings:
    """Load the effective settings, or the user's if there is no workspace."""
    from kbtui.settings import load_settings
    from kbtui.workspace.opening import find_workspace

    try:
        return load_settings(find_workspace(place.named))
    except WorkspaceError:
        if place.named is not None:
            raise
        return load_settings(None)


def warn_if_hidden(place: WorkspaceOption, name: str) -> None:
    """Warn if another source overrides the value that was just set."""
    from kbtui.setting_values import HIDDEN, value_of

    try:
        in_force = value_of(_settings(place), name)
        from_file = _value_in_file(name)
    except KbtuiError:
        return
    if in_force not in {HIDDEN, from_file} if isinstance(from_file, str) else in_force != from_file:
        note(f"kbtui: The environment or the workspace's kbtui.toml sets {name} to {in_force!r}.")


def _value_in_file(name: str) -> Any:
    from kbtui.setting_values import value_of
    from kbtui.settings import load_settings

    return value_of(load_settings(None, environment={}), name)


def _shown_value(name: str, value: str) -> str:
    from kbtui.setting_values import HIDDEN

    return HIDDEN if name.endswith("api_key") else value
