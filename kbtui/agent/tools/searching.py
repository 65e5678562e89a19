"""The tool ``search``, and how any tool searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbtui.agent.sources import heading, quoted, text_lines
from kbtui.agent.tools.base import (
    SINCE,
    UNTIL,
    RefusedError,
    ToolContext,
    ToolResult,
    days,
    number,
    spec,
    text,
)
from kbtui.documents.documents import is_document
from kbtui.errors import KbtuiError, NotFoundError, without_commands
from kbtui.models.port import estimate_tokens
from kbtui.search.results import Hit, Place, SearchResult
from kbtui.text import clean_line, counted, shorten
from kbtui.workspace import files

_LIMIT = 8
_MOST_HITS = 20
_MOST_PER_HIT = 1_500
_SHOWN = 60
_HEADING_TOKENS = 60  # of a hit


class Search:
    """Searches entries, memory, earlier conversations and documents."""

    spec = spec(
        "search",
        """Search the user's knowledge entries, memory notes, earlier conversations and project
        documents by meaning and by words. Use it before you answer a question about the user, their
        work or anything they may have told you, and before you write an entry. Cite what you use
        as [n].""",
        ("query",),
        query=text("a question, keywords, or what you are looking for", maxLength=2000),
        type=text("only entries of this type, e.g. decision"),
        tag=text("only what has this tag"),
        since=SINCE,
        until=UNTIL,
        project=text("only the documents of this folder of docs/"),
        limit=number("how many results at most (8)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Search."""
        project = arguments.get("project", "")
        scope = scope_of_project(context, project) if project else f"{what_was_told(context)},docs"
        return search_in(context, arguments, scope)


def what_was_told(context: ToolContext) -> str:
    """The scope of entries, memory and conversations: not of kbtui's own words, nor questions."""
    talk = ("sessions",) if context.recalls else ()
    return ",".join(("knowledge", "memory", *talk, *context.settings.search.roots))


def scope_of_project(context: ToolContext, project: str) -> str:
    """The scope of one folder of docs/, or of all of it.

    Raises:
        NotFoundError: there is no such folder.
    """
    name = project.strip("/").removeprefix("docs/")
    return f"docs/{_checked_project(context, name)}" if name else "docs"


def _checked_project(context: ToolContext, project: str) -> str:
    folder = context.workspace.docs
    folders = [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
    known = sorted(name for name in folders if not context.conceals(f"docs/{name}/README.md"))
    if project.split("/", 1)[0] not in known or "," in project:
        names = ", ".join(known[:20]) or "none"
        raise NotFoundError(f"There is no project {clean_line(project)!r}.", f"There are: {names}.")
    return project


def search_in(
    context: ToolContext, arguments: Mapping[str, Any], scope: str, what: str = "memory"
) -> ToolResult:
    """Search a scope for what answers `query`; `what` it holds is said to a model.

    Raises:
        RefusedError: nothing is asked for, or a day is no date.
    """
    query = clean_line(arguments["query"])
    if not query:
        raise RefusedError("The query is empty.", "Say what to look for.")
    limit = max(1, min(arguments.get("limit", _LIMIT), _MOST_HITS))
    # A few more, as some may have to be left out.
    result = context.search.search(
        f"{query} {_conditions(arguments)}".rstrip(),
        scope,
        limit + _LIMIT,
        relevant_only=True,
        statements_only=True,
        before=(context.session, context.message),
        # A model on this machine may put into it what it has read there.
        sendable=not (context.is_local and context.has_private),
    )
    hits = [hit for hit in result.hits if _may_show(context, hit)][:limit]
    shown = [_shown(context, hit) for hit in _fitting_hits(context, hits)]
    count = counted(len(shown), f"{what} result")
    data = {"hits": [each.data for each in shown], "notice": result.notice}
    if not hits:
        return ToolResult(_nothing(context, result, query, what), f"no {what} results", data=data)
    parts = [f"Found {count} for '{shorten(query, _SHOWN)}':", ""]
    for each in shown:
        parts += [each.text, ""]
    if notice := without_commands(result.notice):
        parts.append(f"Note: {notice}")
    private = tuple(each.path for each in shown if each.is_private)
    return ToolResult("\n".join(parts).rstrip(), count, private, data)


def _fitting_hits(context: ToolContext, hits: Sequence[Hit]) -> Iterator[Hit]:
    """The first hits that fit a result; at least one."""
    left = context.most_tokens
    for place, hit in enumerate(hits):
        left -= _HEADING_TOKENS + sum(map(estimate_tokens, _fitting(_lines_of(context, hit)[1])))
        if place and left < 0:
            return
        yield hit


def _conditions(arguments: Mapping[str, Any]) -> str:
    """The filters that are asked for, as they are written into a query."""
    wanted = {
        "type": arguments.get("type", ""),
        "tag": arguments.get("tag", "").lstrip("#"),
        "updated": days(arguments),
    }
    said = {field: clean_line(value).replace('"', "") for field, value in wanted.items()}
    return " ".join(f'{field}:"{value}"' for field, value in said.items() if value)


def _nothing(context: ToolContext, result: SearchResult, query: str, what: str) -> str:
    # A word out of a private entry would tell of it.
    may_suggest = result.suggestion and (context.is_local or not context.has_private)
    meant = f" Did you mean '{result.suggestion}'?" if may_suggest else ""
    found = "memories" if what == "memory" else f"{what}s"
    return f"No {found} found for '{shorten(query, _SHOWN)}'.{meant}"


def _may_show(context: ToolContext, hit: Hit | Place) -> bool:
    """True if the model may know that there is such a hit, or such a place of one."""
    return context.is_local or not _is_private(context, hit)


def _is_private(context: ToolContext, hit: Hit | Place) -> bool:
    """True if an entry is, or if its conversation drew on one that is where it was found."""
    return context.is_private(hit.path) or context.drew_on_private(hit.session, hit.messages)


@dataclass(frozen=True, slots=True)
class _Shown:
    """One hit as it is told; `is_private`: its text is in it, and is private."""

    path: str
    text: str
    data: dict[str, Any]
    is_private: bool = False


def _shown(context: ToolContext, hit: Hit) -> _Shown:
    is_private = _is_private(context, hit)
    first, lines = _lines_of(context, hit)
    is_made = is_document(hit.path, context.settings.search.roots)
    places = ((first, hit.heading),) if is_made and hit.heading else ()
    source = context.sources.add(hit.path, first, "\n".join(_fitting(lines)), hit.title, places)
    place = f"score: {hit.score:.2f}"
    if hit.messages is not None:
        place += f", messages {hit.messages[0]}-{hit.messages[1]}"
    also = [clean_line(place.path) for place in hit.also if _may_show(context, place)]
    if also:
        place += f", also in {counted(len(also), 'place')}: {', '.join(dict.fromkeys(also))}"
    parts = (hit.title, "" if places else hit.heading)
    title = clean_line(" > ".join(filter(None, parts)))
    data = {
        "path": hit.path,
        "title": title,
        "lines": [source.first, source.last],
        "score": round(hit.score, 4),
        "text": source.text,
        "relevance": hit.relevance,
        "also": also,
    }
    if hit.session is not None and hit.messages is not None:
        data |= {"session": hit.session, "messages": list(hit.messages)}
    said = f"{heading(source, place)} {title}\n{quoted(source.text)}"
    return _Shown(hit.path, said, data, is_private)


def _lines_of(context: ToolContext, hit: Hit) -> tuple[int, list[str]]:
    """The lines of a hit as they stand in the file; of a conversation, as they were said."""
    first, last = hit.lines
    if hit.messages is None and not is_document(hit.path, context.settings.search.roots):
        try:
            whole = files.read_text(context.workspace, hit.path)
            lines = text_lines(whole)[first - 1 : last]
        except KbtuiError:
            lines = []
        if any(line.strip() for line in lines):
            return first, lines
    return first, text_lines(hit.text or hit.snippet)


def _fitting(lines: Sequence[str]) -> list[str]:
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if count and size > _MOST_PER_HIT:
            return list(lines[:count])
    return [line[:_MOST_PER_HIT] for line in lines]
