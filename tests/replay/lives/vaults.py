"""Lives in other people's folders of notes, used in place: renames, edits and undo."""

from __future__ import annotations

from tests.replay.lives.life import life
from tests.replay.stage import Machine, Stage


def _in(stage: Stage, vault: str) -> Machine:
    desk = stage.machine("desk")
    desk.take(stage.data("vaults", vault))
    desk.kbtui("list", "--json")
    return desk


def _rename_and_take_back(desk: Machine, names: dict[str, str]) -> None:
    for old, new in names.items():
        desk.kbtui("links", old, "--json")
        desk.kbtui("rename", old, new, "--json")
    for _ in names:
        desk.kbtui("undo", "--json")


@life
def renames_in_foam(stage: Stage) -> None:
    """Foam's handbook: notes with links in every form are renamed, moved, and taken back."""
    desk = _in(stage, "foam")
    _rename_and_take_back(
        desk,
        {
            "wikilinks": "Links between notes",
            "user/features/daily-notes": "user/Notes of the day",
            "backlinking": "backlinks",
            "contribution-guide": "How to contribute",
            "principles": "Principles & aims",
        },
    )
    desk.append("user/features/tags.md", "\nAdded by hand, see [[wikilinks]].\n")
    desk.kbtui("rename", "wikilinks", "Wiki links")
    desk.kbtui("why", "user/features/tags:1")
    desk.ask("What is Foam for?")
    desk.kbtui("delete", "user/features/templates", "--json")
    desk.kbtui("undo")


@life
def renames_in_obsidian_help(stage: Stage) -> None:
    """Obsidian's own help: renames, a folder moved by hand, a note deleted and brought back."""
    desk = _in(stage, "obsidian-help-en")
    _rename_and_take_back(
        desk,
        {
            "Internal links": "Links inside",
            "Plugins/Daily notes": "Notes of days",
            "Callouts": "Editing and formatting/Call-outs",
            "Create a vault": "Make a vault",
        },
    )
    desk.move("Obsidian Sync", "Syncing")
    desk.kbtui("list", "--json")
    desk.kbtui("delete", "Callouts", "--json")
    desk.ask("How do I embed a file?")
    desk.kbtui("undo")
    desk.kbtui("new", "topic", "My own page", "--body", "See [[Internal links]].")


@life
def renames_in_kepano(stage: Stage) -> None:
    """A vault with categories in its properties: what links by property follows a rename."""
    desk = _in(stage, "kepano-obsidian")
    names = [each["title"] for each in desk.json("list")]
    picked = [name for name in names if names.count(name) == 1][::25]
    _rename_and_take_back(desk, {name: f"{name} renamed" for name in picked})
    desk.kbtui("links", "Readme", "--json")
    desk.kbtui("check", "--json", status=(0, 1))
    desk.ask("Remember that I read one book a week")
    desk.ask("The vault came from Steph")


@life
def odd_properties(stage: Stage) -> None:
    """Properties as other programs write them, broken ones too: read, edited and renamed."""
    desk = _in(stage, "odd-frontmatter")
    paths = [each["path"] for each in desk.json("list")]
    for path in paths[::40]:
        name = path.removesuffix(".md")
        desk.kbtui("rename", name, f"{name.rpartition('/')[2]} again", "--json", status=range(6))
    for path in paths[7::60]:
        desk.kbtui("edit", path, status=range(6), **desk.edits_with('echo "One more." >> "$1"'))
    desk.kbtui("check", "--json", status=(0, 1))
    for _ in range(3):
        desk.kbtui("undo", "--json", status=range(6))


@life
def renames_in_a_garden(stage: Stage) -> None:
    """A digital garden of hundreds of notes: those that most others link to are renamed and edited."""
    desk = _in(stage, "jackyzha0-site")
    _rename_and_take_back(
        desk,
        {
            "content/posts/digital-gardening": "Tending a garden",
            "content/thoughts/trust": "content/thoughts/On trust",
            "content/thoughts/attention economy": "Economy of attention",
        },
    )
    desk.ask("What is a digital garden?")
    desk.kbtui("delete", "content/thoughts/trust", "--json")
    desk.kbtui("undo", "--json")
