"""What takes too long for a command: a process of its own does it, and goes on after the command.

``python -m kbtui.search.detached ROOT``

It has the embedding model prepared, and embeds what the index of a workspace holds by then. Of a
user there is one such process at a time; it belongs to no terminal, and steps aside for others.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.search.results import Preparation
from kbtui.workspace.layout import Workspace

if TYPE_CHECKING:
    import subprocess

    from kbtui.settings import RoleSettings, SearchSettings

_LOG = logging.getLogger("kbtui.search.detached")  # it is run as __main__, too
_MODULE = "kbtui.search.detached"
_NICENESS = 10
_ELSE = "only the app and `kbtui search --semantic` prepare search by meaning"
_EMBED_SECONDS = 120.0  # some 3,000 passages; the next command has it go on


class Apart:
    """Starts that process for one workspace, where it may."""

    def __init__(self, workspace: Workspace, settings: SearchSettings, role: RoleSettings) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self._workspace = workspace
        self._settings = settings
        self._role = role

    def look(self) -> Preparation:
        """How far the model is; with a reason, where nothing will be done about it here."""
        from kbtui.search.embedding.prepared import ConfiguredModel

        found = ConfiguredModel(self._role).preparation()
        if found.why or found.state == "preparing":
            return found
        return replace(found, why=self._why_not())

    def prepare(self) -> Preparation:
        """Have the model prepared, if it isn't; tells how far it is."""
        found = self.look()
        return found if found.is_done else self.begin()

    def begin(self) -> Preparation:
        """Have the model prepared and passages embedded, from now on; returns at once.

        Returns:
            How far the model is; with a reason, where nothing is done about it.
        """
        found = self.look()
        if found.why or found.state == "preparing":
            return found
        try:
            self._start()
        except OSError as error:
            return replace(found, why=f"No process can go on after this one: {error.strerror}.")
        return found if found.is_done else Preparation("preparing")

    def _why_not(self) -> str:
        """Why nothing goes on after a command here, as a sentence; empty: it may."""
        from kbtui.search.embedding.prepared import is_behind_api

        if not self._settings.semantic:
            return "Search by meaning is switched off."
        if not self._settings.background:
            return f"search.background is off: {_ELSE}."
        if not self._workspace.writable:
            return f"The workspace is read-only: {_ELSE}."
        if is_behind_api(self._role):
            return "A model behind an API reads on in the app and by `kbtui reindex` alone."
        return ""

    def _start(self) -> None:
        """Start the process, unless there is one.

        Raises:
            OSError: it can't be started.
        """
        from kbtui.child_process import own_program, start_detached
        from kbtui.search.embedding import attempts
        from kbtui.search.embedding.child_embedder import environment
        from kbtui.search.embedding.prepared import models_folder

        lock = attempts.claim(models_folder())
        if lock is None:
            return
        try:
            # The lock is held until the process ends, however that comes about.
            command = own_program(_MODULE, str(self._workspace.root))
            self.child = start_detached(command, environment(), (lock,))
            with suppress(OSError):  # it has ended already
                mine = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, self.child.pid, mine + _NICENESS)
        finally:
            os.close(lock)


def read_on(root: Path, seconds: float = _EMBED_SECONDS) -> int:
    """Have the model prepared, and embed what a workspace's index holds; tells how many passages.

    Words are indexed by whoever searches: an index has one writer at a time, and a command that
    has to wait for it would answer from what was there before.

    Raises:
        KbtuiError: the model can't be prepared or fails, or nothing can be kept.
    """
    from kbtui.logs import start_logging
    from kbtui.search.embedding.prepared import ConfiguredModel, is_behind_api
    from kbtui.search.search_index import SearchIndex
    from kbtui.settings import load_settings
    from kbtui.workspace.opening import open_workspace
    from kbtui.workspace.scan import Scanner

    workspace = open_workspace(root)
    settings = load_settings(workspace.root)
    start_logging(settings.log.level)
    role = settings.models.embed
    if is_behind_api(role):  # which passages it must not see isn't known here
        return 0
    ConfiguredModel(role).load(threading.Event()).close()
    index = SearchIndex(workspace, Scanner(workspace), settings.search, role)
    done, until = 0, time.monotonic() + seconds
    try:
        if index.load_model():
            while now := index.embed_missing(max(0.0, until - time.monotonic())):
                done += now  # and what commands indexed meanwhile
    finally:
        index.close()
    _LOG.info("%s passages of %s were embedded after a command.", done, root)
    return done


def main(arguments: Sequence[str]) -> int:
    """Read on for the workspace that is named; what goes wrong is logged, as nobody listens."""
    try:
        read_on(Path(arguments[0]))
    except KbtuiError as error:
        _LOG.warning("Nothing could be embedded after a command: %s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
