"""Tools of the history: listing and showing changes, explaining lines, undoing own changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import (
    RefusedError,
    Tool,
    ToolContext,
    ToolResult,
    cap,
    number,
    quoted,
    spec,
    text,
)
from kbtui.agent.tools.writing import is_reviewed, propose
from kbtui.errors import NotFoundError, UndoConflictError
from kbtui.history.change import Actor, Commit, describe
from kbtui.history.queries.diff import as_patch
from kbtui.text import clean_line, counted, moment, shorten
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from kbtui.history.change import Change
    from kbtui.memory.recall.provenance import Why
    from kbtui.views.public_history import PublicCommit

_LIMIT = 20
_MAX_LIMIT = 200
_SHORT_ID = 10


class EntryHistory:
    """Lists changes."""

    spec = spec(
        "entry_history",
        """List what was changed in the knowledge base, newest first: of one entry, or of all.
        Each change has an id for show_change and undo_change, and says who made it.""",
        (),
        entry=text("only this entry's: path, category/slug, slug, title or alias"),
        actor=text("only this actor's", enum=[actor.value for actor in Actor]),
        text=text("only those that say this"),
        limit=number(f"how many at most ({_LIMIT})"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """List the changes."""
        history = context.view.history
        ref = arguments.get("entry", "")
        path = history.find_path(ref) if ref else None
        actor = Actor(arguments["actor"]) if "actor" in arguments else None
        found = history.log(path, actor=actor, text=arguments.get("text") or None)
        limit = max(1, min(arguments.get("limit", _LIMIT), _MAX_LIMIT))
        shown = list(islice(found, limit))
        data = {
            "path": path,
            "commits": [_commit_data(each, context) for each in shown],
            "more": next(found, None) is not None,
        }
        count = counted(len(shown), "change")
        lines = [_summary_line(each, context) for each in shown]
        if data["more"]:
            lines.append(f"(there are more: use limit={min(2 * limit, _MAX_LIMIT)})")
        of = f" of {short_name(path)}" if path else ""
        return ToolResult("\n".join([f"{count}{of}:", *lines]), count, data=data)


class ShowChange:
    """Shows what one commit changed."""

    spec = spec(
        "show_change",
        "Show what one change did, as a diff, with who made it and why.",
        ("commit",),
        commit=text("the id from entry_history, or HEAD, HEAD~1"),
        entry=text("only this entry's part of it"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Show the change."""
        history = context.view.history
        shown = history.commit(arguments["commit"].strip())
        diffs = history.diffs(shown)
        if arguments.get("entry"):
            path = history.find_path(arguments["entry"])
            diffs = tuple(each for each in diffs if path in {each.path, each.old_path})
            if not diffs:
                raise NotFoundError(
                    f"That change didn't touch {short_name(path)}.", f"It says: {shown.subject}"
                )
        patch = cap(as_patch(diffs, context.layout.file))
        head = _summary_line(shown, context)
        parts = [head, shown.reason, quoted(patch)] if shown.reason else [head, quoted(patch)]
        data = {**_commit_data(shown, context), "diff": patch}
        return ToolResult("\n".join(parts), clean_line(shown.subject), data=data)


class ExplainLine:
    """Explains the origin of a line."""

    spec = spec(
        "explain_line",
        """Say why a line of an entry stands there: who wrote it, in which change, and what was
        said in the conversation that it was made of.""",
        ("entry", "line"),
        entry=text("path, category/slug, slug, title or alias; or memory/MEMORY.md"),
        line=number("the line, counted from 1, frontmatter included"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Explain the line."""
        if context.find_provenance is None:
            raise RefusedError("Nobody knows here where lines come from.")
        path = context.view.library.find_path(arguments["entry"])
        why = context.find_provenance().why(path, arguments["line"])
        shown = _public_commit(context, why.commit)
        data = {
            "path": path,
            "line": why.line,
            "text": why.text,
            "actor": why.origin.actor.value,
            "note": why.note,
            "commit": _commit_data(shown, context) if shown else None,
            "session": why.title or None,
            "messages": _messages(why),
            "archive": [clean_line(entry.content) for entry in why.archives[:3]],
        }
        return ToolResult(_explanation(data, shown, context), why.note, data=data)


class UndoChange:
    """Undoes a change made by the same client."""

    spec = spec(
        "undo_change",
        """Take back one change that you made yourself in this knowledge base; what was changed
        later stays. What the user or another program changed is theirs to undo.""",
        ("commit",),
        commit=text("the id, as the tool that made the change or entry_history gave it"),
    )
    writes = True

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Undo the change."""
        history = context.view.history
        shown = history.commit(arguments["commit"].strip())
        commit = shown.commit
        if not _is_own(commit, context):
            raise RefusedError(
                f"The change {commit.id[:_SHORT_ID]} isn't yours: {_actor_name(commit)} made it.",
                f"Tell the user: `kbtui undo {commit.id[:_SHORT_ID]}` takes it back.",
            )
        try:
            waiting: list[Change] = []
            undone = history.undo(
                shown,
                actor=context.actor,
                origin=context.origin,
                sink=waiting.append if is_reviewed(context) else None,
            )
        except UndoConflictError as error:
            places = ", ".join(f"{short_name(c.path)}:{c.line}" for c in error.conflicts)
            raise RefusedError(
                f"It can't be undone by itself: {places} was changed again since.",
                "Nothing was changed. Read the entry and correct it with edit_entry.",
            ) from error
        if undone is None:
            return propose(context, waiting[0])
        done = describe(tuple(c for c in undone.paths if not context.view.conceals(c.path)))
        data = {"undone": commit.id}
        message = f"Undone: {shown.subject}. Now {done}."
        return ToolResult(message, f"undone: {done}", commit=undone, data=data)


HISTORY_TOOLS: tuple[Tool, ...] = (EntryHistory(), ShowChange(), ExplainLine(), UndoChange())


def _public_commit(context: ToolContext, commit: Commit | None) -> PublicCommit | None:
    if commit is None:
        return None
    try:
        return context.view.history.commit(commit.id)
    except NotFoundError:
        return None


def _is_own(commit: Commit, context: ToolContext) -> bool:
    """Return whether the calling client made a commit, in this or an earlier connection."""
    return commit.actor is context.actor and commit.origin.model == context.origin.model


def _actor_name(commit: Commit) -> str:
    if commit.actor is Actor.YOU:
        return commit.origin.author or "the user"
    return clean_line(f"{commit.actor.value} ({commit.origin.model})").replace(" (None)", "")


def _commit_data(shown: PublicCommit, context: ToolContext) -> dict[str, Any]:
    commit = shown.commit
    return {
        "commit": commit.id,
        "time": commit.time.isoformat(),
        "actor": commit.actor.value,
        "author": commit.origin.author,
        "model": commit.origin.model,
        "subject": shown.subject,
        "reason": shown.reason,
        "paths": list(shown.paths),
        "undoes": (commit.origin.undoes or "").split(),
        "yours": _is_own(commit, context),
    }


def _summary_line(shown: PublicCommit, context: ToolContext) -> str:
    commit = shown.commit
    who = "you" if _is_own(commit, context) else _actor_name(commit)
    when = moment(commit.time)
    return f"{commit.id[:_SHORT_ID]} {when} {who}: {clean_line(shown.subject)}"


def _messages(why: Why) -> list[dict[str, Any]]:
    relevant = [each for each in why.messages if each.id in why.telling] or list(why.messages)
    return [
        {
            "id": each.id,
            "role": each.role,
            "time": each.time.isoformat(),
            "text": shorten(each.content, 600),
        }
        for each in relevant[:12]
    ]


def _explanation(data: Mapping[str, Any], shown: PublicCommit | None, context: ToolContext) -> str:
    parts = [f"{data['path']}:{data['line']}", quoted(data["text"]), data["note"]]
    if shown is not None:
        parts.append(_summary_line(shown, context))
        parts += [shown.reason] if shown.reason else []
    parts += _quoted_list("The archive says:", data["archive"])
    message = [f"{each['role']}: {each['text']}" for each in data["messages"]]
    return "\n".join([*parts, *_quoted_list("What was said:", message)])


def _quoted_list(title: str, lines: Iterable[str]) -> list[str]:
    whole = "\n".join(lines)
    return [title, quoted(whole)] if whole else []
