"""Stands for "no model": the name that settings and faces show, in the place of a model's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from kbtui.errors import ModelAccessError
from kbtui.models.port import estimate_tokens
from kbtui.settings import OFFLINE

if TYPE_CHECKING:
    from kbtui.models.port import Message, Reply, ReplyEvent, ToolSpec

_CONTEXT_WINDOW = 1_000_000


class OfflineModel:
    """No model: whoever would ask one does without, by the functions of `kbtui.offline`."""

    name = OFFLINE
    is_local = True
    context_window = _CONTEXT_WINDOW
    sees = False

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return estimate_tokens(text)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Refuse."""
        del messages, tools
        _refuse()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Refuse.

        Raises:
            ModelAccessError: always.
        """
        del messages, tools, force_tool
        _refuse()


def _refuse() -> NoReturn:
    raise ModelAccessError("No model is configured.", "Add one with `/model`.")
