"""JSON Schemas of the tools' structured results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]
_KINDS: Mapping[str, Schema] = {
    "": {"type": "string"},
    "maybe": {"type": ["string", "null"]},
    "int": {"type": "integer"},
    "real": {"type": "number"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "ints": {"type": "array", "items": {"type": "integer"}},
}


def _object(fields: str, **others: Schema) -> Schema:
    """Build an object schema from fields ``name:kind``; ``!`` marks required ones."""
    properties: Schema = {}
    required: list[str] = []
    for field in fields.split():
        name, _, kind = field.rstrip("!").partition(":")
        properties[name] = others[name] if name in others else _KINDS[kind]
        if field.endswith("!"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_CHANGES = _list(_object("commit! paths:texts! summary!"))
_ABOUT = "time actor author:maybe model:maybe reason paths:texts undoes:texts yours:flag"
_HIT = _object(
    "path! title lines:ints score:real text relevance:real also:texts session messages:ints newer",
    newer=_object("path! line:int! date! text!"),
)


def _result(fields: str = "", **others: Schema) -> Schema:
    """Build a result schema with the fields that every result has."""
    fields = f"summary! changes! proposal:maybe {fields}"
    return _object(fields, changes=_CHANGES, **others)


_HITS = _result("hits! notice", hits=_list(_HIT))
_WRITTEN = _result("path")
OUTPUTS: Mapping[str, Schema] = {
    "memory_search": _HITS,
    "vector_search": _HITS,
    "list_entries": _result(
        "total:int! entries!",
        entries=_list(_object("path! title! type:maybe tags:texts summary updated:maybe")),
    ),
    "similar_notes": _result(
        "notes! notice", notes=_list(_object("path! title! line:int! sentence! score:real!"))
    ),
    "list_tasks": _result(
        "total:int! tasks!",
        tasks=_list(_object("path! line:int! title! text! when! day:maybe! task:flag!")),
    ),
    "read_entry": _result(
        "path! title hash from_line:int text! lines_left:int links:texts backlinks:texts"
    ),
    "write_entry": _WRITTEN,
    "edit_entry": _WRITTEN,
    "rename_entry": _WRITTEN,
    "grep": _result("matches! more:flag!", matches=_list(_object("path! line:int! text!"))),
    "read_file": _result("path! from_line:int text! lines_left:int"),
    "entry_history": _result(
        "path:maybe commits! more:flag!", commits=_list(_object(f"commit! subject! {_ABOUT}"))
    ),
    "show_change": _result(f"commit! subject {_ABOUT} diff!"),
    "explain_line": _result(
        "path! line:int! text actor! note! commit session:maybe messages archive:texts",
        commit={"anyOf": [_object(f"commit! subject {_ABOUT}"), {"type": "null"}]},
        messages=_list(_object("id:int! role! time! text!")),
    ),
    "undo_change": _result("undone"),
    "search": _object("results!", results=_list(_object("id! title! url!"))),
    "fetch": _object(
        "id! title! text! url! metadata!",
        metadata={"type": "object", "additionalProperties": {"type": "string"}},
    ),
    "entry_links": _result(
        "path! total:int! links!",
        links=_list(_object("path! title! distance:int! direction! via:maybe!")),
    ),
}
EXACT = frozenset({"search", "fetch"})
"""Tools whose clients accept exactly this schema and no additional fields."""


def output_of(tool: str) -> Schema:
    """Return the schema of a tool's result; the common fields if it isn't in `OUTPUTS`."""
    return OUTPUTS.get(tool) or _result()
