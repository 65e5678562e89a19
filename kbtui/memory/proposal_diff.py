"""What a proposal would change, as a difference to be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.history.diff import diff_file

if TYPE_CHECKING:
    from kbtui.history.diff import FileDiff
    from kbtui.memory.proposal import Proposal


def proposal_diff(proposal: Proposal) -> tuple[FileDiff, ...]:
    """The difference of each file to the text that the proposal was made from."""
    return tuple(
        diff_file(edit.path, _data(edit.base_text), _data(edit.text)) for edit in proposal.edits
    )


def _data(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "replace")
