"""The one chain of guards: what must not be written, and what must be left to a person."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from kbtui.memory.edits.growing import evolution_of, is_said, missing
from kbtui.memory.edits.memory_file import is_statement, line_key
from kbtui.memory.records.usable_answers import is_placeholder, why_unusable
from kbtui.text import shorten
from kbtui.workspace.layout import short_name

MAX_LOST = 0.25
_LONGEST_LINE = 4_000
_MOST_ADDED = 40_000
_MOST_BY_TOOL = 4_000_000
_SHOWN = 80
_GUIDING = ("SOUL.md", "USER.md")
_LINK = re.compile(r"\[\[[^\]\n]*\]\]|\]\([^)\n]*\)")


def check(
    files: Overlay, edits: Edits, is_forbidden: Callable[[str], bool], *, by_tool: bool = False
) -> None:
    """Refuse edits that would break something, or say what was forgotten or taken out by the user.

    Where it was asked for `by_tool` the caller decides what is worth writing, and how much.

    Raises:
        UsageError: the model is told why, and may do it differently.
    """
    sizes = [len(data or b"") - len(files.data(path) or b"") for path, data in edits.items()]
    if sum(sizes) > (_MOST_BY_TOOL if by_tool else _MOST_ADDED):
        raise UsageError("That is too much at once.", "Write only what is new and lasting.")
    for path, data in edits.items():
        if data is None:
            continue
        entry = parse_entry(path, data)
        if entry.problem:
            raise UsageError(
                f"That would break {short_name(path)}: {entry.problem}",
                "Leave the lines between --- be.",
            )
        before, after = shown_text(files.data(path)), shown_text(data)
        _check_said(entry.title, _added(before, data), files, is_forbidden, by_tool=by_tool)
        if not by_tool:
            _check_kept(path, before, after)


def reason_to_ask(
    files: Overlay,
    edits: Edits,
    authors: Callable[[str], Sequence[Actor]],
    *,
    careful: bool = False,
) -> str:
    """Say why a person must decide on edits; empty: they may be made.

    What counts is the whole way from the file on disk: a line of the user's that would change, or
    more than a quarter of a file that would be lost. What is said elsewhere then isn't lost. How
    the assistant is to be, and who the user is, is never without their consent.
    """
    for path, data in edits.items():
        old = shown_text(files.original(path))
        why = _risk(files, path, old, edits, authors(path)) if old else ""
        if why:
            return why if data is None else f"{why}, in {short_name(path)}"
    return (_lost(files, edits) if careful else "") or _guides(edits)


def reason_to_ask_of_tool(
    files: Overlay,
    edits: Edits,
    authors: Callable[[str], Sequence[Actor]],
    asked: Callable[[Sequence[str], Sequence[str]], bool],
) -> str:
    """Say to a model why a person must decide on what a tool is to do; empty: it may be done.

    It may add, and change what machines wrote. A line that the user wrote, and the name of a file
    that they wrote in, only where they asked for that; how the assistant is to be, and who the user
    is, never without their consent. `authors` gives who wrote each line of a file, `asked` is as in
    `Author`.
    """
    guiding = _guides(edits)
    if guiding:
        return guiding
    for path, data in edits.items():
        old = files.original(path)
        if not old or path in files.repaired:
            continue
        gone = _taken_from_people(old, edits, path, authors)
        is_theirs = gone or (
            data is None and any(author.writes_human_text for author in authors(path))
        )
        if is_theirs and not asked(_names_of(files, path), [*gone, *_coming(files, edits, path)]):
            what = f"{shorten(gone[0], _SHOWN)!r} in " if gone else "in "
            return (
                f"the user wrote {what}{short_name(path)}, and hasn't asked in this turn for a"
                " change of that"
            )
    return ""


def _taken_from_people(
    old: bytes, edits: Edits, path: str, authors: Callable[[str], Sequence[Actor]]
) -> list[str]:
    """The lines of the user's that edits take out of a file; it may have moved elsewhere."""
    moved = b"".join(data or b"" for other, data in edits.items() if other != path)
    new = edits[path] or moved
    return _gone_of_people(shown_text(old), shown_text(new), partial(authors, path), new)


def _coming(files: Overlay, edits: Edits, path: str) -> list[str]:
    """The statements of edits that a file didn't make."""
    old = shown_text(files.original(path))
    return [line for data in edits.values() for line in _added(old, data)]


def _names_of(files: Overlay, path: str) -> list[str]:
    entry = files.entry(path)
    return [entry.title, entry.slug, *entry.aliases] if entry else [short_name(path)]


def _guides(edits: Edits) -> str:
    path = next((path for path in edits if path in _GUIDING), None)
    return f"{path} guides every conversation, so the user decides" if path else ""


def _gone_of_people(
    old: str, new: str, authors: Callable[[], Sequence[Actor | None]], head: bytes | None = None
) -> list[str]:
    """The lines of the user's that wouldn't stand in a file any more.

    Those of its frontmatter may grow into what stands in that of `head`, if any.
    """
    grown = _grown_keys(old.encode(), head)
    lines = split_lines(old)
    below = len(lines) - len(split_lines(body_of(old)))
    changed = [
        number
        for number in _lacking(lines, split_lines(new))
        if number >= below or lines[number].partition(":")[0] not in grown
    ]
    wrote = authors() if changed else ()
    by = [(lines[number], wrote[number]) for number in changed if number < len(wrote)]
    return [plain_fact(line) for line, author in by if author and author.writes_human_text]


def _lacking(lines: Sequence[str], others: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that say something and that others lack; each stands for one."""
    left = Counter(map(str.rstrip, others))
    for number, line in enumerate(map(str.rstrip, lines)):
        if left[line]:
            left[line] -= 1
        elif line:
            yield number


def _grown_keys(old: bytes, new: bytes | None) -> set[str]:
    """The keys of the frontmatter that lose nothing."""
    if new is None:
        return set()
    before, after = frontmatter.parse(old).values, frontmatter.parse(new).values

    def items(key: str, value: object) -> list[object]:
        if key in {"tags", "tag"}:  # they may stand in one line
            return frontmatter.items({"tags": value}, "tags")[1]
        return value if isinstance(value, list) else [value] if value else []

    return {
        key
        for key, value in before.items()
        if all(item in items(key, after.get(key)) for item in items(key, value))
    }


def _check_kept(path: str, before: str, after: str) -> None:
    """An Evolution section only grows, and what was decided stays, there at the least."""
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


def _check_said(
    title: str,
    added: list[str],
    files: Overlay,
    is_forbidden: Callable[[str], bool],
    *,
    by_tool: bool,
) -> None:
    """Refuse to write what was forgotten, or what is no statement at all."""
    known = {fact for data in files.before.values() for fact in statements(shown_text(data))}
    for fact in added:
        if fact in known:
            continue
        if not by_tool:
            _check_worth(fact)
        if is_forbidden(fact) or is_forbidden(f"{title}: {fact}"):
            raise UsageError(
                f"{shorten(fact, _SHOWN)!r} was forgotten by the user.", "Leave it out."
            )


def _check_worth(fact: str) -> None:
    why = why_unusable(fact)
    if why is not None or is_placeholder(fact):
        raise UsageError(f"That {why or 'says nothing'}: {shorten(fact, _SHOWN)!r}.")
    if len(fact) > _LONGEST_LINE:
        raise UsageError("A line of that length is no fact.", "Write short lines.")


def _risk(files: Overlay, path: str, old: str, edits: Edits, authors: Sequence[Actor]) -> str:
    elsewhere = _said_elsewhere(files, path, edits)
    if edits[path] is None:
        return _risk_of_removal(path, missing(old, elsewhere), authors)
    new = shown_text(edits[path])
    said = [*chain.from_iterable(map(statements, elsewhere))]
    kept = {*map(str.rstrip, split_lines(new))}

    def counts(line: str, author: Actor) -> bool:
        is_own = author.writes_human_text or line.rstrip() in kept or not is_statement(line)
        return is_own or not is_said(plain_fact(line), said)

    by = zip(split_lines(old), authors, strict=False)
    judged = [(line, author) for line, author in by if counts(line, author)]
    return review_reason("".join(line for line, _ in judged), new, [author for _, author in judged])


def _risk_of_removal(path: str, lost: Sequence[str], authors: Sequence[Actor]) -> str:
    if any(author.writes_human_text for author in authors):
        return f"it would remove {short_name(path)}, in which you wrote"
    return f"it would lose {shorten(lost[0], _SHOWN)!r}" if lost else ""


def _said_elsewhere(files: Overlay, path: str, edits: Edits) -> list[str]:
    """What the other files say that this run has changed or looked at."""
    others = {**files.before, **files.edits, **edits}
    return [shown_text(data) for other, data in others.items() if other != path]


def _lost(files: Overlay, edits: Edits) -> str:
    came, went = 0, []
    for path, data in edits.items():
        before, after = shown_text(files.data(path)), shown_text(data)
        came += len(_added(before, data))
        went += missing(before, [after, *_said_elsewhere(files, path, edits)])
    if len(went) <= came:
        return ""
    return f"it ended before it was finished, and {shorten(went[0], _SHOWN)!r} would be gone"


def _added(before: str, data: bytes | None) -> list[str]:
    known = set(statements(before))
    return [fact for fact in statements(shown_text(data)) if fact not in known]


def _lines(text: str) -> list[str]:
    """Those that say something, without what their links lead to, which repairs may change."""
    return [_LINK.sub("", line).strip() for line in text.splitlines() if line.strip()]


def lost_share(old: str, new: str) -> float:
    """Which share of the lines of `old` has nothing like it in `new`, from 0 to 1.

    A line that was reworded isn't lost. Blank lines don't count.
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
    """Say why a background change must be proposed instead of made; empty: it may be made.

    `authors` says who wrote each line of `old`, see `History.authors`.
    """
    share = lost_share(old, new)
    if share > MAX_LOST:
        return f"it would lose {share:.0%} of the lines"
    gone = _gone_of_people(old, new, lambda: authors)
    return f"it would change a line that you wrote: {gone[0]!r}" if gone else ""
