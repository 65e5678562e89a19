"""The doctor: checks of what is installed, reachable and indexed.

Every check is a function that yields findings; one that fails becomes a finding too, so that the
doctor always finishes.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata

from kbtui import __version__
from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.logs import log_file
from kbtui.memory.recall.remembered import MOST_LINES, count_lines, is_near_full
from kbtui.models.fetching import search_offer, why_offline
from kbtui.models.roles import ModelRegistry
from kbtui.search.detached import DetachedWorker
from kbtui.search.results import IndexStatus, LanguageReport, Preparation
from kbtui.search.search_index import SearchIndex
from kbtui.settings import (
    BUNDLED_EMBEDDING_MODEL,
    MULTILINGUAL_EMBEDDING_MODEL,
    Settings,
    config_file,
)
from kbtui.text import clean_line, counted, moment
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY, Workspace
from kbtui.workspace.scan import LARGER, LEFT_OUT, describe_large

_PACKAGES = ("textual", "litellm", "dulwich", "whoosh-reloaded", "sentence-transformers", "torch")
_MAX_LISTED = 20
_LEXICAL_ONLY = "searching by words alone"
_DOCUMENTS_SECONDS = 20.0
_UNREAD_HINT = "What can't be read can't be found by what it says."
_OTHERS_HINT = (
    "Other languages are found by their words, and hardly by meaning. `kbtui setup --search` "
    "fetches a model for {count}; models.embed.model names any other, a folder or litellm:NAME."
)
_UNKNOWN_HINT = "Which languages it reads by meaning is said where it comes from."
_IN_FLOATS_HINT = "It finds the same, and takes twice as long to read, or longer."
_SETUP_HINT = "`kbtui setup` fetches one that fits this machine, and tries it."
_LOW_SPACE = 200 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of the doctor's report; `ok` is None if it is just information."""

    area: str
    ok: bool | None
    text: str
    hint: str = ""


def examine(
    workspace: Workspace,
    settings: Settings,
    history: History,
    library: Library,
    search: SearchIndex,
    models: ModelRegistry,
    left_out: Mapping[str, str],
    too_large: Mapping[str, str],
) -> list[DoctorFinding]:
    """Run every check on an open workspace; `left_out` and `too_large` aren't in its history."""
    checks = (
        ("installed", examine_machine()),
        ("workspace", _workspace(workspace)),
        ("history", _history(history)),
        ("entries", _entries(workspace, library, left_out, too_large)),
        ("memory", _memory(workspace, settings)),
        ("search", _search(workspace, search, settings)),
        ("models", _models(models)),
    )
    return [finding for area, check in checks for finding in _guarded(area, check)]


def examine_machine() -> Iterator[DoctorFinding]:
    """Check what needs no workspace: versions, log and settings."""
    python = platform.python_version()
    yield DoctorFinding(
        "installed", ok=True, text=f"kbtui {__version__} on Python {python}, {sys.platform}"
    )
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    yield DoctorFinding("installed", ok="missing" not in versions, text=versions)
    file = log_file()
    yield DoctorFinding(
        "log", ok=None, text=f"{file}{'' if file.exists() else ' (nothing written yet)'}"
    )
    config = config_file()
    yield DoctorFinding(
        "settings", ok=None, text=f"{config}{'' if config.exists() else ' (not there: defaults)'}"
    )


def _guarded(area: str, check: Iterator[DoctorFinding]) -> Iterator[DoctorFinding]:
    try:
        yield from check
    except KbtuiError as error:
        yield DoctorFinding(area, ok=False, text=error.message, hint=error.hint)
    except OSError as error:
        yield DoctorFinding(area, ok=False, text=f"{error.strerror}: {error.filename}")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def _workspace(workspace: Workspace) -> Iterator[DoctorFinding]:
    hint = (
        ""
        if workspace.writable
        else "Check the folder's owner and whether its disk is mounted read-only."
    )
    state = "can be written" if workspace.writable else "is read-only"
    yield DoctorFinding(
        "workspace", ok=workspace.writable, text=f"{workspace.root} {state}", hint=hint
    )
    free = shutil.disk_usage(workspace.root).free
    hint = "Free some space: a full disk stops every write." if free < _LOW_SPACE else ""
    yield DoctorFinding(
        "workspace", ok=free >= _LOW_SPACE, text=f"{free // 2**20:,} MiB free", hint=hint
    )
    if workspace.machine.exists() and workspace.machine.stat().st_mode & 0o077:
        yield DoctorFinding(
            "workspace",
            ok=False,
            text=f"{workspace.machine} can be read by others",
            hint=f"chmod 700 {workspace.machine}",
        )


def _history(history: History) -> Iterator[DoctorFinding]:
    newest = next(history.log(limit=1), None)
    if newest is None:
        yield DoctorFinding("history", ok=None, text="no commit yet")
        return
    when = moment(newest.time)
    yield DoctorFinding("history", ok=True, text=f"last commit {newest.id[:10]}, {when}")


def _entries(
    workspace: Workspace,
    library: Library,
    left_out: Mapping[str, str],
    too_large: Mapping[str, str],
) -> Iterator[DoctorFinding]:
    infos = library.infos()
    broken = [info for info in infos if info.problem]
    yield DoctorFinding("entries", ok=True, text=counted(len(infos), "entry", "entries"))
    if texts := library.texts():
        named = ", ".join(clean_line(workspace.file(path)) for path in list(texts)[:_MAX_LISTED])
        yield DoctorFinding("entries", ok=None, text=f"no notes, as they don't end in .md: {named}")
    if copies := library.conflict_copies():
        names = ", ".join(clean_line(workspace.file(path)) for path in copies[:_MAX_LISTED])
        more = f" and {len(copies) - _MAX_LISTED} more" if len(copies) > _MAX_LISTED else ""
        text = f"other versions of files that two wrote at once: {names}{more}"
        hint = "Take over what you need from them, then delete them."
        yield DoctorFinding("entries", ok=None, text=text, hint=hint)
    for path, why in list(left_out.items())[:_MAX_LISTED]:
        text = f"{path} is left out of the history: {why}"
        yield DoctorFinding("entries", ok=False, text=text, hint=LEFT_OUT)
    if len(left_out) > _MAX_LISTED:
        more = f"and {len(left_out) - _MAX_LISTED} more; `kbtui check` names them all"
        yield DoctorFinding("entries", ok=False, text=more)
    if too_large:
        text = describe_large(workspace, too_large)
        yield DoctorFinding("entries", ok=None, text=text, hint=LARGER)
    for info in broken[:_MAX_LISTED]:
        yield DoctorFinding(
            "entries",
            ok=False,
            text=f"{info.path}: {info.problem}",
            hint="Correct it in your editor.",
        )
    if len(broken) > _MAX_LISTED:
        more = f"and {len(broken) - _MAX_LISTED} more that can't be read as entries"
        yield DoctorFinding("entries", ok=False, text=more)


def _memory(workspace: Workspace, settings: Settings) -> Iterator[DoctorFinding]:
    try:
        text = files.read_text(workspace, MEMORY)
    except NotFoundError:
        return
    limit = settings.context.memory_tokens
    lines = count_lines(text)
    near = is_near_full(text, limit)
    yield DoctorFinding(
        "memory",
        ok=None if near else True,
        text=f"MEMORY.md has {counted(lines, 'line')} of at most {MOST_LINES}",
        hint="It is in every prompt: move what has an entry of its own there." if near else "",
    )


def _search(
    workspace: Workspace, search: SearchIndex, settings: Settings
) -> Iterator[DoctorFinding]:
    report = search.sync(_DOCUMENTS_SECONDS)
    status = search.status()
    yield DoctorFinding(
        "search",
        ok=True,
        text=f"{counted(status.files, 'file')}, {counted(status.chunks, 'chunk')} indexed",
    )
    for path, why in report.skipped[:_MAX_LISTED]:
        yield DoctorFinding(
            "search", ok=None, text=f"{workspace.file(path)}: {why}", hint=_UNREAD_HINT
        )
    if len(report.skipped) > _MAX_LISTED:
        yield DoctorFinding(
            "search", ok=None, text=f"and {counted(len(report.skipped) - _MAX_LISTED, 'more file')}"
        )
    if not settings.search.semantic:
        yield DoctorFinding("search", ok=None, text="search by meaning is switched off")
        return
    model = DetachedWorker(workspace, settings.search, settings.models.embed).status()
    if not model.is_done:
        yield _unprepared(model)
        return
    if not status.model:
        search.load_model()  # not used yet: see whether it works
        status = search.status()
    if status.state == "lexical-only":
        yield DoctorFinding("search", ok=False, text=_LEXICAL_ONLY, hint=status.message)
        return
    yield from _embedded(status, model)
    yield from _read_languages(search, status, settings)


def _read_languages(
    search: SearchIndex, status: IndexStatus, settings: Settings
) -> Iterator[DoctorFinding]:
    """Say which languages are read by meaning, as far as that is known of the model."""
    offer = search_offer()
    if status.model == offer.name:
        text = f"{offer.languages} languages are read by meaning by {offer.name}"
        yield DoctorFinding("search", ok=True, text=text)
    elif status.model == BUNDLED_EMBEDDING_MODEL:
        report = search.languages()
        if not status.left:
            yield _languages(report)
        if report.main:
            yield _larger_model(report, settings)


def _embedded(status: IndexStatus, model: Preparation) -> Iterator[DoctorFinding]:
    """Say what was embedded, by which model, and how that runs here."""
    if status.remark:
        yield DoctorFinding("search", ok=None, text=status.remark, hint=_IN_FLOATS_HINT)
    text = f"{counted(status.embedded, 'passage')} embedded by {status.model}"
    if status.left:
        why = model.why or "They are embedded in the background."
        yield DoctorFinding("search", ok=True, text=f"{text}, {status.left:,} to go", hint=why)
    else:
        known = {BUNDLED_EMBEDDING_MODEL, search_offer().name}
        hint = status.message or ("" if status.model in known else _UNKNOWN_HINT)
        yield DoctorFinding("search", ok=True, text=text, hint=hint)


def _larger_model(report: LanguageReport, settings: Settings) -> DoctorFinding:
    """Name the model that can be fetched where most notes are in another language than English."""
    offer = search_offer()
    text = (
        f"most passages are in {report.main}; {offer.describe()} reads {offer.languages} languages"
    )
    hint = why_offline(settings) or "`kbtui setup --search` fetches it, and has it used."
    return DoctorFinding("search", ok=None, text=text, hint=hint)


def _languages(report: LanguageReport) -> DoctorFinding:
    """Say which languages are read by meaning, and by which model."""
    others = _OTHERS_HINT.format(count=search_offer().languages)
    text = f"English is read by meaning by {BUNDLED_EMBEDDING_MODEL}"
    if report.problem:
        return DoctorFinding(
            "search", ok=None, text=f"{text} alone", hint=f"{report.problem} {others}"
        )
    listed = f"{', '.join(report.others[:-1])} and {report.others[-1]}"
    by_second = f"; {counted(report.embedded, 'passage')} so far" if report.model else ""
    text += f", and {listed} by {MULTILINGUAL_EMBEDDING_MODEL}{by_second}"
    if report.unread:
        text += f"; {counted(report.unread, 'passage')} in languages that neither reads"
    return DoctorFinding("search", ok=True, text=text, hint=others)


def _unprepared(model: Preparation) -> DoctorFinding:
    if model.state == "failed":
        return DoctorFinding(
            "search", ok=False, text=_LEXICAL_ONLY, hint=f"{model.why} {model.hint}".strip()
        )
    if model.state == "preparing":
        text, hint = "the embedding model is being prepared", "Searching by words meanwhile."
    else:
        text = "the embedding model isn't prepared yet"
        hint = model.why or "The next search or question has it prepared, in the background."
    return DoctorFinding("search", ok=None, text=text, hint=hint)


def _models(models: ModelRegistry) -> Iterator[DoctorFinding]:
    found = [each for each in models.usable_here() if each.usable]
    status = models.describe()
    yield DoctorFinding(
        "models",
        ok=None if status.offline else True,
        text=f"chat: {status.name}",
        hint=status.reason,
    )
    if not found and models.ollama() is not None:
        yield DoctorFinding(
            "models", ok=None, text="Ollama answers and has no model", hint=_SETUP_HINT
        )
    for each in found[:_MAX_LISTED]:
        yield DoctorFinding("models", ok=None, text=f"{each.name}, {each.about}")
    if len(found) > _MAX_LISTED:
        yield DoctorFinding(
            "models", ok=None, text=f"and {len(found) - _MAX_LISTED} more that can be used"
        )
