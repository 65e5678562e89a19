"""Where the user reviews every change: what a tool would write becomes a proposal.

The tool runs as always; its change is handed over at the moment at which it would be made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import RefusedError, ToolContext, ToolResult
from kbtui.history.objects.commit import is_derived
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.agent.tools.base import Tool
    from kbtui.history.change import Change
    from kbtui.memory.inbox.proposal import Proposal


def is_reviewed(context: ToolContext) -> bool:
    """Whether the user wants to see every change before it is made."""
    return context.inbox is not None and context.settings.memory.review == "ask"


def reviewed(
    context: ToolContext, tool: Tool, arguments: Mapping[str, Any], *, is_new: bool
) -> tuple[ToolResult, str]:
    """Run a tool that writes; what it would have written goes into the inbox.

    Args:
        context: The turn.
        tool: What is run.
        arguments: What it is given.
        is_new: The tool writes what isn't there yet.

    Returns:
        What to tell the model, and the id of the proposal; empty when nothing was to be written.

    Raises:
        KbtuiError: the tool can't do it, or it was proposed already.
    """
    changes: list[Change] = []
    result = tool.run(replace(context, sink=changes.append), arguments)
    if not changes:
        return result, ""
    return propose(context, changes[0], is_new=is_new)


def propose(context: ToolContext, change: Change, *, is_new: bool) -> tuple[ToolResult, str]:
    """Put a change that isn't made into the inbox; see `reviewed`."""
    proposal, done = _propose(context, change, is_new=is_new)
    output = (
        f"Proposed, not written: the user reviews every change. It waits as {proposal.id} in the"
        " inbox (F6, or `kbtui inbox`), and until it is accepted the files say what they said."
        f" Don't do it again; say that it waits.\n{done}"
    )
    return ToolResult(output, f"proposed: {_summary(done)}"), proposal.id


def _propose(context: ToolContext, change: Change, *, is_new: bool) -> tuple[Proposal, str]:
    inbox = context.inbox
    if inbox is None:
        raise RefusedError("There is no inbox to propose a change in.")
    texts = {
        path: None if data is None else files.decode(data).text
        for path, data in change.edits.items()
        if not is_derived(path)
    }
    waiting = inbox.proposed_by(context.actor, context.origin)
    twin = next((path for path in texts if is_new and path in waiting), None)
    if twin is not None:
        raise RefusedError(
            f"You have proposed that already: {twin} waits in the inbox.",
            f"Change what you proposed with edit_entry ({short_name(twin)}).",
        )
    built_on = next(iter(texts)) if len(texts) == 1 else ""
    done = _done(context, {path: texts[path] for path in texts if not context.conceals(path)})
    proposal = inbox.add_to_turn(
        change.reason,
        texts,
        context.origin,
        built_on,
        actor=context.actor,
        expected=change.expected,
    )
    return proposal, done


def _done(context: ToolContext, texts: dict[str, str | None]) -> str:
    """What would be done, in the words in which a tool says that it did it."""
    lines = []
    for path, text in texts.items():
        there = files.exists(context.workspace.root, path)
        if text is None:
            lines.append(f"Deleted {path}")
        elif there:
            lines.append(f"Changed {path} (as proposed)")
        else:
            lines.append(f"Created {path}")
    return "\n".join(lines)


def _summary(done: str) -> str:
    words = {"Deleted": "deleted", "Changed": "changed", "Created": "created"}
    parts = []
    for line in done.splitlines():
        verb, _, rest = line.partition(" ")
        parts.append(f"{short_name(rest.removesuffix(' (as proposed)'))} {words[verb]}")
    return "; ".join(parts)
