"""Lives of the memory: conversations are condensed, Dream works on the notes, proposals are decided."""

from __future__ import annotations

from typing import Any

from tests.replay.lives.life import life
from tests.replay.stage import Machine, Stage
from tests.scripted_server import Reply, call


def _saves(summary: str, facts: list[tuple[str, str, str]] = (), **more: Any) -> Reply:
    """What a model answers that condenses: facts by type and subject."""
    told = [
        {"type": type_, "subject": subject, "text": text, "importance": 3}
        for type_, subject, text in facts
    ]
    arguments = {"summary": summary, "notes": [], "facts": told, "corrections": [], **more}
    return Reply(tool_calls=[call("save_memory", "m1", **arguments)])


def _edits(*edits: dict[str, Any]) -> Reply:
    """What a model answers that dreams."""
    return Reply(tool_calls=[call("curate", "c1", edits=list(edits))])


def _talk(desk: Machine, session: str, *said: tuple[str, str]) -> None:
    for text, answer in said:
        desk.ask(text, session=session, replies=[Reply(answer)])


@life
def condensing_with_a_model(stage: Stage) -> None:
    """Conversations become facts, entries, notes of the day and corrections; inventions are dropped."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    _talk(
        desk,
        "flat",
        ("I live in Ghent, in a flat by the canal. The rent is 940 euros.", "Good to know."),
        ("My landlord is Pieter, he repairs the boiler himself.", "Noted."),
        ("We decided to paint the hall blue on Saturday.", "Nice."),
    )
    desk.kbtui(
        "consolidate",
        "flat",
        "--yes",
        "--json",
        replies=[
            _saves(
                "The user lives in a flat by the canal in Ghent; the rent is 940 euros.",
                [
                    ("user", "", "Lives in Ghent, in a flat by the canal"),
                    ("user", "", "The rent is 940 euros"),
                    ("user", "", "The kitchen is large and has a view of the sea"),
                    ("person", "Pieter", "Pieter is the landlord and repairs the boiler himself"),
                    ("decision", "Hall", "We decided to paint the hall blue on Saturday"),
                ],
                notes=["Decided to paint the hall blue"],
                title="The flat",
            ),
            _saves("The rest was small talk."),
        ],
        status=range(6),
    )
    stage.pass_(days=30)
    _talk(
        desk,
        "moved",
        ("I moved: I live in Bruges now, the rent is 1010 euros.", "Congratulations."),
        ("Pieter is no longer my landlord.", "All right."),
    )
    desk.kbtui(
        "consolidate",
        "moved",
        "--yes",
        "--json",
        replies=[
            _saves(
                "The user moved to Bruges; the rent is 1010 euros.",
                [("user", "", "Lives in Bruges now, the rent is 1010 euros")],
                corrections=[
                    {
                        "old": "Lives in Ghent, in a flat by the canal",
                        "new": "Lives in Bruges",
                        "importance": 3,
                    },
                    {"old": "Pieter is the landlord", "new": "", "subject": "Pieter"},
                ],
            ),
            _saves("Nothing more."),
        ],
        status=range(6),
    )
    desk.kbtui("show", "memory/MEMORY.md")
    desk.kbtui("audit", "--dropped", "--json", status=(0, 1))
    desk.kbtui("inbox", "--json")
    desk.ask("Where do I live?")


@life
def answers_that_cannot_be_used(stage: Stage) -> None:
    """A model that condenses answers with apologies, echoes, prose and broken JSON; then properly."""
    desk = stage.machine("desk", KBTUI_MODELS__RETRIES="0")
    desk.kbtui("init", desk.notes)
    _talk(desk, "boat", ("The boat is moored at pier 9.", "Fine."), ("It leaks.", "Oh."))
    for reply in (
        Reply("I'm sorry, I can't help with that."),
        Reply('{"summary": "The boat'),
        Reply(tool_calls=[call("save_memory", "m1", summary="", notes=[], facts=[])]),
        Reply("down", status=500),
    ):
        desk.kbtui(
            "consolidate", "boat", "--yes", "--json", replies=[reply, reply], status=range(6)
        )
    desk.kbtui("audit", "--json", status=(0, 1))
    stage.pass_(hours=3)
    answer = '```json\n{"summary": "The boat is at pier 9 and leaks.", "facts": ["It leaks."]}\n```'
    desk.kbtui("consolidate", "boat", "--yes", "--json", replies=[Reply(answer)], status=range(6))
    desk.kbtui(
        "consolidate", "--all", "--yes", "--json", replies=[_saves("Boat.")], status=range(6)
    )


@life
def condensing_without_a_model(stage: Stage) -> None:
    """Conversations are archived as they were said; a model condenses them later, and Dream reads on."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    for day in ("one", "two", "three"):
        desk.ask(f"On day {day} the ferry to Ponza left at {len(day)}:15", session=day)
        desk.ask("Lucia sells the tickets, and her brother Marco steers", session=day)
        stage.pass_(days=1)
    desk.kbtui("consolidate", "--json", "--yes")
    desk.kbtui("dream", "--dry-run", "--json", status=range(6))
    desk.kbtui("dream", "--json", status=range(6))
    desk.kbtui("dream-log", "--json", status=range(6))
    saved = _saves(
        "The ferry to Ponza.",
        [("person", "Lucia", "Lucia sells the tickets, and her brother Marco steers")],
    )
    desk.kbtui("consolidate", "--all", "--yes", "--json", replies=[saved] * 4, status=range(6))
    desk.kbtui("audit", "--json", status=(0, 1))
    desk.ask("Who steers the ferry?")


def _before_the_dream(stage: Stage) -> Machine:
    """Entries by a machine and by a person, and an archive that Dream hasn't read."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.ask(
        "Alice leads billing. Bob keeps the ledger. The port of billing is 5432, see Alise. Carol left.",
        session="team",
        replies=[
            Reply(
                tool_calls=[
                    call("write_entry", "w1", kind="person", title="Alice", body="Leads billing."),
                    call("write_entry", "w2", kind="person", title="Bob", body="Keeps the ledger."),
                    call("write_entry", "w3", kind="person", title="Carol", body="Carol left."),
                    call(
                        "write_entry",
                        "w4",
                        kind="topic",
                        title="Billing",
                        body="The port of billing is 5432.\n\nSee [[alise]].",
                    ),
                    call("edit_entry", "w5", entry="MEMORY.md", append="- Alice leads billing"),
                ]
            ),
            Reply("Kept."),
        ],
    )
    desk.write(
        "knowledge/people/bob-keeper.md",
        "---\ntype: person\n---\n# Bob the keeper\n\nKeeps the ledger.\nSings in the choir.\n",
    )
    desk.kbtui("list")
    _talk(
        desk,
        "later",
        ("The port of billing is 5433 now. Alice plays chess with Dora.", "All right."),
        ("Dora is the new auditor, she sits in Leeds.", "Noted."),
    )
    desk.kbtui(
        "consolidate",
        "--yes",
        "--json",
        replies=[
            _saves("Billing, Alice, Bob, and Carol, who left."),
            _saves("The port is 5433; Alice plays chess; Dora is the new auditor in Leeds."),
            _saves("More."),
        ],
        status=range(6),
    )
    return desk


@life
def dreaming(stage: Stage) -> None:
    """Dream adds, changes, supersedes, moves, merges, links, renames and deletes; all is taken back."""
    desk = _before_the_dream(stage)
    edits = [
        {"do": "add_line", "path": "people/alice", "new": "Alice plays chess with Dora"},
        {"do": "add_line", "path": "people/alice", "new": "Alice owns seven castles in Spain"},
        {
            "do": "create_entry",
            "type": "person",
            "title": "Dora",
            "body": "Dora is the new auditor, she sits in Leeds.",
            "summary": "the new auditor",
            "tags": ["audit"],
        },
        {
            "do": "supersede",
            "path": "topics/billing",
            "old": "The port of billing is 5432.",
            "new": "The port of billing is 5433 now.",
        },
        {
            "do": "move_line",
            "path": "MEMORY.md",
            "old": "Alice leads billing",
            "to": "topics/billing",
        },
        {"do": "merge_entries", "path": "people/bob-keeper", "to": "people/bob"},
        {"do": "fix_link", "path": "topics/billing", "old": "alise", "to": "people/alice"},
        {"do": "link_entries", "path": "people/alice", "to": "people/dora"},
        {"do": "set_summary", "path": "people/alice", "new": "Alice leads billing"},
        {"do": "rename_entry", "path": "topics/billing", "new": "Billing service"},
        {"do": "delete_entry", "path": "people/carol"},
        {"do": "edit_file", "path": "people/alice", "old": "Leads billing.", "new": "Leads."},
        {"do": "nonsense", "path": "people/alice"},
        {"do": "add_line", "path": "people/nobody", "new": "Dora sits in Leeds"},
    ]
    desk.kbtui("dream", "--dry-run", "--json", replies=[_edits(*edits), _edits()], status=range(6))
    desk.kbtui("dream", "--json", replies=[_edits(*edits), _edits()], status=range(6))
    desk.kbtui("dream-log", "--json")
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "show", each["id"], "--json")
    desk.kbtui("why", "people/alice:8", status=range(6))
    (last,) = [each for each in desk.json("log", "-n", "20") if each["actor"] == "dream"][:1]
    desk.kbtui("dream-restore", last["commit"], "--dry-run", "--json")
    desk.kbtui("dream-restore", last["commit"], "--only", "--json", status=range(6))
    desk.kbtui("undo", "--json")
    desk.append("knowledge/people/alice.md", "Added by hand.\n")
    desk.kbtui("undo", "--batch", last.get("batch") or "none", status=range(6))
    desk.kbtui("dream-restore", last["commit"], "--json", status=range(6))
    desk.kbtui("undo")


@life
def proposals_place_by_place(stage: Stage) -> None:
    """A proposal of many places is accepted, edited and rejected in parts while files go on."""
    desk = stage.machine("desk", KBTUI_MEMORY__REVIEW="ask")
    desk.kbtui("init", desk.notes)
    lines = "".join(f"- Shelf {n} holds jar {n}\n\n" for n in range(1, 9))
    desk.write("knowledge/topics/pantry.md", f"# Pantry\n\n{lines}## Cellar\n\nCold.\n")
    desk.write("knowledge/topics/tools.md", "# Tools\n\nA saw.\n")
    desk.kbtui("list")
    swaps = [
        call(
            "edit_entry",
            f"e{n}",
            entry="pantry",
            old=f"Shelf {n} holds jar {n}\n",
            new=f"Shelf {n} holds jar {n + 10}\n",
        )
        for n in (1, 3, 5, 7, 8)
    ]
    swaps.append(call("edit_entry", "e9", entry="tools", append="A plane."))
    swaps.append(call("write_entry", "w1", kind="topic", title="Attic", body="Shelf 1, jar 11."))
    said = "Shelves 1, 3, 5, 7 and 8 hold jars 11, 13, 15, 17 and 18 now. Tools: a plane. Attic."
    desk.ask(said, session="pantry", replies=[Reply(tool_calls=swaps), Reply("It waits.")])
    (waiting,) = desk.json("inbox")
    name = waiting["id"]
    hunks = desk.json("inbox", "show", name)["hunks"]
    desk.kbtui("inbox", "accept", name, "--hunk", hunks[0]["key"], "--json")
    desk.kbtui("inbox", "reject", name, "--hunk", hunks[1]["key"], "--json")
    editor = desk.edits_with('sed -i "s/jar 15/jar 16/" "$1"')
    desk.kbtui("inbox", "edit", name, "--hunk", hunks[2]["key"], "--json", **editor)
    desk.edit("knowledge/topics/pantry.md", "Shelf 7 holds jar 7", "Shelf 7 holds jam")
    desk.edit("knowledge/topics/pantry.md", "Cold.", "Cold and damp.")
    left = desk.json("inbox", "show", name)["hunks"]
    desk.kbtui("inbox", "accept", name, "--json", status=5)
    conflict = next(each["key"] for each in left if each["state"] == "conflict")
    desk.kbtui("inbox", "accept", name, "--hunk", conflict, "--theirs", "--json")
    desk.kbtui("inbox", "accept", name, "--json", status=range(6))
    desk.kbtui("inbox", "--json")
    desk.ask(said, session="pantry", replies=[Reply(tool_calls=swaps[:2]), Reply("Again.")])
    desk.kbtui("undo", "--json")
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "reject", each["id"], "--json")
    desk.kbtui("log", "--json", "knowledge/topics/pantry.md")
