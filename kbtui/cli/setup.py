"""`kbtui setup`: find or download a model, for talking or for search by meaning, and try it."""

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
_SEARCH_MODEL = "models.embed.model"


@click.command()
@click.argument("model", required=False)
@click.option("-y", "--yes", is_flag=True, help="Download without asking.")
@click.option(
    "--search",
    "for_search",
    is_flag=True,
    help="Fetch a model for search by meaning in many languages, from huggingface.co.",
)
@pass_place
def setup(place: WorkspaceOption, model: str | None, yes: bool, for_search: bool) -> int:
    """Find or download a model for this machine, and try it.

    Without MODEL, the first one that answers on this machine is used; if Ollama has none, one that
    fits the machine's memory is offered. It is tried first, and used for the roles it does well in.
    Nothing is downloaded without asking.

    With --search, MODEL is one of sentence-transformers', such as BAAI/bge-m3; without it, the one
    that is recommended for notes in other languages than English.
    """
    from kbtui.models.roles import ModelRegistry
    from kbtui.settings import load_settings

    if for_search:
        _fetch_for_search(place, model, yes=yes)
        return 0
    models = ModelRegistry(load_settings())
    found = _local_model(models, model) or _fetch(models, model, yes=yes)
    if found is None:
        say(_GET_OLLAMA)
        return 1
    say(f"{found.name}: {found.about}")
    _try_and_assign(models, found)
    _offer_unread(place)
    return 0


def _fetch_for_search(place: WorkspaceOption, wanted: str | None, *, yes: bool) -> None:
    """Fetch a model for search by meaning, have it used from now on, and prepare it."""
    from kbtui.cli.config import warn_if_hidden
    from kbtui.models.fetching import fetch, search_offer, why_offline
    from kbtui.setting_values import write_setting
    from kbtui.settings import BUNDLED_EMBEDDING_MODEL, load_settings

    settings, offer = load_settings(), search_offer()
    name = wanted or offer.name
    if why := why_offline(settings):
        raise UsageError(why, "Unset it to fetch a model.")
    if name.rpartition("/")[2] == BUNDLED_EMBEDDING_MODEL:
        hint = f"`kbtui config unset {_SEARCH_MODEL}` has it used again."
        raise UsageError(f"{name} comes with kbtui: there is nothing to fetch.", hint)
    if name == offer.name:
        say(f"{offer.describe()} reads {offer.languages} languages by meaning.")
    _agree(name, yes=yes)
    with ProgressLine() as line:
        fetch(name, settings, lambda *step: line(_bar(*step)))
    write_setting(_SEARCH_MODEL, name)
    say(f"{name} is here, and reads your notes by meaning from now on ({_SEARCH_MODEL}).")
    warn_if_hidden(place, _SEARCH_MODEL)
    if not _is_in_workspace(place):
        return
    with place.opened() as kb:
        state = kb.detached_worker.start()
    if state.why:
        say(state.why)
    else:
        say("It is prepared in the background; what was read before answers until then.")


def _is_in_workspace(place: WorkspaceOption) -> bool:
    """Return whether there is a workspace: setup creates none."""
    from kbtui.workspace.layout import MACHINE
    from kbtui.workspace.opening import find_workspace

    return (find_workspace(place.named) / MACHINE).is_dir()


def _offer_unread(place: WorkspaceOption) -> None:
    """Report what no model has condensed, and what condensing it would cost."""
    if not _is_in_workspace(place):
        return
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
    from kbtui.models.fetching import GIGABYTE

    if not total:
        return step
    filled = min(_BAR_WIDTH, _BAR_WIDTH * done // total)
    bar = "#" * filled + "." * (_BAR_WIDTH - filled)
    if total < GIGABYTE:
        return f"[{bar}] {done / 1e6:.0f} of {total / 1e6:.0f} MB"
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
