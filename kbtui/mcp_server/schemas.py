"""The shapes of the tools' structured results, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]


def _any_of(*kinds: str) -> Schema:
    return {"type": list(kinds)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(required: str = "", **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required.split()}


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS = _list(_TEXT)
_TEXT_OR_NULL = _any_of("string", "null")
_COMMIT: Mapping[str, Schema] = {
    "commit": _TEXT,
    "time": _TEXT,
    "actor": _TEXT,
    "author": _TEXT_OR_NULL,
    "model": _TEXT_OR_NULL,
    "subject": _TEXT,
    "reason": _TEXT,
    "paths": _TEXTS,
    "undoes": _TEXTS,
    "yours": _FLAG,
}
_CHANGE = _object("commit paths summary", commit=_TEXT, paths=_TEXTS, summary=_TEXT)
_HIT = _object(
    "path",
    path=_TEXT,
    title=_TEXT,
    lines=_list(_NUMBER),
    score={"type": "number"},
    text=_TEXT,
    relevance={"type": "number"},
    also=_TEXTS,
    session=_TEXT,
    messages=_list(_NUMBER),
)
_ENTRY = _object(
    "path title",
    path=_TEXT,
    title=_TEXT,
    type=_TEXT_OR_NULL,
    tags=_TEXTS,
    summary=_TEXT,
    updated=_TEXT_OR_NULL,
)
_MATCH = _object("path line text", path=_TEXT, line=_NUMBER, text=_TEXT)
_MESSAGE = _object("id role time text", id=_NUMBER, role=_TEXT, time=_TEXT, text=_TEXT)


def _result(required: str = "", **properties: Schema) -> Schema:
    """Every result says in one line what was found or done, and lists the commits it made."""
    return _object(
        f"summary changes {required}",
        summary=_TEXT,
        changes=_list(_CHANGE),
        proposal=_TEXT_OR_NULL,
        **properties,
    )


_HITS = _result("hits", hits=_list(_HIT), notice=_TEXT)
_WRITTEN = _result(path=_TEXT)
OUTPUTS: Mapping[str, Schema] = {
    "memory_search": _HITS,
    "vector_search": _HITS,
    "list_entries": _result("total entries", total=_NUMBER, entries=_list(_ENTRY)),
    "read_entry": _result(
        "path text",
        path=_TEXT,
        title=_TEXT,
        hash=_TEXT,
        from_line=_NUMBER,
        text=_TEXT,
        lines_left=_NUMBER,
        links=_TEXTS,
        backlinks=_TEXTS,
    ),
    "write_entry": _WRITTEN,
    "edit_entry": _WRITTEN,
    "rename_entry": _WRITTEN,
    "grep": _result("matches more", matches=_list(_MATCH), more=_FLAG),
    "read_file": _result(
        "path text", path=_TEXT, from_line=_NUMBER, text=_TEXT, lines_left=_NUMBER
    ),
    "entry_history": _result(
        "commits more",
        path=_TEXT_OR_NULL,
        commits=_list(_object("commit subject", **_COMMIT)),
        more=_FLAG,
    ),
    "show_change": _result("commit diff", **_COMMIT, diff=_TEXT),
    "explain_line": _result(
        "path line actor note",
        path=_TEXT,
        line=_NUMBER,
        text=_TEXT,
        actor=_TEXT,
        note=_TEXT,
        commit={"anyOf": [_object("commit", **_COMMIT), {"type": "null"}]},
        session=_TEXT_OR_NULL,
        messages=_list(_MESSAGE),
        archive=_TEXTS,
    ),
    "undo_change": _result(undone=_TEXT),
    "search": _object(
        "results",
        results=_list(_object("id title url", id=_TEXT, title=_TEXT, url=_TEXT)),
    ),
    "fetch": _object(
        "id title text url metadata",
        id=_TEXT,
        title=_TEXT,
        text=_TEXT,
        url=_TEXT,
        metadata={"type": "object", "additionalProperties": _TEXT},
    ),
    "entry_links": _result(
        "path total links",
        path=_TEXT,
        total=_NUMBER,
        links=_list(
            _object(
                "path title distance direction via",
                path=_TEXT,
                title=_TEXT,
                distance=_NUMBER,
                direction=_TEXT,
                via=_TEXT_OR_NULL,
            )
        ),
    ),
}
EXACT = frozenset({"search", "fetch"})
"""Tools whose clients want this shape and nothing beside it."""


def output_of(tool: str) -> Schema:
    """The shape of a tool's result; what isn't said of one in `OUTPUTS` is at least this much."""
    return OUTPUTS.get(tool) or _result()
