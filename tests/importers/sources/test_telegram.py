"""What is taken of Telegram's chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote, Skipped
from kbtui.importers.sources.telegram import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path

ANNA, ME = ("Anna", "user7"), ("Ada", "user1")


def message(number: int, who: tuple[str, str], text: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "type": "message", "date": f"2024-{number:02}-05T09:00:00",
        "from": who[0], "from_id": who[1], "text": text, "text_entities": [], **more,
    }  # fmt: skip


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "Anna", "type": "personal_chat", "id": 7, **more, "messages": [*messages]}


def every(*chats: dict[str, Any]) -> dict[str, Any]:
    person = {"user_id": 1, "first_name": "Ada", "phone_number": "+1", "bio": ""}
    told = {"about": "Here is the data you requested.", "personal_information": person}
    return {**told, "contacts": {"list": []}, "chats": {"about": "…", "list": [*chats]}, "x": 1}


def test_a_chat_is_a_conversation_a_month_and_the_owners_words_are_the_users(
    tmp_path: Path, read: Any
) -> None:
    linked = ["See ", {"type": "link", "text": "https://x.org"}, "!"]
    talk = chat(message(1, ANNA, "Hi"), message(1, ME, linked), message(2, ANNA, "Bye"))
    file = written(tmp_path / "result.json", talk)
    with OpenedExport(file) as opened:
        assert find_source(opened) is SOURCE
    found = read(SOURCE, file)
    assert [(each.id, each.title) for each in found] == [
        ("7 2024-01", "Anna, 2024-01"),
        ("7 2024-02", "Anna, 2024-02"),
    ]
    assert [(each.role, each.text) for each in found[0].messages] == [
        ("assistant", "Anna: Hi"),
        ("user", "See https://x.org!"),
    ]


def test_of_all_chats_each_comes_and_groups_know_the_owner(tmp_path: Path, read: Any) -> None:
    group = chat(
        message(1, ANNA, "Hi"), message(1, ME, "Ho"), type="private_group", name="Us", id=8
    )
    saved = chat(message(1, ME, "Milk"), type="saved_messages", name=None, id=1)
    empty = chat(id=9, name="Nobody")
    found = read(SOURCE, written(tmp_path / "result.json", every(group, saved, empty)))
    first, second, third = found
    assert [each.text for each in first.messages] == ["Anna: Hi", "Ho"]
    assert (second.title, second.messages[0].role) == ("Saved messages, 2024-01", "user")
    assert isinstance(third, Skipped)


def test_what_was_forwarded_is_not_the_users(tmp_path: Path, read: Any) -> None:
    talk = chat(message(1, ANNA, "Hi"), message(1, ME, "I won", forwarded_from="Bob"))
    (found,) = read(SOURCE, written(tmp_path / "result.json", talk))
    assert found.messages[1].text == "Ada: (forwarded from Bob) I won"
    assert found.messages[1].role == "assistant"


def test_pictures_come_and_what_is_missing_or_a_notice_is_counted(
    tmp_path: Path, read: Any
) -> None:
    missing = "(File not included. Change data exporting settings to download.)"
    talk = chat(
        message(1, ANNA, "", photo="photos/a.jpg"),
        message(1, ANNA, "", file=missing, media_type="voice_message"),
        message(1, ANNA, "", poll={"question": "?"}),
        {"id": 4, "type": "service", "date": "2024-01-05T09:00:00", "action": "phone_call"},
    )
    written(tmp_path / "x/result.json", talk)
    (tmp_path / "x/photos").mkdir()
    (tmp_path / "x/photos/a.jpg").write_bytes(b"jpg")
    found, picture = read(SOURCE, tmp_path / "x")
    assert isinstance(found, ImportedConversation)
    assert [each.attached for each in found.messages] == [("a.jpg",), ("recording",)]
    assert dict(found.named) == {"recording": 1, "poll": 1, "notice of the program": 1}
    assert isinstance(picture, ImportedNote)
    assert picture.data == b"jpg"


def test_one_that_is_cut_keeps_the_chats_before(tmp_path: Path, read: Any) -> None:
    file = written(tmp_path / "a", every(chat(message(1, ANNA, "Hi")), chat(message(1, ME, "Ho"))))
    file.write_bytes(file.read_bytes()[:-60])
    found = read(SOURCE, file)
    assert isinstance(found[0], ImportedConversation)
    assert "breaks off" in found[-1].why


def test_addresses_behind_words_and_texts_in_parts_only_come(tmp_path: Path, read: Any) -> None:
    link = {"type": "text_link", "text": "here", "href": "https://e.org/a"}
    plain = {"type": "plain", "text": "Only parts"}
    said = [message(1, ANNA, ["See ", link]), message(2, ANNA, "", text_entities=[plain])]
    found = read(SOURCE, written(tmp_path / "result.json", chat(*said)))
    assert [each.text for talk in found for each in talk.messages] == [
        "Anna: See [here](https://e.org/a)",
        "Anna: Only parts",
    ]


def test_chats_that_were_left_come_too(tmp_path: Path, read: Any) -> None:
    left = chat(message(1, ANNA, "Farewell"), type="private_group", name="Old", id=9)
    whole = {**every(chat(message(1, ANNA, "Hi"))), "left_chats": {"about": "…", "list": [left]}}
    found = read(SOURCE, written(tmp_path / "result.json", whole))
    assert [each.messages[0].text for each in found] == ["Anna: Hi", "Anna: Farewell"]
