"""The guards of every edit: what must not be written, and what is left to a person."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from rapidfuzz import fuzz, process

from kbtui.errors import UsageError
from kbtui.history.change import Actor
from kbtui.knowledge.entries.entry import parse_entry, section_text
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import body_of
from kbtui.knowledge.format.facts import plain_fact, statements
from kbtui.knowledge.format.lines import split_lines
from kbtui.knowledge.library.overlay import Edits, Overlay, shown_text
from kbtui.memory.edits.entry_updates import evolution_of, is_said
from kbtui.memory.edits.memory_file import is_statement, line_key
from kbtui.memory.records.claims import Claim, claims_of, facts_of
from kbtui.memory.records.usable_answers import is_placeholder, why_unusable
from kbtui.text import shorten
from kbtui.workspace.layout import short_name

MAX_LOST = 0.25
MAX_LINE = 4_000
"""Characters of a line that may be a fact."""
_MAX_ADDED = 40_000
_MAX_ADDED_BY_TOOL = 4_000_000
_SHOWN = 80
_GUIDING_FILES = ("SOUL.md", "USER.md")
_LINK = re.compile(r"\[\[[^\]\n]*\]\]|\]\([^)\n]*\)")


def check(
    files: Overlay, edits: Edits, is_forbidden: Callable[[str], bool], *, by_tool: bool = False
) -> None:
    """Reject edits that break a file, or state what the user had forgotten or removed.

    For an edit `by_tool`, the caller decides what is worth writing, and how much.

    Raises:
        UsageError: The model is told why, and may try something else.
    """
    sizes = [len(data or b"") - len(files.data(path) or b"") for path, data in edits.items()]
    if sum(sizes) > (_MAX_ADDED_BY_TOOL if by_tool else _MAX_ADDED):
        raise UsageError("That is too much at once.", "Write only what is new and lasting.")
    for path, data in edits.items():
        if data is None:
            continue
        entry = parse_entry(path, data)
        old = files.data(path)
        # What couldn't be read before isn't broken by mending a link in it.
        if entry.problem and (old is None or not files.problem(path, old)):
            raise UsageError(
                f"That would break {short_name(path)}: {entry.problem}",
                "Leave the lines between --- be.",
            )
        before, after = shown_text(old), shown_text(data)
        _check_forgotten(entry.title, _added(before, data), files, is_forbidden)
        if not by_tool:
            _check_worth(before, after, files)
            _check_kept(path, before, after)


def reason_to_ask(
    files: Overlay,
    edits: Edits,
    authors: Callable[[str], Sequence[Actor]],
    *,
    careful: bool = False,
) -> str:
    """Return why a person must decide on edits, or "" if they may be made.

    Edits are compared with the file on disk: reasons are a user's line that would change, or the
    loss of more than a quarter of a file. What another file then says isn't lost. How the assistant
    should be, and who the user is, never change without consent.
    """
    for path, data in edits.items():
        old = shown_text(files.original(path))
        why = _risk(files, path, old, edits, authors(path)) if old else ""
        if why:
            return why if data is None else f"{why}, in {short_name(path)}"
    return (_loss_reason(files, edits) if careful else "") or _guiding_file_reason(edits)


def reason_to_ask_of_tool(
    files: Overlay,
    edits: Edits,
    authors: Callable[[str], Sequence[Actor]],
    asked: Callable[[Sequence[str], Sequence[str]], bool],
) -> str:
    """Return why a person must decide on a tool's edits, in words for a model; "" if allowed.

    A tool may add, and change what machines wrote. The user's lines, and the names of files that
    they wrote in, change only on request; how the assistant should be, and who the user is, never
    without consent. `authors` returns the author of each line of a file, `asked` is as in `Author`.
    """
    if guiding := _guiding_file_reason(edits):
        return guiding
    for path in edits:
        if path not in files.repaired:
            why = _reason_to_ask_of_file(files, edits, path, authors, asked)
            if why:
                return why
    return ""


def _reason_to_ask_of_file(
    files: Overlay,
    edits: Edits,
    path: str,
    authors: Callable[[str], Sequence[Actor]],
    asked: Callable[[Sequence[str], Sequence[str]], bool],
) -> str:
    """Return why a person must decide on a tool's edit of one file, as above."""
    old, data = files.original(path), edits[path]
    if not old:
        return ""
    # What was moved stands in another file now.
    new = data or b"".join([each or b"" for other, each in edits.items() if other != path])
    was = shown_text(old)
    lost = _lost_human_lines(was, shown_text(new), partial(authors, path), new)
    if not lost and (
        data is not None or not any(author.writes_human_text for author in authors(path))
    ):
        return ""
    entry = files.entry(path)
    names = [entry.title, entry.slug, *entry.aliases] if entry else [short_name(path)]
    gained = [each.text for now in edits.values() for each in _added(was, now)]
    if asked(names, [*lost, *gained]):
        return ""
    what = f"{shorten(lost[0], _SHOWN)!r} in " if lost else "in "
    return (
        f"the user wrote {what}{short_name(path)}, and hasn't asked in this turn for a change of"
        " that"
    )


def _guiding_file_reason(edits: Edits) -> str:
    path = next((path for path in edits if path in _GUIDING_FILES), None)
    return f"{path} guides every conversation, so the user decides" if path else ""


def _lost_human_lines(
    old: str, new: str, authors: Callable[[], Sequence[Actor | None]], head: bytes | None = None
) -> list[str]:
    """Return the user's lines that would no longer be in a file.

    Lines of its frontmatter may be extended by the frontmatter of `head`, if given.
    """
    lines = split_lines(old)
    changed = [*_missing_lines(lines, split_lines(new))]
    if changed and head is not None:
        below = len(lines) - len(split_lines(body_of(old)))
        grown = _grown_keys(old.encode(), head)
        changed = [
            number
            for number in changed
            if number >= below or lines[number].partition(":")[0] not in grown
        ]
    wrote = authors() if changed else ()
    by = [(lines[number], wrote[number]) for number in changed if number < len(wrote)]
    return [plain_fact(line) for line, author in by if author and author.writes_human_text]


def _missing_lines(lines: Sequence[str], others: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of non-blank lines that `others` lack, counting repetitions."""
    remaining = Counter(map(str.rstrip, others))
    for number, line in enumerate(map(str.rstrip, lines)):
        if remaining[line]:
            remaining[line] -= 1
        elif line:
            yield number


def _grown_keys(old: bytes, new: bytes) -> set[str]:
    """Return the frontmatter keys that lose nothing."""
    before, after = frontmatter.parse(old).values, frontmatter.parse(new).values

    def items(key: str, value: object) -> list[object]:
        if key in {"tags", "tag"}:  # they may be on one line
            return frontmatter.items({"tags": value}, "tags")[1]
        return value if isinstance(value, list) else [value] if value else []

    return {
        key
        for key, value in before.items()
        if all(item in items(key, after.get(key)) for item in items(key, value))
    }


def _check_kept(path: str, before: str, after: str) -> None:
    """Reject edits that shorten an Evolution section, or drop what was decided."""
    past = _lines("\n".join(evolution_of(after)))
    kept = iter(past)
    if not all(line in kept for line in _lines("\n".join(evolution_of(before)))):
        raise UsageError(
            f"The Evolution section of {short_name(path)} only grows.",
            "Leave its lines as they are, and add a dated one below.",
        )
    if not before or parse_entry(path, before.encode()).type != "decision":
        return
    old, new = (_lines(section_text(text, "Decision") or "") for text in (before, after))
    if not all(line in new or any(line in each for each in past) for line in old):
        raise UsageError(
            f"What was decided in {short_name(path)} stays as it was decided.",
            "Add what changed under Evolution, with add_line.",
        )


def _check_forgotten(
    title: str, added: Iterable[Claim], files: Overlay, is_forbidden: Callable[[str], bool]
) -> None:
    """Reject what was forgotten, in whatever kind of Markdown."""
    forgotten = [
        each.text
        for each in added
        if not each.is_own and (is_forbidden(each.text) or is_forbidden(f"{title}: {each.text}"))
    ]
    if not forgotten:
        return
    known = {each.text for data in files.before.values() for each in claims_of(shown_text(data))}
    for fact in forgotten:
        if fact not in known:
            raise UsageError(
                f"{shorten(fact, _SHOWN)!r} was forgotten by the user.", "Leave it out."
            )


def _check_worth(before: str, after: str, files: Overlay) -> None:
    """Reject a new line that is no statement at all."""
    there = {*statements(before)}
    for fact in statements(after):
        if fact in there:
            continue
        why = why_unusable(fact)
        if len(fact) <= MAX_LINE and why is None and not is_placeholder(fact):
            continue
        if any(fact in statements(shown_text(data)) for data in files.before.values()):
            continue
        if why is not None or is_placeholder(fact):
            raise UsageError(f"That {why or 'says nothing'}: {shorten(fact, _SHOWN)!r}.")
        raise UsageError("A line of that length is no fact.", "Write short lines.")


def _risk(files: Overlay, path: str, old: str, edits: Edits, authors: Sequence[Actor]) -> str:
    elsewhere = _said_elsewhere(files, path, edits)
    if edits[path] is None:
        return _removal_reason(path, missing_facts(old, elsewhere), authors)
    new = shown_text(edits[path])
    said = [*chain.from_iterable(map(facts_of, elsewhere))]
    kept = {*map(str.rstrip, split_lines(new))}

    def counts(line: str, author: Actor) -> bool:
        is_own = author.writes_human_text or line.rstrip() in kept or not is_statement(line)
        return is_own or not is_said(plain_fact(line), said)

    by = zip(split_lines(old), authors, strict=False)
    judged = [(line, author) for line, author in by if counts(line, author)]
    return review_reason("".join(line for line, _ in judged), new, [author for _, author in judged])


def _removal_reason(path: str, lost: Sequence[str], authors: Sequence[Actor]) -> str:
    if any(author.writes_human_text for author in authors):
        return f"it would remove {short_name(path)}, in which you wrote"
    return f"it would lose {shorten(lost[0], _SHOWN)!r}" if lost else ""


def _said_elsewhere(files: Overlay, path: str, edits: Edits) -> list[str]:
    """Return the texts of the other files that this run has changed or read."""
    others = {**files.before, **files.edits, **edits}
    return [shown_text(data) for other, data in others.items() if other != path]


def _loss_reason(files: Overlay, edits: Edits) -> str:
    added_count, lost = 0, []
    for path, data in edits.items():
        before, after = shown_text(files.data(path)), shown_text(data)
        added_count += sum(each.is_fact for each in _added(before, data))
        lost += missing_facts(before, [after, *_said_elsewhere(files, path, edits)])
    if len(lost) <= added_count:
        return ""
    return f"it ended before it was finished, and {shorten(lost[0], _SHOWN)!r} would be gone"


def _added(before: str, data: bytes | None) -> list[Claim]:
    known = {each.text for each in claims_of(before)}
    return [each for each in claims_of(shown_text(data)) if each.text not in known]


def missing_facts(old: str, texts: Iterable[str]) -> list[str]:
    """Return the facts of a file that none of the other texts tells."""
    said = dict.fromkeys(chain.from_iterable(map(facts_of, texts)))
    return [fact for fact in facts_of(old) if fact not in said and not is_said(fact, [*said])]


def _lines(text: str) -> list[str]:
    """Return the non-blank lines without link targets, which repairs may change."""
    return [_LINK.sub("", line).strip() for line in text.splitlines() if line.strip()]


def lost_share(old: str, new: str) -> float:
    """Return the share of the lines of `old` without a similar one in `new`, from 0 to 1.

    A reworded line isn't lost. Blank lines don't count.
    """
    before, after = (
        Counter(key for line in split_lines(text) if (key := line_key(line))) for text in (old, new)
    )
    rest = [*(after - before).elements()]
    lost = 0
    for key in (before - after).elements():
        like = process.extractOne(key, rest, scorer=fuzz.ratio, score_cutoff=60.0)
        if like is None:
            lost += 1
        else:
            del rest[like[2]]
    return lost / before.total() if before else 0.0


def review_reason(old: str, new: str, authors: Sequence[Actor | None] = ()) -> str:
    """Return why a background change must be proposed, or "" if it may be made.

    `authors` are the authors of the lines of `old`, see `History.authors`.
    """
    share = lost_share(old, new)
    if share > MAX_LOST:
        return f"it would lose {share:.0%} of the lines"
    lost = _lost_human_lines(old, new, lambda: authors)
    return f"it would change a line that you wrote: {lost[0]!r}" if lost else ""
