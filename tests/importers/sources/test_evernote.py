"""ENEX files become notes with their files, and no trick in them does anything."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.importers.port import ImportedNote, Skipped
from kbtui.importers.sources.evernote import SOURCE

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = b"\x89PNG not really"
MARK = hashlib.md5(PICTURE, usedforsecurity=False).hexdigest()
DOCTYPE = '<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">'


def note(title: str, enml: str, inner: str = "") -> str:
    return (
        f"<note><title>{title}</title><content><![CDATA[<?xml version='1.0'?>"
        f"<!DOCTYPE en-note SYSTEM 'x.dtd'><en-note>{enml}</en-note>]]></content>"
        f"<created>20210803T051500Z</created><updated>20220101T000000Z</updated>{inner}</note>"
    )


def resource(data: bytes, name: str = "cat.png", mime: str = "image/png") -> str:
    text = base64.encodebytes(data).decode()
    return (
        f"<resource><data encoding='base64'>{text}</data><mime>{mime}</mime>"
        f"<resource-attributes><file-name>{name}</file-name></resource-attributes></resource>"
    )


def put(folder: Path, *notes: str, doctype: str = DOCTYPE) -> Path:
    file = folder / "Journal.enex"
    file.write_text(
        f"<?xml version='1.0' encoding='UTF-8'?>{doctype}<en-export>{''.join(notes)}</en-export>"
    )
    return file


def test_a_note_keeps_its_words_tags_dates_and_source(tmp_path: Path, read: Any) -> None:
    inner = (
        "<tag>travel</tag><tag>2021 plans</tag><note-attributes>"
        "<source-url>https://e.org/x</source-url></note-attributes>"
        "<task><title>Book taxi</title><taskStatus>completed</taskStatus></task>"
    )
    enml = "<h1>Plan</h1><div>One&nbsp;<b>two</b> &amp; three</div><div><en-todo checked='true'/>Pack</div>"
    (found,) = read(SOURCE, put(tmp_path, note("A &amp; B", enml, inner)))
    assert found == ImportedNote(
        id=found.id,
        title="A & B",
        text="# Plan\n\nOne **two** & three\n\n- [x] Pack\n\n- [x] Book taxi",
        created=found.created,
        updated=found.updated,
        tags=("travel", "2021 plans"),
        url="https://e.org/x",
        at="journal/a-b.md",
    )
    assert str(found.created) == "2021-08-03 05:15:00+00:00"


def test_files_come_with_a_note_and_are_shown_where_they_stood(tmp_path: Path, read: Any) -> None:
    enml = f"<div>See <en-media hash='{MARK}' type='image/png'/> here</div><en-media hash='00'/>"
    inner = resource(PICTURE) + resource(b"%PDF", "Old bill.pdf", "application/pdf")
    picture, bill, found = read(SOURCE, put(tmp_path, note("Trip", enml, inner)))
    assert (picture.data, bill.data) == (PICTURE, b"%PDF")
    assert picture.at == f"journal/files/cat-{MARK[:8]}.png"
    assert f"See ![cat-{MARK[:8]}](files/cat-{MARK[:8]}.png) here" in found.text
    assert found.text.endswith(f"](files/{bill.title})")
    assert "a file that the export lacks" in found.text


@pytest.mark.parametrize(
    ("enml", "text"),
    [
        ("<ul><li><en-todo/>a</li><li><en-todo checked='true'/>b</li></ul>", "- [ ] a\n- [x] b"),
        ('<ul style="--en-todo:true;"><li style="--en-checked:true;"><div>a</div></li></ul>', "- [x] a"),
        ('<div style="-en-codeblock:true;"><div>x = 1</div><div>  y</div></div>', "```\nx = 1\n  y\n```"),
        ("<en-crypt hint='h'>c2VjcmV0</en-crypt>", "[encrypted by Evernote]"),
        ("<script>alert(1)</script><div onclick='x()'>seen</div>", "seen"),
    ],
)  # fmt: skip
def test_what_only_evernote_has_becomes_markdown(
    enml: str, text: str, tmp_path: Path, read: Any
) -> None:
    assert [each.text for each in read(SOURCE, put(tmp_path, note("T", enml)))] == [text]


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE en-export [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE en-export [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE en-export [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>',
    ],
)
def test_a_file_that_declares_entities_is_refused(doctype: str, tmp_path: Path, read: Any) -> None:
    (skipped,) = read(SOURCE, put(tmp_path, note("T", "x"), doctype=doctype))
    assert isinstance(skipped, Skipped)
    assert "declares entities" in skipped.why


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("<note><title>Bad</title></wrong>", "XML is broken"),
        (note("Bad", "x", "<resource><data>!</data><broken</resource>"), "XML is broken"),
        (note("Bad", "x", "&undeclared;"), "XML is broken"),
    ],
)
def test_a_broken_note_is_told_of_and_the_next_is_read(
    bad: str, why: str, tmp_path: Path, read: Any
) -> None:
    doctype = "" if "&" in bad else DOCTYPE
    file = put(tmp_path, note("First", "1"), bad, note("Last", "2"), doctype=doctype)
    first, skipped, last = read(SOURCE, file)
    assert (first.title, last.title, last.text) == ("First", "Last", "2")
    assert why in skipped.why
    assert skipped.place.startswith("Bad")


def test_a_cut_file_gives_what_stood_before(tmp_path: Path, read: Any) -> None:
    file = put(tmp_path, note("First", "1"), note("Second", "2"))
    file.write_bytes(file.read_bytes()[:-60])
    first, skipped = read(SOURCE, file)
    assert (first.title, type(skipped)) == ("First", Skipped)


def test_a_broken_or_huge_file_is_left_and_the_note_stays(
    tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.importers.sources.evernote._MAX_FILE", 1000)
    broken = "<resource><data encoding='base64'>abcde</data><mime>image/png</mime></resource>"
    inner = resource(b"x" * 3000, "huge.bin") + broken
    huge, cut, found = read(SOURCE, put(tmp_path, note("Trip", "text", inner)))
    assert (huge.place, "larger than" in huge.why) == ("huge.bin in Trip", True)
    assert (cut.place, "base64" in cut.why) == ("A file in Trip", True)
    assert found.text == "text"


def test_control_characters_notes_alike_and_empty_ones_break_nothing(
    tmp_path: Path, read: Any
) -> None:
    same = note("Same", "a\x0b\x00b")
    found = read(SOURCE, put(tmp_path, same, same, "<note/>", "<note><title/><content/></note>"))
    assert [each.text for each in found] == ["ab", "ab", "", ""]
    assert len({each.id for each in found}) == 4
    assert len({each.at for each in found}) == 4


def test_a_large_file_is_read_in_pieces(tmp_path: Path, read: Any) -> None:
    data = bytes(range(256)) * 4000
    found = read(SOURCE, put(tmp_path, note("Big", "x", resource(data)), note("Next", "y")))
    assert found[0].data == data
    assert [each.title for each in found[1:]] == ["Big", "Next"]


def test_an_encoding_that_nobody_knows_is_said(tmp_path: Path, read: Any) -> None:
    file = put(tmp_path, note("T", "x"))
    file.write_text(file.read_text().replace("UTF-8", "UTF-9"))
    (skipped,) = read(SOURCE, file)
    assert "unknown encoding" in skipped.why


def test_dates_that_evernote_reminds_of_are_tasks(tmp_path: Path, read: Any) -> None:
    order = "<note-attributes><reminder-time>20261201T120000Z</reminder-time>{}</note-attributes>"
    done = "<reminder-done-time>20261202T120000Z</reminder-done-time>"
    task = "<task><title>Pay</title><dueDate>20261203T120000Z</dueDate></task>"
    file = put(
        tmp_path,
        note("Plumber", "<div>Call</div>", order.format("")),
        note("Roof", "<div>Look</div>", order.format(done) + task),
    )
    plumber, roof = read(SOURCE, file)
    assert plumber.text == "Call\n\n- [ ] Plumber 📅 2026-12-01"
    assert roof.text == "Look\n\n- [x] Roof 📅 2026-12-01 ✅ 2026-12-02\n- [ ] Pay 📅 2026-12-03"


def test_links_of_evernote_lead_to_notes_of_one_title_or_id(tmp_path: Path, read: Any) -> None:
    guid = "11111111-1111-1111-1111-111111111111"
    link = f"<a href='evernote:///view/1/s1/{guid}/{guid}/'>{{}}</a>"
    file = put(
        tmp_path,
        note("Index", f"<div>{link.format('Boiler')} {link.format('Twice')}</div>"),
        note("Boiler", "<div>Serviced</div>"),
        note("Twice", "<div>a</div>"),
        note("Twice", "<div>b</div>"),
    )
    found = {each.title: each for each in read(SOURCE, file)}
    assert found["Index"].text.startswith("[Boiler](boiler.md) [Twice](evernote:///")


def test_what_evernote_notes_hold_unseen_is_counted(tmp_path: Path, read: Any) -> None:
    inner = "<note-attributes><place-name>a place with four words</place-name></note-attributes>"
    enml = "<div>Seen</div><div style='display:none'>not seen</div>"
    found, left_out = read(SOURCE, put(tmp_path, note("A", enml, inner)))
    assert found.text == "Seen"
    assert left_out.place == "2 texts"
    assert "1 note-attributes/place-name" in left_out.why
