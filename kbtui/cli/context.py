"""What commands share: the workspace option, common arguments and shell completion."""

from __future__ import annotations

import gc
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

_OBJECTS = 100_000  # between collections: a short command makes fewer that stay
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class WorkspaceOption:
    """The workspace a command works on; `named` is None if none was given.

    It is `typed` if it was named on the command line, not by a variable set long before.
    """

    named: Path | None = None
    typed: bool = False

    @contextmanager
    def opened(self) -> Iterator[KnowledgeBase]:
        """Open the knowledge base for the block and write its notices to standard error.

        Without a named workspace the nearest or the user's own is opened, and created if missing.
        If something is written to one that isn't around the current folder, it is named afterwards.
        """
        kb = self.open()
        written: list[str] = []  # not the events: those of an import hold all that it wrote
        kb.subscribe(lambda changed: written.append(changed.commit))
        try:
            for notice in kb.notices:
                note(f"kbtui: {notice}")
            yield kb
        finally:
            kb.close()
            if written and not self.typed and not _is_around_us(kb.workspace.root):
                note(f"kbtui: Written in the workspace {kb.workspace.root}.")

    def open(self) -> KnowledgeBase:
        """Open the knowledge base like `opened`; the caller has to close it."""
        from kbtui.knowledge_base import KnowledgeBase

        gc.freeze()  # what was imported isn't garbage, and is never looked at
        gc.set_threshold(_OBJECTS)
        gc.enable()
        return KnowledgeBase.open(self.named, create=self.named is None)

    def check(self) -> None:
        """Check cheaply that there is a workspace to open.

        Raises:
            WorkspaceError: There is none.
        """
        from kbtui.workspace.opening import can_become_workspace, find_workspace, open_workspace

        root = find_workspace(self.named)
        if self.named is not None and not can_become_workspace(root):
            open_workspace(root)


def _is_around_us(root: Path) -> bool:
    """Return whether the current folder is in a workspace."""
    try:
        return Path.cwd().is_relative_to(root)
    except OSError:  # the current folder was deleted
        return False


def use_model(kb: KnowledgeBase, name: str, *, remote: bool) -> None:
    """Use a model for chat as long as the knowledge base is open.

    Raises:
        UsageError: The model is on another machine, the configured one is on this machine, and
            `remote` is false.
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
_MAX_COMPLETIONS = 200
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
    # `source()` runs the shell to check its version; the script may be for another machine.
    say(complete.source_template % complete.source_vars())


def entry_names(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete entries by a prefix of their name, or of a word of their slug or title."""
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
        or any(begins.startswith(typed) for begins in _suffixes(info.slug, info.title))
    )
    return [
        CompletionItem(info.name, help=shorten(info.title, _WIDTH))
        for info in islice(fitting, _MAX_COMPLETIONS)
    ]


def _suffixes(*names: str) -> Iterator[str]:
    """Yield the suffixes of names that begin at a word."""
    for name in map(fold, names):
        yield from (name[word.start() :] for word in _WORD.finditer(name))


_LINE_AFTER = re.compile(r":\d+(?:-\d+)?$")


class _EntryName(click.ParamType[str]):
    """An entry's name, or a file path from the shell, converted to a workspace path."""

    name = "entry"

    def convert(self, value: str, _param: click.Parameter | None, ctx: click.Context | None) -> str:
        if ctx is None or not _may_be_file(value):
            return value
        from kbtui.workspace.opening import find_workspace, open_workspace

        try:
            layout = open_workspace(find_workspace(ctx.find_root().params.get("workspace")))
        except KbtuiError:  # reported by the command itself
            return value
        return path_of_file(layout, value)


def _may_be_file(name: str) -> bool:
    return "/" in name or "." in name


def path_of_file(layout: Layout, name: str) -> str:
    """Convert a file path, relative to the current folder or absolute, to a workspace path.

    A name that is no such path is returned unchanged. A line number at the end is kept.

    Raises:
        UsageError: It is an explicit path to a file outside the workspace.
    """
    line = _LINE_AFTER.search(name)
    given = name[: line.start()] if line else name
    is_path = given.startswith(("./", "../", "~/", "/"))
    try:
        file = Path(os.path.normpath(Path(given).expanduser().absolute()))
        if not is_path and not file.is_file():
            return name
        file = file.parent.resolve() / file.name
    except (OSError, ValueError, RuntimeError):  # no such folder or home, or an invalid name
        return name
    if not file.is_relative_to(layout.root):
        if is_path and file.exists():
            raise UsageError(f"{clean_line(name)} isn't in the workspace {layout.root}.")
        return name
    below = unicodedata.normalize("NFC", file.relative_to(layout.root).as_posix())
    path = layout.path_of(below) if file.exists() else below
    return path + (line.group() if line else "")


def folder_of(layout: Layout, name: str) -> str:
    """Convert a folder, given relative to the entries or as a shell path, for `Content`.

    Raises:
        UsageError: It isn't a folder for notes in this workspace.
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
    """Declare an argument that names an entry, with shell completion."""
    return click.argument(name, type=_EntryName(), shell_complete=entry_names, **settings)


def entry_types(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete types of entries."""
    from kbtui.knowledge.entries.entry import ENTRY_TYPES

    return [name for name in ENTRY_TYPES if name.startswith(incomplete)]


def setting_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of settings."""
    from kbtui import settings

    return [name for name in settings.setting_names() if name.startswith(incomplete)]
