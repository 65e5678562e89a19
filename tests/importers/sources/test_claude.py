"""What is taken of exports of Claude.ai, and what isn't."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import UnreadableError
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources.claude import SOURCE
from tests.importers.exports import ROOT, claude, claude_message, written

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.importers.port import Item

NOTICE = "This block is not supported on your current device yet."


def read(path: Path) -> list[Item]:
    with OpenedExport(path) as opened:
        assert SOURCE.recognises(opened)
        return list(SOURCE.read(opened))


def only(path: Path) -> ImportedConversation:
    (found,) = read(path)
    assert isinstance(found, ImportedConversation)
    return found


def told(tmp_path: Path, **message: Any) -> list[str]:
    """The texts of a conversation of one message, or what was skipped."""
    talk = claude("c1", chat_messages=[claude_message(2, "", **message)])
    (found,) = read(written(tmp_path / "a.json", [talk]))
    return [each.text for each in found.messages] if isinstance(found, ImportedConversation) else []


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ({"content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}, ["A\n\nB"]),
        ({"text": f"Hm.\n```\n{NOTICE}\n```\nYes", "content": [{"type": "text", "text": "Yes"}]}, ["Yes"]),
        ({"content": [{"type": "thinking", "thinking": "secretly"}, {"type": "text", "text": "Yes"}]}, ["Yes"]),
        ({"content": [{"type": "thinking", "thinking": "secretly"}], "text": "secretly"}, []),
        ({"content": [{"type": "token_budget"}, {"type": "new"}, {"type": "text", "text": "Yes"}]}, ["Yes"]),
        ({"content": [], "text": "From 2024"}, ["From 2024"]),
        ({"content": [{"type": "text", "text": ""}], "text": "Beside"}, ["Beside"]),
        ({"content": None, "text": "So:\n```\nViewing artifacts created via the Analysis Tool web feature"
          " preview isn\u2019t yet supported on mobile.\n```\n"}, ["So:"]),
        ({"content": None, "text": f"```\n{NOTICE}\n```\n\nYes"}, ["Yes"]),
        ({"content": [{"type": "text", "text": f"Yes\n\n```\n{NOTICE}\n```"}]}, ["Yes"]),
        ({"content": None, "text": '<antThinking>secretly</antThinking>Here: <antArtifact identifier="a"'
          ' type="text/html" title="Page">\n<p>x</p>\n</antArtifact>'}, ["Here: [Page]\n<p>x</p>"]),
        ({"content": [{"type": "tool_use", "name": "artifacts", "input": {"title": "Plan", "command":
          "create", "content": "# Plan"}}]}, ["[Plan]\n# Plan"]),
        ({"content": [{"type": "tool_use", "name": "search", "input": {"q": "x"}},
          {"type": "tool_result", "content": [{"type": "text", "text": "hidden"}]}]}, []),
        ({"content": [{"type": "voice_note", "text": "Said aloud"}]}, ["Said aloud"]),
        ({"content": [{"type": "text", "text": None}], "text": None}, []),
    ],
)  # fmt: skip
def test_a_message_is_what_a_person_saw(
    tmp_path: Path, message: dict[str, Any], texts: list[str]
) -> None:
    assert told(tmp_path, **message) == texts


def test_the_latest_branch_is_taken_and_others_are_counted(tmp_path: Path) -> None:
    messages = [
        claude_message(1, "Hi", parent_message_uuid=ROOT),
        claude_message(2, "Old answer", parent_message_uuid="m1"),
        claude_message(4, "New answer", parent_message_uuid="m1"),
        claude_message(3, "Thanks for the old", parent_message_uuid="m2"),
    ]
    found = only(written(tmp_path / "a.json", [claude("c1", chat_messages=messages)]))
    assert [each.text for each in found.messages] == ["Hi", "New answer"]
    assert found.branches == 1


def test_a_circle_of_parents_takes_all_messages_in_order(tmp_path: Path) -> None:
    messages = [
        claude_message(2, "B", parent_message_uuid="m1"),
        claude_message(1, "A", parent_message_uuid="m2"),
    ]
    found = only(written(tmp_path / "a.json", [claude("c1", chat_messages=messages)]))
    assert [each.text for each in found.messages] == ["A", "B"]


def test_a_missing_parent_loses_nothing(tmp_path: Path) -> None:
    messages = [
        claude_message(1, "A", parent_message_uuid=ROOT),
        claude_message(2, "B", parent_message_uuid="m1"),
        claude_message(3, "C", parent_message_uuid="gone"),
    ]
    found = only(written(tmp_path / "a.json", [claude("c1", chat_messages=messages)]))
    assert [each.text for each in found.messages] == ["A", "B", "C"]


def test_what_was_attached_is_a_note_of_its_own_which_nobody_said(tmp_path: Path) -> None:
    message = claude_message(
        1,
        "See this",
        attachments=[{"file_name": "notes.txt", "extracted_content": "I live on Mars."}],
        files=[{"file_name": "photo.png"}],
    )
    found, note = read(written(tmp_path / "a.json", [claude("c1", chat_messages=[message])]))
    assert isinstance(found, ImportedConversation)
    assert found.messages[0].attached == ("notes.txt", "photo.png")
    assert "Mars" not in found.messages[0].text
    assert found.named == {"file": 1}
    assert isinstance(note, ImportedNote)
    assert (note.title, note.text, note.folder) == ("notes.txt", "I live on Mars.", "attachments")


def test_artifacts_and_files_come_with_their_changes_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    def tool(name: str, **made: Any) -> dict[str, Any]:
        return {"type": "tool_use", "name": name, "input": made}

    blocks = [
        {"type": "thinking", "thinking": "secretly"},
        tool("artifacts", id="a", command="create", title="Plan", content="Beans"),
        tool("artifacts", id="a", command="update", old_str="Beans", new_str="Peas"),
        tool("artifacts", id="a", command="update", old_str="Peas", new_str=""),
        tool("artifacts", id="a", command="rewrite", content="Leeks"),
        tool("create_file", path="/home/claude/x.py", file_text="print(1)", description="d"),
        tool("str_replace", path="/home/claude/x.py", old_str="1", new_str="2"),
        tool("view", path="/home/claude/x.py"),
        tool("web_search", query="q"),
        {"type": "tool_result", "content": []},
    ]
    talk = claude("c1", chat_messages=[claude_message(2, "", content=blocks)])
    found = only(written(tmp_path / "a.json", [talk]))
    assert found.messages[0].text.split("\n\n") == [
        "[Plan]\nBeans",
        "[Plan, changed]\nPeas",
        "[Plan, without]\nPeas",
        "[Plan]\nLeeks",
        "[/home/claude/x.py]\nprint(1)",
        "[/home/claude/x.py, changed]\n2",
    ]
    assert dict(found.named) == {"thought": 1, "step of a tool": 2}


@pytest.mark.parametrize(
    "value",
    [
        [None, 7, "x", []],
        [{"chat_messages": None}],
        [{"chat_messages": [None, 3, {}]}],
        [dict.fromkeys(claude("c1", "Hi"))],
        [{"uuid": "c1", "chat_messages": [dict.fromkeys(claude_message(1, "Hi"))]}],
    ],
)
def test_nulls_and_wrong_types_are_reported_and_passed_over(tmp_path: Path, value: Any) -> None:
    found = read(written(tmp_path / "a.json", [claude("good", "Hi"), *value]))
    assert [each.id for each in found if isinstance(each, ImportedConversation)] == ["good"]
    assert any(isinstance(each, Skipped) for each in found)


def test_what_was_whole_before_the_text_breaks_off_comes_in(tmp_path: Path) -> None:
    text = json.dumps([claude("c1", "Hi"), claude("c2", "Ho")])
    file = tmp_path / "a.json"
    file.write_text(text[:-40])
    first, second = read(file)
    assert isinstance(first, ImportedConversation)
    assert isinstance(second, Skipped)
    assert "breaks off" in second.why


def test_one_that_is_no_json_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    bad = '{"uuid": "x", "chat_messages": [{"a": nope}]}'
    file.write_text(f"[{json.dumps(claude('c1', 'Hi'))}, {bad}, {json.dumps(claude('c2', 'Ho'))}]")
    assert [type(each) for each in read(file)] == [
        ImportedConversation,
        Skipped,
        ImportedConversation,
    ]


def test_nesting_without_end_is_refused_and_fifty_levels_are_not(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = {"a": [deep]}
    found = only(written(tmp_path / "a.json", [claude("c1", "Hi", settings=deep)]))
    assert found.messages[0].text == "Hi"
    file = tmp_path / "b.json"
    file.write_text(
        f'[{{"chat_messages": {"[" * 100_000}{"]" * 100_000}}}, {json.dumps(claude("c2", "Ho"))}]'
    )
    assert [type(each) for each in read(file)] == [Skipped, ImportedConversation]


def test_projects_and_memories_are_notes(tmp_path: Path) -> None:
    project = {
        "uuid": "p1", "name": "Garden", "is_private": True, "prompt_template": "Be brief.",
        "docs": [{"uuid": "d1", "filename": "plan.md", "content": "Tomatoes"}, {"filename": "empty"}],
    }  # fmt: skip
    written(tmp_path / "x/projects/p1.json", project)
    written(tmp_path / "x/memories.json", [{"conversations_memory": "**Work**\nA cook."}])
    written(tmp_path / "x/users.json", [{"uuid": "u", "email_address": "a@example.org"}])
    written(tmp_path / "x/light_metadata.json", {"uuid": "d1", "logins": []})
    found = read(tmp_path / "x")
    notes = [
        (each.folder, each.title, each.text) for each in found if isinstance(each, ImportedNote)
    ]
    assert notes == [
        ("memories", "What Claude remembered", "**Work**\nA cook."),
        ("Garden", "Garden", "## Instructions\n\nBe brief."),
        ("Garden", "plan.md", "Tomatoes"),
    ]
    assert [each.why for each in found if isinstance(each, Skipped)] == ["It is empty."]


def _real_project(number: int) -> dict[str, Any]:
    """A project with all the fields that the downloads have, in their order."""
    return {
        "uuid": f"p{number}", "name": f"Garden {number}", "description": "Beds", "is_private": True,
        "is_starter_project": False, "prompt_template": "Brief. " * 20_000,
        "created_at": "2025-01-02T03:04:05Z", "updated_at": "2025-01-03T03:04:05Z",
        "creator": {"uuid": "u", "full_name": "Ada Byron"},
        "docs": [{"uuid": f"d{number}", "filename": "plan.md", "content": "Tomatoes", "created_at": None}],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["list", "one a file", "under a name", "without the long part"])
def test_projects_are_known_by_their_own_fields_though_they_name_who_made_them(
    tmp_path: Path, form: str
) -> None:
    projects = [_real_project(1), _real_project(2)]
    if form == "one a file":
        for each in projects:
            written(tmp_path / f"x/projects/{each['uuid']}.json", each)
    elif form == "under a name":
        written(tmp_path / "x/projects.json", {"projects": projects})
    else:
        keep = [key for key in projects[0] if form == "list" or key != "prompt_template"]
        written(tmp_path / "x/projects.json", [{k: each[k] for k in keep} for each in projects])
    found = read(tmp_path / "x")
    titles = [(each.folder, each.title) for each in found if isinstance(each, ImportedNote)]
    assert titles == [
        (f"Garden {n}", title) for n in (1, 2) for title in (f"Garden {n}", "plan.md")
    ]
    assert not any(isinstance(each, Skipped) for each in found)


def test_conversations_about_designs_come_in_as_others(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "text": "secretly"},
        {"type": "tool_call", "toolCall": {"name": "draw", "input": {}}},
        {"type": "text", "text": "Here it is."},
    ]
    asked = {"content": "Draw a boat", "attachments": [{"type": "image", "name": "boat.png"},
             {"type": "skill", "name": "spec", "content": "hidden"}]}  # fmt: skip
    talk = {
        "uuid": "d1", "title": "Boat", "project": {"name": "Sea"}, "created_at": "2026-05-01T09:00:00Z",
        "messages": [
            {"uuid": "a", "role": "user", "content": asked},
            {"uuid": "b", "role": "assistant", "content": {"contentBlocks": blocks}},
        ],
    }  # fmt: skip
    written(tmp_path / "x/users/u1/design_chats/d1.json", talk)
    found = only(tmp_path / "x")
    assert found.title == "Boat"
    assert [(each.role, each.text) for each in found.messages] == [
        ("user", "Draw a boat"),
        ("assistant", "Here it is."),
    ]
    assert found.messages[0].attached == ("boat.png",)


def test_memory_files_keep_their_folders(tmp_path: Path) -> None:
    value = {"memory_files": [{"path": "/people/anna.md", "content": "Sister"}]}
    (found,) = read(written(tmp_path / "memories.json", value))
    assert isinstance(found, ImportedNote)
    assert (found.folder, found.title) == ("memories/people", "anna")


def test_a_zip_under_any_name_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "download"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("data-2026/conversations.json", json.dumps([claude("c1", "Hi")]))
        made.writestr("data-2026/../../evil.json", json.dumps([claude("c2", "Hi")]))
    assert only(file).id == "c1"


def test_the_object_form_is_read_as_well(tmp_path: Path) -> None:
    value = {"account": {"uuid": "a"}, "conversations": [claude("c1", "Hi")]}
    assert only(written(tmp_path / "a.json", value)).id == "c1"
    assert only(written(tmp_path / "b.json", claude("c2", "Hi"))).id == "c2"


def test_a_manifest_beside_what_it_lists_is_no_hindrance(tmp_path: Path) -> None:
    manifest = {"version": 1, "data_files": [{"export_url": "https://x", "filename": "a.zip"}]}
    file = written(tmp_path / "x/manifest.json", manifest)
    with pytest.raises(UnreadableError, match=r"a\.zip"):
        read(file)
    written(tmp_path / "x/conversations-000.json", [claude("c1", "Hi")])
    assert only(tmp_path / "x").id == "c1"
