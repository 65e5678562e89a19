"""What is taken of WhatsApp's chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedNote
from kbtui.importers.sources.whatsapp import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

ANDROID = """\
13/01/2024, 09:05 - Messages and calls are end-to-end encrypted.
13/01/2024, 09:05 - Anna: Hi: how are you?
13/01/2024, 09:06 - Ada Byron: Well.
And two lines.
02/02/2024, 21:00 - Anna: Bye
"""
IPHONE = """\
[1/13/24, 9:05:00\u202fAM] Anna: \u200eMessages are encrypted.
[1/13/24, 9:05:01\u202fAM] Anna: Hi: how are you?
[1/13/24, 9:06:00\u202fAM] Ada Byron: Well.
And two lines.
[2/2/24, 9:00:00\u202fPM] Anna: Bye
"""
GERMAN = ANDROID.replace("/01/2024", ".01.24").replace("/02/2024", ".02.24")


def export(folder: Path, text: str, name: str = "WhatsApp Chat with Anna.txt") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return folder / name


SPANISH = (
    ANDROID.replace(", 09:", ", 9:").replace(" - ", " a.\xa0m. - ").replace("21:00 a.", "9:00 p.")
)
CHINESE = ANDROID.translate({44: None})
for far, near in (("13/01/2024", "2024/1/13"), ("02/02/2024", "2024/2/2"), (" 09:", " 上午9:")):
    CHINESE = CHINESE.replace(far, near)
CHINESE = CHINESE.replace("21:00", "下午9:00")
KOREAN = CHINESE.replace("/", ". ").replace("上午", "오전 ").replace("下午", "오후 ")
KOREAN = KOREAN.replace(" - ", ", ").replace("24. 1. 13", "24. 1. 13.").replace("2. 2 ", "2. 2. ")
FORMS = {
    "android": ANDROID,
    "iphone": IPHONE,
    "german": GERMAN,
    "spanish": SPANISH,
    "chinese": CHINESE,
    "korean": KOREAN,
}


@pytest.mark.parametrize("text", [*FORMS.values()], ids=[*FORMS])
def test_each_form_says_the_same(tmp_path: Path, read: Any, text: str) -> None:
    file = export(tmp_path / "x", text)
    with OpenedExport(file) as opened:
        assert find_source(opened) is SOURCE
    first, second = read(SOURCE, file)
    assert [(each.role, each.text) for each in first.messages[-2:]] == [
        ("assistant", "Anna: Hi: how are you?"),
        ("user", "Well.\nAnd two lines."),
    ]
    assert [f"{each.time:%Y-%m-%d %H:%M}" for each in first.messages[-2:]] == [
        "2024-01-13 09:05",
        "2024-01-13 09:06",
    ]
    assert f"{second.messages[0].time:%Y-%m-%d %H:%M}" == "2024-02-02 21:00"
    assert (first.title, second.title) == ("Anna, 2024-01", "Anna, 2024-02")


def test_in_a_group_nothing_is_the_users(tmp_path: Path, read: Any) -> None:
    text = "".join(f"1/13/24, 9:0{n} AM - {who}: Hi\n" for n, who in enumerate(("A", "B", "C")))
    (found,) = read(SOURCE, export(tmp_path / "x", text, "WhatsApp Chat with Us.txt"))
    assert [each.text for each in found.messages] == ["A: Hi", "B: Hi", "C: Hi"]
    assert {each.role for each in found.messages} == {"assistant"}


def test_a_renamed_copy_is_the_same_chat(tmp_path: Path, read: Any) -> None:
    first, _ = read(SOURCE, export(tmp_path / "x", ANDROID))
    again, _ = read(SOURCE, export(tmp_path / "y", ANDROID, "chat.txt"))
    assert first.id == again.id


def test_pictures_come_and_what_was_left_out_is_counted(tmp_path: Path, read: Any) -> None:
    text = (
        "[13/01/2024, 09:05:00] Anna: \u200e<attached: 0001-PHOTO.jpg>\n"
        "[13/01/2024, 09:05:01] Anna: IMG-2.jpg (file attached)\nLook\n"
        "[13/01/2024, 09:05:02] Anna: <Media omitted>\n"
        "[13/01/2024, 09:05:03] Anna: \u200eimage omitted\n"
    )
    (export(tmp_path / "x", text).parent / "0001-PHOTO.jpg").write_bytes(b"jpg")
    found, picture = read(SOURCE, tmp_path / "x")
    assert isinstance(found, ImportedConversation)
    assert [(each.text, each.attached) for each in found.messages] == [
        ("Anna:", ("0001-PHOTO.jpg",)),
        ("Anna: Look", ("IMG-2.jpg",)),
        ("Anna:", ("a file",)),
        ("Anna:", ("a file",)),
    ]
    assert dict(found.named) == {"file": 3}
    assert isinstance(picture, ImportedNote)
    assert picture.data == b"jpg"


@pytest.mark.parametrize("text", ["", "Dear diary\n13/01/2024, 09:05 - A: B", "13/01/2024, x"])
def test_other_texts_are_none(tmp_path: Path, text: str) -> None:
    with OpenedExport(export(tmp_path / "x", text)) as opened:
        assert not SOURCE.recognises(opened)
