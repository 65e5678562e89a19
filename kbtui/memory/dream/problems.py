"""What is evidently out of order among the entries: found by looking, without any model."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from kbtui.knowledge import frontmatter
from kbtui.knowledge.overlay import shown_text
from kbtui.knowledge.statements import normalise, plain_fact, statements
from kbtui.knowledge.summary import summary_of
from kbtui.memory.edits.growing import is_said
from kbtui.memory.edits.memory_file import is_statement, line_key, split_lines
from kbtui.memory.edits.working_copy import NOTES
from kbtui.text import slugify
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kbtui.knowledge.info import EntryInfo
    from kbtui.knowledge.library import Library
    from kbtui.knowledge.overlay import Overlay

MOST = 12
_MOST_READ = 40
_KEYED = re.compile(r"^(?P<key>[^\s:][^:\n]{0,59}?):[ \t]+(?P<value>\S.*)$")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is out of order.

    Attributes:
        kind: ``broken link``, ``same twice`` (entries), ``repeated line``, ``old summary``.
        path: The file.
        what: The link's target, the line, or the summary.
        instead: The entry or summary that is right; empty: none is known.
    """

    kind: str
    path: str
    what: str
    instead: str = ""

    def line(self) -> str:
        """It as a model is told it."""
        right = f" => {self.instead}" if self.instead else ""
        return f"- {self.kind} in {self.path}: {self.what}{right}"


def problems(library: Library, files: Overlay, shown: Iterable[str]) -> list[Problem]:
    """The first problems of each kind; private entries and broken ones are passed over.

    Args:
        library: The entries.
        files: Reads them.
        shown: The files whose texts a model is shown.
    """
    infos = [info for info in library.infos() if not info.private and info.problem is None]
    texts = {path: shown_text(files.data(path)) for path in shown}
    share = MOST // 3
    found = [
        *islice(_same_twice(infos, files), share),
        *islice(_repeated({path: texts[path] for path in NOTES if path in texts}), share),
        *islice(_old_summaries(texts), share),
    ]
    return [*found, *islice(_broken_links(library, infos), MOST - len(found))]


def _same_twice(infos: Iterable[EntryInfo], files: Overlay) -> Iterator[Problem]:
    """Entries of one name in one folder, of which one says all that the other does."""
    groups: dict[tuple[str, str], list[EntryInfo]] = defaultdict(list)
    for info in infos:
        groups[info.category, normalise(info.title)].append(info)
    for group in islice((each for each in groups.values() if len(each) > 1), _MOST_READ):
        kept, *others = sorted(group, key=lambda info: (len(info.slug), info.slug))
        for other in others:
            paths = (other.path, kept.path)
            if _is_within(files, *paths) or _is_within(files, *reversed(paths)):
                yield Problem("same twice", other.path, short_name(other.path), kept.name)


def _is_within(files: Overlay, path: str, other: str) -> bool:
    said = statements(shown_text(files.data(other)))
    return all(is_said(each, said) for each in statements(shown_text(files.data(path))))


def _repeated(texts: Mapping[str, str]) -> Iterator[Problem]:
    """Facts that stand twice under the same heading of a file; the second one is named."""
    for path, text in texts.items():
        seen: set[str] = set()
        for line in split_lines(text):
            if not is_statement(line):
                seen = seen if not line.strip() else set()
            elif (key := line_key(line)) in seen:
                yield Problem("repeated line", path, plain_fact(line))
            elif key:
                seen.add(key)


def _old_summaries(texts: Mapping[str, str]) -> Iterator[Problem]:
    """Summaries that give a name another value than the text does."""
    for path, text in texts.items():
        parts = frontmatter.split(text.encode())
        summary = frontmatter.read(parts).values.get("summary")
        match = _KEYED.match(summary.strip()) if isinstance(summary, str) else None
        body = parts.body.decode()
        if match is None or is_said(match[0], statements(body)):
            continue
        values = [
            other[0]
            for fact in statements(body)
            if (other := _KEYED.match(fact)) and normalise(other["key"]) == normalise(match["key"])
        ]
        if len(values) == 1 or (values and summary_of(body) == values[0]):
            yield Problem("old summary", path, match[0], values[0])


def _broken_links(library: Library, infos: Iterable[EntryInfo]) -> Iterator[Problem]:
    """Links that lead nowhere, of which there is exactly one entry with that name."""
    known = list(infos)
    by_slug: dict[str, list[str]] = defaultdict(list)
    for info in known:
        by_slug[slugify(info.slug)].append(info.name)
    for info in known:
        for resolved in library.outgoing(info.path):
            target = resolved.link.target
            if resolved.path is not None or not target:
                continue
            name = target.rstrip("/").rpartition("/")[2].removesuffix(".md")
            meant = by_slug.get(slugify(name), []) if name else []
            if len(meant) == 1 and meant[0] != info.name:
                yield Problem("broken link", info.path, target, meant[0])
