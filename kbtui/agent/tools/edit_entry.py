"""The tool ``edit_entry``: the smallest change to an entry, or to MEMORY.md, USER.md or SOUL.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.agent.tools.base import (
    RefusedError,
    ToolContext,
    ToolResult,
    hidden,
    spec,
    text,
    texts,
)
from kbtui.agent.tools.proposed import path_of, proposed_entries
from kbtui.errors import NotFoundError
from kbtui.history.objects.commit import describe
from kbtui.knowledge import frontmatter
from kbtui.knowledge.entry import parse_entry
from kbtui.knowledge.frontmatter import items
from kbtui.knowledge.templates import append_to_section
from kbtui.memory.edits.operations import replaced
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.knowledge.entry import Entry

_NOTES = {
    "memory.md": "memory/MEMORY.md",
    "memory/memory.md": "memory/MEMORY.md",
    "user.md": "USER.md",
    "soul.md": "SOUL.md",
}
_LISTS = {"add_tags": "tags", "add_related": "related", "add_aliases": "aliases"}
_DOING = ("old", "append", "body", "summary", *_LISTS)
_NOTE_START = "# Memory\n"


class EditEntry:
    """Changes an entry: a passage, the end of a section, its properties, or its whole text."""

    spec = spec(
        "edit_entry",
        """Change a knowledge entry with the smallest edit that does it; what you don't name stays
        byte for byte. Also changes MEMORY.md (short facts that every conversation needs), USER.md
        and SOUL.md. Give `old` and `new` to replace a passage, `append` to add text (with
        `section`: at the end of that heading), `body` to replace everything below the
        frontmatter. A decision that changed keeps its text and grows under Evolution, as
        "- YYYY-MM-DD: what changed".""",
        ("entry",),
        entry=text("path, category/slug, slug, title or alias; or MEMORY.md, USER.md, SOUL.md"),
        old=text("the passage to replace, exactly as it stands there, once"),
        new=text("what takes its place; empty removes it"),
        append=text("text to add"),
        section=text("the heading to append under; made if missing"),
        body=text("the whole new text below the frontmatter"),
        summary=text("a new one-line summary for the catalogue"),
        add_tags=texts("tags to add"),
        add_related=texts("related entries to add, as category/slug"),
        add_aliases=texts("other names to add"),
    )
    writes = True

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Apply the edit.

        Raises:
            NotFoundError: there is no such entry, or `old` isn't in it.
            RefusedError: it can't be edited.
            ConflictError: somebody else changed it in this moment.
        """
        if not any(arguments.get(name) for name in _DOING):
            raise RefusedError("There is nothing to change.", "Give old and new, append, or body.")
        entry, expecting = _target(context, arguments["entry"])
        text_now = _edited(entry, arguments)
        if text_now == _unix(entry.text):
            said = f"{entry.path} says so already."
            return ToolResult(said, "nothing to change", data={"path": entry.path})
        commit = context.library.write(
            entry.path,
            text_now,
            expecting=expecting,
            actor=context.actor,
            reason=f"edit {short_name(entry.path)}",
            origin=context.origin,
            sink=context.sink,
        )
        summary = describe(commit.paths) if commit else "nothing to change"
        said, data = f"Changed {entry.path} ({summary})", {"path": entry.path}
        return ToolResult(said, summary, commit=commit, data=data)


def _target(context: ToolContext, ref: str) -> tuple[Entry, str | None]:
    """The file to edit, and the blob id that it must have; the notes may not be there yet.

    What this conversation has proposed for a file takes its place: the next edit builds on that.
    """
    proposed = proposed_entries(context)
    note = _NOTES.get(clean_line(ref).lower())
    path = note or path_of(context, ref, proposed)
    entry = proposed.get(path)
    if note is not None and entry is None:
        return _note(context, note)
    name = short_name(path)
    if note is None and (not path.startswith("knowledge/") or path.endswith("INDEX.md")):
        raise RefusedError(
            f"{path} is not yours to edit.",
            "Entries under knowledge/ are, and MEMORY.md, USER.md and SOUL.md.",
        )
    if context.is_hidden(path) or (entry and entry.private and not context.is_local):
        raise hidden(name)
    entry = entry or context.library.get(path)
    if entry.problem:
        raise RefusedError(f"{name} can't be edited by a machine.", entry.problem)
    return entry, entry.blob


def _note(context: ToolContext, path: str) -> tuple[Entry, str | None]:
    """A note above the entries as it is, or as it begins."""
    try:
        entry = parse_entry(path, files.read_bytes(context.workspace.root, path))
    except NotFoundError:
        start = _NOTE_START if path.startswith("memory/") else ""
        return parse_entry(path, start.encode()), None
    return entry, entry.blob


def _edited(entry: Entry, arguments: Mapping[str, Any]) -> str:
    edited = _unix(entry.text)
    if arguments.get("old"):
        head = edited.removesuffix(_unix(entry.body))
        old, new = arguments["old"], arguments.get("new", "")
        if edited[len(head) :].count(old) == 1:
            edited = head + replaced(edited[len(head) :], old, new, entry.path)
        else:
            edited = replaced(edited, old, new, entry.path)
    if arguments.get("body"):
        body = arguments["body"].strip("\n")
        edited = edited.removesuffix(_unix(entry.body)) + f"{body}\n"
    if arguments.get("append"):
        edited = _appended(edited, arguments["append"].strip("\n"), arguments.get("section", ""))
    keys = _keys(entry, arguments)
    if keys:
        edited = frontmatter.set_keys(edited, keys)
    if problem := parse_entry(entry.path, edited.encode()).problem:
        raise RefusedError(
            f"That would break {short_name(entry.path)}: {problem}",
            "Leave the lines between --- be.",
        )
    return edited


def _unix(whole: str) -> str:
    """A text with the line ends that a model writes; `Library.write` gives CRLF files theirs."""
    unix = whole.replace("\r\n", "\n")
    return unix if unix.count("\n") == whole.count("\r\n") else whole


def _appended(whole: str, addition: str, section: str) -> str:
    heading = section.strip().lstrip("#").strip()
    if heading:
        return append_to_section(whole, heading, addition)
    gap = (
        ""
        if not whole
        else "\n"
        if whole.endswith("\n\n") or _continues(whole, addition)
        else "\n\n"
    )
    return f"{whole.rstrip()}{gap}{addition}\n" if whole.strip() else f"{addition}\n"


def _continues(whole: str, addition: str) -> bool:
    """Whether a list item follows a list item, without an empty line between."""
    last = whole.rstrip().rpartition("\n")[2].lstrip()
    return addition.lstrip()[:2] in ("- ", "* ") and last[:2] in ("- ", "* ")


def _keys(entry: Entry, arguments: Mapping[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if arguments.get("summary"):
        keys["summary"] = clean_line(arguments["summary"])
    for argument, name in _LISTS.items():
        present = getattr(entry, name)
        added = [clean_line(word) for word in arguments.get(argument, ()) if clean_line(word)]
        fresh = [word for word in dict.fromkeys(added) if word not in present]
        if fresh:
            key, written = items(entry.frontmatter, name)
            keys[key] = [*written, *fresh]
    return keys
