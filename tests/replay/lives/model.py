"""Lives with a model, which is scripted: what its tools answer, what they write, and what waits."""

from __future__ import annotations

from tests.replay.lives.life import life
from tests.replay.stage import Machine, Stage
from tests.scripted_server import Reply, Request, call, raw_call


def _calls(*calls: dict[str, object]) -> Reply:
    return Reply(tool_calls=list(calls))


def _begin(stage: Stage, **env: str) -> Machine:
    desk = stage.machine("desk", **env)
    desk.kbtui("init", desk.notes)
    return desk


@life
def an_agent_writes(stage: Stage) -> None:
    """A model writes, edits, renames and looks up by every tool it has."""
    desk = _begin(stage)
    desk.ask(
        "We decided to use PostgreSQL for analytics because of its JSON operators. Alice owns it,"
        " and Bob reviews her queries.",
        session="db",
        replies=[
            _calls(
                call(
                    "write_entry",
                    "w1",
                    kind="decision",
                    title="PostgreSQL for analytics",
                    sections={
                        "Context": "JSON operators.",
                        "Decision": "We use PostgreSQL for analytics.",
                    },
                    tags=["database"],
                    summary="PostgreSQL for analytics because of its JSON operators",
                ),
                call(
                    "write_entry",
                    "w2",
                    kind="person",
                    title="Alice",
                    sections={"Role": "Owns PostgreSQL for analytics."},
                    related=["decisions/2026-03-postgresql-for-analytics"],
                    aliases=["Al"],
                ),
                call("write_entry", "w3", kind="person", title="Bob", body="Reviews her queries."),
            ),
            Reply("All three are kept."),
        ],
    )
    desk.ask(
        "Bob also runs the backups at 03:00, and Alice is called Alice Winter now.",
        session="db",
        replies=[
            _calls(
                call("search", "s1", query="Bob queries"), call("read", "r1", path="people/bob")
            ),
            _calls(
                call("edit_entry", "e1", entry="bob", append="Runs the backups at 03:00."),
                call("rename_entry", "n1", entry="alice", new_name="Alice Winter"),
                call("edit_entry", "e2", entry="MEMORY.md", append="- Alice is Alice Winter now."),
            ),
            _calls(
                call("list_entries", "l1"),
                call("list_entries", "l2", type="person"),
                call("grep", "g1", pattern="postgres"),
                call("grep", "g2", pattern="back.ps", regex=True, path="knowledge/people"),
                call("read", "r2", path="memory/MEMORY.md"),
                call("read", "r3", path="knowledge/INDEX.md"),
            ),
            Reply("Bob runs the backups [1]; Alice goes by her new name."),
        ],
    )
    desk.ask(
        "Change the entry of Bob: he runs the backups at 04:00. Tag it ops.",
        session="db",
        replies=[
            _calls(
                call("edit_entry", "e3", entry="bob", old="03:00", new="04:00"),
                call("edit_entry", "e4", entry="bob", add_tags=["ops"], add_aliases=["Robert"]),
                call("edit_entry", "e5", entry="bob", summary="Runs the backups at 04:00"),
                call("edit_entry", "e6", entry="bob", append="On Mondays.", section="Backups"),
                call("edit_entry", "e7", entry="bob", old="nowhere", new="x"),
                call("rename_entry", "n2", entry="bob", new_name="projects/bob"),
                call("edit_entry", "e8", entry="postgresql-for-analytics", body="Use it."),
            ),
            Reply("Done, as far as it could be."),
        ],
    )
    turn = desk.json("log", "-n", "1")[0]["turn"]
    desk.kbtui("undo", "--turn", turn, "--json", status=range(6))
    desk.kbtui("show", "bob")
    desk.kbtui("inbox", "--json")


@life
def an_agent_and_lines_of_a_person(stage: Stage) -> None:
    """What a model would change in a person's lines waits, and is decided place by place."""
    desk = _begin(stage)
    desk.write(
        "knowledge/people/mara.md",
        "---\ntype: person\n---\n# Mara\n\n## Work\n\n- Leads the archive\n- Sits on floor 2\n\n"
        "## Notes\n\n- Likes maps\n- Speaks Danish\n- Drives a van\n",
    )
    desk.write("USER.md", "# User\n\n- Name: Ada\n- Lives in Bonn\n")
    desk.kbtui("list")
    desk.ask(
        "What does Mara do?",
        session="mara",
        replies=[
            _calls(
                call(
                    "edit_entry", "e1", entry="mara", old="Sits on floor 2", new="Sits on floor 5"
                ),
                call("edit_entry", "e2", entry="mara", old="- Likes maps\n", new=""),
                call("edit_entry", "e3", entry="mara", append="- Drives a tram"),
                call("edit_entry", "e4", entry="USER.md", old="Bonn", new="Graz"),
                call("rename_entry", "n1", entry="mara", new_name="Mara Lund"),
            ),
            Reply("I proposed some changes."),
        ],
    )
    waiting = desk.json("inbox")
    for each in waiting:
        desk.kbtui("inbox", "show", each["id"], "--json")
    first = waiting[0]["id"]
    desk.kbtui("inbox", "accept", first, "--hunk", "1", "--json", status=range(6))
    desk.kbtui("inbox", "reject", first, "--hunk", "1", "--json", status=range(6))
    desk.kbtui("inbox", "show", first, "--json", status=range(6))
    desk.edit("knowledge/people/mara.md", "Speaks Danish", "Speaks Danish and Thai")
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "accept", each["id"], "--json", status=range(6))
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "reject", each["id"], "--json", status=range(6))
    desk.kbtui("undo", "--json", status=range(6))
    desk.kbtui("inbox", "--json")


@life
def an_agent_makes_things_up(stage: Stage) -> None:
    """Inventions in bodies, titles, headings, tags, tables and fences are refused or wait."""
    desk = _begin(stage)
    desk.ask(
        "Tomas moved to Lyon and works at the observatory.",
        session="tomas",
        replies=[
            _calls(
                call("write_entry", "w1", kind="person", title="Tomas", body="Moved to Lyon."),
                call("write_entry", "w2", kind="person", title="Tomas Zebrowski", body="In Lyon."),
                call("edit_entry", "e1", entry="tomas", append="Earns 91,000 a year."),
                call("edit_entry", "e2", entry="tomas", append="Works there.", section="Zyx corp"),
                call("edit_entry", "e3", entry="tomas", add_tags=["millionaire"]),
                call("edit_entry", "e4", entry="tomas", add_aliases=["The Baron"]),
                call("edit_entry", "e5", entry="tomas", append="```\npassword = 'quux'\n```"),
                call(
                    "edit_entry", "e6", entry="tomas", append="| a | b |\n|---|---|\n| 7 | Oslo |"
                ),
                call("edit_entry", "e7", entry="tomas", append="> He said he hates Lyon."),
                call("edit_entry", "e8", entry="tomas", append="Works at the observatory."),
                call("edit_entry", "e9", entry="tomas", summary="A rich astronomer of Krakow"),
                call("edit_entry", "e10", entry="MEMORY.md", append="- Tomas is a pilot"),
                call(
                    "edit_entry", "e11", entry="tomas", append="He doesn't work at the observatory."
                ),
            ),
            Reply("Kept."),
        ],
    )
    desk.kbtui("show", "tomas", status=range(6))
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "show", each["id"], "--json")
    for each in desk.json("inbox")[:1]:
        desk.kbtui("inbox", "reject", each["id"])
    desk.kbtui("audit", "--dropped", "--json", status=(0, 1))


def _reads_back(request: Request) -> Reply:
    return Reply(f"I was told: {str(request.messages[-1]['content'])[:60]}")


@life
def a_model_that_errs(stage: Stage) -> None:
    """Broken arguments, unknown tools, cut streams, errors of the server, and calls in the text."""
    desk = _begin(stage, KBTUI_MODELS__RETRIES="0")
    desk.kbtui("new", "topic", "Tides", "--body", "The tide turns at six.")
    desk.ask(
        "When does the tide turn?",
        replies=[
            _calls(raw_call("search", '{"query": "tide"', "b1")),
            _calls(raw_call("read", "[1, 2]", "b2"), call("no_such_tool", "b3", x=1)),
            _calls(call("read", "b4", path="../../etc/passwd"), call("read", "b5", path="tides")),
            _calls(call("search", "b6", query="", limit=999), call("grep", "b7", pattern="(")),
            _calls(call("write_entry", "b8", kind="nonsense", title="")),
            _reads_back,
        ],
    )
    desk.ask("And then?", replies=[Reply("It t", cut_at=300, cut="eof")], status=range(6))
    desk.ask("Again?", replies=[Reply("nobody is here", status=503)], status=range(6))
    desk.ask("Once more?", replies=[Reply("no such key", status=401)], status=range(6))
    desk.ask("Well?", replies=[Reply("")], status=range(6))
    desk.ask(
        "Write it down: the tide turns at seven.",
        replies=[
            Reply('<tool_call>{"name": "search", "arguments": {"query": "tide"}}</tool_call>'),
            Reply("Seven, then."),
        ],
        status=range(6),
    )
    desk.kbtui("sessions", "--json")
