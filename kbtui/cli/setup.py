"""`kbtui setup`: find a model on this machine or download one with Ollama, and try it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kbtui.cli.context import WorkspaceOption, pass_place
from kbtui.cli.output import ProgressLine, say
from kbtui.errors import UsageError

if TYPE_CHECKING:
    from kbtui.models.roles import FoundModel, ModelRegistry

_GET_OLLAMA = """\
No server with a model answers on this machine. Get Ollama from https://ollama.com and start it,
then run `kbtui setup` again; or enter a provider's key with /model in the app."""
_BAR_WIDTH = 24


@click.command()
@click.argument("model", required=False)
@click.option("-y", "--yes", is_flag=True, help="Download without asking.")
@pass_place
def setup(place: WorkspaceOption, model: str | None, yes: bool) -> int:
    """Find or download a model for this machine, and try it.

    Without MODEL, the first one that answers on this machine is used; if Ollama has none, one that
    fits the machine's memory is offered. It is tried first, and used for the roles it does well in.
    Nothing is downloaded without asking.
    """
    from kbtui.models.roles import ModelRegistry
    from kbtui.settings import load_settings

    models = ModelRegistry(load_settings())
    found = _local_model(models, model) or _fetch(models, model, yes=yes)
    if found is None:
        say(_GET_OLLAMA)
        return 1
    say(f"{found.name}: {found.about}")
    _try_and_assign(models, found)
    _offer_unread(place)
    return 0


def _offer_unread(place: WorkspaceOption) -> None:
    """Report what no model has condensed, and what condensing it would cost."""
    from kbtui.workspace.layout import MACHINE
    from kbtui.workspace.opening import find_workspace

    if not (find_workspace(place.named) / MACHINE).is_dir():
        return  # setup creates no workspace
    with place.opened() as kb:
        unread = kb.memory.unread()
    if unread is not None and unread.sessions:
        say(
            f"{unread.describe()}: `kbtui consolidate --all` has {unread.cost.model} read it"
            f" ({unread.cost.describe(unread.tokens)})."
        )


def _local_model(models: ModelRegistry, wanted: str | None) -> FoundModel | None:
    """Return the wanted model, or the first usable one, of those on this machine."""
    from kbtui.models.providers import OLLAMA

    # An Ollama on another machine counts: the user's environment names it.
    local = (each for each in models.usable_here() if each.is_local or each.source == OLLAMA)
    named = (each for each in local if wanted is None or each.is_called(wanted))
    return next((each for each in named if each.usable), None)


def _fetch(models: ModelRegistry, wanted: str | None, *, yes: bool) -> FoundModel | None:
    """Download a model with Ollama, or return None if none runs on this machine."""
    from kbtui.models.fetching import GIGABYTE, memory_of_machine, offer_for, pull
    from kbtui.models.providers import is_loopback

    ollama = models.ollama()
    if ollama is None or not is_loopback(ollama.base):
        return None
    memory = memory_of_machine()
    offer = offer_for(memory)
    name = wanted.split("/", 1)[-1] if wanted and wanted.startswith("ollama") else wanted
    if name is None and offer is None:
        raise UsageError(
            f"This machine has {memory / GIGABYTE:.0f} GB of memory: too little for a model that"
            " is of use.",
            "Name one yourself (`kbtui setup MODEL`), or use a provider's with /model.",
        )
    if name is None and offer is not None:
        say(
            f"Ollama answers and has no model yet. {offer.name} fits this machine"
            f" ({offer.size_gb:g} GB to fetch, {memory / GIGABYTE:.0f} GB of memory)."
        )
        name = offer.name
    _agree(str(name), yes=yes)
    line = ProgressLine()
    try:
        pull(ollama.base, str(name), lambda *step: line(_bar(*step)))
    finally:
        line.end()
    return _local_model(models, str(name))


def _agree(name: str, *, yes: bool) -> None:
    """Ask whether to download a model, and abort the command if not.

    Raises:
        UsageError: There is no terminal to ask on.
    """
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"{name} isn't on this machine.", "Add --yes to fetch it.")
    click.confirm(f"Fetch {name} now?", abort=True, err=True)


def _bar(step: str, done: int, total: int) -> str:
    if not total:
        return step
    filled = min(_BAR_WIDTH, _BAR_WIDTH * done // total)
    bar = "#" * filled + "." * (_BAR_WIDTH - filled)
    return f"[{bar}] {done / 1e9:.1f} of {total / 1e9:.1f} GB"


def _try_and_assign(models: ModelRegistry, found: FoundModel) -> None:
    import asyncio

    from kbtui.maintenance.setup import try_model

    line = ProgressLine()
    try:
        line("Trying it; the first answer takes a while ...")
        trial = asyncio.run(try_model(models.named(found.name, found.api_base)))
    finally:
        line.end()
    models.assign(("consolidate", "dream"), found.name, found.api_base)
    say(
        "It makes memory in the right form."
        if trial.memory
        else "It made no proper memory of a short conversation; a larger model does better."
    )
    say("Background work is done by it: condensing conversations, Dream.")
    if not trial.tools:
        say("It calls no tools, so the chat stays as it is; /model chooses it all the same.")
        return
    status = models.describe()
    if status.chosen and not status.offline and status.name != found.name:
        say(f"It calls tools. {status.name} goes on answering in the chat; /model changes that.")
        return
    models.assign(("chat",), found.name, found.api_base)
    say("It calls tools, and answers in the chat from now on.")
