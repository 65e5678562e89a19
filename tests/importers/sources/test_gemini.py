"""Gemini's activities become conversations in order, whatever the list was like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, Skipped
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
    assert isinstance(found, ImportedConversation)
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
    told = [each for each in read(SOURCE, put(tmp_path, acts)) if isinstance(each, Skipped)]
    (found,) = [each for each in read(SOURCE, put(tmp_path, acts)) if each not in told]
    assert texts(found) == ["Hello", "a"]
    is_geminis = other.get("header") == "Gemini Apps"
    assert [each.place for each in told] == ["1 other activity (some export.json)"] * is_geminis


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
    assert [texts(each)[0] for each in found if isinstance(each, ImportedConversation)] == [
        "Question 12",
        "Question 11",
    ]


def test_a_list_of_other_activities_is_not_recognised(tmp_path: Path) -> None:
    with OpenedExport(put(tmp_path, [{"header": "Search", "title": "x", "time": "y"}])) as opened:
        assert not SOURCE.recognises(opened)


def _cell(asked: str, date: str, answer: str, product: str = "Gemini Apps") -> str:
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        '<div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">'
        f'{product}<br></p></div><div class="content-cell mdl-cell mdl-cell--6-col'
        f' mdl-typography--body-1">Prompted\xa0{asked}<br>{date}<br>{answer}</div>'
        '<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1'
        ' mdl-typography--text-right"></div><div class="content-cell mdl-cell mdl-cell--12-col'
        ' mdl-typography--caption"><b>Products:</b><br>&emsp;Gemini Apps<br></div></div></div>'
    )


def _page(file: Path, *cells: str) -> Path:
    title = "<html><head><title>My Activity History</title></head><body>"
    file.write_text(f"{title}{''.join(cells)}</body></html>", "utf-8")
    return file


@pytest.mark.parametrize(
    "date",
    [
        *("Jan 5, 2026, 10:00:00\u202fAM CET", "5 Jan 2026, 10:00:00 CET"),
        *("05.01.2026, 10:00:00 MEZ", "5 sty 2026, 10:00:00 CET", "5 янв. 2026, 10:00:00 GMT"),
        *("2026. 1. 5. 오후 7:00:00 GMT+09:00", "2026年1月5日 GMT+08:00 18:00:00"),
        *("2026年1月5日 下午6:00:00 [GMT+08:00]", "5 Oca 2026 10:00:00 TRT"),
        "5 de jan. de 2026, 10:00:00 BRT",
    ],
    ids=["american", "british", "german", *("pl", "ru", "ko", "zh", "zh-tw", "tr", "pt")],
)
def test_takeouts_web_page_is_read_as_the_list_is(tmp_path: Path, read: Any, date: str) -> None:
    later = date.replace(":00:00", ":05:00")
    file = _page(
        tmp_path / "MyActivity.html",
        _cell("and &lt;b&gt;?", later, "<p>Yes, <b>b</b>.</p><div>More</div>"),
        _cell("Hello", date, "<ul><li>Hi</li></ul>"),
        _cell("cats", date, "", "Search"),
    )
    (found,) = read(SOURCE, file)
    assert texts(found) == ["Hello", "- Hi", "and <b>?", "Yes, **b**.\n\nMore"]
    assert f"{found.messages[0].time:%Y-%m-%d %H:%M}" == "2026-01-05 10:00"


def test_an_activity_of_a_page_whose_date_is_not_known_comes_without_a_time(
    tmp_path: Path, read: Any
) -> None:
    cells = [_cell("Hello", "2026年1月5日", "<p>Hi</p>"), _cell("Ho", "", "<p>Hi</p>")]
    found, told = read(SOURCE, _page(tmp_path / "MyActivity.html", *cells))
    assert texts(found) == ["Ho", "Hi", "Hello", "Hi"]
    assert [each.time for each in found.messages] == [None] * 4
    assert told.place == "time of 2 activities (MyActivity.html)"
    assert told.lost
    assert "JSON" in told.why


@pytest.mark.parametrize("form", ["list", "page"])
def test_files_beside_come_and_those_that_are_missing_are_counted(
    tmp_path: Path, read: Any, form: str
) -> None:
    (tmp_path / "x").mkdir()
    if form == "list":
        acts = [act("Look", "a", "2026-01-05T10:00:00Z", attachedFiles=["a.png", "../b.png"])]
        put(tmp_path / "x", acts)
    else:
        links = "".join(f'-&nbsp;<a href="{n}">{n}</a><br>' for n in ("a.png", "../b.png"))
        asked = f"Look<br>Attached 2 files.<br>{links.removesuffix('<br>')}"
        _page(tmp_path / "x/MyActivity.html", _cell(asked, "Jan 5, 2026, 10:00:00 AM CET", "a"))
    (tmp_path / "x/a.png").write_bytes(b"png")
    (tmp_path / "b.png").write_bytes(b"secret")
    found, picture = read(SOURCE, tmp_path / "x")
    assert texts(found) == ["Look", "a"]
    assert found.messages[0].attached == ("a.png", "../b.png")
    assert found.named == {"file": 1}
    assert (picture.title, picture.data) == ("a.png", b"png")


def test_a_page_is_left_only_beside_the_list_of_its_name(tmp_path: Path, read: Any) -> None:
    date = "Jan 5, 2026, 10:00:00 AM CET"
    written = json.dumps([act("Listed", "<p>a</p>", "2026-01-05T10:00:00Z")])
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        _page(tmp_path / name / "MyActivity.html", _cell(f"Page {name}", date, "<p>b</p>"))
    (tmp_path / "a/MyActivity.json").write_text(written)
    assert [texts(each)[0] for each in read(SOURCE, tmp_path)] == ["Listed", "Page b"]


def test_a_line_of_a_prompt_with_a_time_is_not_the_date(tmp_path: Path, read: Any) -> None:
    asked = "Log:<br>2026-01-02 at 10:00:00 it broke"
    cell = _cell(asked, "Jan 5, 2026, 10:00:00 PM GMT", "<p>At 1 Feb 2026, 11:00:00 GMT</p>")
    (found,) = read(SOURCE, _page(tmp_path / "MyActivity.html", cell))
    assert texts(found) == ["Log:\n2026-01-02 at 10:00:00 it broke", "At 1 Feb 2026, 11:00:00 GMT"]
    assert f"{found.messages[0].time:%Y-%m-%d %H:%M}" == "2026-01-05 22:00"
