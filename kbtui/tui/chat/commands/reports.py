"""Reports of ``/doctor`` and ``/audit``; they read files and call services, so run in a thread."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.service import Audit
from kbtui.text import clean, clean_line

_MARKS = {True: ("✓", "$success"), False: ("✗", "$error"), None: ("·", "$text-muted")}


def doctor_report(kb: KnowledgeBase) -> Content:
    """Return the findings of `kbtui doctor`, by area."""
    lines: list[Content] = []
    area = ""
    for finding in kb.doctor():
        if finding.area != area:
            area = finding.area
            lines += [Content(), Content.styled(area.capitalize(), "bold $primary")]
        mark, color = _MARKS[finding.ok]
        lines.append(Content.assemble((f"{mark} ", color), clean(finding.text)))
        if finding.hint:
            lines.append(Content.styled(f"  {clean(finding.hint)}", "$text-muted"))
    return Content("\n").join(lines[1:])


def _ungrounded_line(who: str, line: str) -> Content:
    return Content(clean_line(f"{who}: not grounded: {line}"))


def _session_problems(found: Audit) -> Iterator[Content]:
    """Yield the problems of single sessions."""
    for account in found.accounts:
        lost = ", ".join(f"{first} to {last}" for first, last in account.unaccounted)
        if lost:
            text = f"{clean_line(account.session)}: messages {lost} are unaccounted for"
            yield Content.styled(text, "$error")
        for each in account.problems:
            yield Content(clean_line(f"{account.session}: {each}"))
        for each in account.not_grounded:
            yield _ungrounded_line(account.session, each)


def audit_report(kb: KnowledgeBase) -> Content:
    """Return the totals of `kbtui audit`, and the problems of sessions and of Dream."""
    found = kb.memory.audit()
    lines = [
        Content.assemble(
            (name.ljust(13), "$primary"),
            (f"{count:>9,}", "bold $error" if name == "unaccounted" and count else "bold"),
            (f"  {what}", "$text-muted"),
        )
        for name, count, what in found.sums
    ]
    lines += _session_problems(found)
    lines += [_ungrounded_line("Dream", each) for each in found.by_dream]
    lines += [Content.styled(clean_line(problem), "$error") for problem in found.problems]
    return Content("\n").join(lines)
