"""A whole prompt and its parts, as `kbtui.agent.context` assembles them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.models.port import Message, prompt_tokens

if TYPE_CHECKING:
    from kbtui.agent.attachments import Attachment


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt, for ``/context``."""

    name: str
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class AssembledPrompt:
    """A whole prompt. `taint` lists its sources that only models on this machine may see."""

    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    attachments: tuple[Attachment, ...] = ()
    taint: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The estimated length in tokens, without the tools' descriptions."""
        return prompt_tokens(self.messages)
