"""What a decision about places of a proposal writes, and what is left of the proposal then.

Plain functions on a plan. What is left is made anew from the text that was decided on: without
the places that were put away, and with those that were made. So the others wait on as they were
shown, and deciding on one after the other, in any order, is the same as deciding on all at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, UnreadableError, UsageError
from kbtui.history.looking.diff import split_lines
from kbtui.history.merging.undo_merge import take_out
from kbtui.knowledge.facts import statements
from kbtui.memory.inbox.hunks import Cut, line_end, put, says_the_same
from kbtui.memory.inbox.proposal import place_fingerprints
from kbtui.memory.inbox.showing import region
from kbtui.text import clean_line, shorten
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kbtui.memory.inbox.plan import Place, Plan, PlannedFile, PlannedHunk
    from kbtui.memory.inbox.proposal import ProposedEdit

    Change = tuple[Place, tuple[str, ...]]


@dataclass(slots=True)
class Decision:
    """What comes of a decision.

    Attributes:
        writes: What each file must be (a hash) and what it becomes; None: no file.
        left: What still waits.
        facts: What the decided places state and the files didn't.
        count: How many places were decided.
        prints: Their fingerprints.
    """

    writes: dict[str, tuple[str | None, bytes | None]] = field(default_factory=dict)
    left: list[ProposedEdit] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    count: int = 0
    prints: list[str] = field(default_factory=list)


def accepted(plan: Plan, keys: Collection[str] | None) -> Decision:
    """Accept some places, or all that wait.

    Raises:
        ConflictError: A person must settle one of them first.
    """
    decision = Decision()
    for file in plan.files:
        chosen = _chosen(file, keys)
        clashing = [hunk for hunk in chosen if hunk.state == "conflict"]
        if clashing:
            raise _conflict(file, clashing)
        decision.count += len(chosen)
        decision.facts += _facts(file, chosen)
        if not chosen:
            decision.left += file.edits if file.waiting else ()
        elif chosen[0].cut is None:
            decision.writes |= _whole(file)
        else:
            text = _with(file, chosen)
            decision.writes[file.now.path] = (file.now.blob, file.now.encoded(text))
            decision.left += _rest(file, made=chosen)
    return decision


def rejected(plan: Plan, keys: Collection[str] | None) -> Decision:
    """Put some places away, or all that wait."""
    decision = Decision()
    for file in plan.files:
        chosen = _chosen(file, keys)
        decision.count += len(chosen)
        decision.facts += _facts(file, chosen)
        for hunk in chosen:
            edits = [file.edit] if hunk.cut else file.edits
            decision.prints += place_fingerprints(plan.proposal.actor, edits, hunk.cut)
        if not chosen:
            decision.left += file.edits if file.waiting else ()
        elif chosen[0].cut is not None:
            decision.left += _rest(file, dropped=chosen)
    return decision


def edited(plan: Plan, key: str, text: str, seen: str | None = None) -> list[ProposedEdit]:
    """Let a person's own text take the place of what was proposed; it is clean then.

    Args:
        plan: The proposal.
        key: Which place.
        text: What is to stand there; for a whole file, nothing means no file.
        seen: What stood there when the person began to write; None: don't compare.

    Raises:
        ConflictError: Something else stands there by now.
        UnreadableError: The file can't be written.
    """
    left: list[ProposedEdit] = []
    for file in plan.files:
        hunk = next((hunk for hunk in file.waiting if hunk.key == key), None)
        if hunk is None:
            left += file.edits if file.waiting else ()
            continue
        if not all(each.is_text for each in (file.now, *(file.old or ())[1:])):
            raise UnreadableError(
                f"{short_name(file.now.path)} can't be changed: {hunk.why}.",
                "Edit it with another program.",
            )
        if seen is not None and seen != region(file, hunk).seen:
            raise ConflictError(
                f"{short_name(file.now.path)} was changed there while you wrote.",
                "Your text was not taken. Look at the place again.",
                paths=(file.now.path,),
            )
        left += _own_file(file, text) if hunk.cut is None else _rest(file, own=(hunk, text))
    return left


def described(done: str, plan: Plan, decision: Decision) -> str:
    """The reason of the change that a decision makes."""
    proposal = plan.proposal
    whole = decision.count == len(plan.hunks)
    what = "a proposal" if whole else f"{decision.count} of {len(plan.hunks)} places of a proposal"
    return f"{done} {what} of {proposal.actor}: {proposal.reason}"


def _chosen(file: PlannedFile, keys: Collection[str] | None) -> list[PlannedHunk]:
    return [hunk for hunk in file.waiting if keys is None or hunk.key in keys]


def _conflict(file: PlannedFile, hunks: Sequence[PlannedHunk]) -> ConflictError:
    stands = [line.strip() for hunk in hunks for line in hunk.place.ours if line.strip()]
    there = f" There stands: {shorten(clean_line(stands[0]), 60)}." if stands else ""
    return ConflictError(
        f"{short_name(file.edit.path)} can't be changed as proposed ({hunks[0].why}).{there}",
        "Nothing was changed. Edit the place to say what shall stand there, or reject it.",
        paths=(file.now.path,),
    )


def _whole(file: PlannedFile) -> dict[str, tuple[str | None, bytes | None]]:
    text = file.edit.text
    if file.old is None:
        data = None if text is None else text.encode("utf-8", "replace")
        return {file.now.path: (file.now.blob, data)}
    gone, source = file.old
    merge = take_out(file.edit.path, [gone.base_text or "", source.text or ""], text or "")
    return {
        source.path: (source.blob, None),
        file.now.path: (None, source.encoded(merge.text)),
    }


def _with(file: PlannedFile, hunks: Sequence[PlannedHunk]) -> str:
    """The file as it is now with some places made."""
    return _put(file.now.text or "", [(hunk.place, hunk.place.theirs) for hunk in hunks])


def _rest(
    file: PlannedFile,
    *,
    made: Sequence[PlannedHunk] = (),
    dropped: Sequence[PlannedHunk] = (),
    own: tuple[PlannedHunk, str] | None = None,
) -> list[ProposedEdit]:
    """What still waits of a file, made from what the file says then.

    Only where it conflicts is it made from what the file said before: it conflicts on.
    """
    now, old = file.now.text or "", split_lines(file.edit.base_text or "")
    wanted: list[Change] = []
    base: list[Change] = []
    for hunk in file.waiting:
        place = hunk.place
        if own is not None and hunk is own[0]:
            wanted.append((place, tuple(split_lines(own[1]))))
        elif hunk not in dropped:
            wanted.append((place, place.theirs))
            if hunk in made:
                base.append((place, place.theirs))
            elif hunk.state == "conflict":
                base.append((place, tuple(old[slice(*place.base)])))
    edit = _on(file.edit, _put(now, base))
    edit = replace(edit, text=_put(now, wanted))
    return [] if says_the_same(edit.base_text or "", edit.text or "") else [edit]


def _put(text: str, changes: Sequence[Change]) -> str:
    end = line_end(text)
    return put(
        text,
        [
            Cut(place.first, place.last, tuple(_ended(line, end) for line in lines))
            for place, lines in changes
        ],
    )


def _ended(line: str, end: str) -> str:
    return line.rstrip("\r\n") + end if line.endswith("\n") else line


def _on(edit: ProposedEdit, base: str) -> ProposedEdit:
    """The same edit, made from another text."""
    return replace(edit, base=files.blob_id(base.encode("utf-8", "replace")), base_text=base)


def _facts(file: PlannedFile, hunks: Sequence[PlannedHunk]) -> list[str]:
    base = file.edit.base_text or (file.old[0].base_text if file.old else None) or ""
    known = statements(base)
    found: list[str] = []
    for hunk in hunks:
        text = file.edit.text or "" if hunk.cut is None else put(base, [hunk.cut])
        found += [fact for fact in statements(text) if fact not in known]
    return list(dict.fromkeys(found))


def _own_file(file: PlannedFile, text: str) -> list[ProposedEdit]:
    """A whole file as a person wants it, made from what is there now."""
    if not text.strip() and file.edit.text is not None:
        raise UsageError("There is no text.", "Reject the place if nothing of it shall stand.")
    own = replace(file.edit, base=None, base_text=None, text=text or None)
    if file.now.text is not None:
        own = _on(own, file.now.text)
    if file.old is None or file.old[1].text is None:
        return [own]
    gone, source = file.old
    return [_on(replace(gone, path=source.path), source.text or ""), own]
