"""The tools ``write_entry``, ``edit_entry`` and ``rename_entry``, and writing by other tools.

Each writes by one operation of the table, through the edit engine, or into the inbox if a person
must decide. Undecided proposals of a conversation count as written for its next edits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kbtui.agent.tools.base import RefusedError, ToolContext, ToolResult, spec, text, texts
from kbtui.agent.tools.citing import cited_for
from kbtui.history.change import Change, describe, is_derived
from kbtui.knowledge.entries.entry import ENTRY_TYPES, section_names
from kbtui.knowledge.library.library import Content
from kbtui.memory.edits.editor import (
    Author,
    Editor,
    EditResult,
    Ground,
    Operation,
    edit_entry,
    rename_entry,
    write_entry,
)
from kbtui.models.port import ToolSpec
from kbtui.offline.language import significant_terms, stems_of, tokens
from kbtui.offline.lines import sentences
from kbtui.search.index import analyser
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

_REVIEWED = "the user reviews every change"
_ACTION_WORDS = {"Deleted": "deleted", "Changed": "changed", "Created": "new"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a tool wants to write.

    Attributes:
        operation: The edit.
        reason: Returns the reason for the history.
        told: Returns what is told once it is written: the output, and a summary for people.
        ground: What it may be built from besides what was said.
    """

    operation: Operation
    reason: Callable[[EditResult], str]
    told: Callable[[EditResult], tuple[str, str]]
    ground: Ground = field(default_factory=Ground)


class WritingTool(ABC):
    """A tool that writes by one operation."""

    spec: ToolSpec
    writes = True

    @abstractmethod
    def wanted(self, context: ToolContext, arguments: Mapping[str, Any], /) -> Wanted:
        """Return what a call wants to have written."""

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Write it in one commit, except what a person must decide on.

        Raises:
            NotFoundError: the entry to be changed doesn't exist.
            UsageError: it can't or must not be done. Else as `committed`.
        """
        wanted = self.wanted(context, arguments)
        author = Author(
            context.actor,
            [(context.said_at or context.now(), context.said)] if context.said else (),
            by_tool=True,
            asked=partial(asked_for, context.said),
            view=context.view,
            ground=context.find_ground() | wanted.ground if context.find_ground else None,
        )
        edited = _editor(context).write(
            wanted.operation, author, context.origin, wanted.reason, reviewed=is_reviewed(context)
        )
        if edited.waits is not None and edited.waits.edits:
            return propose(context, edited.waits, edited.why or _REVIEWED)
        data = {"path": edited.path}
        if edited.commit is None:
            return ToolResult(f"{edited.path} says so already.", "nothing to change", data=data)
        output, summary = wanted.told(edited)
        if edited.left_out:
            output += f"\nLeft out, as nobody has said it: {', '.join(edited.left_out)}."
        return ToolResult(output, summary, commit=edited.commit, data=data)


def asked_for(said: str, names: Sequence[str], lines: Sequence[str]) -> bool:
    """Return whether a message asks for a change of an entry with these names, or of these lines.

    It does if it states what the lines say, or asks to change something named so; questions don't.
    `lines` are those that would be removed or added.
    """
    name_terms, line_terms = _terms(names), _terms(lines)
    for sentence in sentences(said):
        words = {analyser.terms_of(token.word)[0] for token in tokens(sentence)}
        asks_to_change = not words.isdisjoint(stems_of("change"))
        is_question = sentence.endswith("?") and not asks_to_change
        wanted = line_terms | name_terms if asks_to_change else line_terms - name_terms
        if not is_question and wanted.intersection(significant_terms(sentence)):
            return True
    return False


def _terms(texts: Iterable[str]) -> set[str]:
    return {term for text in texts for term in significant_terms(text)}


def is_reviewed(context: ToolContext) -> bool:
    """Return whether the user reviews every change before it is made."""
    is_asked = context.reviewed or context.settings.memory.review == "ask"
    return context.find_editor is not None and is_asked


def propose(context: ToolContext, change: Change, why: str = _REVIEWED) -> ToolResult:
    """Put a change into the inbox instead of making it, and return the result for the model.

    Raises:
        ConflictError: a person edited what it is based on, or decided on it.
        WorkspaceBusyError: others kept deciding on proposals meanwhile.
    """
    texts = {
        path: None if data is None else files.text_of(data)
        for path, data in change.edits.items()
        if not is_derived(path)
    }
    done = [_action(context, path, texts[path]) for path in texts if not context.view.hides(path)]
    proposal = _editor(context).inbox.add_to_turn(
        change.reason,
        texts,
        context.origin,
        actor=context.actor,
        expected=change.expected,
    )
    notice = (
        f"Proposed, not written: {why}. It waits as {proposal.id} in the inbox (F6, or"
        " `kbtui inbox`), and until it is accepted the files say what they said."
        " Don't do it again; say that it waits."
    )
    actions = [f"{verb} {path}{' (as proposed)' * (verb == 'Changed')}" for verb, path in done]
    summary = ", ".join(f"{short_name(path)} {_ACTION_WORDS[verb]}" for verb, path in done)
    if len(done) > 1:  # such as a rename, with all the notes that link there
        summary = clean_line(change.reason)
    output = "\n".join([notice, *actions])
    about = tuple(path for _, path in done)
    return ToolResult(output, f"waits for you: {summary}", proposal=proposal.id, about=about)


def _action(context: ToolContext, path: str, text: str | None) -> tuple[str, str]:
    if text is None:
        return "Deleted", path
    return "Changed" if context.view.library.exists(path) else "Created", path


def _editor(context: ToolContext) -> Editor:
    if context.find_editor is None:
        raise RefusedError("Nothing can be written here.", "Say so; the user can do it.")
    return context.find_editor()


class WriteEntry(WritingTool):
    """The tool that writes a new entry by the template of its type."""

    spec = spec(
        "write_entry",
        f"""Write a new entry: one subject each, in Markdown, what the user stated or agreed to, in
        their words. The rest waits for their decision, but for a reference they ask for, of a
        document. Search first; what exists is changed by edit_entry. Link as [[category/slug]]. A
        decision has the sections {", ".join(section_names("decision"))}; a person
        {", ".join(section_names("person"))}; other types can have plain text in `body`.""",
        ("kind", "title"),
        kind=text("what it is about", enum=list(ENTRY_TYPES)),
        title=text("what it is called, short, in words that were said", maxLength=200),
        body=text("its text below the title, if it has no sections"),
        sections={
            "type": "object",
            "description": "text by heading; only headings that have text are written",
            "additionalProperties": {"type": "string"},
        },
        summary=text("one line for the catalogue"),
        tags=texts("tags"),
        related=texts("entries it is related to, as category/slug"),
        aliases=texts("other names that people use for it"),
        folder=text("the folder that the user named for it; else left out", maxLength=200),
        renamed={"type": "kind"},
    )

    def wanted(self, context: ToolContext, arguments: Mapping[str, Any], /) -> Wanted:
        """Return the new entry, with the documents that it is based on as its sources."""
        kind, title = arguments["kind"], clean_line(arguments["title"])
        sections = arguments.get("sections") or None
        content: Content = {
            "body": None if sections else arguments.get("body"),
            "sections": sections,
            "tags": arguments.get("tags", ()),
            "related": arguments.get("related", ()),
            "aliases": arguments.get("aliases", ()),
            "summary": arguments.get("summary", ""),
            "folder": arguments.get("folder", ""),
        }
        texts = [title, content["summary"], content["body"] or "", *(sections or {}).values()]
        cited = cited_for(context, kind, texts)
        content["sources"] = cited.paths
        return Wanted(
            write_entry(kind, title, content, context.now().date()),
            lambda _edited: f"new {kind}: {title}",
            lambda edited: (f"Created {edited.path}", f"{short_name(edited.path)} created"),
            cited.ground,
        )


_LIST_ARGUMENTS = {"add_tags": "tags", "add_related": "related", "add_aliases": "aliases"}


class EditEntry(WritingTool):
    """The tool that edits a passage, a section, the properties or the whole text of an entry."""

    spec = spec(
        "edit_entry",
        """Change an entry with the smallest edit that does it; what you don't name stays. Also
        changes MEMORY.md (short facts that every conversation needs), and proposes changes of
        USER.md and SOUL.md. Give `old` and `new` to replace a passage, `append` to add text, `body`
        to replace everything below the frontmatter. A decision that changed keeps its text and
        grows under Evolution, as "- YYYY-MM-DD: what changed".""",
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

    def wanted(self, _context: ToolContext, arguments: Mapping[str, Any], /) -> Wanted:
        """Return the edit."""
        named = ("old", "new", "append", "section", "body", "summary")
        texts = {name: arguments.get(name, "") for name in named}
        lists = {
            name: tuple(arguments[key])
            for key, name in _LIST_ARGUMENTS.items()
            if arguments.get(key)
        }
        if not (lists or any(texts[name] for name in ("old", "append", "body", "summary"))):
            raise RefusedError("There is nothing to change.", "Give old and new, append, or body.")
        return Wanted(
            edit_entry(arguments["entry"], lists=lists, **texts),
            lambda edited: f"edit {short_name(edited.path)}",
            _told_of_edit,
        )


def _told_of_edit(edited: EditResult) -> tuple[str, str]:
    summary = describe(edited.commit.paths) if edited.commit else ""
    return f"Changed {edited.path} ({summary})", summary


class RenameEntry(WritingTool):
    """The tool that renames or moves an entry."""

    spec = spec(
        "rename_entry",
        """Rename a knowledge entry, or move it to another category; links to it are repaired and
        the old name stays as an alias.""",
        ("entry", "new_name"),
        entry=text("path, category/slug, slug, title or alias"),
        new_name=text("a title, a slug, or category/slug to move it"),
    )

    def wanted(self, _context: ToolContext, arguments: Mapping[str, Any], /) -> Wanted:
        """Return the new name."""
        return Wanted(
            rename_entry(arguments["entry"], arguments["new_name"]),
            lambda edited: f"rename {_renaming(edited, 'to')}",
            lambda edited: (f"{(done := _renaming(edited, 'renamed to'))}: {edited.path}", done),
        )


def _renaming(edited: EditResult, between: str) -> str:
    return f"{short_name(edited.former)} {between} {short_name(edited.path)}"
