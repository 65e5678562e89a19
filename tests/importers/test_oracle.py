"""An oracle that knows no format: what a file says is in the workspace, or is counted.

Every text of four words or more in a JSON, XML or HTML export is found in the workspace, or the
report of the import counts the pattern of its path, or names its file or what it is.
"""

from __future__ import annotations

import copy
import html
import json
import random
import re
from functools import partial
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from kbtui.errors import KbtuiError
from kbtui.importers.accounting import Account, bare, leaves_of
from kbtui.importers.engine import Report, left_over, run, sources_of, take_back
from kbtui.importers.export_files import OpenedExport
from kbtui.importers.port import ImportedConversation, ImportedMessage, ImportedNote
from kbtui.knowledge_base import KnowledgeBase
from tests.importers.exports import chatgpt, node, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kbtui.importers.port import Skipped

ENDS = (".json", ".jsonl", ".enex", ".html")
FOLDERS = ("exports", "reports/chats", "reports/notes", "reports/real", "reports/behaviour")
NO_EXPORTS = re.compile(r"/(?:0[89]|1[0156])-|/Q(?:62|76)/|/vault/|lime|\.obsidian")
MANY = 200
_THOUGHT = re.compile(r"<antThinking>.*?</antThinking>", re.DOTALL)
_BORDERS = re.compile(r"</?ant[A-Z]\w+[^<>]*>|[<>\n:\"\xa0\ue200-\uf8ff【】|]|<@\w+>")
_TIME = re.compile(r"\A[^\n]{0,20}\b20\d\d,? \d{1,2}:\d\d:\d\d\W+\w[^\n]{1,20}\Z")
_SHORT = 12


def texts_of(file: Path) -> list[tuple[str, str]]:
    """All texts of a file with the patterns of their paths, by what its ending says it is."""
    text = file.read_text("utf-8", "replace")
    if file.suffix == ".jsonl":
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [leaf for value in values for leaf in leaves_of(value)]
    if file.suffix == ".json":
        return list(leaves_of(json.loads(text)))
    if file.suffix == ".enex":
        found = ET.fromstring(text)
        inner = ((each.tag, each.text or "") for each in found.iter())
        return [
            (tag, words)
            for tag, whole in inner
            for words in (pieces(whole) if "<" in whole else [whole])
            if len(words.split()) >= 4
        ]
    return [("", words) for words in pieces(text) if len(words.split()) >= 4]


def pieces(page: str) -> list[str]:
    """The texts between the tags of a page that it shows."""
    found: list[str] = []
    hidden: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            del attrs
            if tag in {"head", "style", "script"}:
                hidden.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if hidden and tag == hidden[-1]:
                hidden.pop()

        def handle_data(self, data: str) -> None:
            if not hidden:
                found.append(data)

    Reader().feed(page)
    return found


class Came:
    """What an import of a path left in a new workspace, and what it told."""

    def __init__(self, path: Path, place: Path) -> None:
        self.reports: list[Report] = []
        self.skipped: list[Skipped] = []
        self.problem = ""
        overrides = {"search": {"semantic": False}}
        with KnowledgeBase.open(place, create=True, overrides=overrides) as kb:
            try:
                with OpenedExport(path) as opened:
                    for source in sources_of(opened):
                        self.reports.append(run(kb.services, opened, source))
                    self.skipped += filter(None, [left_over(opened)])
            except KbtuiError as error:
                self.problem = str(error)
        self.skipped += [each for report in self.reports for each in report.skipped]
        if not self.reports:
            self.problem = self.problem or "no export that kbtui knows"
        files = [*place.rglob("sessions/*.jsonl"), *place.rglob("knowledge/**/*.md")]
        whole = "\n".join(file.read_text("utf-8", "replace") for file in sorted(files))
        said = "\n".join(map(_unescaped, whole.splitlines()))
        self._whole = squeezed(html.unescape(said)) + bare(said)

    def lost(self, file: Path) -> list[tuple[str, str]]:
        """The texts of a file that are neither here nor told of."""
        if self.problem or any(file.name in each.place for each in self.skipped):
            return []
        told = "\n".join(f"{each.place} {each.why}" for each in self.skipped)
        unread = [pattern for report in self.reports for pattern in report.unread]
        return [
            (pattern, text)
            for pattern, text in texts_of(file)
            if squeezed(html.unescape(text)) not in self._whole
            and not self._has_pieces(text)
            and not any(pattern.endswith(each) for each in unread)
            and squeezed(text) not in squeezed(told)
        ]

    def _has_pieces(self, text: str) -> bool:
        """Whether the parts of a text came that converting it leaves alone.

        A verb before a prompt, a time in words and signs of citations are written otherwise.
        """
        if any(report.named["thought"] for report in self.reports):
            text = _THOUGHT.sub("", text)
        first, *parts = [squeezed(each) for each in _BORDERS.split(html.unescape(text))]
        parts += [first] if len(first) > 2 * _SHORT else []
        return bool(_TIME.search(text)) or all(
            part in self._whole for part in parts if len(part) > _SHORT
        )


def squeezed(text: str) -> str:
    """The letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text)


def _unescaped(line: str) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return line
    return (
        str(value.get("content") or value.get("title") or "") if isinstance(value, dict) else line
    )


def exports(folder: Path) -> Iterator[Path]:
    """The files of the measuring data that are exports of JSON, XML or HTML."""
    for part in FOLDERS:
        for file in sorted((folder / part).rglob("*")):
            if file.suffix in ENDS and not NO_EXPORTS.search(str(file)):
                yield file


@pytest.mark.data
def test_every_text_of_the_shared_exports_is_in_or_named(data_dir: Path, tmp_path: Path) -> None:
    lost = []
    for number, file in enumerate(exports(data_dir)):
        lost += [(file.name, *each) for each in Came(file, tmp_path / f"{number}").lost(file)]
    assert lost == []


def contents(root: Path) -> dict[str, bytes]:
    """The bytes of all files of a workspace that are a person's."""
    files = [file for file in root.rglob("*") if file.is_file()]
    names = {file.relative_to(root).as_posix(): file for file in files}
    return {name: file.read_bytes() for name, file in names.items() if not name.startswith(".")}


def left_by(path: Path, kb: KnowledgeBase) -> list[str]:
    """The files that importing a path and undoing that left, took or changed, with their bytes."""
    before = contents(kb.workspace.root)
    with OpenedExport(path) as opened:
        reports = [run(kb.services, opened, source) for source in sources_of(opened)]
    for report in reversed(reports):
        if report.sessions or report.entries:
            take_back(kb.services, report.batch, partial(kb.history.undo_batch, report.batch))
    after = contents(kb.workspace.root)
    return [
        f"{path.name} {way} {name}: {found[name][:2_000]!r}"
        for way, names, found in (
            ("left", after.keys() - before.keys(), after),
            ("took", before.keys() - after.keys(), before),
            ("changed", {n for n in after.keys() & before.keys() if after[n] != before[n]}, after),
        )
        for name in sorted(names)
    ]


@pytest.mark.data
def test_every_import_of_the_shared_exports_is_undone_to_the_byte(
    data_dir: Path, tmp_path: Path
) -> None:
    quick = {"search": {"semantic": False}}
    with KnowledgeBase.open(tmp_path / "w", create=True, overrides=quick) as kb:
        kb.library.create("topic", "Well", body="Twenty metres deep.")
        every = [*exports(data_dir), *whole_folders(data_dir)]
        left = [line for path in every for line in left_by(path, kb)]
    assert left == []


def whole_folders(folder: Path) -> Iterator[Path]:
    """The folders and archives of the measuring data that are exports as a whole."""
    for part in ("reports/notes", "reports/real", "reports/chats"):
        yield from (each for each in sorted((folder / part).iterdir()) if each.is_dir())
        yield from sorted((folder / part).rglob("*.zip"))


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """The records and lists within a value, as what holds them and their key there."""
    found: list[tuple[Any, Any]] = []
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], dict | list):
            found += [(value, key), *places_in(value[key])]
    return found


def broken(value: Any, chance: random.Random) -> Any:
    """A value with some of its records removed, doubled, renamed or made of an unknown kind."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        if not (places := places_in(value)):
            return value
        owner, key = chance.choice(places)
        inner, way = owner[key], chance.choice(("remove", "double", "rename", "kind"))
        if way == "remove":
            del owner[key]
        elif way == "kind" and isinstance(inner, dict):
            inner["type"] = "of-an-unknown-kind"
        elif isinstance(owner, list):
            owner.insert(key, copy.deepcopy(inner))
        else:
            owner[f"{key}-new"] = owner.pop(key) if way == "rename" else copy.deepcopy(inner)
    return value


@pytest.mark.data
def test_every_text_of_broken_exports_is_in_or_named(data_dir: Path, tmp_path: Path) -> None:
    files = [each for each in exports(data_dir) if each.suffix in {".json", ".jsonl"}]
    lost = []
    for number in range(MANY):
        chance = random.Random(number)
        file = chance.choice(files)
        text = file.read_text("utf-8", "replace")
        place = tmp_path / f"in-{number}" / file.name
        place.parent.mkdir()
        if file.suffix == ".jsonl":
            lines = [json.loads(line) for line in text.splitlines() if line.strip()]
            place.write_text("".join(f"{json.dumps(each)}\n" for each in broken(lines, chance)))
        else:
            place.write_text(json.dumps(broken(json.loads(text), chance)))
        came = Came(place, tmp_path / f"w-{number}")
        assert came.reports or came.problem
        lost += [(number, file.name, *each) for each in came.lost(place)]
    assert lost == []


@pytest.mark.data
def test_exports_cut_at_any_tenth_come_as_far_as_they_are_whole_and_say_so(
    data_dir: Path, tmp_path: Path
) -> None:
    files = [each for each in exports(data_dir) if each.suffix in {".json", ".jsonl", ".enex"}]
    for number, file in enumerate(files):
        data = file.read_bytes()
        tenth = 1 + number % 9
        place = tmp_path / f"in-{number}" / file.name
        place.parent.mkdir()
        place.write_bytes(data[: len(data) * tenth // 10])
        came = Came(place, tmp_path / f"w-{number}")
        ends_whole = file.suffix == ".jsonl" and place.read_bytes().endswith((b"}", b"}\n"))
        assert came.problem or came.skipped or ends_whole, file


def test_texts_that_nothing_came_of_are_counted_by_the_pattern_of_their_path(
    tmp_path: Path,
) -> None:
    message = {"sender": "human", "text": "What does a boiler cost?", "created_at": "2026-01-05"}
    extra = {"uuid": "m1", "remark": "a text that no reader knows"}
    talk = {"uuid": "c-1", "name": "Boiler", "chat_messages": [{**message, **extra}]}
    came = Came(written(tmp_path / "conversations.json", [talk]), tmp_path / "w")
    assert dict(came.reports[0].unread) == {"chat_messages[].remark": 1}


def test_texts_beside_the_list_that_is_read_are_counted_too(tmp_path: Path) -> None:
    said = {"_id": "r1", "message": "What does a boiler cost?", "sender": "human"}
    talk = {"conversation": {"id": "c-1"}, "responses": [{"response": said}]}
    projects = [{"custom_instructions": "Always answer in one line."}]
    export = {"conversations": [talk], "projects": projects}
    came = Came(written(tmp_path / "grok.json", export), tmp_path / "w")
    assert dict(came.reports[0].unread) == {"projects[].custom_instructions": 1}


def test_an_account_finds_a_text_wherever_an_item_has_it() -> None:
    account = Account()
    account.begin("a.json")
    account.add(
        "a.json", {"html": "<p>One <b>two</b> three four</p>", "lost": "five six seven eight"}
    )
    account.settle(ImportedNote("1", "A", "Ann: **One** two\nthree four"))
    account.close()
    assert dict(account.missing) == {"lost": 1}
    assert account.firsts == {"lost": "a.json"}


def test_no_text_of_a_conversation_of_many_thousand_messages_counts_as_lost() -> None:
    texts = [*(f"{n} six seven eight nine" for n in range(60_000)), "What nobody was told of."]
    account = Account()
    account.begin("a.json")
    account.add("a.json", {"messages": [{"text": each, "again": each} for each in texts]})
    messages = tuple(ImportedMessage("user", each) for each in texts[:-1])
    account.settle(ImportedConversation("1", "A", None, None, messages))
    account.close()
    assert dict(account.missing) == {"messages[].text": 1, "messages[].again": 1}


def test_what_is_said_beside_the_conversations_is_counted(tmp_path: Path) -> None:
    said = "The heron comes at dawn to the pond."
    talk = chatgpt("c1", node("a", None, "user", said), node("b", "a", "assistant", "I see."))
    written(tmp_path / "x/conversations.json", [talk])
    feedback = {"rating": "thumbs_down", "content": '{"text": "It forgot the pond and the reeds."}'}
    written(tmp_path / "x/message_feedback.json", [feedback, {"rating": "thumbs_up"}])
    other = {"input": {"text": said}, "output": {"text": "It comes at noon to the mill."}}
    written(tmp_path / "x/model_comparisons.json", [other])
    came = Came(tmp_path / "x", tmp_path / "w")
    assert dict(came.reports[0].unread) == {"content": 1, "*.text": 1}
    assert not came.skipped
