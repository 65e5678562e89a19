"""Gemini from Google Takeout: a JSON list of activities, newest first, with answers in HTML.

Takeout also offers them as a web page with a cell per activity and times without a zone; if both
are there under one name, the list is read.

Newer activities name their conversation; others belong together if they are at most half an hour
apart. Activities of other products in the same list are left out.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import IO

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import digest, line_of, to_markdown
from kbtui.importers.port import ImportedMessage, Item, Skipped, Source
from kbtui.importers.reading import (
    Record,
    conversation,
    drained,
    file_of,
    hour_of,
    json_list,
    json_members,
    read_each,
)
from kbtui.text import Packed, counted, fold, pack, shorten, unpack

_GAP = timedelta(minutes=30)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGNATURE = re.compile(rb'"(?:header|products)"\s*:\s*\[?\s*"[^"]*(?:Gemini|Bard)[^"]*"')
_ACTIVITY = re.compile(rb'"(?:safeHtmlItem|activityControls|titleUrl|time)"\s*:')
_PAGE = re.compile(rb"mdl-typography--title\">[^<]*(?:Gemini|Bard)")
_CELL_START = b'<div class="outer-cell'
_MAX_CELL = 16 << 20
_SPACES = str.maketrans("\u202f\xa0\u2003", "   ")
_CELL = re.compile(
    r'mdl-typography--title">([^<]*)<.*?mdl-typography--body-1">(.*?)'
    r'(?:</div>\s*<div class="content-cell|\Z)',
    re.DOTALL,
)
_DATE = re.compile(
    r"<br ?/?>\s*(?P<day>[^<>]{6,60}?)(?P<hour>\d{1,2})[:.](?P<minute>\d{2})[:.](?P<second>\d{2})"
    r"(?P<rest>[^<>]{0,40})(?=<br ?/?>|\Z)"
)
"""The line below the prompt that says when, in the language and the order of the account."""
_PART_OF_DATE = re.compile(r"[^\W\d_]+|\d+")
_OFFSET = re.compile(r"(?:GMT|UTC)([+\-\u2212])(\d{1,2})(?::?(\d{2}))?")
_MONTHS = {
    fold(name): number
    for number, names in enumerate(
        (
            "jan gen ene ian sty led oca tamm янв січ",
            "feb fev lut uno sub helm фев лют",
            "mar maa bre мар бер",  # noqa: RUF001
            "apr avr abr kwi dub nis huht апр кві",
            "mai may mei mag maj kve touk мая май тра",
            "jun juin giu iun cze cvn haz kesa июн чер",
            "jul juil lug iul lip cvc tem hein июл лип",
            "aug aou ago agu sie srp elok авг сер",  # noqa: RUF001
            "sep set wrz zar eyl syys сен вер",
            "oct okt ott out paz rij eki loka окт жов",
            "nov lis kas marr ноя лис",
            "dec dez dic des gru pro ara joul дек гру",  # noqa: RUF001
        ),
        1,
    )
    for name in names.split()
}
"""How the names of months begin in the languages with letters that are most written."""
_ATTACHMENTS = re.compile(r"<br ?/?>\s*Attached \d+ files?\..*\Z", re.DOTALL)
_ATTACHED = re.compile(r'<a href="[^"]*">([^<]+)</a>(?=\s*(?:<br|\Z))')
_TAG = re.compile(r"<[^<>]*>")
_BREAK = re.compile(r"<br ?/?>")
_HEAD, _MAX_PAGES = 1 << 20, 50
_SHOWN = 60
_PRODUCT = re.compile(r"gemini|\bbard\b", re.IGNORECASE)
_CHAT = re.compile(r"https://(?:gemini|bard)\.google\.com/(?:app|chat)/([\w-]{6,64})")
# Takeout puts a verb before the prompt, in the language of the account.
_PROMPT_VERB = re.compile(
    r"(?:Prompted|Submitted query|Asked Gemini|Asked|Said)\b:?\s+|(?:已提示|已給予提示)\W?\s*"
    r"|(?:[^\n:\uff1a]{0,30}\bprompt\b[^\n:\uff1a]{0,20}|Requ[eê]te[^\n:\uff1a]{0,20}|Petici[oó]n|Instrucci[oó]n"
    r"|Consulta|Richiesta|Comando|Pedido|Zapytanie|Запрос|送信した\w+|プロンプト|프롬프트\w*|提示\w*|提示词)"
    r"\s?[:\uff1a]\s*",
    re.IGNORECASE,
)
_CANVAS = re.compile(r"Created Gemini Canvas titled\s+(.*)", re.DOTALL)
_OTHER_ACTIVITY = re.compile(
    r"(?:Used|Created|Gave feedback|Selected|Viewed|Visited|Searched|Deleted)\b"
)


@dataclass(frozen=True, slots=True)
class _Activity:
    time: datetime | None
    chat: str
    prompt: Packed
    answer: Packed  # HTML
    attached: tuple[str, ...]


def _recognises(opened: OpenedExport) -> bool:
    return next(_lists(opened), None) is not None or bool(_pages(opened))


def _read(opened: OpenedExport) -> Iterator[Item]:
    pages = _pages(opened)
    lists = [*_lists(opened)]
    listed = {str(PurePosixPath(name).with_suffix("")) for name in lists}
    told = [name for name in pages if str(PurePosixPath(name).with_suffix("")) not in listed]
    yield from read_each(opened, [*lists, *told], _conversations, are_known=True)
    opened.taken.update(pages)


SOURCE = Source("Gemini", "gemini", _recognises, _read)


def _lists(opened: OpenedExport) -> Iterator[str]:
    for name, head in json_members(opened):
        if _SIGNATURE.search(head) and _ACTIVITY.search(head):
            yield name


def _pages(opened: OpenedExport) -> list[str]:
    """Return the members in Takeout's HTML format, which is its default."""
    names = [name for name in opened.names if name.lower().endswith((".html", ".htm"))]
    heads = ((name, opened.head(name, _HEAD)) for name in names[:_MAX_PAGES])
    return [name for name, head in heads if _PAGE.search(head)]


def _conversations(opened: OpenedExport, name: str) -> Iterator[Item]:
    """Read the activities twice: first to group them, then to yield each complete conversation."""
    keys = _keys(
        [(act.time, act.chat) for act in _activities(opened, name) if isinstance(act, _Activity)]
    )
    left = Counter(keys)
    coming = iter(keys)
    pending: dict[str, list[_Activity]] = {}
    names = frozenset(opened.names)
    for act in _activities(opened, name):
        if isinstance(act, Skipped):
            yield act
            continue
        key = next(coming)
        left[key] -= 1
        pending.setdefault(key, []).append(act)
        if not left[key]:
            yield from _group(opened, name, key, pending.pop(key), names)


def _group(
    opened: OpenedExport, name: str, key: str, found: list[_Activity], names: frozenset[str]
) -> Iterator[Item]:
    """Yield the conversation of a group of activities, and its attached files."""
    # Takeout lists the newest first; activities of equal time keep that order.
    acts = sorted(drained(found), key=lambda each: each.time or _EPOCH)
    if not any(each.time for each in acts):
        acts.reverse()
    url = f"https://gemini.google.com/app/{acts[0].chat}" if acts[0].chat else ""
    folder = PurePosixPath(name).parent
    places = {file: str(folder / file) for act in acts for file in act.attached}
    here = {file: place for file, place in places.items() if place in names}
    named = Counter(["file"] * (len(places) - len(here)))
    if talk := conversation(key, "", list(_messages(drained(acts))), url=url, named=named):
        yield talk
    for file, place in here.items():
        yield file_of(opened, place, file)


def _keys(acts: list[tuple[datetime | None, str]]) -> list[str]:
    """Return a conversation key per activity: the id it names, else the group's start time."""
    keys = [chat for _, chat in acts]
    last, key = _EPOCH, ""
    unnamed = [(time, number) for number, (time, chat) in enumerate(acts) if not chat]
    for time, number in sorted((time or _EPOCH, number) for time, number in unnamed):
        if not key or time - last > _GAP:
            key = f"{time:%Y%m%dT%H%M%S%f}"
        last, keys[number] = time, key
    return keys


def _messages(acts: Iterable[_Activity]) -> Iterator[ImportedMessage]:
    for act in acts:
        identity = digest(f"{act.time}", unpack(act.prompt))
        if act.prompt or act.attached:
            yield ImportedMessage("user", act.prompt, act.time, identity, act.attached)
        if answer := unpack(act.answer):
            text = to_markdown(answer) if answer.startswith("<") else answer
            if text:
                yield ImportedMessage("assistant", text, act.time, f"{identity}a")


def _activities(opened: OpenedExport, name: str) -> Iterator[_Activity | Skipped]:
    is_page = name.lower().endswith((".html", ".htm"))
    others: list[str] = []
    for record in _cells(opened, name) if is_page else json_list(opened, name, ""):
        if isinstance(record, Skipped):
            yield record
        elif not _is_of_gemini(record):
            continue
        elif act := _parse_activity(record):
            yield act
        else:
            others.append(record.line("title"))
    if others:
        why = f"No prompt and no answer, such as: {shorten(others[0], _SHOWN)}."
        yield Skipped(
            f"{counted(len(others), 'other activity', 'other activities')} ({line_of(name)})", why
        )


def _cells(opened: OpenedExport, name: str) -> Iterator[Record | Skipped]:
    """Yield the cells of a page as records in the format of the list.

    One whose date can't be read comes without a time, and is counted.
    """
    undated = 0
    with opened.open(name) as stream:
        for cell in _split_cells(stream):
            parts = _CELL.search(cell.translate(_SPACES))
            if parts is None or not _PRODUCT.search(parts[1]):
                continue
            prompt, time, answer = _said_when(parts[2])
            undated += time is None
            beside = _ATTACHMENTS.search(prompt)
            files = _ATTACHED.findall(beside[0]) if beside else []
            prompt = html.unescape(_TAG.sub("\n", _ATTACHMENTS.sub("", prompt))).strip()
            yield Record(
                header=parts[1],
                title=prompt,
                time=time.isoformat() if time else None,
                attachedFiles=[*map(html.unescape, files)],
                safeHtmlItem=[{"html": answer}],
            )
    if undated:
        why = (
            "It is in a form that kbtui doesn't know, so they came in without one."
            " Takeout gives My Activity as JSON, too."
        )
        place = f"time of {counted(undated, 'activity', 'activities')} ({line_of(name)})"
        yield Skipped(place, why, lost=True)


def _said_when(body: str) -> tuple[str, datetime | None, str]:
    """Split a cell into the prompt, the time and the answer, which stands below both."""
    dates = [(date, time) for date in _DATE.finditer(body) if (time := _time(date))]
    # A line of a prompt may say a time, too, and goes on behind it.
    for date, time in sorted(dates, key=lambda found: any(map(str.islower, found[0]["rest"])))[:1]:
        return body[: date.start()], time, _BREAK.sub("", body[date.end() :], count=1)
    prompt, *rest = _BREAK.split(body, maxsplit=2)
    return prompt, None, rest[-1] if rest else ""


def _split_cells(stream: IO[bytes]) -> Iterator[str]:
    left = b""
    while data := stream.read(1 << 20):
        *cells, left = (left + data).split(_CELL_START)
        yield from (cell.decode("utf-8", "replace") for cell in cells)
        if len(left) > _MAX_CELL:
            left = b""
    yield left.decode("utf-8", "replace")


def _time(date: re.Match[str]) -> datetime | None:
    """Return a time in UTC by its stated offset; without one it is taken as it stands."""
    said = f"{date['day']} {date['rest']}"
    day = _day(_OFFSET.sub("", date["day"]))
    if day is None:
        return None
    offset = _OFFSET.search(said)
    ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)) if offset else timedelta()
    try:
        here = datetime(
            *day,
            hour_of(int(date["hour"]), said),
            int(date["minute"]),
            int(date["second"]),
            tzinfo=UTC,
        )
        return here + ahead if offset and offset[1] != "+" else here - ahead
    except (ValueError, OverflowError):
        return None


def _day(text: str) -> tuple[int, int, int] | None:
    """Return year, month and day of a date whose year has four digits, or None if it is none."""
    parts = _PART_OF_DATE.findall(text)
    numbers = [each for each in parts if each.isdecimal()]
    months = [found for each in parts if (found := _month(each))]
    years = [each for each in numbers if len(each) == 4]
    others = [int(each) for each in numbers if len(each) < 3]
    is_begun = bool(parts) and (parts[0].isdecimal() or _month(parts[0]) is not None)
    if (
        not is_begun
        or len(years) != 1
        or len(numbers) != len(others) + 1
        or len(others) != (1 if months else 2)
    ):
        return None
    year = int(years[0])
    if months:
        return year, months[0], others[0]
    is_year_first = numbers[0] == years[0]
    return (year, others[0], others[1]) if is_year_first else (year, others[1], others[0])


def _month(word: str) -> int | None:
    folded = fold(word)
    return _MONTHS.get(folded[:4]) or _MONTHS.get(folded[:3])


def _is_of_gemini(record: Record) -> bool:
    products = record.get("products")
    names = [record.get("header"), *(products if isinstance(products, list) else [])]
    return any(_PRODUCT.search(line_of(each)) for each in names)


def _parse_activity(record: Record) -> _Activity | None:
    exchange = _exchange(record)
    if exchange is None:
        return None
    links = (f"{each.words('url')} {each.words('name')}" for each in record.records("details"))
    chats = {found[1] for each in links for found in _CHAT.finditer(each)}
    chat = chats.pop() if len(chats) == 1 else ""
    prompt, answer = exchange
    time, files = record.time("time"), _attached(record)
    return _Activity(time, chat, pack(prompt.strip()), pack(answer), files)


def _exchange(record: Record) -> tuple[str, str] | None:
    """Return the prompt and the answer of an activity, or None if it is of another kind."""
    title = record.words("title")
    if canvas := _CANVAS.match(title):
        made = "\n\n".join(each.words("name") for each in record.records("subtitles"))
        return "", f"**{line_of(canvas[1])}**\n\n{made}".strip()
    parts = [each.words("html") for each in record.records("safeHtmlItem")]
    answer = "".join(f"<div>{part}</div>" for part in parts if part)
    if prompt := _PROMPT_VERB.match(title):
        return title[prompt.end() :], answer
    return None if not answer or _OTHER_ACTIVITY.match(title) else (title, answer)


def _attached(record: Record) -> tuple[str, ...]:
    files = record.get("attachedFiles")
    names = map(line_of, files) if isinstance(files, list) else ()
    return (*filter(None, names), *record.lines("attachedFiles", "name"))
