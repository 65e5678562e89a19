"""Follows renames in Obsidian's ``.base`` files: in links that a function takes, and in paths."""

from __future__ import annotations

import re

from kbtui.knowledge.format.links import Link, links_in_value
from kbtui.knowledge.format.yaml_edit import FrontmatterError, edit_scalars, read_tree
from kbtui.knowledge.linking.repair import Move

SUFFIX = ".base"
_CALL = re.compile(
    r"(?P<call>\b(?:link|file|hasLink)\(\s*|\bfile\.path\s*[!=]=\s*)(?P<quote>\\?[\"'])(?P<target>[^\n]*?)(?P=quote)"
)


def repointed(data: bytes, source: str, move: Move) -> bytes:
    """Update the base `source` after a move; other bytes, and invalid YAML, stay."""
    try:
        text = data.decode()
        return edit_scalars(
            text, read_tree(text), lambda _, value: _in(value, source, move)
        ).encode()
    except (UnicodeDecodeError, FrontmatterError):
        return data


def _in(formula: str, source: str, move: Move) -> str:
    """Return a formula with the targets of its links updated."""

    def called(found: re.Match[str]) -> str:
        target, sign, heading = found["target"].partition("#")
        if not target.strip() or target.startswith("[["):
            return found[0]
        new = move.target_of(Link(target.strip(), "wiki", 0), source)
        if new is None or found["quote"][-1] in new:
            return found[0]
        return f"{found['call']}{found['quote']}{new}{sign}{heading}{found['quote']}"

    formula = _CALL.sub(called, formula)
    for placed in reversed([*links_in_value(formula)]):
        new = move.target_of(placed.link, source)
        if new is not None:
            formula = formula[: placed.target_start] + new + formula[placed.target_end :]
    return formula
