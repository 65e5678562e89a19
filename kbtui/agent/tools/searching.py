"""The tool ``search``, and searching by other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kbtui.agent.newer_lines import bracketed
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
from kbtui.errors import KbtuiError, NotFoundError, without_commands
from kbtui.models.port import estimate_tokens
from kbtui.search.results import Hit, SearchResult
from kbtui.text import clean_line, counted, shorten

_LIMIT = 8
_MAX_HITS = 20
_MAX_CHARACTERS_PER_HIT = 1_500
_QUERY_WIDTH = 60
_HEADING_TOKENS = 60  # of a hit


class Search:
    """The tool that searches entries, memory, earlier conversations and documents."""

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
        scope = scope_of_project(context, project) if project else f"{memory_scope(context)},docs"
        return search_in(context, arguments, scope)


def memory_scope(context: ToolContext) -> str:
    """Return the scope of entries, memory and, if allowed, conversations."""
    talk = ("sessions",) if context.recalls else ()
    return ",".join(("knowledge", "memory", *talk, *context.settings.search.roots))


def scope_of_project(context: ToolContext, project: str) -> str:
    """Return the scope of one folder of docs/, or of all of it.

    Raises:
        NotFoundError: there is no such folder.
    """
    name = project.strip("/").removeprefix("docs/")
    return f"docs/{_checked_project(context, name)}" if name else "docs"


def _checked_project(context: ToolContext, project: str) -> str:
    known = context.view.projects()
    if project.split("/", 1)[0] not in known or "," in project:
        names = ", ".join(known[:20]) or "none"
        raise NotFoundError(f"There is no project {clean_line(project)!r}.", f"There are: {names}.")
    return project


def search_in(
    context: ToolContext, arguments: Mapping[str, Any], scope: str, what: str = "memory"
) -> ToolResult:
    """Search a scope for `query`; `what` names its content to the model.

    Raises:
        RefusedError: the query is empty, or a day isn't a date.
    """
    query = clean_line(arguments["query"])
    if not query:
        raise RefusedError("The query is empty.", "Say what to look for.")
    limit = max(1, min(arguments.get("limit", _LIMIT), _MAX_HITS))
    result = context.view.search.search(
        f"{query} {_filters(arguments)}".rstrip(),
        scope,
        limit,
        relevant_only=True,
        statements_only=True,
        before=(context.session, context.message),
    )
    context.view.catch_up(result.hits)
    hits = context.view.unasked.with_newer(tuple(_fitting_hits(context, result.hits)))
    shown = [_formatted(context, hit) for hit in hits]
    count = counted(len(shown), f"{what} result")
    data = {"hits": [found for found, _ in shown], "notice": result.notice}
    if not result.hits:
        return ToolResult(_nothing(result, query, what), "nothing found", data)
    parts = [f"Found {count} for '{shorten(query, _QUERY_WIDTH)}':", ""]
    for _, hit_text in shown:
        parts += [hit_text, ""]
    if notice := without_commands(result.notice):
        parts.append(f"Note: {notice}")
    return ToolResult("\n".join(parts).rstrip(), f"{len(shown)} found", data)


def _fitting_hits(context: ToolContext, hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the first hits that fit a result; at least one."""
    left = context.most_tokens
    for place, hit in enumerate(hits):
        left -= _HEADING_TOKENS + sum(map(estimate_tokens, _fitting(_lines_of(context, hit)[1])))
        if place and left < 0:
            return
        yield hit


def _filters(arguments: Mapping[str, Any]) -> str:
    """Return the filters of the arguments in query syntax."""
    wanted = {
        "type": arguments.get("type", ""),
        "tag": arguments.get("tag", "").lstrip("#"),
        "updated": days(arguments),
    }
    values = {field: clean_line(value).replace('"', "") for field, value in wanted.items()}
    return " ".join(f'{field}:"{value}"' for field, value in values.items() if value)


def _nothing(result: SearchResult, query: str, what: str) -> str:
    suggestion = f" Did you mean '{result.suggestion}'?" if result.suggestion else ""
    found = "memories" if what == "memory" else f"{what}s"
    return f"No {found} found for '{shorten(query, _QUERY_WIDTH)}'.{suggestion}"


def _formatted(context: ToolContext, hit: Hit) -> tuple[dict[str, Any], str]:
    first, lines = _lines_of(context, hit)
    is_made = context.view.is_document(hit.path)
    places = ((first, hit.heading),) if is_made and hit.heading else ()
    source = context.sources.add(hit.path, first, "\n".join(_fitting(lines)), hit.title, places)
    place = f"score: {hit.score:.2f}"
    if hit.messages is not None:
        place += f", messages {hit.messages[0]}-{hit.messages[1]}"
    also = [clean_line(place.path) for place in hit.also]
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
    told = quoted(source.text)
    if hit.newer is not None:
        data["newer"] = {
            "path": hit.newer.path,
            "line": hit.newer.line,
            "date": hit.newer.day.isoformat(),
            "text": hit.newer.text,
        }
        told += f"\n{bracketed(hit.newer, context.now().date())}"
    return data, f"{heading(source, place)} {title}\n{told}"


def _lines_of(context: ToolContext, hit: Hit) -> tuple[int, list[str]]:
    """Return a hit's first line number and its lines as in the file, or as indexed."""
    first, last = hit.lines
    if hit.messages is None and not context.view.is_document(hit.path):
        try:
            lines = text_lines(context.view.text(hit.path))[first - 1 : last]
        except KbtuiError:
            lines = []
        if any(line.strip() for line in lines):
            return first, lines
    return first, text_lines(hit.text or hit.snippet)


def _fitting(lines: Sequence[str]) -> list[str]:
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if count and size > _MAX_CHARACTERS_PER_HIT:
            return list(lines[:count])
    return [line[:_MAX_CHARACTERS_PER_HIT] for line in lines]
