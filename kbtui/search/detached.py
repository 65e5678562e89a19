"""A detached process that prepares the embedding model and embeds passages after a command ends.

``python -m kbtui.search.detached ROOT``

There is at most one per user. It has no controlling terminal and runs at a low priority.
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
_ELSEWHERE_HINT = "only the app and `kbtui search --semantic` prepare search by meaning"
_EMBED_SECONDS = 120.0  # some 3,000 passages; the next command has it go on


class DetachedWorker:
    """Starts the detached process for one workspace, where the settings allow it."""

    def __init__(self, workspace: Workspace, settings: SearchSettings, role: RoleSettings) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self._workspace = workspace
        self._settings = settings
        self._role = role

    def status(self) -> Preparation:
        """Return the state of the model, with a reason if no process would be started here."""
        from kbtui.search.embedding.prepared import ConfiguredModel

        model = ConfiguredModel(self._role).preparation()
        if model.why or model.state == "preparing":
            return model
        return replace(model, why=self._refusal())

    def prepare(self) -> Preparation:
        """Start preparing the model unless it is prepared; return its state."""
        model = self.status()
        return model if model.is_done else self.start()

    def start(self) -> Preparation:
        """Start preparing the model and embedding passages, without waiting.

        Returns:
            The state of the model, with a reason if no process was started.
        """
        model = self.status()
        if model.why or model.state == "preparing":
            return model
        try:
            self._spawn()
        except OSError as error:
            return replace(model, why=f"No process can go on after this one: {error.strerror}.")
        return model if model.is_done else Preparation("preparing")

    def _refusal(self) -> str:
        """Return as a sentence why no process may be started here, or an empty string."""
        from kbtui.search.embedding.prepared import is_behind_api

        if not self._settings.semantic:
            return "Search by meaning is switched off."
        if not self._settings.background:
            return f"search.background is off: {_ELSEWHERE_HINT}."
        if not self._workspace.writable:
            return f"The workspace is read-only: {_ELSEWHERE_HINT}."
        if is_behind_api(self._role):
            return "A model behind an API reads on in the app and by `kbtui reindex` alone."
        return ""

    def _spawn(self) -> None:
        """Start the process unless one is running.

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
            # The child inherits the lock: the kernel releases it however the child ends.
            command = own_program(_MODULE, str(self._workspace.root))
            self.child = start_detached(command, environment(), (lock,))
            with suppress(OSError):  # it has ended already
                mine = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, self.child.pid, mine + _NICENESS)
        finally:
            os.close(lock)


def prepare_and_embed(root: Path, seconds: float = _EMBED_SECONDS) -> int:
    """Prepare the model, embed the passages in a workspace's index, and return their number.

    It doesn't update the lexical index: that has one writer at a time, and a command that had to
    wait for the lock would answer from a stale index.

    Raises:
        KbtuiError: the model can't be prepared or fails, or the vectors can't be stored.
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
    if is_behind_api(role):  # this process doesn't know which passages are private
        return 0
    ConfiguredModel(role).load(threading.Event()).close()
    index = SearchIndex(workspace, Scanner(workspace), settings.search, role)
    done, deadline = 0, time.monotonic() + seconds
    try:
        if index.load_model():
            while embedded := index.embed_missing(max(0.0, deadline - time.monotonic())):
                done += embedded  # again, for what commands indexed meanwhile
    finally:
        index.close()
    _LOG.info("%s passages of %s were embedded after a command.", done, root)
    return done


def main(arguments: Sequence[str]) -> int:
    """Run `prepare_and_embed` for the given workspace; log errors, as nobody reads stderr."""
    try:
        prepare_and_embed(Path(arguments[0]))
    except KbtuiError as error:
        _LOG.warning("Nothing could be embedded after a command: %s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
