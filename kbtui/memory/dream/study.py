"""The first phase: what is new is compared with what is known, in one call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.errors import ModelAnswerError
from kbtui.memory.consolidation.ask import ask_tool
from kbtui.memory.dream.prompts import STUDY_MEMORY, study_prompt
from kbtui.memory.records.usable_answers import clean_answer, is_placeholder, why_unusable
from kbtui.models.schema import ArgumentError, parse_arguments
from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from kbtui.models.port import ChatModel

_MOST = 150
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should change.

    Attributes:
        kind: One of `prompts.KINDS`.
        about: The file, or the title of a new entry.
        what: What is true, or what is wrong.
        cursors: The archive entries that say so.
    """

    kind: str
    about: str
    what: str
    cursors: tuple[int, ...] = ()

    def line(self) -> str:
        """It as the second phase is told it."""
        said = f" (archive {', '.join(map(str, self.cursors))})" if self.cursors else ""
        return f"- {self.kind}: {self.about}: {self.what}{said}"


async def study(model: ChatModel, material: str, cursors: Collection[int]) -> list[Finding]:
    """Have a model study the material.

    Args:
        model: Which one.
        material: What it is shown.
        cursors: Those of the archive entries in it; others that it names are dropped.

    Raises:
        ModelError: no usable answer, or the model can't be reached.
    """
    findings = await ask_tool(model, study_prompt(material), STUDY_MEMORY, read_findings)
    return [
        replace(each, cursors=tuple(n for n in each.cursors if n in cursors)) for each in findings
    ]


def read_findings(arguments: str) -> list[Finding]:
    """Read the arguments of ``study_memory``.

    Raises:
        ModelAnswerError: they can't be used; the message says why.
    """
    try:
        value = parse_arguments(arguments, STUDY_MEMORY.parameters)
    except ArgumentError as error:
        raise ModelAnswerError(error.message) from None
    if len(value["findings"]) > _MOST:
        raise ModelAnswerError(f"{len(value['findings'])} findings are too many to be true.")
    found = [_read(item) for item in value["findings"]]
    return list(dict.fromkeys(each for each in found if each is not None))


def _read(item: dict[str, Any]) -> Finding | None:
    about, what = (clean_line(clean_answer(item[key])) for key in ("about", "what"))
    if is_placeholder(what):
        return None
    if len(what) > _LONGEST:
        raise ModelAnswerError(f"A finding has {len(what):,} characters; a line is meant.")
    why = why_unusable(what) or why_unusable(about)
    if why is not None:
        raise ModelAnswerError(f"A finding {why}.")
    return Finding(item["kind"], about, what, tuple(item.get("cursors", ())))
