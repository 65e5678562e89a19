"""How a tool writes: by the one edit engine, or into the inbox where a person must decide.

What a conversation has proposed and nobody has decided on counts as written for its next edits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kbtui.agent.tools.base import RefusedError, ToolContext, ToolResult
from kbtui.history.objects.commit import is_derived
from kbtui.memory.edits.editor import Author
from kbtui.offline.words import alike, content
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.history.change import Change
    from kbtui.memory.edits.editor import Edited, Editor
    from kbtui.memory.edits.working_copy import Operation

_REVIEWED = "the user reviews every change"
_VERBS = {"Deleted": "deleted", "Changed": "changed", "Created": "created"}
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_ASKS_TO_CHANGE = re.compile(
    r"\b(?:chang|updat|renam|correct|fix|replac|remov|delet|edit|mov(?:e|ing)\b|rewrit|rephras"
    r"|shorten|clean|tid(?:y|ied)|merg|drop\b|strik|cross out|translat|sort\b|reorder|reformat"
    r"|änder|aktualisier|umbenenn|benenn|korrigier|berichtig|ersetz|entfern|lösch|streich|verschieb"
    r"|bearbeit|kürz|übersetz|schreib|cambi|actualiz|renombr|corrig|corrij|reemplaz|sustitu|quit"
    r"|elimin|borr|edit|muev|mover|reescrib|acort|traduc)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a write."""

    context: ToolContext
    edited: Edited

    @property
    def path(self) -> str:
        """The file that it is about, under the name that it has now."""
        return self.edited.path

    def result(self, output: str, summary: str) -> ToolResult:
        """Tell of it: in these words if it is done, else that it waits, or that nothing changed."""
        edited = self.edited
        if edited.waits is not None and edited.waits.edits:
            return propose(self.context, edited.waits, edited.why or _REVIEWED)
        data = {"path": edited.path}
        if edited.commit is None:
            return ToolResult(f"{edited.path} says so already.", "nothing to change", data=data)
        return ToolResult(output, summary, commit=edited.commit, data=data)


def write(context: ToolContext, operation: Operation, reason: Callable[[Edited], str]) -> Made:
    """Do what a tool is asked for, in one commit; what a person must decide on isn't done.

    Args:
        context: The turn.
        operation: What to do.
        reason: Says why, for the commit.

    Raises:
        NotFoundError: what is to be changed isn't there.
        UsageError: it can't be done, or must not.
        ConflictError: the files kept changing; nothing is written.
        WorkspaceBusyError: somebody else kept writing.
        StorageError: the file system refused; nothing is written.
    """
    author = Author(
        context.actor,
        context.origin,
        [(context.now(), context.said)] if context.said else (),
        partial(asked_for, context.said),
        shows_private=context.is_local,
        hides=context.conceals,
    )
    return Made(
        context,
        _editor(context).write(operation, author, reason, reviewed=is_reviewed(context)),
    )


def asked_for(said: str, names: Sequence[str], lines: Sequence[str]) -> bool:
    """True if somebody has asked in a message for a change.

    They have where they state what the lines say, or ask to change what is called so; a question
    asks for nothing.

    Args:
        said: The message.
        names: What that which would be changed is called.
        lines: The lines that would go, and those that would come.
    """
    called = {word for name in names for word in content(name)}
    told = {word for line in lines for word in content(line)}
    for sentence in _SENTENCE.split(said):
        asks_to_change = _ASKS_TO_CHANGE.search(sentence) is not None
        if sentence.rstrip().endswith("?") and not asks_to_change:
            continue
        wanted = told | called if asks_to_change else told - called
        if any(alike(word, other) for word in content(sentence) for other in wanted):
            return True
    return False


def is_reviewed(context: ToolContext) -> bool:
    """True if the user wants to see every change before it is made."""
    return context.find_editor is not None and context.settings.memory.review == "ask"


def propose(context: ToolContext, change: Change, why: str = _REVIEWED) -> ToolResult:
    """Put a change that isn't made into the inbox, and say so to the model.

    Raises:
        ConflictError: a person has edited what it builds on, or decided on it.
        WorkspaceBusyError: somebody else kept deciding on proposals.
    """
    texts = {
        path: None if data is None else files.decode(data).text
        for path, data in change.edits.items()
        if not is_derived(path)
    }
    done = [_done(context, path, texts[path]) for path in texts if not context.conceals(path)]
    proposal = _editor(context).inbox.add_to_turn(
        change.reason,
        texts,
        context.origin,
        next(iter(texts)) if len(texts) == 1 else "",
        actor=context.actor,
        expected=change.expected,
    )
    told = (
        f"Proposed, not written: {why}. It waits as {proposal.id} in the inbox (F6, or"
        " `kbtui inbox`), and until it is accepted the files say what they said."
        " Don't do it again; say that it waits."
    )
    said = [f"{verb} {path}{' (as proposed)' * (verb == 'Changed')}" for verb, path in done]
    summary = "; ".join(f"{short_name(path)} {_VERBS[verb]}" for verb, path in done)
    return ToolResult("\n".join([told, *said]), f"proposed: {summary}", proposal=proposal.id)


def _done(context: ToolContext, path: str, text: str | None) -> tuple[str, str]:
    if text is None:
        return "Deleted", path
    return "Changed" if files.exists(context.workspace.root, path) else "Created", path


def _editor(context: ToolContext) -> Editor:
    if context.find_editor is None:
        raise RefusedError("Nothing can be written here.", "Say so; the user can do it.")
    return context.find_editor()
