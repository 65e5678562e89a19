"""What is said about a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from kbtui.text import clean, clean_line

if TYPE_CHECKING:
    from kbtui.history.objects.commit import Commit


def when_text(commit: Commit) -> str:
    """When a commit was made, to be read in a sentence."""
    return f"on {commit.time.astimezone():%Y-%m-%d at %H:%M}"


def description(commit: Commit) -> Content:
    """What is known of a commit, in a few lines."""
    facts = [f"{commit.time.astimezone():%a %Y-%m-%d %H:%M}", str(commit.actor), commit.id[:10]]
    origin = commit.origin
    if origin.model:
        facts.append(origin.model)
    if origin.session:
        messages = f" {origin.messages[0]}-{origin.messages[1]}" if origin.messages else ""
        facts.append(f"{origin.session}{messages}")
    if origin.batch:
        facts.append(f"batch {origin.batch}")
    if origin.undoes:
        undone = origin.undoes.split()
        more = f" and {len(undone) - 1} more" if len(undone) > 1 else ""
        facts.append(f"undoes {undone[0][:10]}{more}")
    lines = [
        Content.styled(clean_line(commit.subject), "bold"),
        Content.styled(" · ".join(clean_line(fact) for fact in facts), "$text-muted"),
    ]
    if commit.body.strip():
        lines.append(Content.styled(clean(commit.body).strip(), "italic"))
    return Content("\n").join(lines)
