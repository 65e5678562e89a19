"""The question whether to fetch a larger model for search by meaning, asked once, and the fetch.

It is asked where most notes are in another language than English, which the model that comes with
kbtui was made for.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import date, timedelta
from typing import TYPE_CHECKING

from kbtui.clock import local_now
from kbtui.errors import KbtuiError
from kbtui.models.fetching import SearchOffer, fetch, search_offer, why_offline
from kbtui.setting_values import write_setting
from kbtui.settings import RoleSettings
from kbtui.tui.messages import tell_error
from kbtui.tui.terminal.state import answers, remember_answer
from kbtui.tui.widgets.dialogs import UnaskedDialog, is_disturbing

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import IndexStatus, LanguageReport
    from kbtui.tui.chat.host import ChatHost

_QUESTION = "multilingual"
_NEVER = "never"
_LATER = timedelta(days=30)
_RETRY_SECONDS = 1.0


async def offer_model(host: ChatHost, kb: KnowledgeBase) -> None:
    """Once the notes are indexed, ask whether to fetch a model for their language, and do so."""
    if not await asyncio.to_thread(_may_ask, kb):
        return
    await _indexed(kb)
    report, offer = await asyncio.to_thread(kb.search.languages), search_offer()
    if not report.main:
        return
    while is_disturbing(host.app):  # noqa: ASYNC110 - the question isn't urgent
        await asyncio.sleep(_RETRY_SECONDS)
    keys = {"y": "fetch it", "n": "not now", "v": "never"}
    dialog = UnaskedDialog("Search by meaning", _worded(report, offer), keys)
    match await host.app.push_screen_wait(dialog):
        case "y":
            await _fetch(host, kb, offer)
        case "v":
            await asyncio.to_thread(remember_answer, _QUESTION, _NEVER)
        case _:
            again = (_today() + _LATER).isoformat()
            await asyncio.to_thread(remember_answer, _QUESTION, again)
            host.say("`kbtui setup --search` fetches it another time.")


def _may_ask(kb: KnowledgeBase) -> bool:
    """Return whether nobody has chosen a model, gone offline, or answered before."""
    settings, answer = kb.settings, answers().get(_QUESTION, "")
    if not settings.search.semantic or settings.models.embed.model or why_offline(settings):
        return False
    # A date from which it may be asked again; "never" comes after all of them.
    return answer <= _today().isoformat()


def _today() -> date:
    return local_now().date()


def _worded(report: LanguageReport, offer: SearchOffer) -> str:
    here = (
        f"The small model that comes with kbtui reads {report.main} by meaning; {offer.describe()}"
        f" reads {offer.languages} languages, longer passages, and may find more."
    )
    if not report.is_read(report.main):
        here = (
            f"What comes with kbtui finds {report.main} by its words alone; {offer.describe()}"
            f" reads it by meaning, and {offer.languages - 1} other languages."
        )
    return (
        f"Most of your notes are in {report.main}. {here}\n\nShall it be fetched from"
        " huggingface.co? Nothing of yours is sent there."
    )


async def _indexed(kb: KnowledgeBase) -> None:
    """Wait until all notes are indexed."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def look(status: IndexStatus) -> None:
        if status.state not in {"opening", "syncing"}:
            with contextlib.suppress(RuntimeError):  # the app is closing
                loop.call_soon_threadsafe(done.set)

    stop: Callable[[], None] = kb.search.subscribe(look)
    try:
        look(kb.search.status())
        await done.wait()
    finally:
        stop()


async def _fetch(host: ChatHost, kb: KnowledgeBase, offer: SearchOffer) -> None:
    """Fetch the model in the background, and have it read all notes."""

    def work(tell: Callable[[str], None], is_stopped: Callable[[], bool]) -> bool:
        def progress(_step: str, done: int, total: int) -> None:
            tell(f"fetching a model: {done / 1e6:.0f} of {total / 1e6:.0f} MB")

        return fetch(offer.name, kb.settings, progress, is_stopped)

    try:
        is_there = await host.fetching.run(work)
        if is_there:
            await asyncio.to_thread(write_setting, "models.embed.model", offer.name)
            await asyncio.to_thread(kb.search.use_model, RoleSettings(model=offer.name))
    except KbtuiError as error:
        tell_error(host, error)  # over the conversation, which nobody may be looking at
        return
    host.say(
        f"{offer.name} is here. Until it has read your notes, what was read before answers."
        if is_there
        else "What was fetched is kept; `kbtui setup --search` goes on where it was."
    )
