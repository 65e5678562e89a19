"""Lives with other programs and agents: MCP, imports, documents, private notes, settings, meaning."""

from __future__ import annotations

import json

from tests.replay.lives.life import life
from tests.replay.stage import Machine, Stage
from tests.scripted_server import Reply, call


def _village(stage: Stage, **options: object) -> Machine:
    desk = stage.machine("desk", **options)
    desk.kbtui("init", desk.notes)
    desk.kbtui(
        "new", "person", "Hedda", "--body", "- Runs the mill\n- Has a grey cat\n", "-t", "mill"
    )
    desk.kbtui("new", "topic", "Mill", "--body", "Grinds rye. [[Hedda]] runs it.", "-t", "mill")
    desk.kbtui("new", "decision", "New millstone", "--body", "We buy a new millstone in May.")
    desk.write("docs/manual/stone.md", "# Stone\n\nDress the stone every hundred hours.\n")
    desk.ask("The mill is closed on Tuesdays", session="mill")
    return desk


@life
def another_agent_reads(stage: Stage) -> None:
    """Another agent lists what there is and calls every tool that only reads."""
    desk = _village(stage)
    with desk.mcp() as client:
        client.ask("tools/list")
        client.ask("resources/list")
        client.ask("resources/templates/list")
        client.ask("prompts/list")
        client.ask("prompts/get", name="recall", arguments={"about": "the mill"})
        client.ask("resources/read", uri="kb://entry/people/hedda")
        client.ask("resources/read", uri="kb://entry/people/nobody")
        client.ask(
            "completion/complete",
            ref={"type": "ref/resource", "uri": "kb://entry/{+name}"},
            argument={"name": "name", "value": "he"},
        )
        client.call("memory_search", query="millstone")
        client.call("memory_search", query="mill", type="person", limit=2)
        client.call("vector_search", query="dress the stone")
        client.call("search", query="Hedda")
        client.call("fetch", id="knowledge/people/hedda.md")
        client.call("read_entry", entry="mill")
        client.call("read_entry", entry="nobody")
        client.call("read_file", path="docs/manual/stone.md")
        client.call("read_file", path="../outside")
        client.call("list_entries", tag="mill")
        client.call("grep", pattern="rye")
        client.call("grep", pattern="m.ll", regex=True, limit=3)
        client.call("entry_links", entry="hedda", depth=2)
        client.call("entry_history", entry="hedda")
        client.call("entry_history", text="millstone", limit=3)
        client.call("explain_line", entry="hedda", line=10)
        commit = desk_commit(client.call("entry_history", entry="mill"))
        client.call("show_change", commit=commit)
    with desk.mcp("--read-only") as client:
        client.ask("tools/list")
        client.call("write_entry", kind="topic", title="Nothing")


def desk_commit(answer: dict[str, object]) -> str:
    """Find the first commit that an answer names."""
    found = answer["structuredContent"]
    assert isinstance(found, dict)
    return next(
        str(each["commit"]) for value in found.values() if isinstance(value, list) for each in value
    )


@life
def another_agent_writes(stage: Stage) -> None:
    """Another agent writes, edits, renames, moves and deletes; a person's lines wait; undo."""
    desk = _village(stage)
    desk.append("knowledge/people/hedda.md", "- Sings on Sundays\n")
    with desk.mcp(client="scribe") as client:
        client.call("write_entry", kind="topic", title="Weir", body="The weir feeds the mill.")
        client.call("write_entry", kind="person", title="Hedda", body="Again.")
        client.call("edit_entry", entry="weir", append="It leaks in spring.")
        client.call("edit_entry", entry="weir", old="leaks", new="freezes", base_hash="0" * 64)
        client.call("edit_entry", entry="hedda", old="Sings on Sundays", new="Never sings")
        client.call("edit_entry", entry="hedda", add_tags=["singer"])
        client.call("edit_entry", entry="MEMORY.md", append="- The weir leaks")
        client.call("rename_entry", entry="weir", new_name="Old weir")
        client.call("move_entry", entry="old-weir", category="projects")
        client.call("rename_entry", entry="mill", new_name="Water mill")
        client.call("delete_entry", entry="hedda")
        client.call("delete_entry", entry="old-weir")
        history = client.call("entry_history", limit=5)
        client.call("undo_change", commit=desk_commit(history))
        client.call("undo_change", commit="HEAD~9")
    for each in desk.json("inbox"):
        desk.kbtui("inbox", "show", each["id"], "--json")
    for each in desk.json("inbox")[:2]:
        desk.kbtui("inbox", "accept", each["id"], "--json", status=range(6))
    batch = next(each for each in desk.json("log") if each["actor"] == "mcp")
    desk.kbtui("undo", batch["commit"], "--json", status=range(6))


@life
def imports_of_chats(stage: Stage) -> None:
    """Exports of three programs become conversations; again, and taken back as a whole."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    exports = [
        stage.data("exports", "chatgpt", "librechat", "chatgpt-export.json"),
        stage.data("exports", "claude-ai", "sugurutakahashi", "conversations.json"),
        stage.data("exports", "claude-code", "simonw", "sample_session.jsonl"),
    ]
    desk.kbtui("import", "--dry-run", "--json", *exports, status=range(6))
    batches = [
        desk.json("import", "--yes", each)["imports"][0]["batch"] for each in (*exports, exports[0])
    ]
    desk.kbtui("sessions", "--json")
    desk.kbtui("search", "--json", "python", "--scope", "sessions", status=(0, 1))
    for batch in batches:
        desk.kbtui("undo", "--batch", batch, "--json", status=range(6))
    desk.kbtui("import", "--yes", "--json", exports[1])


@life
def imports_with_a_model(stage: Stage) -> None:
    """What was imported is made memory of by a model; what nobody said is dropped."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    talk = [
        {"from": "human", "value": "I keep bees in Alton. The queen is called Maud."},
        {"from": "gpt", "value": "How lovely."},
        {"from": "human", "value": "My honey won a prize in 2024."},
        {"from": "gpt", "value": "Congratulations."},
    ]
    desk.write("../out/talk.json", json.dumps([{"id": "talk1", "conversations": talk}]))
    export = desk.out / "talk.json"
    saved = call(
        "save_memory",
        "m1",
        summary="The user keeps bees in Alton; the queen is Maud.",
        title="Bees",
        notes=[],
        facts=[
            {"type": "user", "subject": "", "text": "I keep bees in Alton", "importance": 3},
            {
                "type": "topic",
                "subject": "Bees",
                "text": "The queen is called Maud",
                "importance": 3,
            },
            {"type": "user", "subject": "", "text": "Owns a farm in Wales", "importance": 3},
        ],
        corrections=[],
    )
    replies = [Reply(tool_calls=[saved])] * 3
    desk.kbtui("import", "--yes", "--json", export, replies=replies, status=range(6))
    desk.kbtui("import", "--yes", "--json", export, replies=replies, status=range(6))
    desk.ask("What is the queen called?")
    desk.kbtui("audit", "--json", status=(0, 1))


@life
def imports_of_notes_and_documents(stage: Stage) -> None:
    """A folder of notes, a web page, a table and a text are imported, found, and taken back."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    files = {
        "old notes/Pears.md": "# Pears\n\nRipe in September. See [[Quince]].\n",
        "old notes/fruit/Quince.md": "---\ntags: [fruit]\n---\n# Quince\n\nNeeds sugar.\n",
        "page.html": "<html><head><title>Apples</title></head><body><h1>Apples</h1>"
        "<p>The <b>Boskoop</b> keeps till March.</p><script>x()</script></body></html>",
        "harvest.csv": "fruit,kilos\npears,40\nquinces,12\n",
        "letter.txt": "Dear Ada,\n\nthe ladder is in the shed.\n",
    }
    for name, text in files.items():
        desk.write(f"../out/{name}", text)
    desk.kbtui("import", "--yes", "--json", desk.out / "old notes")
    for name in ("page.html", "harvest.csv", "letter.txt"):
        desk.kbtui("import", "--yes", "--json", desk.out / name)
    desk.kbtui("import", "--dry-run", "--json", desk.out / "letter.txt")
    desk.kbtui("search", "--json", "Boskoop", "--scope", "docs", status=(0, 1))
    desk.kbtui("show", "docs/letter.txt", status=range(6))
    desk.ask("Where is the ladder?")
    desk.kbtui("undo", "--json", status=range(6))


@life
def private_notes(stage: Stage) -> None:
    """Private notes are kept from models elsewhere and other agents, and shown to the person."""
    desk = stage.machine("desk", KBTUI_PRIVACY__PRIVATE_PATHS='["knowledge/diary/"]')
    desk.kbtui("init", desk.notes)
    desk.write("knowledge/people/otto.md", "---\nprivate: true\n---\n# Otto\n\nOtto owes me 300.\n")
    desk.write("knowledge/diary/march.md", "# March\n\nQuarrelled with Otto.\n")
    desk.kbtui("new", "topic", "Debts", "--body", "See [[Otto]].")
    desk.kbtui("search", "--json", "Otto")
    desk.ask("who owes me 300?")
    looks = Reply(
        tool_calls=[
            call("search", "s1", query="Otto"),
            call("read", "r1", path="people/otto"),
            call("grep", "g1", pattern="owes"),
            call("list_entries", "l1"),
            call("edit_entry", "e1", entry="debts", append="Otto owes me 300."),
        ]
    )
    desk.ask("What does Otto owe me? It is 300.", replies=[looks, Reply("It is 300.")])
    with desk.mcp() as client:
        client.call("memory_search", query="Otto")
        client.call("read_entry", entry="otto")
        client.call("entry_links", entry="debts")
        client.call("entry_history")
    desk.edit("knowledge/people/otto.md", "private: true\n", "")
    desk.kbtui("list", "--json")
    desk.kbtui("export", "-o", "-", "--format", "md")


@life
def settings(stage: Stage) -> None:
    """Settings by command and by file, wrong ones too, and what they change."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.kbtui("config", "set", "memory.journal", "own")
    desk.kbtui("config", "get", "memory.journal")
    desk.kbtui("config", "set", "memory.nonsense", "1", status=range(6))
    desk.ask("The barn was built in 1904")
    desk.write(
        "kbtui.toml", "[memory]\nreview = 'ask'\n[privacy]\nprivate_paths = ['knowledge/facts/']\n"
    )
    desk.kbtui("remember", "The barn door sticks")
    desk.kbtui("config", "list")
    desk.kbtui("config", "unset", "memory.journal")
    desk.write("kbtui.toml", "[models.chat]\napi_base = 'http://elsewhere.example'\n")
    desk.kbtui("list", status=range(6))
    desk.write("kbtui.toml", "broken = [")
    desk.kbtui("list", status=range(6))
    desk.remove("kbtui.toml")
    desk.kbtui("workspaces", "--json")
    desk.kbtui("help", "search")


@life
def found_by_meaning(stage: Stage) -> None:
    """Search by meaning over notes, memory and conversations, as they are and after changes."""
    desk = _village(stage, meaning=True)
    desk.kbtui("new", "topic", "Bread", "--body", "Loaves are baked from wholemeal flour at dawn.")
    desk.kbtui("new", "topic", "Winter", "--body", "The pond freezes and the wheel stands still.")
    desk.kbtui("search", "--json", "--semantic", "pet animals", status=(0, 1))
    desk.kbtui("search", "--json", "--semantic", "ice and cold weather", status=(0, 1))
    desk.ask("when can I not bring grain?")
    with desk.mcp() as client:
        client.call("vector_search", query="maintenance of the grinding tool")
        client.call("memory_search", query="early morning bakery")
    desk.edit("knowledge/topics/winter.md", "The pond freezes", "The pond never freezes")
    desk.kbtui("search", "--json", "--semantic", "ice and cold weather", status=(0, 1))


@life
def a_vault_by_meaning(stage: Stage) -> None:
    """Foam's handbook searched by meaning, in English and in other words."""
    desk = stage.machine("desk", meaning=True)
    desk.take(stage.data("vaults", "foam", "user", "features"), "features")
    desk.take(stage.data("vaults", "foam", "user", "getting-started"), "getting-started")
    desk.kbtui("reindex")
    for words in ("see which pages point here", "write a diary", "check my spelling", "Verweise"):
        desk.kbtui("search", "--json", "--semantic", words, status=(0, 1))
    desk.ask("How do I see which notes point to this one?")


@life
def talks_by_meaning(stage: Stage) -> None:
    """Long conversations are imported and searched by meaning, by who said it and when."""
    desk = stage.machine("desk", meaning=True)
    desk.kbtui("init", desk.notes)
    export = stage.data("exports", "claude-ai", "sugurutakahashi", "conversations.json")
    desk.kbtui("import", "--yes", "--no-memory", "--json", export, status=range(6))
    for words in ("a programming problem", "by:user question", "travel"):
        desk.kbtui("search", "--json", "--semantic", "--scope", "sessions", words, status=(0, 1))
