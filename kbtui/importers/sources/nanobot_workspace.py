"""Migration of a nanobot workspace of any generation in place, with a report of what was found.

What older ones keep elsewhere (conversations beside the workspace, MEMORY.md at its top) is copied
to where kbtui has it, and the originals stay; everything else is read in place. The memory settings
of nanobot's ``config.json`` are translated to our names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtui.errors import ConfigurationError, KbtuiError
from kbtui.history.change import Actor
from kbtui.history.history import History, open_foreign
from kbtui.memory.records.archive import Archive, Cursors
from kbtui.sessions.store import SessionStore
from kbtui.text import clean_line, counted
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import (
    BOOTSTRAP_FILES,
    MACHINE,
    RECORDED_FOLDERS,
    TAKEN_OVER,
    TAKING_OVER,
    Workspace,
)
from kbtui.workspace.opening import is_nanobot_workspace

_OLD_LOG = re.compile(r"[^.].*\.jsonl?")
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}.*\.md")
_KNOWN = {*RECORDED_FOLDERS, *BOOTSTRAP_FILES, MACHINE, "sessions", "docs"}
_MOVED_FROM_TOP = {"MEMORY.md": "memory/MEMORY.md", "HISTORY.md": "memory/HISTORY.md"}
_MAX_NAMES = 12


def begin(workspace: Workspace, *, is_new: bool) -> bool:
    """Mark a new nanobot workspace for migration, and return whether one is under way."""
    ours = is_nanobot_workspace(workspace.root) or next(_logs_beside(workspace), None) is not None
    if is_new and not workspace.in_place and ours:
        files.write_machine_file(workspace, TAKING_OVER, b"nanobot\n")
    return (workspace.root / TAKING_OVER).is_file()


def copy_scattered_files(workspace: Workspace, history: History) -> list[str]:
    """Copy files kept elsewhere to their place if it is free, and return a sentence on each."""
    notes: list[str] = []
    with history.change(Actor.IMPORT, "Brought over from nanobot.") as change:
        for name, path in _MOVED_FROM_TOP.items():
            file = workspace.root / name
            if file.is_symlink() or not file.is_file():
                continue
            data = files.read_bytes(workspace, name)
            if files.exists(workspace, path) and files.read_bytes(workspace, path) != data:
                path = path.replace(".md", "-at-top.md")  # noqa: PLW2901
            if not files.exists(workspace, path):
                change.write(path, data)
                notes.append(f"{name} at the top is {path} as well.")
    count = 0
    for file in _logs_beside(workspace):
        if not (workspace.sessions / file.name).exists():
            with storage_errors(f"Can't read {file}"):
                data = file.read_bytes()
            files.write_machine_file(workspace, f"sessions/{file.name}", data)
            count += 1
    if count:
        notes.append(
            f"{counted(count, 'conversation')} of {workspace.root.parent / 'sessions'} were copied."
        )
    return notes


def finish(workspace: Workspace, history: History, notes: Sequence[str]) -> list[str]:
    """Write the report, including the sentences `notes`, end the migration and return a summary."""
    found, unread = list(_found(workspace, history)), list(_unread(workspace))
    lines = ["# Taken over from nanobot", "", *(f"- {each}" for each in found)]
    if notes:
        lines += ["", "## Changed", "", *(f"- {each}" for each in notes)]
    if unread:
        lines += ["", "## Left as it is, and not read", "", *(f"- {each}" for each in unread)]
    text = "\n".join(lines) + "\n"
    files.write_machine_file(workspace, TAKEN_OVER, text.encode("utf-8", "replace"))
    (workspace.root / TAKING_OVER).unlink(missing_ok=True)
    return [f"Taken over from nanobot: {', '.join(found)}. The report is in {TAKEN_OVER}."]


def _logs_in(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if _OLD_LOG.fullmatch(file.name) and file.is_file() and not file.is_symlink():
            yield file


def _logs_beside(workspace: Workspace) -> Iterator[Path]:
    """Yield the logs of nanobot's first generations: ``sessions`` beside the workspace."""
    parent = workspace.root.parent
    if workspace.root.name == "workspace" and (parent / "config.json").is_file():
        yield from _logs_in(parent / "sessions")


def _found(workspace: Workspace, history: History) -> Iterator[str]:
    """Yield a phrase for each kind of content that was found."""
    named = [name for name in BOOTSTRAP_FILES if (workspace.root / name).is_file()]
    if (workspace.memory / "MEMORY.md").is_file():
        named.append("MEMORY.md")
    yield from named
    dated = _count(workspace.memory.glob("*.md"), lambda file: _DATED.fullmatch(file.name))
    notes = _count(workspace.knowledge.rglob("*.md"), lambda file: file.name != "INDEX.md")
    for count, one, many in (
        (notes, "entry", "entries"),
        (dated, "dated note", "dated notes"),
        (len(Archive(workspace, history).entries()), "archived summary", "archived summaries"),
        (len(SessionStore(workspace).list()), "conversation", "conversations"),
        (_count(workspace.skills.glob("*/SKILL.md")), "how-to", "how-tos"),
        (_count(workspace.docs.rglob("*"), Path.is_file), "document", "documents"),
    ):
        if count:
            yield counted(count, one, many)
    seen = Cursors(workspace, history).seen().get("")
    if seen:
        yield f"Dream goes on behind summary {seen}"


def _count(files: Iterable[Path], is_one: Callable[[Path], object] = lambda _: True) -> int:
    return sum(bool(is_one(file)) for file in files)


def _unread(workspace: Workspace) -> Iterator[str]:
    """Yield what is left in place and not read."""
    rest = sorted(
        f"{clean_line(each.name)}{'/' if each.is_dir() else ''}"
        for each in workspace.root.iterdir()
        if each.name not in _KNOWN and each.name not in _MOVED_FROM_TOP
    )
    yield from rest[:_MAX_NAMES]
    if len(rest) > _MAX_NAMES:
        yield f"{len(rest) - _MAX_NAMES} more at the top"
    for folder in (workspace.root, workspace.memory):
        if not (folder / ".git").exists():
            continue
        try:
            count = sum(1 for _ in open_foreign(folder / ".git").log())
        except KbtuiError:
            count = 0
        name = (folder / ".git").relative_to(workspace.root)
        yield f"{name}: {counted(count, 'earlier version')}; the app's history browser shows them"


_VECTORS = {
    "enabled": "search.semantic",
    "embeddingModel": "models.embed.model",
    "embeddingApiKey": "models.embed.api_key",
    "embeddingApiBase": "models.embed.api_base",
    "chunkTokens": "search.chunk_tokens",
    "chunkOverlap": "search.chunk_overlap",
    "syncIntervalSeconds": "search.sync_interval_seconds",
    "vectorWeight": "search.vector_weight",
    "textWeight": "search.text_weight",
}
_NOTES = {
    "enabled": "memory.session_notes.enabled",
    "maxMessages": "memory.session_notes.max_messages",
    "minUserMessages": "memory.session_notes.min_user_messages",
}
_FLUSH = {"enabled": "memory.flush.enabled"}
_DREAM = {
    "intervalH": "dream.interval_hours",
    "modelOverride": "dream.model_override",
    "maxBatchSize": "dream.max_batch_size",
}
_SECTIONS: dict[str, Mapping[str, str]] = {
    "tools.vectorMemory": _VECTORS,
    "tools.sessionMemory": _NOTES,
    "tools.memoryFlush": _FLUSH,
    "agents.defaults.dream": _DREAM,
    "agents.defaults": {"memoryWindow": "context.memory_window"},
}
_LEGACY_KEYS = {"cron": "intervalH", "model": "modelOverride"}
_STEP = re.compile(r"\*/(\d+)")
_FIELDS = 5
_DAY_HOURS = 24.0


@dataclass(frozen=True, slots=True)
class NanobotSettings:
    """The settings of a nanobot file under our names, and the `unknown` keys.

    `notes` are sentences for the user, for instance on legacy keys.
    """

    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def read_nanobot_settings(text: str) -> NanobotSettings:
    """Parse the text of nanobot's configuration file.

    Raises:
        ConfigurationError: It isn't a JSON object.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"That is no valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ConfigurationError("That is no configuration: it holds no settings by name.")
    values: dict[str, Any] = {}
    notes: list[str] = []
    unknown: list[str] = []
    for path, value in _leaves(document, ""):
        section, _, key = path.rpartition(".")
        if value in (None, ""):
            continue
        if section == "agents.defaults.dream" and key in _LEGACY_KEYS:
            notes.append(_take_legacy(document, key, value, values))
        elif (name := _SECTIONS.get(section, {}).get(key)) is not None:
            values[name] = _converted(name, value)
        else:
            unknown.append(path)
    return NanobotSettings(values, tuple(notes), tuple(unknown))


def _leaves(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def _converted(name: str, value: Any) -> Any:
    """Convert a value to our format: nanobot's embedding models are litellm's."""
    is_model = name == "models.embed.model" and isinstance(value, str)
    return f"litellm:{value}" if is_model and not value.startswith("litellm:") else value


def _take_legacy(document: Any, key: str, value: Any, values: dict[str, Any]) -> str:
    """Apply a legacy key unless the new one is set as well; return a sentence on it."""
    dream = document["agents"]["defaults"]["dream"]
    new = _LEGACY_KEYS[key]
    name = _DREAM[new]
    if dream.get(new) not in (None, ""):
        return f"dream.{key} is passed over: {new} is set as well."
    read: Callable[[str], Any] = _hours if key == "cron" else str
    values[name] = read(str(value))
    return f"dream.{key} is a legacy key: {name} = {values[name]} stands for it now."


def _hours(cron: str) -> float:
    """Approximate a cron expression by an interval in hours, 24 if that isn't possible."""
    fields = cron.split()
    if len(fields) != _FIELDS:
        return _DAY_HOURS
    minute, hour = (_STEP.fullmatch(field) for field in fields[:2])
    if minute and fields[1] == "*":
        return round(int(minute[1]) / 60, 2) or _DAY_HOURS
    if hour:
        return float(hour[1]) or _DAY_HOURS
    return 1.0 if fields[1] == "*" else _DAY_HOURS / max(1, len(fields[1].split(",")))
