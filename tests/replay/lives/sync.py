"""Lives on several machines, which sync by a folder."""

from __future__ import annotations

from itertools import cycle, islice

from tests.replay.lives.life import life
from tests.replay.stage import Machine, Stage
from tests.scripted_server import Reply, call


def _in_turn(stage: Stage, *machines: Machine, rounds: int = 2) -> None:
    """Let each machine sync, so often that all know of all."""
    for machine in islice(cycle(machines), rounds * len(machines)):
        machine.kbtui("sync", stage.remote(), "--json", status=range(6))


@life
def two_machines(stage: Stage) -> None:
    """Two machines change different things, the same line, and each what the other renamed."""
    desk = stage.machine("desk", user="Ada Quill")
    sofa = stage.machine("sofa", user="Ada Quill")
    desk.kbtui("init", desk.notes)
    sofa.kbtui("init", sofa.notes)
    desk.kbtui(
        "new",
        "person",
        "Omar",
        "--body",
        "- Repairs clocks\n- Lives above the shop\n- Owns a dog\n",
    )
    desk.kbtui("new", "topic", "Clocks", "--body", "Wind them on Sundays. [[Omar]] helps.")
    _in_turn(stage, desk, sofa)
    desk.edit("knowledge/people/omar.md", "Owns a dog", "Owns two dogs")
    sofa.edit("knowledge/people/omar.md", "Repairs clocks", "Repairs clocks and radios")
    _in_turn(stage, desk, sofa)
    desk.edit("knowledge/topics/clocks.md", "on Sundays", "on Mondays")
    sofa.edit("knowledge/topics/clocks.md", "on Sundays", "on Fridays")
    _in_turn(stage, desk, sofa)
    for machine in (desk, sofa):
        for each in machine.json("inbox"):
            machine.kbtui("inbox", "show", each["id"], "--json")
            machine.kbtui("inbox", "accept", each["id"], "--theirs", "--json", status=range(6))
    _in_turn(stage, desk, sofa)
    desk.kbtui("rename", "omar", "Omar Haddad")
    sofa.append("knowledge/people/omar.md", "- Sings\n")
    sofa.kbtui("new", "topic", "Radios", "--body", "Ask [[Omar]].")
    _in_turn(stage, desk, sofa)
    sofa.kbtui("delete", "clocks", status=range(6))
    desk.append("knowledge/topics/clocks.md", "\nThe tall one runs slow.\n")
    _in_turn(stage, desk, sofa)
    sofa.kbtui("undo", "--json", status=range(6))
    _in_turn(stage, desk, sofa, rounds=1)


@life
def three_machines(stage: Stage) -> None:
    """Three machines with conversations and documents; one forgets, one deletes, one condenses."""
    shared = {"KBTUI_SYNC__CONVERSATIONS": "true", "KBTUI_SYNC__DOCUMENTS": "true"}
    desk, sofa, hut = (stage.machine(name, **shared) for name in ("desk", "sofa", "hut"))
    for machine in (desk, sofa, hut):
        machine.kbtui("init", machine.notes)
    desk.ask("The lighthouse keeper is called Finn", session="coast")
    desk.write("docs/tides.md", "# Tides\n\nHigh water at six.\n")
    _in_turn(stage, desk, sofa, hut)
    sofa.ask("Finn has a boat called Wren", session="coast", status=range(6))
    hut.ask("The lamp turns every nine seconds", session="lamp")
    hut.write("docs/lamp.txt", "Nine seconds.\n")
    desk.edit("docs/tides.md", "six", "seven")
    _in_turn(stage, desk, sofa, hut)
    sofa.kbtui("forget", "--yes", "Finn has a boat called Wren", status=range(6))
    hut.remove("docs/lamp.txt")
    stage.pass_(days=2)
    desk.kbtui("consolidate", "--json", "--yes", status=range(6))
    hut.kbtui("remember", "The hut has no stove")
    hut.kbtui("new", "fact", "Alarm", "--body", "It is switched off with Petrel-44-lamp.")
    _in_turn(stage, desk, sofa, hut)
    for machine in (desk, sofa, hut):
        machine.kbtui("sessions", "--json")
        machine.ask("What is Finn's boat called?")
    _in_turn(stage, desk, sofa, hut)
    hut.kbtui("purge", "--yes", "--json", "Petrel-44-lamp")
    hut.kbtui("sync", stage.remote(), "--replace", "--json", status=range(6))
    desk.kbtui("sync", stage.remote(), "--json", status=range(6))


@life
def both_write_memory(stage: Stage) -> None:
    """Two machines keep facts, tombstones, archives and proposals of the same things, and meet."""
    desk, sofa = stage.machine("desk"), stage.machine("sofa")
    desk.kbtui("init", desk.notes)
    desk.write("knowledge/people/mika.md", "# Mika\n\nMika paints doors.\n\nMika sleeps late.\n")
    desk.kbtui("remember", "Mika's shop opens at ten")
    sofa.kbtui("init", sofa.notes)
    _in_turn(stage, desk, sofa)
    for machine, hour in ((desk, "nine"), (sofa, "eleven")):
        machine.kbtui("remember", f"Mika's shop closes at {hour}")
        machine.ask(f"Mika ordered {hour} brushes", session="brushes")
        machine.ask(
            "Tell me of Mika.",
            session="mika",
            replies=[
                Reply(
                    tool_calls=[
                        call("edit_entry", "e1", entry="mika", old="doors", new=f"{hour} doors")
                    ]
                ),
                Reply("Proposed."),
            ],
        )
    stage.pass_(days=1)
    for machine in (desk, sofa):
        machine.kbtui("consolidate", "--json", "--yes", status=range(6))
    _in_turn(stage, desk, sofa)
    for each in sofa.json("inbox"):
        sofa.kbtui("inbox", "accept", each["id"], "--theirs", "--json", status=range(6))
    desk.kbtui("forget", "--yes", "Mika sleeps late", status=range(6))
    _in_turn(stage, desk, sofa)
    sofa.kbtui("remember", "Mika sleeps late", status=range(6))
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "reject", each["id"], "--json", status=range(6))
    _in_turn(stage, desk, sofa)


@life
def odd_names_between_machines(stage: Stage) -> None:
    """Names that differ by case, a file that becomes a folder, a picture, and a history without a common past."""
    desk, sofa = stage.machine("desk"), stage.machine("sofa")
    desk.kbtui("init", desk.notes)
    sofa.kbtui("init", sofa.notes)
    _in_turn(stage, desk, sofa, rounds=1)
    desk.write("knowledge/topics/Rain.md", "# Rain\n\nFrom the desk.\n")
    desk.write("knowledge/topics/cloud.md", "# Cloud\n\nGrey.\n")
    desk.write("knowledge/topics/sky.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    desk.kbtui("list")
    sofa.write("knowledge/topics/rain.md", "# rain\n\nFrom the sofa.\n")
    sofa.write("knowledge/topics/cloud/index.md", "# Clouds\n\nMany.\n")
    sofa.kbtui("list")
    _in_turn(stage, desk, sofa)
    desk.kbtui("list", "--json")
    desk.move("knowledge/topics/sky.png", "knowledge/topics/sky/blue.png")
    sofa.edit("knowledge/topics/cloud/index.md", "Many.", "Few.")
    _in_turn(stage, desk, sofa)
    for machine in (desk, sofa):
        machine.kbtui("check", "--json", status=(0, 1))
        machine.kbtui("inbox", "--json")
    hut = stage.machine("hut")
    hut.kbtui("init", hut.notes)
    hut.write("knowledge/topics/Rain.md", "# Rain\n\nOf the hut.\n")
    hut.kbtui("list")
    hut.kbtui("sync", stage.remote(), status=5)


@life
def a_vault_on_two_machines(stage: Stage) -> None:
    """A vault in place is synced into an empty folder; both rename and edit, and one takes it back."""
    desk, sofa = stage.machine("desk"), stage.machine("sofa")
    desk.take(stage.data("vaults", "kepano-obsidian", "Notes"), "Notes")
    desk.take(stage.data("vaults", "kepano-obsidian", "Templates"), "Templates")
    desk.write("Map.md", "# Map\n\n[[Evergreen notes]] and [[Templates/Book Template|books]].\n")
    desk.kbtui("list", "--json")
    sofa.kbtui("init", "--in-place", sofa.notes)
    _in_turn(stage, desk, sofa)
    sofa.kbtui("rename", "Map", "Chart", "--json", status=range(6))
    desk.append("Map.md", "\nDrawn at the desk.\n")
    _in_turn(stage, desk, sofa)
    sofa.kbtui("undo", "--json", status=range(6))
    sofa.ask("Remember that the map hangs in the hall")
    _in_turn(stage, desk, sofa)
    desk.kbtui("links", "Map", "--json", status=range(6))
