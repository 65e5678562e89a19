"""Reads the memory settings of a nanobot ``config.json`` (camelCase) as settings of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kbtui.errors import ConfigurationError

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
    "maxIterations": "dream.max_iterations",
}
_SECTIONS: dict[str, Mapping[str, str]] = {
    "tools.vectorMemory": _VECTORS,
    "tools.sessionMemory": _NOTES,
    "tools.memoryFlush": _FLUSH,
    "agents.defaults.dream": _DREAM,
    "agents.defaults": {"memoryWindow": "context.memory_window"},
}
_LEGACY = {"cron": "intervalH", "model": "modelOverride"}
_STEP = re.compile(r"\*/(\d+)")
_FIELDS = 5
_DAY_HOURS = 24.0


@dataclass(frozen=True, slots=True)
class NanobotSettings:
    """The settings of a nanobot file by our names, and the keys that mean nothing here.

    `notes` are what a person should know of, such as legacy keys, a sentence each.
    """

    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def read_nanobot_settings(text: str) -> NanobotSettings:
    """Read the file's text.

    Raises:
        ConfigurationError: it isn't a JSON object.
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
        if section == "agents.defaults.dream" and key in _LEGACY:
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
    """A value as ours is written; nanobot's embedding models are those of litellm."""
    is_model = name == "models.embed.model" and isinstance(value, str)
    return f"litellm:{value}" if is_model and not value.startswith("litellm:") else value


def _take_legacy(document: Any, key: str, value: Any, values: dict[str, Any]) -> str:
    """Take over what an old key means, unless the new key is there as well; says what was done."""
    dream = document["agents"]["defaults"]["dream"]
    new = _LEGACY[key]
    name = _DREAM[new]
    if dream.get(new) not in (None, ""):
        return f"dream.{key} is passed over: {new} is set as well."
    read: Callable[[str], Any] = _hours if key == "cron" else str
    values[name] = read(str(value))
    return f"dream.{key} is a legacy key: {name} = {values[name]} stands for it now."


def _hours(cron: str) -> float:
    """How often a cron expression runs, in hours; once a day where it can't be said so."""
    fields = cron.split()
    if len(fields) != _FIELDS:
        return _DAY_HOURS
    minute, hour = (_STEP.fullmatch(field) for field in fields[:2])
    if minute and fields[1] == "*":
        return round(int(minute[1]) / 60, 2) or _DAY_HOURS
    if hour:
        return float(hour[1]) or _DAY_HOURS
    return 1.0 if fields[1] == "*" else _DAY_HOURS / max(1, len(fields[1].split(",")))
