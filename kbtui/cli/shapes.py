"""The JSON shapes of the command line. They are stable: keys are added, never taken away.

A path in them is that of the file, from the workspace's folder on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.history.objects.commit import Commit
    from kbtui.knowledge.entry import Entry, EntryInfo
    from kbtui.knowledge.reader import Backlink, ResolvedLink
    from kbtui.search.results import Hit, SearchResult
    from kbtui.sessions.store import SessionInfo
    from kbtui.workspace.layout import Layout


def info_shape(info: EntryInfo | Entry, layout: Layout) -> dict[str, Any]:
    """An entry in a list."""
    return {
        "path": layout.file(info.path),
        "type": info.type,
        "title": info.title,
        "tags": list(info.tags),
        "created": info.created,
        "updated": info.updated,
        "summary": info.summary,
        "category": info.category,
        "aliases": list(info.aliases),
        "private": info.private,
        "problem": info.problem,
    }


def entry_shape(
    entry: Entry, links: Iterable[ResolvedLink], backlinks: Iterable[Backlink], layout: Layout
) -> dict[str, Any]:
    """An entry with its text and links."""
    return {
        **info_shape(entry, layout),
        "text": entry.text,
        "links": [link_shape(link, layout) for link in links],
        "backlinks": [backlink_shape(link, layout) for link in backlinks],
    }


def link_shape(resolved: ResolvedLink, layout: Layout) -> dict[str, Any]:
    """A link; `path` is null where it leads nowhere."""
    link = resolved.link
    return {
        "target": link.target,
        "kind": link.kind,
        "line": link.line,
        "alias": link.alias,
        "heading": link.heading,
        "path": layout.file(resolved.path) if resolved.path else None,
        "title": resolved.title,
    }


def backlink_shape(link: Backlink, layout: Layout) -> dict[str, Any]:
    """A line elsewhere that links here."""
    return {
        "path": layout.file(link.path),
        "title": link.title,
        "line": link.line,
        "text": link.text,
    }


def commit_shape(commit: Commit, layout: Layout) -> dict[str, Any]:
    """A commit in the log."""
    origin = commit.origin
    return {
        "commit": commit.id,
        "time": commit.time.isoformat(),
        "actor": commit.actor.value,
        "subject": commit.subject,
        "paths": [layout.file(change.path) for change in commit.paths],
        "session": origin.session,
        "messages": list(origin.messages) if origin.messages else None,
        "reason": commit.body,
        "turn": origin.turn,
        "model": origin.model,
        "undoes": origin.undoes,
    }


def hit_shape(hit: Hit, layout: Layout) -> dict[str, Any]:
    """One hit of a search."""
    shape: dict[str, Any] = {
        "path": layout.file(hit.path),
        "title": hit.title,
        "heading": hit.heading,
        "lines": list(hit.lines),
        "line": hit.line,
        "score": hit.score,
        "relevance": hit.relevance,
        "also": [{"path": layout.file(place.path), "line": place.line} for place in hit.also],
        "snippet": hit.snippet,
        "matches": [list(match) for match in hit.matches],
        "explain": {
            "lexical_rank": hit.explain.lexical_rank,
            "semantic_rank": hit.explain.semantic_rank,
            "lexical": hit.explain.lexical,
            "semantic": hit.explain.semantic,
            "boosts": dict(hit.explain.boosts),
        },
    }
    if hit.session is not None:
        shape["session"] = hit.session
        shape["messages"] = list(hit.messages) if hit.messages else None
        shape["speaker"] = hit.speaker or None
    return shape


def result_shape(result: SearchResult, layout: Layout) -> dict[str, Any]:
    """The answer to one query."""
    return {
        "query": result.query,
        "scope": result.scope,
        "took_ms": round(result.took_ms, 2),
        "semantic": result.semantic,
        "hits": [hit_shape(hit, layout) for hit in result.hits],
        "notice": result.notice,
        "suggestion": result.suggestion,
    }


def session_shape(info: SessionInfo) -> dict[str, Any]:
    """A session in the list."""
    return {
        "id": info.id,
        "title": info.title,
        "created": info.created.isoformat(),
        "updated": info.updated.isoformat(),
        "messages": info.messages,
        "channel": info.channel,
    }
