"""The tools, each with real entries and real files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.sources import Sources
from kbtui.agent.tools import reading
from kbtui.agent.tools.base import MAX_TOKENS, ToolContext
from kbtui.agent.tools.toolbox import Toolbox, ToolOutcome
from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.port import ToolCall, estimate_tokens
from kbtui.views.view import Audience

if TYPE_CHECKING:
    from kbtui.sessions.store import Session


class Tools:
    """Runs tools as a turn would."""

    def __init__(self, kb: KnowledgeBase, session: Session) -> None:
        self.kb = kb
        self.context = ToolContext(
            kb.seen_by(Audience.OWN_MODEL),
            kb.workspace,
            kb.settings,
            Origin(session.id, (1, 1), "t1", "model"),
            Sources(),
            session.id,
            1,
            lambda: kb.memory.editor,
        )

    def __call__(self, name: str, **arguments: Any) -> ToolOutcome:
        return Toolbox().run(ToolCall("c", name, json.dumps(arguments)), self.context)

    def ok(self, name: str, **arguments: Any) -> str:
        outcome = self(name, **arguments)
        assert outcome.ok, outcome
        return outcome.output

    def error(self, name: str, **arguments: Any) -> str:
        head = self.kb.history.head()
        outcome = self(name, **arguments)
        assert not outcome.ok, outcome
        assert outcome.output.startswith("Error: ")
        assert self.kb.history.head() == head
        return outcome.output


@pytest.fixture
def tools(kb: KnowledgeBase, session: Session) -> Tools:
    return Tools(kb, session)


def body_of(kb: KnowledgeBase, ref: str) -> str:
    return kb.library.find(ref).body


def test_every_tool_is_described_as_json_schema_with_plain_names() -> None:
    names = [spec.name for spec in Toolbox().specs]
    assert names == [
        "search",
        "list_entries",
        "list_tasks",
        "similar_notes",
        "read",
        "write_entry",
        "edit_entry",
        "rename_entry",
        "grep",
    ]
    for spec in Toolbox().specs:
        json.dumps(spec.parameters)
        assert set(spec.parameters["required"]) <= set(spec.parameters["properties"])
        assert len(spec.description) < 1000


def test_write_entry_takes_a_folder_that_the_user_named(tools: Tools) -> None:
    wanted = {"type": "topic", "title": "Rome", "body": "In May."}
    out = tools.ok("write_entry", **wanted, folder="trips/2026")
    assert out == "Created knowledge/trips/2026/rome.md"
    for outside in ("../trips", "/../etc", ".kbtui"):
        tools.error("write_entry", **(wanted | {"title": "Oslo"}), folder=outside)


def test_write_entry_uses_the_template_of_the_type(kb: KnowledgeBase, tools: Tools) -> None:
    out = tools.ok(
        "write_entry",
        type="decision",
        title="Auth with PKCE",
        sections={"Decision": "PKCE for all clients.", "Risks": "Old browsers."},
        tags=["auth"],
        related=["people/alice"],
        aliases=["pkce"],
    )
    entry = kb.library.find("pkce")
    assert out == f"Created {entry.path}"
    assert entry.slug.endswith("-auth-with-pkce")
    headings = [line for line in entry.body.splitlines() if line.startswith("#")]
    assert headings == [
        "# Auth with PKCE",
        "## Decision",
        "## Risks",
    ]
    assert (entry.tags, entry.related) == (("auth",), ("people/alice",))


@pytest.mark.parametrize("title", ["Alice Liddell", "ALICE  liddell", "Ally", "alice-liddell"])
def test_a_second_entry_about_the_same_is_refused_with_the_way_to_the_first(
    kb: KnowledgeBase, tools: Tools, title: str
) -> None:
    kb.library.create("person", "Alice Liddell", aliases=["Ally"])
    told = tools.error("write_entry", kind="person", title=title)
    assert "knowledge/people/alice-liddell.md" in told
    assert "edit_entry" in told
    assert tools.error("write_entry", kind="topic", title=title) == told, "of any kind"


def test_a_decision_of_another_month_is_still_the_same_decision(
    kb: KnowledgeBase, tools: Tools
) -> None:
    from datetime import date

    kb.library.create("decision", "Auth with PKCE", day=date(2025, 3, 1))
    assert "2025-03-auth-with-pkce" in tools.error(
        "write_entry", kind="decision", title="Auth with PKCE"
    )


def test_a_call_that_does_not_fit_is_answered_with_how_it_does(tools: Tools) -> None:
    told = tools.error("write_entry", kind="person")
    assert told == (
        "Error: The argument 'title' is missing. Call write_entry again, with a JSON object:"
        " kind, title; body, sections, summary, tags, related, aliases, folder may be left out."
    )
    assert (
        "Call one of these: search, list_entries, list_tasks, similar_notes, read, "
        in tools.error("note")
    )


def test_a_model_is_told_no_command_of_the_users(tools: Tools) -> None:
    told = tools.error("read", path="quagga")
    assert told == (
        "Error: There is no entry 'quagga'. Look for it with a search, or list what there is."
    )


def test_the_kind_of_an_entry_is_taken_under_its_older_name(
    kb: KnowledgeBase, tools: Tools
) -> None:
    tools.ok("write_entry", type="person", title="Alice")
    assert kb.library.find("Alice").type == "person"


def test_one_tool_reads_entries_files_and_the_catalogue(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("person", "Alice", body="Owns billing.")
    (kb.workspace.docs / "alice.md").write_text("A document.")
    for ref in ("Alice", "people/alice", "knowledge/people/alice.md"):
        assert "Owns billing." in tools.ok("read", path=ref)
    assert "A document." in tools.ok("read", path="docs/alice.md")
    assert "alice" in tools.ok("read", path="knowledge/INDEX.md")


def test_one_tool_searches_memory_and_documents(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("topic", "Zebra", body="The zebra cluster runs at night.")
    for project in ("api", "web"):
        (kb.workspace.docs / project).mkdir(parents=True)
        (kb.workspace.docs / project / "auth.md").write_text(
            f"# Auth\n\nThe zebra token of {project}.\n"
        )
    kb.search.sync()
    everywhere = tools.ok("search", query="zebra")
    for path in ("knowledge/topics/zebra.md", "docs/api/auth.md", "docs/web/auth.md"):
        assert path in everywhere
    one = tools.ok("search", query="zebra", project="api")
    assert "docs/api/auth.md" in one
    assert "docs/web/auth.md" not in one
    assert "knowledge/topics/zebra.md" not in one


def test_an_entry_is_read_with_its_text_and_links_and_pages_what_is_long(
    kb: KnowledgeBase, tools: Tools
) -> None:
    kb.library.create("person", "Alice", body="Owns [[topics/docker]].")
    kb.library.create(
        "topic",
        "Docker",
        body="See [[alice]].\n" + "\n".join(f"line {n} " + "x" * 50 for n in range(1000)),
    )
    out = tools.ok("read", path="alice")
    assert out.startswith("[1] knowledge/people/alice.md (lines 1-")
    assert "Links to: topics/docker" in out
    assert "Linked from: topics/docker" in out
    first = tools.ok("read", path="docker")
    assert estimate_tokens(first) < MAX_TOKENS + 250
    assert "use from_line=" in first
    rest = tools.ok("read", path="docker", from_line=900)
    assert "line 999 " in rest
    assert "alice" in tools.error("read", path="alicia")


def test_what_a_machine_writes_has_no_heading_without_text(kb: KnowledgeBase, tools: Tools) -> None:
    tools.ok("write_entry", kind="decision", title="Bare")
    assert kb.library.find("Bare").body == "# Bare\n"
    tools.ok("edit_entry", entry="Bare", append="We do.", section="Decision")
    tools.ok("edit_entry", entry="Bare", append="It was slow.", section="Context")
    assert body_of(kb, "Bare") == "# Bare\n\n## Context\nIt was slow.\n\n## Decision\nWe do.\n"


def test_edit_entry_changes_only_what_is_named(kb: KnowledgeBase, tools: Tools) -> None:
    sections = {"Role": "Frontend lead", "Works on": "- billing"}
    entry = kb.library.create("person", "Alice", sections=sections, actor=Actor.AGENT)
    before = (kb.workspace.root / entry.path).read_bytes()
    out = tools("edit_entry", entry="alice", old="Frontend lead", new="Head of design")
    assert out.summary == "people/alice: +1 -1 lines"
    after = (kb.workspace.root / entry.path).read_bytes()
    assert after == before.replace(b"Frontend lead", b"Head of design")
    tools.ok("edit_entry", entry="alice", append="- dashboard", section="Works on")
    assert body_of(kb, "alice").endswith("## Works on\n- billing\n- dashboard\n")
    tools.ok("edit_entry", entry="alice", append="- tall", section="Notes")
    tools.ok("edit_entry", entry="alice", append="Likes tea.", section="## Taste")
    assert body_of(kb, "alice").endswith("## Taste\nLikes tea.\n")
    tools.ok("edit_entry", entry="alice", old="- billing", new="")
    assert "## Works on\n- dashboard\n" in body_of(kb, "alice")
    tools.ok(
        "edit_entry",
        entry="alice",
        add_tags=["team"],
        add_related=["topics/docker"],
        add_aliases=["Ally"],
        summary="Head of design",
    )
    found = kb.library.find("ally")
    assert (found.tags, found.related, found.summary) == (
        ("team",),
        ("topics/docker",),
        "Head of design",
    )
    tools.ok("edit_entry", entry="alice", body="# Alice\n\nAll new.")
    assert body_of(kb, "alice") == "# Alice\n\nAll new.\n"
    assert kb.library.find("alice").tags == ("team",)


def test_what_is_added_to_a_list_leaves_its_other_items_as_they_are_written(
    kb: KnowledgeBase, tools: Tools
) -> None:
    file = kb.workspace.knowledge / "topics/docker.md"
    head = "type: topic\nrelated:\n  - \"[[people/alice|Alice]]\"  # owns it\ntag: '#work'\n"
    file.write_text(f"---\n{head}---\n# Docker\n\nSee #ops.\n")
    kb.history.adopt(settle=0)
    tools.ok("edit_entry", entry="docker", add_related=["people/bob"], add_tags=["ops", "new"])
    written = file.read_text().split("---\n")[1]
    assert '  - "[[people/alice|Alice]]"  # owns it\n  - people/bob\n' in written
    assert "tag: '#work, #new'\n" in written
    assert "ops" not in written


def test_list_items_are_appended_to_a_list_and_text_as_a_paragraph(
    kb: KnowledgeBase, tools: Tools
) -> None:
    kb.library.create("topic", "Docker", body="Intro.\n\n- one")
    tools.ok("edit_entry", entry="docker", append="- two")
    tools.ok("edit_entry", entry="docker", append="More.")
    assert body_of(kb, "docker").endswith("Intro.\n\n- one\n- two\n\nMore.\n")


def test_an_edit_that_cannot_be_meant_is_refused(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("topic", "Docker", body="same\n\nsame")
    (kb.workspace.knowledge / "topics/broken.md").write_text("---\ntags: [open\n---\ntext\n")
    kb.library.refresh()
    assert "2 times" in tools.error("edit_entry", entry="docker", old="same", new="other")
    assert "doesn't contain" in tools.error("edit_entry", entry="docker", old="missing", new="x")
    assert "nothing to change" in tools.error("edit_entry", entry="docker")
    assert "can't be edited" in tools.error("edit_entry", entry="broken", append="x")
    assert "would break" in tools.error("edit_entry", entry="docker", old="tags: []", new="tags: [")
    assert "not yours" in tools.error("edit_entry", entry="knowledge/INDEX.md", append="x")
    assert tools.ok("edit_entry", entry="docker", old="Docker", new="Docker").endswith(
        "says so already."
    )


def test_tags_in_one_line_stay_so_whatever_is_edited(kb: KnowledgeBase, tools: Tools) -> None:
    file = kb.workspace.knowledge / "topics/docker.md"
    file.write_text("---\ntags: work, ops\n---\n# Docker\n\nOne.\n")
    kb.history.adopt(settle=0)
    tools.ok("edit_entry", entry="docker", append="Two.", summary="Boxes")
    assert "tags: work, ops\n" in file.read_text()
    tools.ok("edit_entry", entry="docker", add_tags=["new"])
    assert "tags: work, ops, new\n" in file.read_text()


def test_a_file_with_crlf_keeps_it(kb: KnowledgeBase, tools: Tools) -> None:
    file = kb.workspace.knowledge / "topics/dos.md"
    file.write_bytes(b"---\r\ntype: topic\r\ntags: [a]\r\n---\r\n# Dos\r\n\r\nOne.\r\nTwo.\r\n")
    kb.history.adopt(settle=0)
    tools.context.said = "Make it three"
    tools.ok("edit_entry", entry="dos", old="One.\nTwo.", new="Three.", add_tags=["b"])
    data = file.read_bytes()
    assert b"# Dos\r\n\r\nThree.\r\n" in data
    assert b"\n" not in data.replace(b"\r\n", b"")


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("MEMORY.md", "memory/MEMORY.md"),
        ("memory/MEMORY.md", "memory/MEMORY.md"),
    ],
)
def test_the_notes_above_the_entries_can_be_edited_and_come_into_being(
    kb: KnowledgeBase, tools: Tools, ref: str, path: str
) -> None:
    file = kb.workspace.root / path
    assert not file.exists()
    tools.ok("edit_entry", entry=ref, append="- Favorite color: blue")
    tools.ok("edit_entry", entry=ref, append="- Lives in Berlin")
    assert file.read_text().endswith("- Favorite color: blue\n- Lives in Berlin\n")
    tools.ok("edit_entry", entry=ref, old="blue", new="green")
    assert "green" in file.read_text()


@pytest.mark.parametrize("ref", ["USER.md", "soul.md"])
def test_what_guides_every_conversation_changes_by_proposal_only(
    kb: KnowledgeBase, tools: Tools, ref: str
) -> None:
    tools.context.said = "Add to your soul and to the user file that I like brief answers."
    done = tools("edit_entry", entry=ref, append="- Likes brief answers.")
    assert done.ok
    path = ref.upper().replace("MD", "md")
    assert done.output.startswith(f"Proposed, not written: {path} guides every conversation")
    assert not (kb.workspace.root / path).exists()
    assert [each.id for each in kb.memory.inbox.list()] == [done.proposal]


@pytest.mark.parametrize("ref", ["AGENTS.md", "skills/notes/SKILL.md", "memory/history.jsonl"])
def test_what_is_no_entry_is_not_for_tools_to_change(
    kb: KnowledgeBase, tools: Tools, ref: str
) -> None:
    file = kb.workspace.root / ref
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("Mine.\n")
    kb.history.adopt(settle=0)
    assert "not yours" in tools.error("edit_entry", entry=ref, append="More.")
    assert file.read_text() == "Mine.\n"


ANNA = "Role: engineer"


@pytest.mark.parametrize(
    ("said", "done"),
    [
        ("Anna is the new CTO", True),
        ("No, she is no engineer any more.", True),
        ("Can you rewrite the note on Anna?", True),
        ("Schreib die Notiz über Anna neu.", True),
        ("Who is Anna?", False),
        ("Anna is on holiday next week", False),
        ("thanks!", False),
        ("", False),
    ],
)
def test_a_line_of_the_users_changes_where_they_asked_for_that_and_is_proposed_elsewhere(
    kb: KnowledgeBase, tools: Tools, said: str, done: bool
) -> None:
    entry = kb.library.create("person", "Anna", body=ANNA)
    tools.context.said = said
    outcome = tools("edit_entry", entry="anna", old=ANNA, new="Role: CTO")
    assert outcome.ok
    assert ("Role: CTO" in body_of(kb, "anna")) is done
    assert bool(outcome.changes) is done
    assert bool(outcome.proposal) is not done
    if not done:
        assert outcome.output.startswith("Proposed, not written: the user wrote 'Role: engineer'")
        kb.memory.inbox.accept(outcome.proposal)
        assert "Role: CTO" in kb.library.get(entry.path).text


def test_what_is_added_to_an_entry_of_the_users_is_written(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("person", "Anna", body=ANNA, tags=["team"])
    tools.ok("edit_entry", entry="anna", append="- Likes tea", add_tags=["work"])
    assert "- Likes tea" in body_of(kb, "anna")
    assert kb.library.find("anna").tags == ("team", "work")


def test_an_edit_goes_on_with_what_waits_of_the_same_conversation(
    kb: KnowledgeBase, tools: Tools
) -> None:
    kb.library.create("person", "Anna", body=ANNA)
    first = tools("edit_entry", entry="anna", old=ANNA, new="Role: CTO")
    second = tools("edit_entry", entry="anna", old="Role: CTO", new="Role: CEO")
    assert first.proposal == second.proposal
    kb.memory.inbox.accept(second.proposal)
    assert "Role: CEO" in body_of(kb, "anna")


def test_what_was_forgotten_is_not_written_again_by_a_tool(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("person", "Anna", body="- Anna sails")
    with kb.history.change(Actor.YOU, "forget") as change:
        kb.memory.tombstones.bury(change, ["Anna drinks oat milk"], ())
    told = tools.error("edit_entry", entry="anna", append="- Anna drinks oat milk")
    assert "forgotten by the user" in told


def test_rename_entry_repairs_links(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("person", "Alice", actor=Actor.AGENT)
    kb.library.create("topic", "Docker", body="Ask [[alice]].")
    outcome = tools("rename_entry", entry="alice", new_name="Alice Liddell")
    assert outcome.summary == "people/alice renamed to people/alice-liddell"
    assert len(outcome.changes) == 1
    assert "[[alice-liddell" in body_of(kb, "docker")
    assert "already" in tools.error("rename_entry", entry="docker", new_name="people/alice-liddell")


def test_list_entries_has_those_without_a_date(kb: KnowledgeBase, tools: Tools) -> None:
    (kb.workspace.root / "knowledge/topics/undated.md").write_text(
        "# Undated\n\nA note.\n", "utf-8"
    )
    assert "topics/undated" in tools.ok("list_entries")
    assert "topics/undated" not in tools.ok("list_entries", since="2020")


def test_list_entries_filters_and_pages(kb: KnowledgeBase, tools: Tools) -> None:
    for number in range(3):
        kb.library.create("person", f"Person {number}", body=f"The person {number}.", tags=["team"])
    kb.library.create("topic", "Docker", body="Containers.")
    assert tools.ok("list_entries", type="topic") == "1 entry:\n- topics/docker: Containers."
    assert tools.ok("list_entries", tag="#team").startswith("3 entries:")
    assert "(2 more: use offset=1)" in tools.ok("list_entries", category="people", limit=1)
    assert tools.ok("list_entries", category="nowhere").startswith("0 entries")
    assert tools.ok("list_entries", since="2020-1").startswith("4 entries")
    assert tools.ok("list_entries", until="2020").startswith("0 entries")
    assert "'2026-13' is no date" in tools.error("list_entries", since="2026-13")


def test_searches_answer_in_the_shape_of_the_seed(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("person", "Alice", body="Alice maintains the zebra cluster.")
    (kb.workspace.docs / "api").mkdir()
    (kb.workspace.docs / "api/auth.md").write_text("# Auth\n\nThe zebra token lives an hour.\n")
    kb.search.sync()
    out = tools.ok("search", query="zebra cluster")
    lines = out.splitlines()
    assert lines[0] == "Found 2 memory results for 'zebra cluster':"
    assert lines[2].startswith("[1] knowledge/people/alice.md (lines ")
    assert "score: " in lines[2]
    assert "[2] docs/api/auth.md (lines " in out
    assert "The zebra token lives an hour." in out
    assert "There are: api" in tools.error("search", query="zebra", project="../knowledge")
    assert tools.ok("search", query="quagga").startswith("No memories found for 'quagga'.")
    assert "empty" in tools.error("search", query="  ")


def test_what_this_turn_said_is_not_found_and_earlier_talk_is(
    kb: KnowledgeBase, session: Session, tools: Tools
) -> None:
    other = kb.sessions.create("test")
    other.append("user", "The giraffe is called Gustav.")
    session.append("user", "What is the giraffe called?")
    kb.search.sync()
    out = tools.ok("search", query="What is the giraffe called?")
    assert "Gustav" in out
    assert f"sessions/{other.id}.jsonl" in out
    assert f"sessions/{session.id}.jsonl" not in out


def test_a_file_is_read_in_pages_and_stays_in_its_areas(kb: KnowledgeBase, tools: Tools) -> None:
    (kb.workspace.docs / "a.md").write_text("\n".join(f"line {n}" for n in range(1, 1001)))
    (kb.workspace.docs / "b.bin").write_bytes(b"\x00\x01" * 50)
    (kb.workspace.root / "SOUL.md").write_text("Be kind.")
    (kb.workspace.root / "other.md").write_text("mine")
    out = tools.ok("read", path="docs/a.md", from_line=10)
    assert out.startswith("[1] docs/a.md (lines 10-409)")
    assert "use from_line=410" in out
    assert "Be kind." in tools.ok("read", path="SOUL.md")
    assert "not a text file" in tools.error("read", path="docs/b.bin")
    for path in (
        "other.md",
        "sessions/x.jsonl",
        ".kbtui/format",
        "../x.md",
        "/etc/passwd",
        "docs",
        "docs/none.md",
        "docs\\a.md",
    ):
        tools.error("read", path=path)


def test_grep_finds_lines_by_text_and_by_expression(kb: KnowledgeBase, tools: Tools) -> None:
    kb.library.create("topic", "Docker", body="Zport 8080 (a+b)\n\nstraße 12")
    (kb.workspace.memory / "MEMORY.md").write_text("ZPORT 9090\n")
    assert tools("grep", pattern="zport").summary == "2 lines"
    assert tools("grep", pattern="zport", case_sensitive=True).summary == "no lines"
    assert tools("grep", pattern="ZPORT", case_sensitive=True, path="memory").summary == "1 line"
    assert "knowledge/topics/docker.md:" in tools.ok("grep", pattern="(a+b)")
    assert "knowledge/topics/docker.md:" in tools.ok("grep", pattern="STRASSE")
    assert tools("grep", pattern=r"zport \d{4}", regex=True).summary == "2 lines"
    assert tools("grep", pattern=r"^zport 9", regex=True, limit=1).summary == "1 line"
    assert "broken" in tools.error("grep", pattern="(", regex=True)
    assert "nothing at" in tools.error("grep", pattern="x", path="docs/none")
    assert "more than 1" in tools.ok("grep", pattern="zport", limit=1)


def test_an_expression_that_never_ends_is_ended(
    kb: KnowledgeBase, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_REGEX_TIMEOUT", 1.0)
    kb.library.create("topic", "Docker", body="a" * 60 + "!")
    assert "too long" in tools.error("grep", pattern="(a+)+$", regex=True)


def test_a_result_is_never_longer_than_its_cap(kb: KnowledgeBase, tools: Tools) -> None:
    (kb.workspace.docs / "wide.md").write_text(("word " * 50_000 + "\n") * 3)
    for name, arguments in (
        ("read", {"path": "docs/wide.md"}),
        ("grep", {"pattern": "word", "limit": 300}),
    ):
        assert estimate_tokens(tools.ok(name, **arguments)) < MAX_TOKENS + 250


def test_a_small_window_reads_a_long_file_in_as_many_parts_as_it_takes(
    kb: KnowledgeBase, tools: Tools
) -> None:
    lines = [f"2026-11-23 14:{n // 60:02}:{n % 60:02},381 INFO took {n}.204 ms" for n in range(400)]
    (kb.workspace.docs / "server.md").write_text("\n".join(lines))
    tools.context.most_tokens = 1_024
    read: list[str] = []
    while len(read) < len(lines):
        out = tools.ok("read", path="docs/server.md", from_line=len(read) + 1)
        assert estimate_tokens(out) < 1_024 + 100
        read += [line for line in out.splitlines() if line in lines]
    assert read == lines


def test_a_small_window_is_told_as_many_hits_as_fit_it(kb: KnowledgeBase, tools: Tools) -> None:
    for number in range(12):
        text = f"The kiln number {number} is fired. " * 40
        kb.library.create("topic", f"Kiln {number}", body=text)
    tools.context.most_tokens = 1_024
    out = tools.ok("search", query="kiln fired", limit=12)
    assert 1 <= out.count("<data ") < 12
    assert estimate_tokens(out) < 1_024 + 100


def test_notes_in_other_folders_of_the_user_are_found_and_read(
    kb: KnowledgeBase, session: Session
) -> None:
    folder = kb.workspace.root / "Notes" / "deep"
    folder.mkdir(parents=True)
    (folder / "otters.md").write_text("Otters hold hands.\n")
    (folder / "secret.md").write_text("---\nprivate: true\n---\nOtters bite.\n")
    (kb.workspace.root / "Other").mkdir()
    (kb.workspace.root / "Other/x.md").write_text("Otters elsewhere.\n")
    search = kb.settings.search.model_copy(update={"roots": ("Notes/",), "semantic": False})
    with KnowledgeBase.open(kb.workspace.root, overrides={"search": search.model_dump()}) as again:
        tools = Tools(again, session)
        assert "hold hands" in tools.ok("search", query="otters")
        assert "hold hands" in tools.ok("read", path="Notes/deep/otters.md")
        found = tools.ok("grep", pattern="otters")
        assert "Notes/deep/otters.md:1" in found
        assert "elsewhere" not in found
        assert "is not for the agent" in tools.error("read", path="Other/x.md")
        assert again.library.is_private("Notes/deep/secret.md")
        assert not again.library.is_private("Notes/deep/otters.md")
