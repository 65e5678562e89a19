"""Colours: ours can be read, a person's own are taken, bad ones are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.color import Color as RichColor, ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from kbtui.errors import ConfigurationError
from kbtui.presentation.notes import KINDS, OTHER
from kbtui.tui.terminal.themes import (
    DEFAULT_THEME,
    bundled_folder,
    cache_theme,
    load_themes,
    parse_theme,
    save_theme,
    startup_theme,
)
from kbtui.tui.widgets.kinds import PALETTE, kind_colour

if TYPE_CHECKING:
    from pathlib import Path

OURS = load_themes([bundled_folder()])
TEXT = ("foreground", "primary", "secondary", "accent", "success", "warning", "error")
AA = 4.5


def _luminance(color: Color) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [value / 255 for value in (color.r, color.g, color.b)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    low, high = sorted((_luminance(Color.parse(one)), _luminance(Color.parse(other))))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_says() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_there_are_six_of_ours_light_and_dark_and_all_are_right() -> None:
    assert OURS.problems == ()
    assert len(OURS.themes) >= 6
    assert {theme.dark for theme in OURS.themes.values()} == {True, False}
    assert {DEFAULT_THEME, "kbtui-light", "kbtui-contrast"} <= set(OURS.themes)


@pytest.mark.parametrize("name", OURS.themes)
def test_text_can_be_read_on_every_ground(name: str) -> None:
    theme = OURS.themes[name]
    colors = theme.to_color_system().generate()
    pairs = [(text, ground) for text in TEXT for ground in ("background", "surface", "panel")]
    pairs += [("text-muted", ground) for ground in ("background", "surface", "panel")]
    pairs += [("link-color", "background"), ("foreground-muted", "background")]
    pairs += [
        ("block-cursor-foreground", "block-cursor-background"),
        ("block-cursor-blurred-foreground", "block-cursor-blurred-background"),
        ("input-cursor-foreground", "input-cursor-background"),
    ]
    poor = {pair: contrast(colors[pair[0]], colors[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < AA} == {}


@pytest.mark.parametrize("name", OURS.themes)
def test_the_signs_of_all_kinds_can_be_read_and_told_apart(name: str) -> None:
    theme = OURS.themes[name]
    colors = theme.to_color_system().generate()
    kinds = {kind.name: kind_colour(theme, kind.name) for kind in (*KINDS.values(), OTHER)}
    poor = {
        kind: min(contrast(color, colors[ground]) for ground in ("background", "surface"))
        for kind, color in kinds.items()
    }
    assert {kind: ratio for kind, ratio in poor.items() if ratio < AA} == {}
    assert len(set(kinds.values())) == len(kinds)


@pytest.mark.parametrize("name", OURS.themes)
def test_the_signs_of_kinds_keep_their_colours_on_the_selected_row(name: str) -> None:
    theme = OURS.themes[name]
    colors = theme.to_color_system().generate()
    background, primary = Color.parse(colors["background"]), Color.parse(colors["primary"])
    ground = background.blend(primary, 0.22).hex  # as `rows--cursor`
    kinds = {kind.name: kind_colour(theme, kind.name) for kind in (*KINDS.values(), OTHER)}
    poor = {kind: contrast(color, ground) for kind, color in kinds.items()}
    # WCAG 2.2, contrast of graphical objects
    assert {kind: ratio for kind, ratio in poor.items() if ratio < 3} == {}


@pytest.mark.parametrize("name", OURS.themes)
def test_what_is_to_be_done_and_the_days_with_a_page_can_be_read(name: str) -> None:
    colors = OURS.themes[name].to_color_system().generate()
    assert contrast(colors["background"], colors["accent"]) >= AA
    lit = Color.parse(colors["background"]).blend(Color.parse(colors["accent"]), 0.2).hex
    assert contrast(colors["text-accent"], lit) >= AA


@pytest.mark.parametrize("name", OURS.themes)
def test_the_frame_of_what_has_the_focus_has_the_colour_of_the_theme(name: str) -> None:
    theme = OURS.themes[name]
    assert theme.variables["border"] == theme.primary


def test_the_high_contrast_theme_is_worth_its_name() -> None:
    colors = OURS.themes["kbtui-contrast"].to_color_system().generate()
    assert contrast(colors["foreground"], colors["background"]) >= 15
    assert contrast(colors["text-muted"], colors["background"]) >= 7


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name: [", "not YAML"),
        ("- a\n- b", "field: value"),
        ("name: Mine!\nprimary: red", "`name`"),
        ("name: mine", "`primary` is missing"),
        ("name: mine\nprimary: reddish", "`primary` is not a colour"),
        ("name: mine\nprimary: red\ncolour: blue", "no field `colour`"),
        ("name: mine\nprimary: red\ndark: maybe", "`dark`"),
        ("name: mine\nprimary: red\ntext_alpha: 7", "`text_alpha`"),
        ("name: mine\nprimary: red\nvariables:\n  bordr: red", "no variable `bordr`"),
        ("name: mine\nprimary: red\nvariables:\n  border: reddish", "`border`"),
        ("name: mine\nprimary: red\nvariables:\n  link-style: wobbly", "`link-style`"),
        ("name: mine\nprimary: red\nvariables: nothing", "`variables`"),
        ("&a [*a, *a]", "field: value"),
    ],
)
def test_a_bad_theme_says_what_is_wrong(text: str, part: str) -> None:
    with pytest.raises(ConfigurationError, match=part):
        parse_theme(text)


def test_a_persons_theme_replaces_ours_and_a_bad_one_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: paper\nprimary: '#112233'\n")
    (tmp_path / "broken.yaml").write_text("name: [")
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe\x00")
    loaded = load_themes([bundled_folder(), tmp_path])
    assert loaded.themes["paper"].primary == "#112233"
    assert len(loaded.themes) == len(OURS.themes)
    assert [problem.partition(":")[0] for problem in loaded.problems] == [
        "binary.yml",
        "broken.yaml",
    ]


def test_the_first_frame_has_the_theme_shown_last() -> None:
    assert startup_theme() == OURS.themes[DEFAULT_THEME]
    cache_theme(OURS.themes["paper"])
    assert startup_theme().name == "paper"
    assert startup_theme().variables == OURS.themes["paper"].variables


@pytest.mark.parametrize("stored", ["{", "[]", '{"name": "x"}', '{"colors": {}, "name": "x"}'])
def test_a_damaged_memory_of_it_gives_the_default(stored: str) -> None:
    cache_theme(OURS.themes["paper"])
    from kbtui.tui.terminal.state import state_folder

    (state_folder() / "theme.json").write_text(stored)
    assert startup_theme().name == DEFAULT_THEME


def test_a_theme_of_textuals_own_is_remembered_too() -> None:
    cache_theme(BUILTIN_THEMES["nord"])
    assert startup_theme() == BUILTIN_THEMES["nord"]


def test_choosing_a_theme_keeps_the_rest_of_the_settings() -> None:
    from kbtui.settings import config_folder, load_settings

    file = config_folder() / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("# mine\n[search]\nsemantic = false # slow machine\n")
    save_theme(OURS.themes["moss"])
    assert load_settings().ui.theme == "moss"
    assert "# slow machine" in file.read_text()
    file.write_text("not toml [")
    with pytest.raises(ConfigurationError, match=r"config\.toml"):
        save_theme(OURS.themes["paper"])
    assert file.read_text() == "not toml ["


@pytest.mark.parametrize("name", ["textual-dark", "textual-light"])
def test_each_kind_has_a_colour_of_its_own_with_16_colours(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PALETTE, "few_colors", True)
    shown = {
        RichColor.parse(kind_colour(BUILTIN_THEMES[name], kind.name))
        .downgrade(ColorSystem.STANDARD)
        .number
        for kind in (*KINDS.values(), OTHER)
    }
    assert len(shown) == len(KINDS) + 1
