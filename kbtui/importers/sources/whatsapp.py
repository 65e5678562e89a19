"""WhatsApp: an exported chat, which is a text file, alone or in a zip with its pictures.

Dates are in the phone's format; the number that exceeds twelve in any line is the day.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TypeAlias

from kbtui.importers.export_files import OpenedExport
from kbtui.importers.markup import digest, line_of
from kbtui.importers.messengers import ChatLine, by_month
from kbtui.importers.port import Item
from kbtui.importers.reading import drained, file_of, file_source, hour_of
from kbtui.text import Packed, clean, pack, unpack

_HALF = r"[ap]\.?\s?m\b\.?|[上下中晚早凌清傍]\w|午[前後]|오[전후]|[مص]\b"
_LINE = re.compile(
    r"\[?(\d{1,4})[./-]\s?(\d{1,2})[./-]\s?(\d{1,4})\.?[,،]?\s"
    rf"(?P<before>{_HALF})?\s?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"(?:\s?(?P<behind>{_HALF}))?(?:\]|,(?=\s))?(?:\s-\s|\s)(?P<said>.*)",
    re.DOTALL | re.IGNORECASE,
)
_WHO = re.compile(r"([^:\n]{1,80}):\s(.*)", re.DOTALL)
_FILE = re.compile(r"<[^<>:]{1,30}:\s([^<>]+)>|([^\s/][^\n/]{0,120}\.\w{2,5}) \([^()]{3,40}\)")
_OMITTED = re.compile(
    r"<[^<>]{3,40}>|(?:image|video|audio|sticker|GIF|document|Contact card) omitted"
)
_TITLE = re.compile(r"(?:WhatsApp[^-]*?(?:with|mit|avec|con|met)\s+|_chat\b)", re.IGNORECASE)
_INVISIBLE = str.maketrans("\u202f\xa0", "  ", "\u200e\u200f\u202a\u202c\ufeff")
_MAX_PROBED = 30
_MONTHS = 12
_COPY = re.compile(r"\s*\(\d+\)\Z")
_Date: TypeAlias = tuple[bool, bool, bool]
"""Whether the first and the second number of a date are a day, and whether its clock has halves."""
_GENERIC_NAMES = {"whatsapp", "chat", "_chat"}


def _exports(opened: OpenedExport) -> Iterator[str]:
    for name in opened.names:
        is_likely = not opened.is_folder or name.lower().endswith(".txt")
        if is_likely and _is_chat(opened.head(name, 8192)):
            yield name


def _is_chat(head: bytes) -> bool:
    """Return whether a text begins with a message, and some message has an author."""
    lines = head.decode("utf-8", "replace").translate(_INVISIBLE).splitlines()
    begun = [_LINE.match(line) for line in lines[:_MAX_PROBED] if line]
    return bool(begun and begun[0]) and any(each and _WHO.match(each["said"]) for each in begun)


def _chat(opened: OpenedExport, name: str) -> Iterator[Item]:
    said: list[Packed] = []
    dates: set[_Date] = set()
    writers: set[str] = set()
    for each in _messages(_lines(opened, name)):
        said.append(pack(each.string))
        dates.add((int(each[1]) > _MONTHS, int(each[2]) > _MONTHS, bool(_half(each))))
        if found := _WHO.match(each["said"]):
            writers.add(found[1])
    day_first = _is_day_first(dates)
    title = _title(opened, name) or ", ".join(sorted(writers)[:3])
    others = writers - {title}
    owner = others.pop() if title in writers and len(others) == 1 else ""
    folder = PurePosixPath(name).parent
    names = frozenset(opened.names)
    files: list[str] = []
    matches = filter(None, map(_LINE.match, map(unpack, drained(said))))
    lines = (_line(each, folder, names, files, owner, day_first=day_first) for each in matches)
    identity = digest(*sorted(writers)) if len(writers) < 3 else digest(title)
    yield from by_month(identity, title, lines, line_of(name))
    for place in dict.fromkeys(files):
        yield file_of(opened, place)


SOURCE = file_source("WhatsApp", "whatsapp", _exports, _chat)


def _lines(opened: OpenedExport, name: str) -> Iterator[str]:
    with opened.open(name) as stream:
        for line in iter(stream.readline, b""):
            yield from clean(line.decode("utf-8", "replace")).translate(_INVISIBLE).splitlines()


def _messages(lines: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the messages; a line without a date continues the message before."""
    gathered: list[str] = []
    for line in lines:
        if _LINE.match(line) and gathered:
            if found := _LINE.match("\n".join(gathered)):
                yield found
            gathered = []
        gathered.append(line)
    if found := _LINE.match("\n".join(gathered)):
        yield found


def _is_day_first(dates: Collection[_Date]) -> bool:
    if any(is_day for is_day, _, _ in dates):
        return True
    return not any(is_day or has_half for _, is_day, has_half in dates)


def _half(match: re.Match[str]) -> str:
    return match["before"] or match["behind"] or ""


def _title(opened: OpenedExport, name: str) -> str:
    """Return the name of the chat by the file name or that of its zip, or ""."""
    for named in (PurePosixPath(name).stem, opened.path.stem):
        stem = _COPY.sub("", named)
        title = _TITLE.sub("", stem).removeprefix("WhatsApp Chat - ").strip(" -_")
        is_told = title != stem or "whatsapp" in stem.lower()
        if title and title.casefold() not in _GENERIC_NAMES and is_told:
            return line_of(title)
    return ""


def _line(
    match: re.Match[str],
    folder: PurePosixPath,
    names: frozenset[str],
    files: list[str],
    owner: str,
    *,
    day_first: bool,
) -> ChatLine:
    time = _time(match, day_first=day_first)
    found = _WHO.match(match["said"])
    if found is None:
        return ChatLine("", "", time, named=("notice of the program",))
    author, text = line_of(found[1]), found[2].strip()
    is_mine = author == owner != ""
    file = _FILE.search(text) if "(" in text or "<" in text else None
    if file is None and _OMITTED.fullmatch(text):
        return ChatLine(author, "", time, "", ("a file",), ("file",), is_own=is_mine)
    shown = line_of(file[1] or file[2]) if file else ""
    place = str(folder / shown)
    is_here = place in names
    if file is None or not (is_here or PurePosixPath(shown).suffix):
        return ChatLine(author, text, time, is_own=is_mine)
    files += [place] if is_here else []
    text = text.replace(file[0], "").strip()
    return ChatLine(author, text, time, "", (shown,), () if is_here else ("file",), is_own=is_mine)


def _time(match: re.Match[str], *, day_first: bool) -> datetime | None:
    first, second, third = (int(match[number]) for number in (1, 2, 3))
    if first > 31:
        year, month, day = first, second, third
    else:
        day, month = (first, second) if day_first else (second, first)
        year = third if third > 99 else 2000 + third
    hour = hour_of(int(match["hour"]), _half(match))
    try:
        # The phone's local time, so this machine's: its zone doesn't stand there.
        here = datetime(year, month, day, hour, int(match["minute"]), int(match["second"] or 0))  # noqa: DTZ001
        return here.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
