"""The command tree, and the conversion of errors to exit codes."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from kbtui import __version__
from kbtui.cli import ask, entries, history, maintenance, memory, output, search
from kbtui.cli.chat import chat
from kbtui.cli.config import config
from kbtui.cli.context import COMPLETION_VARIABLE, WorkspaceOption, completion
from kbtui.cli.export import export
from kbtui.cli.help import help_command
from kbtui.cli.importing import import_command
from kbtui.cli.inbox import inbox
from kbtui.cli.mcp import mcp
from kbtui.cli.output import INTERRUPTED, complain, report
from kbtui.cli.setup import setup
from kbtui.cli.tasks import tasks
from kbtui.cli.why import why
from kbtui.errors import StorageError

_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_BROKEN_PIPE = 141  # a shell's status for a program killed by SIGPIPE
_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """A group that lists commands in the order they were added and suggests similar names."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        if args and args[0] not in self.commands and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.commands, 1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            if Path(args[0]).is_dir():
                hint = f" Did you mean the folder? `kbtui ./{args[0]}` opens it."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


class _Folder(click.Path):
    """A folder that isn't checked while parsing, as its disk may not respond."""

    def convert(
        self,
        value: str | os.PathLike[str],
        _param: click.Parameter | None,
        _ctx: click.Context | None,
    ) -> Path:
        return Path(value)


@click.group(cls=_Commands, context_settings=_HELP)
@click.option(
    "-w",
    "--workspace",
    metavar="DIR",
    envvar="KBTUI_WORKSPACE",
    type=_Folder(file_okay=False),
    help="The workspace; else the nearest one above this folder, else that of the settings.",
)
@click.version_option(__version__, prog_name="kbtui", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, workspace: Path | None) -> None:
    """A personal knowledge base in the terminal. Without a command the app starts."""
    source = ctx.get_parameter_source("workspace")
    ctx.obj = WorkspaceOption(workspace, typed=source is ParameterSource.COMMANDLINE)


for _command in (
    maintenance.init,
    maintenance.workspaces,
    setup,
    ask.ask,
    chat,
    search.search,
    search.similar,
    entries.list_command,
    tasks,
    entries.show,
    entries.links,
    entries.new,
    entries.edit,
    entries.rename,
    entries.delete,
    history.log,
    history.diff,
    why,
    history.undo,
    history.restore,
    memory.add,
    memory.remember,
    memory.forget,
    memory.correct,
    ask.sessions,
    import_command,
    export,
    memory.consolidate,
    memory.dream,
    memory.dream_log,
    memory.dream_restore,
    inbox,
    maintenance.sync,
    maintenance.purge,
    memory.audit,
    maintenance.reindex,
    maintenance.doctor,
    maintenance.check,
    config,
    mcp,
    completion,
    history.git,
    help_command,
):
    cli.add_command(_command)


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code, without raising."""
    gc.disable()  # imports leave no garbage; `WorkspaceOption.open` enables it again
    output.prepare_streams()
    try:
        status = _invoke(list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        return _output_closed()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as error:
        return _usage(error)
    except Exception as error:  # noqa: BLE001  # last resort; it is logged with its traceback
        return (
            _report_full(error) if isinstance(error, OSError) and _is_full(error) else report(error)
        )
    finally:
        gc.enable()
    return status


def _invoke(argv: list[str]) -> int:
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "kbtui", COMPLETION_VARIABLE, instruction)
    try:
        with cli.make_context("kbtui", argv) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code


def _usage(error: click.ClickException) -> int:
    """Report a usage error with a pointer to the command's help."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    where = context.command_path if context else "kbtui"
    complain(error.format_message(), f"See `{where} --help`.")
    return error.exit_code


def _output_closed() -> int:
    """Return the exit code for a closed output, discarding the rest of it."""
    _drop_output()
    return _BROKEN_PIPE


def _is_full(error: OSError) -> bool:
    """Return whether standard output can't be written; other errors name a file."""
    if error.filename is not None or error.errno not in _FULL_ERRNOS:
        return False
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except (OSError, ValueError):
        return True
    return False


def _report_full(error: OSError) -> int:
    _drop_output()
    complain(
        f"The output can't be written: {error.strerror}.",
        "What was written of it is cut off. Make room, or write it somewhere else.",
    )
    return StorageError.exit_code


def _drop_output() -> None:
    """Redirect standard output to the null device, for Python's flush at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
