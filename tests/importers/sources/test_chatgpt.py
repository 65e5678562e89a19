"""What is taken of exports of ChatGPT, and what isn't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.opened import Opened
from kbtui.importers.port import Conversation, Skipped
from kbtui.importers.sources.chatgpt import SOURCE, without_marks
from tests.importers.exports import chatgpt, node, written

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.importers.port import Item


def read(path: Path) -> list[Item]:
    with Opened(path) as opened:
        assert SOURCE.recognises(opened)
        return list(SOURCE.read(opened))


def texts(tmp_path: Path, *nodes: Any, **more: Any) -> list[str]:
    (found,) = read(written(tmp_path / "a.json", [chatgpt("c1", *nodes, **more)]))
    return [each.text for each in found.messages] if isinstance(found, Conversation) else []


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
    assert isinstance(found, Conversation)
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
    assert isinstance(found, Conversation)
    stamps = [each.time and each.time.isoformat()[:16] for each in found.messages]
    assert stamps == ["2024-03-05T09:00", None, "2024-03-05T09:00", None]
    assert found.created is not None


def test_a_corrupted_conversation_is_reported_and_the_rest_comes(tmp_path: Path) -> None:
    good = chatgpt("c1", node("a", None, "user", "Hi"))
    bad = {"conversation_id": "c2", "title": "Corrupted entry", "create_time": 1.7e9}
    found = read(written(tmp_path / "a.json", [bad, good, None]))
    assert [type(each) for each in found] == [Skipped, Conversation, Skipped]
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
