"""Memory from a script: what the commands write, say, and how they end."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

MEMORY = "memory/MEMORY.md"
AUDIT = {"sessions", "messages", "pending", "archived", "dropped", "unaccounted", "details"}


@pytest.fixture(autouse=True)
def _by_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")


def test_remember_writes_the_fact_once(kbtui: Command) -> None:
    assert MEMORY in kbtui.ok("remember", "I", "prefer", "tea").out
    assert "known already" in kbtui.ok("remember", "The user prefers tea").err
    assert kbtui.file(MEMORY).read_text().count("tea") == 1


def test_a_remembered_secret_is_warned_of(kbtui: Command) -> None:
    done = kbtui.ok("remember", "my key is AKIAIOSFODNN7EXAMPLE")
    assert "secret" in done.err


def test_forget_shows_asks_and_takes_out(kbtui: Command) -> None:
    kbtui.ok("remember", "My favorite color is blue")
    kbtui.ok("new", "preference", "Colors", "-b", "Likes cats. Favorite color: blue.")
    kbtui.ok("new", "preference", "Favorite color", "-b", "The favorite color is blue.")
    unsure = kbtui("forget", "my favorite color")
    assert unsure.status == 2
    assert "--yes" in unsure.err
    assert MEMORY in unsure.out
    assert "blue" in kbtui.file(MEMORY).read_text()
    kbtui.ok("forget", "my favorite color", "--yes")
    assert "blue" not in kbtui.file(MEMORY).read_text()
    colors = kbtui.file("knowledge/preferences/colors.md").read_text()
    assert "Likes cats." in colors
    assert "blue" not in colors
    assert not kbtui.file("knowledge/preferences/favorite-color.md").exists()
    assert "blue" not in kbtui.file("memory/tombstones.jsonl").read_text()


def test_what_is_forgotten_is_not_condensed_and_the_ledger_says_why(kbtui: Command) -> None:
    kbtui.ok("ask", "My favorite color is blue.", "-s", "colors")
    kbtui.ok("ask", "We decided to use Postgres for Atlas.", "-s", "colors")
    kbtui.ok("forget", "favorite color is blue", "--yes")
    kbtui.ok("consolidate")
    assert "blue" not in kbtui.file("memory/history.jsonl").read_text()
    assert "Postgres" in kbtui.file("memory/history.jsonl").read_text()
    audit = kbtui.ok("audit", "--json").json
    reasons = {each["reason"] for each in audit["details"][0]["dropped"]}
    assert "forgotten" in reasons
    assert audit["unaccounted"] == 0


SCOPES = ("all", "default", "knowledge", "memory", "docs", "sessions", "knowledge,sessions,docs/p")


def hits(kbtui: Command, text: str) -> set[str]:
    """The files that a search for a text finds in any scope."""
    found = [
        kbtui("search", text, "--scope", scope, "--lexical", "-n", "100", "--json").json["hits"]
        for scope in SCOPES
    ]
    return {hit["path"] for each in found for hit in each}


def plant(kbtui: Command) -> None:
    """Put a word into all that is written when somebody tells it, imports it, or writes it."""
    kbtui.ok("ask", "My brother's parrot is called Zazoo.", "-s", "birds")
    kbtui.ok("ask", "Who is Zazoo?", "-s", "birds")
    kbtui.ok("consolidate")
    kbtui.ok("ask", "Zazoo is a funny thing", "-s", "Zazoo and others")
    kbtui.ok("remember", "Zazoo eats nuts")
    kbtui.ok("new", "topic", "Parrots", "-b", "They are loud.\n\n- Zazoo is one", "-t", "pets")
    note = kbtui.file("memory/2026/11/01.md")
    note.parent.mkdir(parents=True)
    note.write_text("# A day\n\nSaw Zazoo. It rained.\n")
    said = [{"sender": role, "text": text, "created_at": "2025-01-01T10:00:00Z", "uuid": text}
            for role, text in (("human", "Zazoo sings"), ("assistant", "Does Zazoo?"))]  # fmt: skip
    talk = {"uuid": "c1", "name": "All about Zazoo", "chat_messages": said}
    export = kbtui.root.parent / "conversations.json"
    export.write_text(json.dumps([talk | {"created_at": "2025-01-01T10:00:00Z"}]))
    kbtui.ok("import", str(export))


def test_what_was_forgotten_is_found_in_no_scope(kbtui: Command) -> None:
    plant(kbtui)
    assert len(hits(kbtui, "Zazoo")) > 5
    done = kbtui.ok("forget", "Zazoo", "--yes")
    assert hits(kbtui, "Zazoo") == set()
    assert "still" not in done.err
    assert "nothing else reads it from there any more" in done.err
    assert "They are loud." in kbtui.file("knowledge/topics/parrots.md").read_text()
    assert "It rained." in kbtui.file("memory/2026/11/01.md").read_text()
    assert "Zazoo" not in kbtui.ok("sessions").out
    assert any("Zazoo" in file.read_text() for file in kbtui.file("sessions").glob("*.jsonl"))


def test_undo_takes_back_a_forgetting_of_what_nothing_said_rather_than_an_older_change(
    kbtui: Command,
) -> None:
    kbtui.ok("new", "topic", "Zebra crossings", "-b", "They are striped.")
    assert kbtui("forget", "giraffe").status == 1, "nothing said so"
    undone = kbtui.ok("undo")
    assert "zebra" not in (undone.out + undone.err).lower()
    assert "They are striped." in kbtui.ok("show", "zebra-crossings").out
    kbtui.ok("undo")
    assert kbtui("show", "zebra-crossings").status != 0


def test_undoing_it_brings_titles_back_as_well(kbtui: Command) -> None:
    kbtui.ok("ask", "Good morning, my dear", "-s", "All about Zazoo")
    done = kbtui.ok("forget", "Zazoo", "--yes")
    assert "1 title of conversations said so." in done.err
    assert "Zazoo" not in kbtui.ok("sessions").out
    (commit,) = [line.split()[-1] for line in done.err.splitlines() if "kbtui undo" in line]
    kbtui.ok("undo", commit)
    assert "All about Zazoo" in kbtui.ok("sessions").out
    assert hits(kbtui, "Zazoo")


def test_where_it_is_found_all_the_same_is_said(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Parrots", "-b", "## Zazoo\n\nLoud.\n\n- Zazoo is one")
    kbtui.file("knowledge/topics/max.md").write_text("---\naliases: [Zazoo]\n---\n# Max\n")
    kbtui.file("knowledge/topics/owner.md").write_text("# Whose parrot Zazoo is\n\nMax.\n")
    kbtui.file("knowledge/topics/bad.md").write_text("---\ntags: [a\n---\nZazoo\n")
    document = kbtui.file("docs/p/birds.txt")
    document.parent.mkdir(parents=True)
    document.write_text("A list of birds:\nZazoo\n")
    done = kbtui.ok("forget", "Zazoo", "--yes")
    left = hits(kbtui, "Zazoo")
    assert left == {
        "docs/p/birds.txt",
        "knowledge/topics/bad.md",
        "knowledge/topics/owner.md",
    }
    assert (
        kbtui.file("knowledge/topics/parrots.md").read_text().endswith("# Parrots\n\n\nLoud.\n\n")
    )
    assert kbtui.file("knowledge/topics/max.md").read_text() == "---\n---\n# Max\n"
    (said,) = [line for line in done.err.splitlines() if "still say it" in line]
    assert all(path in said for path in left)
    document.unlink()
    again = kbtui("forget", "Zazoo", "--yes")
    assert again.status == 1
    assert "birds.txt" not in again.err
    assert "bad.md" in again.err
    assert "Nothing else says it" in again.err


def test_one_word_of_a_line_that_goes_takes_no_other_lines_with_it(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Zazoo", "-b", "Parrot.")
    kbtui.ok("remember", "A parrot lives long")
    kbtui.ok("forget", "Zazoo", "--yes")
    assert not kbtui.file("knowledge/topics/zazoo.md").exists()
    assert "A parrot lives long" in kbtui.file(MEMORY).read_text()


def test_what_stands_nowhere_is_buried_all_the_same(kbtui: Command) -> None:
    done = kbtui("forget", "the secret recipe")
    assert done.status == 1
    assert kbtui.file("memory/tombstones.jsonl").exists()


def test_what_was_archived_without_a_model_is_for_one_and_that_is_said(kbtui: Command) -> None:
    kbtui.ok("ask", "The boiler man comes on Thursday.")
    kbtui.ok("consolidate")
    assert "No model is configured" in kbtui("consolidate", "--all").err


def test_why_a_conversation_was_not_condensed_and_what_can_be_done_is_said_once(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("ask", "The kettle leaks.")
    with ScriptedServer([Reply("No such key.", status=401)]) as server:
        monkeypatch.setenv("KBTUI_API_BASE", server.url)
        monkeypatch.setenv("KBTUI_MODEL", "openai/scripted")
        monkeypatch.setenv("KBTUI_API_KEY", "none")
        done = kbtui("consolidate", "--yes")
    assert "Messages stay to be condensed later" in done.err
    assert done.err.count("Check the key") == 1, done.err


def test_consolidate_condenses_all_that_waits_and_then_nothing(kbtui: Command) -> None:
    kbtui.ok("ask", "My favorite color is blue.", "-s", "colors")
    (done,) = kbtui.ok("consolidate", "--json").json
    assert (done["kind"], done["cursor"]) == ("archived", 1)
    assert "blue" in kbtui.file("memory/HISTORY.md").read_text()
    assert "Nothing waits" in kbtui.ok("consolidate").err


def test_ask_condenses_a_conversation_that_has_become_long(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_CONTEXT__MEMORY_WINDOW", "4")
    for text in ("My favorite color is blue.", "I prefer tea.", "I use Vim."):
        kbtui.ok("ask", text, "-s", "talk")
    assert "blue" in kbtui.file("memory/history.jsonl").read_text()


def test_condensing_that_takes_long_is_left_to_a_process_of_its_own(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_CONTEXT__MEMORY_WINDOW", "4")
    started: list[list[str]] = []
    monkeypatch.setattr("kbtui.cli.ask._MEMORY_SECONDS", 0.0)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    for text in ("My favorite color is blue.", "I prefer tea.", "I use Vim."):
        kbtui.ok("ask", text, "-s", "talk")
    assert not kbtui.file("memory/history.jsonl").exists()
    command = started[-1]
    assert "-P" in command, "no module is taken out of the folder that somebody is in"
    kbtui.ok(*command[command.index("consolidate") :])
    assert "blue" in kbtui.file("memory/history.jsonl").read_text()


def test_audit_has_its_shape_and_fails_where_a_message_is_lost(kbtui: Command) -> None:
    kbtui.ok("ask", "My favorite color is blue.", "-s", "colors")
    audit = kbtui.ok("audit", "--json").json
    assert set(audit) >= AUDIT
    assert audit["pending"] > 0
    assert "messages" in kbtui.ok("audit").out
    assert "steps of tools" in kbtui.ok("audit").out, "what is dropped was nothing that was said"
    (log,) = kbtui.file("sessions").glob("*.jsonl")
    lines = log.read_text().splitlines()
    lines[1] = "not json"
    log.write_text("\n".join(lines) + "\n")
    kbtui("consolidate")
    done = kbtui("audit", "--json")
    assert done.status == 1
    assert done.json["unaccounted"] >= 1


def test_dream_without_a_model_tidies_up_and_reads_nothing(kbtui: Command) -> None:
    kbtui.ok("ask", "My favorite color is blue.", "-s", "colors")
    kbtui.ok("consolidate")
    before = kbtui.ok("log", "--json").json
    assert kbtui.ok("dream", "--dry-run", "--json").json["kind"] == "dry-run"
    assert kbtui.ok("log", "--json").json == before
    done = kbtui.ok("dream", "--json").json
    assert (done["kind"], done["entries"], done["remaining"]) == ("nothing", 0, 1)
    assert not kbtui.file("memory/cursors.json").exists()
    assert kbtui.ok("log", "--json").json == before
    assert "1 archive entry waits for one." in kbtui.ok("dream").out
    assert kbtui("dream", "--every", "soon").status == 2


def _dreamt(root: Path, path: str, text: str) -> str:
    with KnowledgeBase.open(root) as kb:
        with kb.history.change(actor=Actor.DREAM, reason="curated") as change:
            change.write(path, text)
        return next(kb.history.log(limit=1)).id


def test_what_dream_did_is_shown_and_undone_alone_or_with_all_since(kbtui: Command) -> None:
    assert "nothing yet" in kbtui("dream-log").err
    kbtui.ok("new", "topic", "Boiler", "-b", "It is old.")
    first = _dreamt(kbtui.root, MEMORY, "- Prefers tea\n")
    second = _dreamt(kbtui.root, "memory/2026-11-22.md", "- Asked about tea.\n")
    kbtui.ok("new", "topic", "Later", "-b", "After it.")
    assert "+- Asked about tea." in kbtui.ok("dream-log").out
    shown = kbtui.ok("dream-log", first[:8], "--json").json
    assert (shown["commit"], shown["actor"]) == (first, "dream")
    assert "+- Prefers tea" in shown["patch"]
    assert [each["commit"] for each in kbtui.ok("dream-log", "-n", "9", "--json").json] == [
        second,
        first,
    ]
    listed = kbtui("dream-restore")
    assert listed.status == 2
    assert second[:10] in listed.out
    assert "-- Asked about tea." in kbtui.ok("dream-restore", second, "--dry-run").out
    kbtui.ok("dream-restore", second)
    assert not kbtui.file("memory/2026-11-22.md").exists()
    assert kbtui.file("knowledge/topics/later.md").exists()
    assert "-- Prefers tea" in kbtui.ok("dream-restore", first, "--all", "--dry-run").out
    unsure = kbtui("dream-restore", first, "--all")
    assert unsure.status == 2
    assert "topics/later.md  goes" in unsure.out
    assert kbtui.file("knowledge/topics/later.md").exists()
    kbtui.ok("dream-restore", first, "--all", "--yes")
    assert not kbtui.file("knowledge/topics/later.md").exists()
    assert kbtui.file("knowledge/topics/boiler.md").exists()


def test_dream_restore_keeps_later_lines_of_the_same_file(kbtui: Command) -> None:
    kbtui.ok("remember", "I own a canoe")
    lines = kbtui.file(MEMORY).read_text()
    dream = _dreamt(kbtui.root, MEMORY, f"{lines}- Prefers tea\n")
    kbtui.ok("remember", "I was born in Ghent")
    kbtui.ok("dream-restore", dream)
    left = kbtui.file(MEMORY).read_text()
    assert "tea" not in left
    assert "canoe" in left
    assert "Ghent" in left


def test_dream_restore_of_a_line_that_was_changed_again_says_so_and_prefers(
    kbtui: Command,
) -> None:
    dream = _dreamt(kbtui.root, MEMORY, "- Prefers tea\n")
    kbtui.file(MEMORY).write_text("- Prefers green tea\n")
    refused = kbtui("dream-restore", dream)
    assert refused.status != 0
    assert "Prefers green tea" in refused.err
    assert "--prefer now" in refused.err
    kbtui.ok("dream-restore", dream, "--prefer", "before")
    assert not kbtui.file(MEMORY).exists() or "tea" not in kbtui.file(MEMORY).read_text()


def test_only_a_change_of_dreams_is_taken_back_as_one(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "Boiler", "-b", "It is old.")
    mine = kbtui.ok("log", "-n", "1", "--json").json[0]["commit"]
    assert "not by Dream" in kbtui("dream-restore", mine).err
    assert "not by Dream" in kbtui("dream-restore", mine, "--all", "--yes").err
    assert kbtui.file("knowledge/topics/boiler.md").exists()


def _proposed(root: Path, text: str) -> str:
    with KnowledgeBase.open(root) as kb:
        return kb.memory.inbox.add(Actor.DREAM, "It would change your line.", {MEMORY: text}).id


def test_the_inbox_is_listed_shown_accepted_and_rejected(kbtui: Command) -> None:
    assert "Nothing waits." in kbtui.ok("inbox").err
    kbtui.ok("remember", "I prefer tea")
    first = _proposed(kbtui.root, "# User Preferences\n\n- I prefer coffee\n")
    (listed,) = kbtui.ok("inbox", "list", "--json").json
    assert (listed["id"], listed["actor"], listed["paths"]) == (first, "dream", [MEMORY])
    assert first in kbtui.ok("inbox").out
    assert "+- I prefer coffee" in kbtui.ok("inbox", "show", first).out
    kbtui.ok("inbox", "accept", first[:4])
    assert "coffee" in kbtui.file(MEMORY).read_text()
    second = _proposed(kbtui.root, "# User Preferences\n\n- I prefer water\n")
    assert "rejected" in kbtui.ok("inbox", "reject", second).out
    assert "coffee" in kbtui.file(MEMORY).read_text()
    assert kbtui.bare("-w", str(kbtui.root), "inbox", "--json").json == []
    assert kbtui("inbox", "accept", second).status == 1


NANOBOT: dict[str, Any] = {
    "tools": {
        "vectorMemory": {"chunkTokens": 256, "embeddingModel": "openai/text", "colour": 1},
        "sessionMemory": {"enabled": True, "maxMessages": 12},
        "memoryFlush": {"enabled": False},
    },
    "agents": {
        "defaults": {"dream": {"cron": "0 */3 * * *", "model": "openai/x", "maxBatchSize": 9}}
    },
    "providers": {"openai": {"apiKey": "secret"}},
}


def test_settings_of_nanobot_are_taken_over_with_a_note_for_legacy_keys(
    kbtui: Command, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(NANOBOT))
    done = kbtui.ok("config", "import", str(file))
    expected = {
        "search.chunk_tokens": 256,
        "models.embed.model": "litellm:openai/text",
        "memory.session_notes.max_messages": 12,
        "memory.flush.enabled": False,
        "dream.interval_hours": 3.0,
        "dream.model_override": "openai/x",
        "dream.max_batch_size": 9,
    }
    listed = kbtui.ok("config", "list", "--json").json
    assert {name: listed[name] for name in expected} == expected
    assert "dream.cron is a legacy key" in done.err
    assert "dream.model is a legacy key" in done.err
    assert "tools.vectorMemory.colour is not taken over" in done.err
    assert "providers.openai.apiKey is not taken over" in done.err
    assert "secret" not in done.out + done.err


def test_a_bad_value_of_nanobot_changes_nothing(kbtui: Command, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"tools": {"vectorMemory": {"chunkTokens": 256, "vectorWeight": 7}}}')
    assert kbtui("config", "import", str(file)).status == 3
    assert kbtui.ok("config", "get", "search.chunk_tokens").out.strip() == "512"
    file.write_text("[]")
    assert kbtui("config", "import", str(file)).status == 3


RENT = "The rent of the flat is 870 euros", "The rent of the flat is 910 euros"


def test_correct_lists_asks_and_corrects_every_place_as_one(kbtui: Command) -> None:
    kbtui.ok("remember", RENT[0])
    kbtui.ok("new", "topic", "Flat", "-b", "Rent: 870 euros. Two rooms.")
    listed = kbtui.ok("correct", *RENT, "--dry-run")
    assert "memory/MEMORY.md:3  line" in listed.out
    assert "+ Rent: 910 euros. Two rooms." in listed.out
    assert "knowledge/INDEX.md:5  follows by itself" in listed.out
    unsure = kbtui("correct", *RENT)
    assert unsure.status == 2
    assert "--yes" in unsure.err
    assert "870" in kbtui.file(MEMORY).read_text()
    kbtui.ok("correct", *RENT, "--yes", "--place", "1")
    assert "910" in kbtui.file(MEMORY).read_text()
    assert "870" in kbtui.file("knowledge/topics/flat.md").read_text()
    done = kbtui.ok("correct", *RENT, "--yes", "--json").json
    assert "Corrected" in done["reason"]
    assert "870" not in kbtui.file("knowledge/topics/flat.md").read_text()
    assert "910" in kbtui.file("knowledge/INDEX.md").read_text()
    kbtui.ok("undo")
    assert "870" in kbtui.file("knowledge/topics/flat.md").read_text()
    assert kbtui("correct", *RENT, "--yes", "--place", "7").status == 2


def test_correct_says_so_where_no_place_repeats_it(kbtui: Command) -> None:
    kbtui.ok("remember", "The rent of the barn is 870 euros")
    nothing = kbtui("correct", *RENT, "--yes")
    assert nothing.status == 1
    assert "No place repeats it" in nothing.err
    as_json = kbtui.ok("correct", *RENT, "--dry-run", "--json").json
    assert (as_json["values"], as_json["places"]) == ([["870", "910"]], [])
