"""What is taken of a Slack workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.importers.engine import find_source
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import Skipped
from kbtui.importers.sources.slack import SOURCE
from tests.importers.exports import written

if TYPE_CHECKING:
    from pathlib import Path


def message(user: str, text: str, ts: str = "1700000000.000100", **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": ts, **more}


def workspace(folder: Path) -> Path:
    people = [
        {"id": "U1", "name": "ada", "profile": {"real_name": "Ada Byron"}},
        {"id": "U2", "name": "bob"},
    ]
    written(folder / "users.json", people)
    written(folder / "channels.json", [{"id": "C1", "name": "garden", "members": ["U1", "U2"]}])
    written(folder / "dms.json", [{"id": "D1", "members": ["U1", "U2"]}])
    return folder


def test_channels_and_chats_are_conversations_a_month_with_their_people(
    tmp_path: Path, read: Any
) -> None:
    place = workspace(tmp_path / "x")
    texts = "Ask <@U2> in <#C1|garden>: <https://x.org|a page> &amp; <!here>"
    written(place / "garden/2023-11-14.json", [message("U1", texts)])
    written(place / "garden/2023-11-15.json", [message("U2", "Ok", "1700100000.0")])
    written(place / "garden/2023-12-15.json", [message("U2", "Later", "1702600000.0")])
    written(
        place / "D1/2023-11-14.json", [message("U9", "Psst", user_profile={"real_name": "Eve"})]
    )
    with OpenedExport(place) as opened:
        assert find_source(opened) is SOURCE
    chat, november, december = read(SOURCE, place)
    assert [each.title for each in (chat, november, december)] == [
        "Ada Byron, bob, 2023-11",
        "#garden, 2023-11",
        "#garden, 2023-12",
    ]
    assert [(each.role, each.text) for each in november.messages] == [
        ("assistant", "Ada Byron: Ask @bob in #garden: [a page](https://x.org) & @here"),
        ("assistant", "bob: Ok"),
    ]
    assert chat.messages[0].text == "Eve: Psst"


def test_files_and_notices_are_counted_and_a_day_that_is_cut_is_told_of(
    tmp_path: Path, read: Any
) -> None:
    place = workspace(tmp_path / "x")
    files = [{"name": "plan.pdf", "url_private": "https://files.slack.com/x"}]
    joined = message("U2", "<@U2> has joined", subtype="channel_join")
    written(place / "garden/2023-11-14.json", [message("U1", "See", files=files), joined])
    cut = written(place / "garden/2023-11-15.json", [message("U1", "Ok"), message("U1", "Gone")])
    cut.write_bytes(cut.read_bytes()[:-9])
    found, problem = read(SOURCE, place)
    assert [each.text for each in found.messages] == ["Ada Byron: See", "Ada Byron: Ok"]
    assert found.messages[0].attached == ("plan.pdf",)
    assert dict(found.named) == {"file": 1, "notice of the program": 1}
    assert isinstance(problem, Skipped)
    assert "breaks off" in problem.why


def test_slack_bots_cards_and_blocks_come_with_their_text_said_once(
    tmp_path: Path, read: Any
) -> None:
    place = workspace(tmp_path / "x")
    card = {"title": "Frost", "title_link": "https://x.org", "text": "Cover the leeks"}
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "Build <https://x.org|7> ok"}}
    words = [{"type": "text", "text": "See "}, {"type": "user", "user_id": "U2"}]
    rich = {"type": "rich_text_section", "elements": words}
    lines = [
        message("", "", subtype="bot_message", username="weather", attachments=[card]),
        message("U1", "", blocks=[section]),
        message("U1", "See <@U2>", blocks=[{"type": "rich_text", "elements": [rich]}]),
        message("U1", "", attachments=[{"fallback": "Only this is there"}]),
        message("U1", "shared", subtype="file_share", file={"name": "beds.pdf"}),
    ]
    written(place / "garden/2023-11-14.json", lines)
    (found,) = read(SOURCE, place)
    assert [each.text for each in found.messages] == [
        "weather: [Frost](https://x.org)\n\nCover the leeks",
        "Ada Byron: Build [7](https://x.org) ok",
        "Ada Byron: See @bob",
        "Ada Byron: Only this is there",
        "Ada Byron: shared",
    ]
    assert found.messages[4].attached == ("beds.pdf",)


def test_slack_comments_on_files_come_with_who_made_them(tmp_path: Path, read: Any) -> None:
    place = workspace(tmp_path / "x")
    below = message("", "", subtype="file_comment", comment={"user": "U2", "comment": "Too dark"})
    file = {"name": "beds.png", "initial_comment": {"user": "U1", "comment": "My beds"}}
    shared = message("U1", "", "1700000100.0", subtype="file_share", file=file)
    written(place / "garden/2023-11-14.json", [below, shared])
    (found,) = read(SOURCE, place)
    assert [each.text for each in found.messages] == ["bob: Too dark", "Ada Byron: My beds"]


def test_slack_rich_text_keeps_quotes_and_code_on_lines_of_their_own(
    tmp_path: Path, read: Any
) -> None:
    place = workspace(tmp_path / "x")
    parts = [
        {"type": f"rich_text_{kind}", "elements": [{"type": "text", "text": kind}]}
        for kind in ("section", "quote", "preformatted")
    ]
    blocks = [{"type": "rich_text", "elements": parts}]
    written(place / "garden/2023-11-14.json", [message("U1", "", blocks=blocks)])
    (found,) = read(SOURCE, place)
    assert found.messages[0].text == "Ada Byron: section\nquote\npreformatted"


def test_slack_tables_dates_and_labels_are_text(tmp_path: Path, read: Any) -> None:
    place = workspace(tmp_path / "x")
    date = {"type": "date", "timestamp": 1, "fallback": "on Monday"}
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": "-2 "}, date]}
    cells = [{"type": "raw_text", "text": "bed"}, {"type": "rich_text", "elements": [section]}]
    label = {"type": "plain_text", "text": "Which bed?"}
    blocks = [{"type": "table", "rows": [cells, cells[:1]]}, {"type": "input", "label": label}]
    written(place / "garden/2023-11-14.json", [message("U1", "", blocks=blocks)])
    (found,) = read(SOURCE, place)
    assert found.messages[0].text == "Ada Byron: bed | -2 on Monday\nbed\n\nWhich bed?"
