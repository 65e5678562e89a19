"""Colour themes: bundled and user-defined YAML files, loaded as Textual themes.

A theme file holds Textual's theme fields and nothing else::

    name: kbtui-dark
    dark: true
    primary: "#7fc8c2"
    variables:
      border: "#7fc8c2"

Bundled themes are in `themes/`, beside the package in a checkout and inside it when installed. User
themes are in `themes/` of the config directory and override a bundled theme of the same name. The
last theme shown is cached as JSON, so that the first frame needs no YAML parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.design import ColorSystem
from textual.theme import Theme

from kbtui.errors import ConfigurationError
from kbtui.text import clean_line
from kbtui.tui.terminal.state import read_json, state_folder, write_state

DEFAULT_THEME = "kbtui-dark"
_COLORS = (
    "primary",
    "secondary",
    "warning",
    "error",
    "success",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
)
_FIELDS = {"name", "dark", "variables", "luminosity_spread", "text_alpha", *_COLORS}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_COLOR_VALUE = re.compile(r"(?P<color>auto|.*?)(?: +(?P<share>\d{1,3}(?:\.\d+)?%))?")
_STYLES = frozenset({"none", "not", "bold", "dim", "italic", "underline", "reverse", "strike"})
_MAX_BYTES = 64_000
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class LoadedThemes:
    """All valid themes by name, bundled ones first, and the problems of the other files."""

    themes: Mapping[str, Theme]
    problems: tuple[str, ...] = ()


def bundled_folder() -> Path:
    """Return the folder of the bundled themes, in the installed package or in a checkout."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def load_themes(folders: Iterable[Path]) -> LoadedThemes:
    """Load the themes in `folders`; a later folder overrides, bad files become problems."""
    themes: dict[str, Theme] = {}
    problems: list[str] = []
    for folder in folders:
        for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            try:
                theme = parse_theme(_read(file))
            except ConfigurationError as error:
                problems.append(f"{file.name}: {error}")
            else:
                themes[theme.name] = theme
    return LoadedThemes(themes, tuple(problems))


def parse_theme(text: str) -> Theme:
    """Parse a theme file.

    Raises:
        ConfigurationError: Invalid YAML, an unknown or missing field, or an invalid value.
    """
    import yaml

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigurationError(f"this is not YAML ({clean_line(str(error))}).") from None
    if not isinstance(values, dict):
        raise ConfigurationError("a theme is a list of `field: value` lines.")
    return check_theme(values)


def check_theme(values: Mapping[Any, Any]) -> Theme:
    """Validate the fields of a theme and build it.

    Raises:
        ConfigurationError: A field is unknown, missing or invalid.
    """
    unknown = sorted(str(key) for key in values if key not in _FIELDS)
    if unknown:
        raise ConfigurationError(f"there is no field `{clean_line(unknown[0])}`.")
    name = values.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError("`name` must be lower-case letters, digits and hyphens.")
    if not isinstance(values.get("dark", True), bool):
        raise ConfigurationError("`dark` must be true or false.")
    colors: dict[str, Any] = {
        key: _color(key, values[key]) for key in _COLORS if values.get(key) is not None
    }
    if "primary" not in colors:
        raise ConfigurationError("`primary` is missing.")
    return Theme(
        name=name,
        **colors,
        dark=values.get("dark", True),
        variables=_variables(values.get("variables")),
        luminosity_spread=_fraction("luminosity_spread", values.get("luminosity_spread", 0.15)),
        text_alpha=_fraction("text_alpha", values.get("text_alpha", 0.95)),
    )


def startup_theme() -> Theme:
    """Return the theme of the first frame: the last one shown, or the default."""
    if (values := read_json(_cache_file())) is not None:
        try:
            return check_theme(values | values.pop("colors", {}))  # older files
        except (ValueError, TypeError, KeyError, AttributeError, ConfigurationError):
            pass  # a damaged cache: read the theme itself
    return check_theme(_parse_bundled(_read(bundled_folder() / f"{DEFAULT_THEME}.yaml")))


def _parse_bundled(text: str) -> dict[str, Any]:
    """Parse a bundled theme, which has only ``name: value`` lines, without a YAML parser."""
    fields: dict[str, Any] = {}
    for line in filter(None, (line.partition(" #")[0].rstrip() for line in text.splitlines())):
        name, _, value = line.strip().partition(":")
        into = fields["variables"] if line.startswith(" ") else fields
        if not line.startswith("#"):
            into[name] = _BOOLEANS.get(value.strip(), value.strip(' "')) if value else {}
    return fields


def cache_theme(theme: Theme) -> None:
    """Cache a theme, bundled or Textual's own, for the first frame of the next start."""
    import json

    values = {name: value for name, value in asdict(theme).items() if name in _FIELDS}
    write_state(_cache_file(), json.dumps(values))


def save_theme(theme: Theme) -> None:
    """Save the chosen theme to the user's config.toml, preserving its comments and order.

    Raises:
        ConfigurationError: config.toml is not valid TOML; it is left unchanged.
    """
    import tomlkit

    from kbtui.settings import changed_config

    cache_theme(theme)
    try:
        with changed_config() as document:
            document.setdefault("ui", tomlkit.table())["theme"] = theme.name
    except ConfigurationError as error:
        error.hint = "The theme holds until you leave; correct the file to keep it."
        raise


def _cache_file() -> Path:
    return state_folder() / "theme.json"


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ConfigurationError("it is too large for a theme.")
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError("it is not UTF-8 text.") from None
    except OSError as error:
        raise ConfigurationError(f"it can't be read: {error.strerror}.") from None


def _color(key: str, value: object) -> str:
    try:
        Color.parse(str(value))
    except ColorParseError:
        raise ConfigurationError(f"`{key}` is not a colour, such as #7fc8c2.") from None
    return str(value)


def _fraction(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigurationError(f"`{key}` must be a number from 0 to 1.")
    return float(value)


def _variables(values: object) -> dict[str, str]:
    """Reject unknown names and invalid values, which would only fail later in a stylesheet."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigurationError("`variables` must be a list of `name: value` lines.")
    known = ColorSystem(primary="#000000").generate()
    checked = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigurationError(f"there is no variable `{clean_line(str(name))}`.")
        right = _is_style(str(value)) if name.endswith("-style") else _is_color(str(value))
        if not right:
            raise ConfigurationError(f"the value of the variable `{name}` can't be understood.")
        checked[name] = str(value)
    return checked


def _is_style(value: str) -> bool:
    return bool(value.split()) and all(word in _STYLES for word in value.split())


def _is_color(value: str) -> bool:
    """Return whether `value` is a colour, perhaps with an opacity: ``#7fc8c2 28%``."""
    match = _COLOR_VALUE.fullmatch(value.strip())
    if match is None:
        return False
    if match["color"] == "auto":
        return True
    try:
        Color.parse(match["color"])
    except ColorParseError:
        return False
    return True
