"""The workspace that was named, opened for a command, and what a shell completes out of it."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kbtui.cli.output import note, say
from kbtui.errors import KbtuiError, UsageError
from kbtui.text import clean_line, fold, shorten
from kbtui.workspace.layout import ENTRIES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.workspace.layout import Layout

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class WorkspaceOption:
    """Where a command works; `named` is None when nobody said so."""

    named: Path | None = None

    @contextmanager
    def opened(self) -> Iterator[KnowledgeBase]:
        """Open the knowledge base for the block; what it has to say goes to standard error.

        Without a named workspace the nearest or the user's own one is opened, and made when it
        isn't there yet.
        """
        kb = self.open()
        try:
            for notice in kb.notices:
                note(f"kbtui: {notice}")
            yield kb
        finally:
            kb.close()

    def open(self) -> KnowledgeBase:
        """Open the knowledge base, as `opened` does, for somebody who closes it."""
        from kbtui.knowledge_base import KnowledgeBase

        return KnowledgeBase.open(self.named, create=self.named is None)

    def check(self) -> None:
        """See that there is something to open, at little cost.

        Raises:
            WorkspaceError: there isn't.
        """
        from kbtui.workspace.opening import can_become_workspace, find_workspace, open_workspace

        root = find_workspace(self.named)
        if self.named is not None and not can_become_workspace(root):
            open_workspace(root)


def use_model(kb: KnowledgeBase, name: str, *, remote: bool) -> None:
    """Let a model answer for as long as the knowledge base is open.

    Raises:
        UsageError: It is on another machine, the one in use is on this one, and nobody said
            `remote`.
    """
    chosen = kb.models.destination(name)
    if chosen.leaves and not remote:
        raise UsageError(
            f"{chosen.name} is asked at {chosen.place}; what you say stays on this machine so far.",
            "Add --remote to send it there.",
        )
    kb.models.use(chosen.name, chosen.api_base, remember=False)


pass_place = click.make_pass_decorator(WorkspaceOption, ensure=True)
model_option = click.option("-m", "--model", metavar="MODEL", help="A litellm name, or `offline`.")
remote_option = click.option(
    "--remote", is_flag=True, help="Let MODEL be elsewhere though yours is on this machine."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


COMPLETION_VARIABLE = "_KBTUI_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")
_MOST = 200
_WIDTH = 60
_WORD = re.compile(r"[^\W_]+")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    In bash: eval "$(kbtui completion bash)"
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise UsageError(f"There is no completion for {shell}.")
    root = ctx.find_root().command
    complete = maker(root, {}, "kbtui", COMPLETION_VARIABLE)
    # `source()` would look for the shell itself, which may be on another machine.
    say(complete.source_template % complete.source_vars())


def entry_names(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The entries whose name, or a word of whose slug or title, begins with what was typed."""
    from click.shell_completion import CompletionItem

    from kbtui.knowledge.catalog.catalog import EntryIndex
    from kbtui.workspace.opening import find_workspace, open_workspace
    from kbtui.workspace.scan import Scanner

    named: Path | None = ctx.find_root().params.get("workspace")
    try:
        workspace = open_workspace(find_workspace(named))
        infos = EntryIndex(workspace, Scanner(workspace)).infos()
    except KbtuiError:
        return []
    typed = fold(incomplete)
    fitting = (
        info
        for info in infos
        if fold(info.name).startswith(typed)
        or any(begins.startswith(typed) for begins in _beginnings(info.slug, info.title))
    )
    return [
        CompletionItem(info.name, help=shorten(info.title, _WIDTH))
        for info in islice(fitting, _MOST)
    ]


def _beginnings(*names: str) -> Iterator[str]:
    """Names from each of their words on."""
    for name in map(fold, names):
        yield from (name[word.start() :] for word in _WORD.finditer(name))


_LINE_AFTER = re.compile(r":\d+(?:-\d+)?$")


class _EntryName(click.ParamType[str]):
    """What an entry is called; a file of the workspace, as a shell names it, is its path there."""

    name = "entry"

    def convert(self, value: str, _param: click.Parameter | None, ctx: click.Context | None) -> str:
        if ctx is None or not _may_be_file(value):
            return value
        from kbtui.workspace.opening import find_workspace, open_workspace

        try:
            layout = open_workspace(find_workspace(ctx.find_root().params.get("workspace")))
        except KbtuiError:  # the command says so in its own words
            return value
        return path_of_file(layout, value)


def _may_be_file(name: str) -> bool:
    return "/" in name or "." in name


def path_of_file(layout: Layout, name: str) -> str:
    """The workspace path of a file that is named from the current folder on, or from the root.

    What names none is returned as it is.

    Raises:
        UsageError: It is a path from here on, or a whole one, and leads out of the workspace.
    """
    line = _LINE_AFTER.search(name)
    written = name[: line.start()] if line else name
    is_path = written.startswith(("./", "../", "~/", "/"))
    try:
        file = Path(os.path.normpath(Path(written).expanduser().absolute()))
        if not is_path and not file.is_file():
            return name
        file = file.parent.resolve() / file.name
    except (OSError, ValueError, RuntimeError):  # no such folder, no such home, not a name
        return name
    if not file.is_relative_to(layout.root):
        if is_path and file.exists():
            raise UsageError(f"{clean_line(name)} isn't in the workspace {layout.root}.")
        return name
    below = unicodedata.normalize("NFC", file.relative_to(layout.root).as_posix())
    path = layout.path_of(below) if file.exists() else below
    return path + (line.group() if line else "")


def folder_of(layout: Layout, name: str) -> str:
    """A folder of notes as `Content` has it: from the entries on, or from the current folder on.

    Raises:
        UsageError: It is no folder for notes of this workspace.
    """
    if not name.startswith((".", "~", "/")):
        return name
    path = path_of_file(layout, os.path.join(name, ""))  # noqa: PTH118 - the slash is what counts
    if f"{path}/".startswith(ENTRIES) or layout.in_place:
        return path.removeprefix(ENTRIES[:-1]).strip("/") or "."
    raise UsageError(
        f"{clean_line(name)} is no folder for notes.", f"They lie below {layout.root / ENTRIES}."
    )


def entry_argument(name: str, **settings: Any) -> Callable[[_Command], _Command]:
    """An argument that names an entry, which a shell completes."""
    return click.argument(name, type=_EntryName(), shell_complete=entry_names, **settings)


def entry_types(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The types of entries."""
    from kbtui.knowledge.entries.entry import ENTRY_TYPES

    return [name for name in ENTRY_TYPES if name.startswith(incomplete)]


def setting_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names of settings."""
    from kbtui import settings

    return [name for name in settings.setting_names() if name.startswith(incomplete)]
