"""Gemini's activities become conversations in order, whatever the list was like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import UnreadableError
from kbtui.importers.opened import Opened
from kbtui.importers.port import Conversation, Skipped
from kbtui.importers.sources.gemini import SOURCE

if TYPE_CHECKING:
    from pathlib import Path


def act(asked: str, answer: str, time: str, **more: Any) -> dict[str, Any]:
    shape = {"header": "Gemini Apps", "title": f"Prompted {asked}", "time": time}
    return {**shape, "products": ["Gemini Apps"], "safeHtmlItem": [{"html": answer}], **more}


def put(folder: Path, acts: Any) -> Path:
    file = folder / "some export.json"
    file.write_text(acts if isinstance(acts, str) else json.dumps(acts))
    return file


def texts(found: Any) -> list[str]:
    assert isinstance(found, Conversation)
    return [each.text for each in found.messages]


def chat(name: str) -> list[dict[str, str]]:
    return [{"name": "x", "url": f"https://gemini.google.com/app/{name}"}]


def test_half_an_hour_parts_conversations_and_each_is_in_order(tmp_path: Path, read: Any) -> None:
    acts = [
        act("Third", "<p>3</p>", "2026-01-05T12:00:00.000Z"),
        act("Second", "<p>2</p>", "2026-01-05T10:29:00.000Z"),
        act("First", "<p>see <b>1</b></p>", "2026-01-05T10:00:00.000Z"),
    ]
    later, earlier = read(SOURCE, put(tmp_path, acts))
    assert texts(earlier) == ["First", "see **1**", "Second", "2"]
    assert texts(later) == ["Third", "3"]
    assert (str(earlier.created), earlier.title) == ("2026-01-05 10:00:00+00:00", "First")


def test_what_names_its_conversation_belongs_to_it_weeks_later(tmp_path: Path, read: Any) -> None:
    acts = [
        act("Again", "<p>b</p>", "2026-03-01T10:00:00Z", details=chat("abcdef12")),
        act("Else", "<p>c</p>", "2026-01-05T10:05:00Z", details=chat("99999999")),
        act("First", "<p>a</p>", "2026-01-05T10:00:00Z", details=chat("abcdef12")),
    ]
    found = {each.id: each for each in read(SOURCE, put(tmp_path, acts))}
    assert texts(found["abcdef12"]) == ["First", "a", "Again", "b"]
    assert found["abcdef12"].url == "https://gemini.google.com/app/abcdef12"
    assert texts(found["99999999"]) == ["Else", "c"]


def test_the_ids_stay_when_the_export_grows(tmp_path: Path, read: Any) -> None:
    acts = [act("First", "<p>a</p>", "2026-01-05T10:00:00Z")]
    (before,) = read(SOURCE, put(tmp_path, acts))
    acts.insert(0, act("Second", "<p>b</p>", "2026-01-05T10:10:00Z"))
    (after,) = read(SOURCE, put(tmp_path, acts))
    assert after.id == before.id
    assert after.messages[:2] == before.messages


@pytest.mark.parametrize(
    "other",
    [
        {"header": "Search", "title": "Searched for x", "time": "2026-01-05T10:00:00Z"},
        act("", "", "2026-01-05T10:00:00Z", title="Gave feedback: good"),
        act("", "<p>x</p>", "2026-01-05T10:00:00Z", title="Used an assistant feature"),
        dict.fromkeys(act("", "", ""), None),
        {},
    ],
)
def test_other_activities_are_no_conversation(
    other: dict[str, Any], tmp_path: Path, read: Any
) -> None:
    acts = [other, act("Hello", "<p>a</p>", "2026-01-05T10:00:00Z")]
    assert [texts(each) for each in read(SOURCE, put(tmp_path, acts))] == [["Hello", "a"]]


def test_a_canvas_and_names_of_files_are_kept(tmp_path: Path, read: Any) -> None:
    canvas = {"title": "Created Gemini Canvas titled Plan", "subtitles": [{"name": "# Steps"}]}
    acts = [
        act("", "", "2026-01-05T10:01:00Z", **canvas),
        act("Look", "<p>a</p>", "2026-01-05T10:00:00Z", attachedFiles=["a.pdf", {"name": "b.png"}]),
    ]
    (found,) = read(SOURCE, put(tmp_path, acts))
    assert texts(found) == ["Look", "a", "**Plan**\n\n# Steps"]
    assert found.messages[0].attached == ("a.pdf", "b.png")


def test_a_cut_list_gives_what_stood_before_and_says_so(tmp_path: Path, read: Any) -> None:
    acts = [act(f"Question {day}", "<p>a</p>", f"2026-01-{day}T10:00:00Z") for day in (12, 11, 10)]
    found = read(SOURCE, put(tmp_path, json.dumps(acts)[:-40]))
    assert [type(each) for each in found].count(Skipped) == 1
    assert [texts(each)[0] for each in found if isinstance(each, Conversation)] == [
        "Question 12",
        "Question 11",
    ]


def test_a_list_of_other_activities_is_not_recognised(tmp_path: Path) -> None:
    with Opened(put(tmp_path, [{"header": "Search", "title": "x", "time": "y"}])) as opened:
        assert not SOURCE.recognises(opened)


def test_takeouts_web_page_is_known_and_its_other_format_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "MyActivity.html"
    file.write_text(
        "<html><head><title>My Activity History</title></head>"
        '<p class="mdl-typography--title">Gemini Apps<br></p>Prompted Hello<br>'
    )
    with Opened(file) as opened:
        assert SOURCE.recognises(opened)
        with pytest.raises(UnreadableError, match="JSON"):
            list(SOURCE.read(opened))
