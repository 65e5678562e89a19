"""Lives that go back: undo of a part, of an undo, of what changed since, and restores."""

from __future__ import annotations

from tests.replay.lives.life import life
from tests.replay.stage import Stage

_LOG = "knowledge/topics/harbour log.md"


@life
def undo_of_everything(stage: Stage) -> None:
    """Changes are undone in parts, in any order, after later changes, and undone again."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    lines = [f"Berth {n} is let to boat {n}." for n in range(1, 13)]
    desk.write(_LOG, "# Harbour log\n\n" + "\n\n".join(lines) + "\n")
    desk.kbtui("list")
    for n in (2, 6, 11):
        desk.edit(_LOG, f"Berth {n} is let to boat {n}.", f"Berth {n} is empty.")
    desk.kbtui("list")
    changes = desk.json("log", _LOG)
    emptied = changes[0]["commit"]
    desk.kbtui("undo", emptied, "--hunk", "2", "--json")
    desk.edit(_LOG, "Berth 11 is empty.", "Berth 11 is dry.")
    desk.kbtui("list")
    desk.kbtui("undo", emptied, "--json", status=5)
    desk.kbtui("undo", emptied, "--prefer", "now", "--json")
    desk.kbtui("undo", desk.json("log", "-n", "1")[0]["commit"], "--json")
    desk.kbtui("undo", emptied, "--prefer", "before", "--json")
    desk.kbtui("undo", desk.json("log", "-n", "1")[0]["commit"], "--json")
    desk.kbtui("new", "topic", "Tide table", "--body", "High at six.", "--tag", "sea")
    desk.kbtui("rename", "Tide table", "Tides", "--json")
    made = desk.json("log", "-n", "2")
    desk.kbtui("undo", made[1]["commit"], "--json", status=range(6))
    desk.kbtui("undo", made[0]["commit"], "--json", status=range(6))
    desk.kbtui("undo", "--path", _LOG, "--json", status=range(6))
    desk.kbtui("undo", "0000000", status=range(6))
    desk.kbtui("delete", "harbour log", "--json")
    desk.kbtui("undo", "--json")
    desk.kbtui("undo", "--json", status=range(6))
    desk.kbtui("git", "log", "--format=%s", "-n", "3", status=range(256))


@life
def restores(stage: Stage) -> None:
    """One entry, then everything, becomes what it was at a commit, a date, and before a change."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.kbtui("new", "project", "Kite", "--body", "Made of silk.", "--summary", "A kite")
    stage.pass_(days=1)
    desk.edit("knowledge/projects/kite.md", "Made of silk.", "Made of paper.\n\nTail of ribbons.")
    desk.kbtui("new", "person", "Ilse", "--body", "Flies the [[kite]].")
    stage.pass_(days=1)
    desk.kbtui("rename", "kite", "Box kite")
    desk.ask("Remember that the wind comes from the west")
    desk.kbtui("delete", "ilse")
    desk.kbtui("show", "kite", "--at", "2026-03-02", status=(0, 1))
    desk.kbtui("diff", "2026-03-02", status=(0, 1))
    desk.kbtui("restore", "box-kite", "--at", "2026-03-03", "--json", status=range(6))
    desk.kbtui(
        "restore", "knowledge/people/ilse.md", "--at", "HEAD~1", "--dry-run", status=range(6)
    )
    desk.kbtui("restore", "knowledge/people/ilse.md", "--at", "HEAD~1", "--json", status=range(6))
    renamed = next(each for each in desk.json("log") if "rename" in each["reason"].lower())
    desk.kbtui("restore", "--to-before", renamed["commit"], "--dry-run")
    desk.kbtui("restore", "--to-before", renamed["commit"], "--json")
    desk.kbtui("undo", "--json")
    desk.kbtui("search", "--json", "silk", "--at", "2026-03-02")
    desk.kbtui("list", "--json", "--at", "HEAD~3")
    desk.kbtui("why", "box-kite", "--json", status=range(6))


@life
def the_demo(stage: Stage) -> None:
    """The example with a month of history: looked at, asked, changed and exported."""
    desk = stage.machine("desk")
    desk.kbtui("init", "--demo", desk.notes)
    desk.json("list")
    desk.json("log")
    desk.ask("what did we decide about the database?")
    desk.ask("who is Alice?")
    desk.kbtui("search", "--json", "decision", "--scope", "all")
    desk.kbtui("inbox", "--json")
    desk.kbtui("export", "-o", desk.out / "all.json", "--json")
    desk.kbtui("export", "-o", "-", "--format", "md")
    desk.kbtui("dream-log", "--json", "-n", "5")
    desk.kbtui("doctor", "--json", status=(0, 1))
    desk.kbtui("undo", "--json")
    desk.kbtui("reindex")


@life
def exports(stage: Stage) -> None:
    """Notes leave in each format, and a folder of them is a workspace again."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.kbtui("new", "person", "Ruth Vale", "--body", "Keeps the keys. See [[Gate]].")
    desk.kbtui("new", "topic", "Gate", "--body", "Iron.\n\n![[plan.txt]]", "--tag", "iron")
    desk.write(
        "knowledge/topics/secret.md", "---\nprivate: true\n---\n# Secret\n\nUnder the mat.\n"
    )
    desk.write("docs/plan.txt", "The plan of the gate.\n")
    desk.ask("Ruth opens the gate at eight", session="gate")
    for form in ("folder", "obsidian"):
        desk.kbtui("export", "-o", desk.out / form, "--format", form, "--json")
    for name in ("all.md", "all.json", "all.zip"):
        desk.kbtui("export", "-o", desk.out / name, "--json")
    desk.kbtui("export", "-o", "-", "--session", "gate", "--format", "json")
    desk.kbtui("export", "-o", desk.out / "all.md", "--json", status=range(6))
    desk.kbtui("export", "-o", desk.out / "private", "--private", "--json", status=(0, 1))
    desk.kbtui("-w", desk.out / "folder", "list", "--json")
