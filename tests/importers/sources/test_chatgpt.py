"""What is taken of exports of ChatGPT, and what isn't."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources.chatgpt import SOURCE, without_marks
from tests.importers.exports import chatgpt, node, written

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.importers.port import Item


def read(path: Path) -> list[Item]:
    with OpenedExport(path) as opened:
        assert SOURCE.recognises(opened)
        return list(SOURCE.read(opened))


def texts(tmp_path: Path, *nodes: Any, **more: Any) -> list[str]:
    found = read(written(tmp_path / "a.json", [chatgpt("c1", *nodes, **more)]))
    talks = [each for each in found if isinstance(each, ImportedConversation)]
    return [each.text for talk in talks for each in talk.messages]


@pytest.mark.parametrize(
    "hidden",
    [
        {"role": "system"},
        {"role": "tool"},
        {"role": "assistant", "weight": 0},
        {"role": "assistant", "metadata": {"is_visually_hidden_from_conversation": True}},
        {"role": "assistant", "recipient": "browser"},
        {"role": "assistant", "content": {"content_type": "thoughts", "thoughts": [{"content": "x"}]}},
        {"role": "assistant", "content": {"content_type": "reasoning_recap", "content": "Thought"}},
        {"role": "user", "content": {"content_type": "user_editable_context", "user_profile": "x"}},
        {"role": "system", "metadata": {"is_user_system_message": True},
         "content": {"content_type": "model_editable_context", "model_set_context": "x"}},
        {"role": None}, {"role": "assistant", "metadata": None, "content": None},
    ],
)  # fmt: skip
def test_what_was_hidden_stays_out(tmp_path: Path, hidden: dict[str, Any]) -> None:
    role = hidden.pop("role")
    nodes = (node("a", None, "user", "Hi"), node("b", "a", role, "hidden", **hidden))
    assert texts(tmp_path, *nodes, node("c", "b", "assistant", "Ho")) == ["Hi", "Ho"]


@pytest.mark.parametrize(
    ("content", "text", "attached"),
    [
        ({"content_type": "of_next_year", "text": "A"}, "A", ()),
        ({"content_type": "text", "parts": ["A", "", "B"]}, "A\n\nB", ()),
        ({"content_type": "multimodal_text", "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-x"}, "Look"]},
         "Look", ("image",)),
        ({"content_type": "multimodal_text", "parts": [
            {"content_type": "audio_transcription", "text": "Spoken"},
            {"content_type": "audio_asset_pointer"}]}, "Spoken", ("audio",)),
        ({"content_type": "code", "language": "python", "text": "1+1"}, "```python\n1+1\n```", ()),
        ({"content_type": "text", "parts": [None, 7, {"x": 1}, "A"]}, "A", ()),
    ],
)  # fmt: skip
def test_every_kind_of_content_is_text(
    tmp_path: Path, content: dict[str, Any], text: str, attached: tuple[str, ...]
) -> None:
    (found,) = read(written(tmp_path / "a.json", [chatgpt("c1", node("a", None, content=content))]))
    assert isinstance(found, ImportedConversation)
    assert (found.messages[0].text, found.messages[0].attached) == (text, attached)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("It is so \ue200cite\ue202turn0search0\ue202turn1view2\ue201.", "It is so."),
        ('By \ue200entity\ue202["person","Ada Lovelace","mathematician"]\ue201 it was.',
         "By Ada Lovelace it was."),
        ("Cheap【12†source】 and【3:1†L1-L4】 good.", "Cheap and good."),
        ("See \ue200url\ue202the page\ue202https://x\ue201.", "See the page."),
        ("Left\ue203 over", "Left over"),
        ("【重要】 stays", "【重要】 stays"),
    ],
)  # fmt: skip
def test_marks_of_citations_are_cleaned_away(text: str, clean: str) -> None:
    assert without_marks(text) == clean


@pytest.mark.parametrize("current", [None, "gone", 7])
def test_without_a_current_node_the_newest_leaf_is_taken(tmp_path: Path, current: Any) -> None:
    nodes = (
        node("a", None, "user", "Hi", create_time=1.7e9),
        node("b", "a", "assistant", "New", create_time=1.7e9 + 9),
        node("c", "a", "assistant", "Old", create_time=1.7e9 + 5),
    )
    assert texts(tmp_path, *nodes, current_node=current) == ["Hi", "New"]


def test_circles_in_the_tree_end(tmp_path: Path) -> None:
    nodes = (node("a", "b", "user", "Hi"), node("b", "a", "assistant", "Ho"))
    assert texts(tmp_path, *nodes) == ["Hi", "Ho"]


def test_parents_are_known_by_children_as_well(tmp_path: Path) -> None:
    first, second = node("a", None, "user", "Hi"), node("b", None, "assistant", "Ho")
    first["children"] = ["b"]
    assert texts(tmp_path, first, second) == ["Hi", "Ho"]


def test_times_are_numbers_texts_or_missing(tmp_path: Path) -> None:
    nodes = (
        node("a", None, "user", "A", create_time="1709629200.5"),
        node("b", "a", "assistant", "B", create_time=None),
        node("c", "b", "user", "C", create_time="2024-03-05T09:00:00"),
        node("d", "c", "user", "D", create_time=1e300),
    )
    (found,) = read(written(tmp_path / "a.json", [chatgpt("c1", *nodes, create_time="x")]))
    assert isinstance(found, ImportedConversation)
    stamps = [each.time and each.time.isoformat()[:16] for each in found.messages]
    assert stamps == ["2024-03-05T09:00", None, "2024-03-05T09:00", None]
    assert found.created is not None


def test_a_corrupted_conversation_is_reported_and_the_rest_comes(tmp_path: Path) -> None:
    good = chatgpt("c1", node("a", None, "user", "Hi"))
    bad = {"conversation_id": "c2", "title": "Corrupted entry", "create_time": 1.7e9}
    found = read(written(tmp_path / "a.json", [bad, good, None]))
    assert [type(each) for each in found] == [Skipped, ImportedConversation, Skipped]
    assert isinstance(found[0], Skipped)
    assert "Corrupted entry" in found[0].place


def test_a_split_export_is_read_in_all_its_parts(tmp_path: Path) -> None:
    for part in range(3):
        talk = chatgpt(f"c{part}", node("a", None, "user", "Hi"), title=None)
        written(tmp_path / f"x/conversations-{part:03}.json", [talk])
    feedback = {"conversation_id": "c0", "rating": "thumbs_up", "create_time": 1.7e9, "title": ""}
    written(tmp_path / "x/message_feedback.json", [feedback])
    ids = [getattr(each, "id", "") for each in read(tmp_path / "x")]
    assert ids == ["c0", "c1", "c2"]


def _canvas(tool: str, **told: Any) -> dict[str, Any]:
    content = {"content_type": "code", "language": "json", "text": json.dumps(told)}
    return {"content": content, "recipient": f"canmore.{tool}"}


def test_documents_of_the_canvas_come_where_they_were_written_and_changed(tmp_path: Path) -> None:
    nodes = (
        node("a", None, "user", "Write a plan"),
        node("b", "a", "assistant", **_canvas("create_textdoc", name="Plan", content="Beans")),
        node("c", "b", "tool", "Successfully created text document"),
        node("d", "c", "assistant", **_canvas("update_textdoc", updates=[{"pattern": ".*", "replacement": "Peas"}])),
        node("e", "d", "assistant", **_canvas("comment_textdoc", comments=[{"comment": "Nice"}])),
    )  # fmt: skip
    (found,) = read(written(tmp_path / "a.json", [chatgpt("c1", *nodes)]))
    assert isinstance(found, ImportedConversation)
    assert [each.text for each in found.messages] == [
        "Write a plan",
        "[Plan]\nBeans",
        "[Canvas, changed]\nPeas",
    ]
    assert dict(found.named) == {"step of a tool": 2}


def _picture(id_: str, scheme: str = "file-service") -> dict[str, Any]:
    parts = [{"content_type": "image_asset_pointer", "asset_pointer": f"{scheme}://{id_}"}, "Look"]
    return {"content": {"content_type": "multimodal_text", "parts": parts}}


def test_pictures_and_papers_come_as_files_and_those_that_are_missing_are_counted(
    tmp_path: Path,
) -> None:
    spoken = [{"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_000b"}]
    paper = {"attachments": [{"id": "file-Cc3", "name": "lease.pdf"}]}
    nodes = (
        node("a", None, "user", **_picture("file-Aa1")),
        node("b", "a", "tool", **_picture("file_000a", "sediment")),
        node("c", "b", "user", content={"content_type": "multimodal_text", "parts": spoken}),
        node("d", "c", "user", "Read it", metadata=paper),
        node("e", "d", "user", **_picture("file-Gone")),
    )
    written(tmp_path / "x/conversations.json", [chatgpt("c1", *nodes)])
    names = (
        *("file-Aa1-garden.png", "dalle-generations/file_000a-1.webp", "c1/audio/file_000b-2.wav"),
        *("file-Cc3-lease.pdf", "file-Zz9-never shown.png"),
    )
    for name in names:
        place = tmp_path / "x" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(name.encode())
    found, *notes = read(tmp_path / "x")
    assert isinstance(found, ImportedConversation)
    assert [(each.role, each.text, each.attached) for each in found.messages] == [
        ("user", "Look", ("image",)),
        ("assistant", "", ("image",)),
        ("user", "", ("audio",)),
        ("user", "Read it", ("lease.pdf",)),
        ("user", "Look", ("image",)),
    ]
    assert dict(found.named) == {"picture": 1}
    assert {each.title: each.data for each in notes if isinstance(each, ImportedNote)} == {
        "file-Aa1-garden.png": b"file-Aa1-garden.png",
        "file_000a-1.webp": b"dalle-generations/file_000a-1.webp",
        "file_000b-2.wav": b"c1/audio/file_000b-2.wav",
        "lease.pdf": b"file-Cc3-lease.pdf",
        "file-Zz9-never shown.png": b"file-Zz9-never shown.png",
    }


def test_instructions_and_memory_are_the_newest_notes_and_projects_are_named(
    tmp_path: Path,
) -> None:
    def talk(number: int, **more: Any) -> dict[str, Any]:
        told = {
            "content_type": "user_editable_context",
            "user_profile": f"A cook of {number}",
            "user_instructions": "Be brief",
        }
        kept = {"content_type": "model_editable_context", "model_set_context": f"Likes {number}"}
        nodes = (
            node("a", None, "user", content=told),
            node("b", "a", "assistant", content=kept),
            node("c", "b", "user", "Hi"),
        )
        return chatgpt(f"c{number}", *nodes, update_time=1.7e9 + number, **more)

    file = written(tmp_path / "a.json", [talk(2, gizmo_id="g-p-1"), talk(1, gizmo_id="g-x")])
    found = read(file)
    assert [(each.title, each.text) for each in found if isinstance(each, ImportedNote)] == [
        ("Custom instructions", "## About me\n\nA cook of 2\n\n## How to answer\n\nBe brief"),
        ("What ChatGPT remembered", "Likes 2"),
    ]
    (project,) = [each for each in found if isinstance(each, Skipped)]
    assert project.place == "Name and instructions of 1 project"
    assert "g-p-1" in project.why
