"""What becomes of the keys that the prompt passes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbtui.tui.chat.chat_pane import ChatPane


class PromptKeys:
    """Does for the pane of the chat what such a key asks for; one method for each."""

    def __init__(self, pane: ChatPane) -> None:
        self._pane = pane

    def do(self, what: str) -> None:
        """Do what `Prompt.Key` names."""
        getattr(self, f"_{what}")()

    # The popup

    def _popup_up(self) -> None:
        self._pane.popup.move(-1)

    def _popup_down(self) -> None:
        self._pane.popup.move(1)

    def _accept(self) -> None:
        self._pane.offers.catch_up()
        self._pane.offers.accept()

    def _accept_or_send(self) -> None:
        self._pane.offers.accept_or_send()

    # Earlier text

    def _take_back(self) -> None:
        text = self._pane.conversation.take_back()
        if text is not None:
            self._pane.prompt.replace_text(text)
        else:
            self._pane.prompt.show_earlier()

    def _find(self) -> None:
        self._pane.offers.find_earlier()

    # Elsewhere

    def _editor(self) -> None:
        self._pane.post_message(self._pane.EditorWanted())

    def _quit(self) -> None:
        self._pane.post_message(self._pane.QuitWanted())

    def _page_up(self) -> None:
        self._pane.transcript.action_page_up()

    def _page_down(self) -> None:
        self._pane.transcript.action_page_down()
