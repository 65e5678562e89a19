"""What people met with their own exports, vaults and clients, as the measuring data re-creates it.

``python -m pytest -m slow tests/e2e/test_reported_inputs.py`` runs every case of ``reports/chats``,
``notes``, ``real`` and ``behaviour`` as its ``want.txt`` or first line says. What a conversation
with a model decides is tried where that is tested.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kbtui.importers.engine import sources_of
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation
from kbtui.knowledge.format.frontmatter import set_keys
from tests.e2e.program import ROOT, Done, kbtui, ok

pytestmark = pytest.mark.data


@pytest.fixture
def reports(data_dir: Path) -> Path:
    """The folder of the reports."""
    return data_dir / "reports"


@dataclass(frozen=True)
class Imported:
    """A workspace into which something was imported, and what the command said."""

    workspace: Path
    done: Done

    @property
    def said(self) -> str:
        return self.done.out + self.done.err

    @property
    def talks(self) -> dict[str, list[tuple[str, str]]]:
        """The messages that each session shows, as role and text, by its id."""
        found: dict[str, list[tuple[str, str]]] = {}
        for log in sorted((self.workspace / "sessions").glob("*.jsonl")):
            lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
            kept = [each for each in lines if each.get("role")]
            found[log.stem] = [(each["role"], each["content"]) for each in kept]
        return found

    @property
    def messages(self) -> list[tuple[str, str]]:
        return [each for talk in self.talks.values() for each in talk]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.messages]

    def note(self, name: str) -> str:
        files = self.workspace.joinpath("knowledge").rglob("*.md")
        return next(each for each in files if each.stem.lower() == name.lower()).read_text("utf-8")


@pytest.fixture
def bring(tmp_path: Path) -> Any:
    """Import files or folders of the data, copied, into a new workspace."""

    def run(*paths: Path) -> Imported:
        workspace = tmp_path / "w"
        inbox = tmp_path / "in"
        inbox.mkdir()
        ok("init", workspace)
        copies = []
        for number, path in enumerate(paths):
            copies.append(inbox / f"{number}" / path.name)
            copies[-1].parent.mkdir()
            if path.is_dir():
                shutil.copytree(path, copies[-1])
            else:
                shutil.copy(path, copies[-1])
        return Imported(workspace, kbtui("import", "--yes", *copies, workspace=workspace))

    return run


@pytest.fixture
def vault(tmp_path: Path) -> Any:
    """Open a vault of the data in place, in a copy."""

    def run(path: Path) -> Path:
        place = tmp_path / "vault"
        shutil.copytree(path, place)
        ok("init", place)
        return place

    return run


# Chats --------------------------------------------------------------------------------------------

_LOG = "11111111-aaaa-4bbb-8ccc-00000000000"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (f"{_LOG}1.jsonl", 8),
        ("ten-exchanges-copied.jsonl", 20),
        (f"sib-a/{_LOG}2.jsonl", 4),
    ],
)
def test_claude_code_history_written_again_by_compact_comes_once(
    reports: Path, bring: Any, name: str, count: int
) -> None:
    came = bring(reports / "chats/01-claude-code-second-compact" / name)
    assert len(came.texts) == count
    assert len(set(came.texts)) == count


def test_claude_code_resumed_sessions_keep_each_statement(reports: Path, bring: Any) -> None:
    came = bring(reports / "chats/02-claude-code-resumed-lineage")
    for said in ("alarm code panel", "spare key hangs", "bin day is Thursday"):
        assert any(said in text for text in came.texts), said
        hits = ok("search", "--scope", "sessions", "--json", said, workspace=came.workspace).json
        assert hits["hits"], said
    rewound = [log.read_text() for log in came.workspace.joinpath("sessions").glob("*.jsonl")]
    assert not any('"rewind"' in text for text in rewound)


@pytest.mark.parametrize(
    ("case", "count"),
    [
        ("03-codex-item-completed", 4),
        ("03-codex-item-completed/sib-both", 2),
        ("04-codex-resumed-newer", 4),
        ("04-codex-resumed-newer/sib-items", 4),
    ],
)
def test_codex_notations_of_one_message_are_merged(
    reports: Path, bring: Any, case: str, count: int
) -> None:
    came = bring(next((reports / "chats" / case).glob("*.jsonl")))
    assert len(came.texts) == count
    assert [role for role, _ in came.messages] == ["user", "assistant"] * (count // 2)


@pytest.mark.parametrize("form", [".", "sib-assistant", "sib-tool"])
def test_chatgpt_deep_research_reports_come_in(reports: Path, bring: Any, form: str) -> None:
    came = bring(reports / "chats/05-chatgpt-deep-research" / form / "conversations.json")
    assert [role for role, _ in came.messages] == ["user", "assistant"]
    assert "seasonal factor of the Lindholm 9 is 3.4" in came.texts[1]


def test_chatgpt_missing_nodes_cut_nothing_off(reports: Path, bring: Any) -> None:
    case = reports / "chats/06-chatgpt-missing-node"
    came = bring(case / "conversations.json", case / "sib-others/conversations.json")
    # The last of the others has a message without text.
    assert sorted(len(talk) for talk in came.talks.values()) == [3, 4, 4, 4]


@pytest.mark.parametrize("form", [".", "sib-badcurrent", "sib-norole"])
def test_open_webui_orphans_hide_no_message(reports: Path, bring: Any, form: str) -> None:
    came = bring(reports / "chats/07-openwebui-orphan" / form / "chats.json")
    assert "The mooring fee is 410 euros." in came.texts[0]
    assert len(came.texts) == 4


def test_open_webui_errors_and_other_models_are_counted(reports: Path, bring: Any) -> None:
    case = reports / "chats/07-openwebui-orphan"
    came = bring(case / "sib-error/chats.json", case / "sib-two-models/chats.json")
    assert sorted(len(talk) for talk in came.talks.values()) == [2, 3]
    assert "1 notice of the program" in came.said


@pytest.mark.parametrize(
    ("stream", "said", "status"),
    [
        ("main", "sent an empty answer", 4),
        ("sib-null", "sent an empty answer", 4),
        ("sib-keepalive", "sent an empty answer", 4),
        ("sib-length", "cut off at the model's limit of length", 4),
        ("sib-error-in-stream", "Failed to parse input at pos 20", 4),
        ("sib-nofinish", "The boiler is in the cellar.\n", 0),
        ("sib-reasoning-field", "The boiler is in the cellar.\n", 0),
        ("sib-toolfinish-none", "The boiler is in the cellar.\n", 0),
    ],
)
def test_empty_and_odd_streams_are_answers_or_errors(
    reports: Path,
    tmp_path: Path,
    unused_tcp_port: int,
    stream: str,
    said: str,
    status: int,
) -> None:
    # Right is: what was shown as an answer counts, whatever the end says or lacks; thoughts alone,
    # nothing, or an error among the pieces are an error in a sentence, never an empty answer.
    script = tmp_path / "stream.json"
    shutil.copy(reports / f"chats/10-empty-or-odd-stream/{stream}.json", script)
    command = [sys.executable, reports / "chats/rawsrv.py", str(unused_tcp_port), script]
    ok("init", tmp_path / "w")
    with subprocess.Popen(command) as server:
        try:
            _wait_for(unused_tcp_port)
            done = kbtui(
                *("ask", "Where is the boiler?"),
                workspace=tmp_path / "w",
                KBTUI_MODEL="openai/scripted",
                KBTUI_API_BASE=f"http://127.0.0.1:{unused_tcp_port}/v1",
                KBTUI_API_KEY="x",
                KBTUI_MODELS__RETRIES="0",
            )
        finally:
            server.terminate()
    assert done.status == status
    assert said in (done.err if status else done.out)
    assert "I think" not in done.out


def _wait_for(port: int) -> None:
    """Wait until a server of this machine takes connections."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.settimeout(0.1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        select.select([], [], [], 0.05)
    raise AssertionError(port)


def test_a_gitconfig_of_any_form_names_who_commits(reports: Path, tmp_path: Path) -> None:
    # Right is: the name in it, with a mark of the byte order, and above what is broken.
    for name, person in (("gitconfig", "Pat Example\n"), ("sib-bom", "B\n"), ("sib-broken", "B\n")):
        home, workspace = tmp_path / f"home-{name}", tmp_path / f"w-{name}"
        home.mkdir()
        shutil.copy(reports / "chats/11-gitconfig" / name, home / ".gitconfig")
        ok("init", workspace, HOME=str(home))
        ok("new", "topic", "Well", workspace=workspace, HOME=str(home))
        history = str(workspace / ".kbtui/history.git")
        git = ["git", "--git-dir", history, "log", "-1", "--format=%an"]
        assert subprocess.run(git, capture_output=True, text=True, check=True).stdout == person


@pytest.mark.parametrize("page", ["main", "sib-uk", "sib-de", "sib-fr", "sib-ja"])
def test_gemini_pages_are_read_or_named(reports: Path, bring: Any, page: str) -> None:
    came = bring(reports / f"chats/12-gemini-page/{page}.html")
    if came.done.status:
        assert "Gemini" in came.said
        return
    assert [role for role, _ in came.messages] == ["user", "assistant"]
    assert "23" in came.texts[1]
    if page == "main":
        log = next(came.workspace.joinpath("sessions").glob("gemini_*.jsonl")).read_text("utf-8")
        assert "2026-09-03T21:40:02" in log


def test_gemini_prompts_without_an_answer_come_in(reports: Path, bring: Any) -> None:
    came = bring(reports / "chats/12-gemini-page/sib-json-de-noanswer.json")
    assert came.texts[:2] == ["Wie tief ist der Brunnen?", "Wie breit ist er?"] or came.texts == [
        "Wie breit ist er?",
        "2 Meter.",
        "Wie tief ist der Brunnen?",
    ]


def test_cursor_agent_transcripts_are_conversations(reports: Path, bring: Any) -> None:
    came = bring(reports / "chats/13-cursor-transcripts/.cursor")
    assert came.texts == [
        "The cistern holds 900 litres. How long does it last?",
        "At 30 litres a day: 30 days.",
    ]
    assert "1 step of a tool" in came.said


def test_claude_tools_that_show_something_come_with_it(reports: Path, bring: Any) -> None:
    # Right is: what a person saw and answered stands in the message (a question with its answer, a
    # draft, an artifact, a file); thoughts and what only the program does are counted.
    came = bring(reports / "chats/14-claude-export-kinds/conversations.json")
    whole = "\n".join(came.texts)
    for shown in (
        *("Prune in late February", "How tall is the tree?", "6 m", "may I borrow your ladder"),
        *("Ladder on 9 October", "16 October", "Then you need a ladder."),
    ):
        assert shown in whole
    assert "secret thought" not in whole
    assert "task_id" not in whole


def test_mcp_arguments_that_a_client_adds_do_no_harm(reports: Path, tmp_path: Path) -> None:
    ok("init", tmp_path / "w")
    ok("new", "topic", "Boiler", workspace=tmp_path / "w")
    env = {"KBTUI_WORKSPACE": str(tmp_path / "w"), "PYTHONPATH": str(ROOT)}
    env["KB"] = str(Path(sys.executable).with_name("kbtui"))
    lines: dict[str, list[str]] = {}
    for script in ("mcp_odd.py", "mcp_n8n.py"):
        done = subprocess.run(
            [sys.executable, reports / "chats/16-mcp-arguments" / script],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        for line in done.stdout.splitlines():
            lines.setdefault(line.partition(" ")[0], []).append(line)
    assert "ok" in lines["extra"][0]
    for name in ("tags-comma", "tags-hash", "tags-emptystring", "tags-jsonstring"):
        assert " ok " in lines[name][0], lines[name]
    for name in ("memory_search", "write_entry", "list_entries"):
        assert "(False" in lines[name][0], lines[name]
    listed = ok("list", "--tag", "heating", "--json", workspace=tmp_path / "w").json
    assert {"Tag one", "Tag two", "Tag seven"} <= {each["title"] for each in listed}


# Notes --------------------------------------------------------------------------------------------


def test_a_rename_changes_only_the_target_in_block_scalars(reports: Path, vault: Any) -> None:
    place = vault(reports / "notes/01-block-scalar-link/vault")
    before = {file: file.read_bytes() for file in (place / "Q").iterdir()}
    ok("rename", "P/Lime Tree", "Tilia", workspace=place)
    for file, data in before.items():
        assert file.read_bytes() == data.replace(b"[[Lime Tree]]", b"[[Tilia]]"), file.name


def test_apple_tables_in_objects_come_in(reports: Path, bring: Any) -> None:
    note = bring(reports / "notes/02-apple-table-object/in").note("Shopping")
    assert re.search(r"flour \| 2 kg", note)


def test_html_marks_keep_their_meaning(reports: Path, bring: Any) -> None:
    note = bring(reports / "notes/03-html-meaning/in").note("A")
    for plain, raised in (("mc", "2"), ("2", "10"), ("10", "6")):
        assert f"{plain}<sup>{raised}</sup>" in note
    assert "~~old price 40~~ new price 50" in note


def test_roam_code_fences_end(reports: Path, bring: Any) -> None:
    came = bring(reports / "notes/04-roam-code-fence/roam2.json")
    assert "garden.md" in ok("links", "code-page", workspace=came.workspace).out
    assert "Code page" in ok("search", "tag:aftertag", workspace=came.workspace).out
    assert "weed" in ok("tasks", workspace=came.workspace).out


def test_logseq_tags_are_known(reports: Path, vault: Any) -> None:
    place = vault(reports / "notes/05-logseq-tags/vault")
    for query in ("tag:herbs", 'tag:"long tag"'):
        assert "Mint" in ok("search", query, workspace=place).out
    assert "Mint" in ok("list", "--tag", "herbs", workspace=place).out


def test_logseq_journal_titles_are_known(reports: Path, vault: Any) -> None:
    place = vault(reports / "notes/05-logseq-tags/vault")
    assert "journals/2026_11_26.md" in ok("links", "d", workspace=place).out
    assert "Thursday, 26.11.2026" in ok("list", workspace=place).out


def test_relative_wikilinks_of_obsidian_lead_and_are_mended(reports: Path, vault: Any) -> None:
    place = vault(reports / "notes/06-relative-wikilinks/vault")
    assert "not there" not in ok("links", "Areas/Home/n", workspace=place).out
    note = place / "Areas/Home/n.md"
    before = note.read_text("utf-8")
    ok("rename", "People/Ada", "Bea", workspace=place)
    assert note.read_text("utf-8") == before.replace("People/Ada", "People/Bea")


def test_reminders_of_evernote_stay(reports: Path, bring: Any) -> None:
    came = bring(reports / "notes/07-due-dates/r.enex")
    assert "2026-12-01" in came.note("reminder")


def test_notion_rows_of_one_name_lead_to_their_own_pages(reports: Path, bring: Any) -> None:
    table = bring(reports / "notes/08-notion-same-name/nt.zip").note("books")
    rows = {line.split("|")[2].strip(): line for line in table.splitlines() if "[Same]" in line}
    assert "Books/Same.md" in rows["Open"] or "Books/same.md" in rows["Open"]
    assert re.search(r"Same(?:%20|-)2\.md", rows["Done"], re.IGNORECASE)


def test_a_text_that_begins_like_a_head_stays_text(reports: Path, bring: Any) -> None:
    note = bring(reports / "notes/10-head-in-text/k1.json").note("blog-draft")
    head, _, body = note.removeprefix("---\n").partition("\n---\n")
    assert "created: 2023-07-22" in head
    assert "Google Keep" in head
    assert "title: My post" in body


def test_keep_pictures_hang_in_their_note(reports: Path, bring: Any) -> None:
    came = bring(reports / "notes/12-keep-picture/keep")
    file = next(came.workspace.joinpath("knowledge").rglob("pic.md"))
    shown = re.search(r"!\[[^\]]*\]\(([^)]+)\)", file.read_text("utf-8"))
    assert shown
    assert (file.parent / shown[1]).is_file()
    assert "11 notes; 3 files" in came.said


def test_unreadable_heads_are_kept_and_their_bodies_mended(reports: Path, vault: Any) -> None:
    place = vault(reports / "notes/14-unreadable-head-rename/vault")
    before = {file: file.read_bytes() for file in (place / "Q").iterdir()}
    ok("rename", "P/Lime Tree", "Tilia", workspace=place)
    for file, data in before.items():
        head, close, body = data.partition(b"\n---\n")
        body = body.replace(b"[[Lime Tree]]", b"[[Tilia]]")
        if file.name == "j_anchor.md":  # which can be read
            head = head.replace(b'&x "[[Lime Tree]]"', b'&x "[[Tilia]]"')
        assert file.read_bytes() == head + close + body.replace(b"P/Lime Tree", b"P/Tilia")


# Real ---------------------------------------------------------------------------------------------


def test_relative_wikilinks_are_no_dead_links(reports: Path, vault: Any) -> None:
    place = vault(reports / "real/01-relative-wikilinks")
    assert "Leek" not in kbtui("check", workspace=place).out
    shown = ok("links", "Soup", workspace=place).out
    assert "garden/Leek.md" in shown
    assert "kitchen/Pan.md" in shown
    ok("rename", "Leek", "Allium", workspace=place)
    assert "[[../garden/Allium]]" in (place / "kitchen/Soup.md").read_text("utf-8")


def test_a_code_span_ends_with_its_item(reports: Path, vault: Any) -> None:
    place = vault(reports / "real/02-stray-backtick-in-outline")
    assert "Keys" in ok("links", "Leek", workspace=place).out
    ok("rename", "Leek", "Allium", workspace=place)
    assert "[[Allium]]" in (place / "Keys.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["early", "late"])
def test_roam_is_known_wherever_its_title_stands(reports: Path, bring: Any, name: str) -> None:
    came = bring(reports / f"real/03-roam-string-late/{name}.json")
    assert came.done.status == 0
    assert "Row 0: leeks want water" in came.note("leek-bed")


def test_logs_of_two_agents_in_one_folder_come_in(reports: Path, bring: Any) -> None:
    came = bring(reports / "real/04-two-agents-one-folder")
    assert {name.partition("_")[0] for name in came.talks} == {"claude-code", "codex"}


def test_slack_attachments_and_old_files_come_in(reports: Path, bring: Any) -> None:
    came = bring(reports / "real/05-slack-attachments/slack.zip")
    assert any("Minus four tonight, cover the leeks" in text for text in came.texts)
    assert any("Plan of beds" in text for text in came.texts)
    assert "1 file" in came.said


def test_folders_of_org_notes_are_named(reports: Path, tmp_path: Path) -> None:
    place = tmp_path / "vault"
    shutil.copytree(reports / "real/06-org-folder-unnamed", place)
    assert "org/b.org" in ok("init", place).err
    assert "org/b.org" in kbtui("doctor", workspace=place).out


# Behaviour ----------------------------------------------------------------------------------------


@pytest.fixture
def script(reports: Path) -> Any:
    """Run the script of a case and return what it prints."""

    def run(case: str) -> str:
        folder = reports / "behaviour" / case
        file = next(folder.glob("run.*"))
        program = [sys.executable] if file.suffix == ".py" else ["bash"]
        env = {"K": str(Path(sys.executable).with_name("kbtui")), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*program, file], env={**os.environ, **env}, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    return run


def test_q05_typos_are_forgiven_in_long_titles(script: Any) -> None:
    assert "not found" not in script("Q05")


def test_q08_words_are_not_found_in_others(script: Any) -> None:
    said = dict(line.split(":", 1) for line in script("Q08").splitlines() if ":" in line)
    assert (said["add"].split(), said["evening"].split()) == (
        ["topics/added.md"],
        ["topics/evening.md"],
    )
    assert (said["ad"].split(), said["internal"].split()) == (
        ["topics/ad.md"],
        ["topics/internal.md"],
    )


def test_q10_beginnings_of_words_find_them(script: Any) -> None:
    assert " 0 hits" not in script("Q10")


def test_q16_a_checked_out_branch_is_not_written_over(script: Any) -> None:
    said = script("Q16")
    assert "checked out" in said
    assert "deletions" not in said
    assert "D  knowledge" not in said


def test_q17_a_shallow_copy_is_named(script: Any) -> None:
    assert "is a shallow copy" in script("Q17")


def test_q19_sha256_repositories_are_refused_in_a_sentence(script: Any) -> None:
    assert "keeps SHA-256 ids" in script("Q19")


def test_q20_addresses_are_rewritten_as_git_does(script: Any) -> None:
    assert "rc 0" in script("Q20")


def test_q24_evernote_links_between_notes_lead_there(script: Any) -> None:
    said = script("Q24")
    assert "evernote:///" not in said
    assert "index" in said


def test_q30_text_that_others_read_otherwise_is_quoted() -> None:
    for text in ("0891234567", "08", "0o7", "1e3", "12e03", "+.5", "y", "n", "1,000", ":sym"):
        line = set_keys("---\na: b\n---\nx\n", {"v": text}).split("\n")[2]
        assert line in {f"v: '{text}'", f'v: "{text}"'}


def test_q36_a_no_break_space_in_a_head_is_named(script: Any) -> None:
    said = script("Q36")
    assert "line 2: a no-break space" in said


def test_q38_links_below_or_in_an_unreadable_head_are_said(script: Any) -> None:
    said = script("Q38")
    assert "[[people/alice-stone]]" in said.lower() or "n1" in said.partition("rc 0")[0]


def test_q40_a_question_stands_before_its_answer(reports: Path, bring: Any) -> None:
    came = bring(reports / "behaviour/Q40/conversations.json")
    assert [role for role, _ in came.messages] == ["user", "assistant"] * 2
    assert came.texts[0] == "What does a boiler service cost?"


@pytest.mark.parametrize("name", ["conversations.json", "deepseek_data.zip"])
def test_q41_deepseek_comes_in(reports: Path, bring: Any, name: str) -> None:
    came = bring(reports / "behaviour/Q41" / name)
    assert came.texts == ["What does a boiler service cost?", "About 120 euros."]


def test_q42_grok_comes_in(reports: Path, bring: Any) -> None:
    came = bring(reports / "behaviour/Q42/prod-grok-backend.json")
    assert came.messages == [
        ("user", "What does a boiler cost?"),
        ("assistant", "About 3000 euros."),
    ]


def test_q45_gemini_verbs_of_other_languages_are_no_text(reports: Path) -> None:
    with OpenedExport(next((reports / "behaviour/Q45").glob("*.json"))) as opened:
        items = [item for source in sources_of(opened) for item in source.read(opened)]
    assert isinstance(items[0], ImportedConversation)
    assert [each.text for each in items[0].messages] == ["Was kostet ein Kessel?", "Viel."]


def test_q62_a_conflict_copy_of_syncthing_is_said(reports: Path, vault: Any) -> None:
    place = vault(reports / "behaviour/Q62")
    assert "sync-conflict" in kbtui("check", workspace=place).out


def test_q76_a_resource_that_is_not_there_is_an_invalid_argument(
    reports: Path, tmp_path: Path
) -> None:
    # As the protocol of July 2026 says: -32602, no longer the code -32002 of its own.
    request = (reports / "behaviour/Q76/request.json").read_text("utf-8")
    ok("init", tmp_path / "w")
    done = kbtui("mcp", workspace=tmp_path / "w", stdin=f"{request}\n")
    answer = json.loads(done.out.splitlines()[0])
    assert answer["error"]["code"] == -32602
