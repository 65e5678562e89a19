"""The schema of the settings, and loading them from their sources.

Later sources win: defaults, ``config.toml`` in the user's config directory, ``kbtui.toml`` in the
workspace, ``KBTUI_*`` in the environment. A workspace can be a shared folder, so its file may not
set endpoints, keys or models (see `WORKSPACE_SECTIONS`), nor loosen the user's settings of review,
privacy and searched folders.

The sources are read here and not by pydantic-settings, which takes 0.2 s more to import, doesn't
parse TOML lists in the environment, and ignores variables of unknown sections.

Importing this module imports pydantic, which is slow, so the app does it after first paint.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from kbtui.errors import ConfigurationError, StorageError
from kbtui.whole_file import replace_file

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

# The first model of pydantic's would look for plugins in the metadata of all installed packages.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

OFFLINE = "offline"
BUNDLED_EMBEDDING_MODEL = "all-MiniLM-L6-v2"
MULTILINGUAL_EMBEDDING_MODEL = "universal-sentence-encoder-multilingual-3"
LOCAL_SERVERS = tuple(f"http://127.0.0.1:{port}/v1" for port in (8080, 1234, 8000))
WORKSPACE_SECTIONS = frozenset({"context", "search", "memory", "privacy", "ui"})
_QUICK = {
    "KBTUI_MODEL": ("models", "chat", "model"),
    "KBTUI_API_BASE": ("models", "chat", "api_base"),
    "KBTUI_API_KEY": ("models", "chat", "api_key"),
}
_SIMILAR = 60  # per cent, of names of settings
_NOT_SETTINGS = frozenset({"KBTUI_WORKSPACE", "KBTUI_DATA", "KBTUI_LOG", *_QUICK})


def _option(default: Any, title: str, description: str, **limits: Any) -> Any:
    """Declare a setting with its default, its label in the settings form, and a description."""
    return Field(default, title=title, description=description, **limits)


def _role(title: str, description: str, unset: str = "same as chat") -> Any:
    """Declare the model of a role; `unset` says what is used where none is set."""
    return Field(
        RoleSettings(),
        title=title,
        description=description,
        json_schema_extra={"unset": unset},
    )


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    retired: ClassVar[frozenset[str]] = frozenset()
    """Removed options, which are ignored if a file still sets them."""

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, values: Any) -> Any:
        """Ignore retired options."""
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if name not in cls.retired}


class RoleSettings(_Section):
    """The model of one role; options that are None default to the role ``chat``."""

    model: str | None = _option(
        None,
        "model",
        "For example ollama/qwen3:8b; `offline` for none. Empty: the first one found.",
    )
    api_base: str | None = _option(None, "server address", "An OpenAI-compatible endpoint.")
    api_key: SecretStr | None = _option(
        None, "API key", "The provider's key. It is safer in the keyring."
    )
    context_window: int | None = _option(
        None, "context window", "Its size in tokens, if it isn't known.", gt=0
    )
    max_tokens: int | None = _option(None, "longest answer", "Most tokens in one answer.", gt=0)
    temperature: float | None = _option(
        None,
        "temperature",
        "How varied its wording is. Empty: the model's default; 0.1 for making memory.",
        ge=0,
        le=2,
    )
    vision: bool | None = _option(
        None, "reads pictures", "Whether it accepts pictures. Empty: what is known of the model."
    )


class ModelsSettings(_Section):
    """The models of all roles."""

    chat: RoleSettings = _role(
        "Chat", "Answers you and writes down what you tell it.", "first one found here"
    )
    consolidate: RoleSettings = _role("Condensing", "Turns long conversations into memory.")
    dream: RoleSettings = _role("Dream", "Curates memory in the background.")
    extract: Annotated[RoleSettings, Field(alias="import")] = _role(
        "Imports", "Finds what is worth remembering in what you import."
    )
    embed: RoleSettings = _role(
        "Search by meaning",
        "Embeds your notes and questions: a sentence-transformers name or folder, or"
        " `litellm:NAME`.",
        "the built-in one",
    )
    servers: tuple[str, ...] = _option(
        LOCAL_SERVERS,
        "Servers to look for",
        "Addresses of llama.cpp, LM Studio or vLLM, besides Ollama's.",
    )
    first_token_seconds: float | None = _option(
        None,
        "Timeout for the first word, seconds",
        "How long an answer may take to begin. Empty: 60, or 900 for a local model.",
        gt=0,
    )
    idle_seconds: float = _option(
        120, "Timeout between words, seconds", "How long an answer may pause.", gt=0
    )
    retries: int = _option(
        2, "Retries", "How often to ask again when a server is busy or fails.", ge=0, le=10
    )


class ContextSettings(_Section):
    """Budgets of the parts of a prompt, in tokens unless stated otherwise."""

    memory_window: int | None = _option(
        None,
        "Messages of the conversation",
        "Most messages in a prompt. Empty: as many as fit.",
        gt=0,
    )
    session_tokens: int = _option(
        50_000, "Conversation, tokens", "Most tokens of the conversation in a prompt.", gt=0
    )
    index_tokens: int = _option(
        1_200,
        "List of notes, tokens",
        "Most tokens of the list of notes in a prompt.",
        ge=0,
    )
    memory_tokens: int = _option(
        4_000, "Memory, tokens", "Most tokens of MEMORY.md in a prompt.", ge=0
    )
    bootstrap_tokens: int = _option(
        4_000,
        "Persona, tokens",
        "Most tokens of SOUL, USER, AGENTS, TOOLS and IDENTITY in a prompt.",
        ge=0,
    )
    skills_tokens: int = _option(
        2_000,
        "How-tos, tokens",
        "Most tokens of how-tos in a prompt; always-on ones are there in full.",
        ge=0,
    )
    notes_tokens: int = _option(
        2_000, "Daily notes, tokens", "Most tokens of daily notes in a prompt.", ge=0
    )
    notes_days: int = _option(
        7, "Daily notes, days", "How many recent days of notes go into a prompt.", ge=0
    )

    def session_share(self, window: int) -> int:
        """Return the tokens reserved for the conversation in a window of `window` tokens."""
        return max(1, min(self.session_tokens, window // 3))


class SearchSettings(_Section):
    """Search: folders, weights and background work."""

    retired: ClassVar[frozenset[str]] = frozenset({"diversity", "link_boost", "neighbour_boost"})
    semantic: bool = _option(
        True, "Search by meaning", "Finds what is meant as well as what is written."
    )
    background: bool = _option(
        True,
        "Prepare after a command",
        "Lets a process go on after a command to prepare the search by meaning.",
    )
    chunk_tokens: int = _option(
        512, "Passage, tokens", "Size of the passages that search finds.", ge=64, le=8192
    )
    chunk_overlap: int = _option(
        64,
        "Overlap, tokens",
        "How much a passage repeats of the one before.",
        ge=0,
        le=1024,
    )
    vector_weight: float = _option(
        0.7, "Weight of meaning", "How much similar meaning counts.", ge=0, le=1
    )
    text_weight: float = _option(0.3, "Weight of words", "How much equal words count.", ge=0, le=1)
    decay_days: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        title="Older counts less",
        description="Half-life of a score in days, by folder: memory = 90. 0 or none: no decay.",
    )
    sync_interval_seconds: float = _option(
        60,
        "Look for edits, seconds",
        "How often to check all files for outside edits.",
        gt=0,
    )
    max_file_megabytes: float = _option(
        5, "Largest text, MB", "Larger files are listed but not searched.", gt=0
    )
    roots: tuple[str, ...] = _option(
        (), "More folders", "Other folders of the workspace to search."
    )

    @field_validator("roots")
    @classmethod
    def _plain(cls, roots: tuple[str, ...]) -> tuple[str, ...]:
        """Normalize ``Notes/`` and ``./Notes`` to ``Notes``, and reject unsafe roots.

        Models and other programs may read these folders, so they can't contain conversations or
        kbtui's own files, nor be paths that lead there indirectly.
        """
        paths = [PurePosixPath(root) for root in roots]
        for root, path in zip(roots, paths, strict=True):
            first = path.parts[0].casefold() if path.parts else "."
            if first == "sessions" or first.startswith(".") or {"/", ".."} & {*path.parts}:
                raise ValueError(
                    f"{root!r} can't be one of them: conversations, hidden folders and what lies"
                    " outside are not notes; name a folder of the workspace, such as Journal"
                )
        return tuple(map(str, paths))


class FlushSettings(_Section):
    """The Flusher, which writes daily notes before a conversation is condensed."""

    retired: ClassVar[frozenset[str]] = frozenset({"threshold_tokens"})
    enabled: bool = _option(
        True,
        "Notes of the day",
        "Writes what matters to the day's note before condensing a conversation.",
    )


class SessionNotesSettings(_Section):
    """The summary that a session leaves behind when it ends."""

    enabled: bool = _option(
        True,
        "A note of each conversation",
        "Summarises a conversation in a note when it ends.",
    )
    max_messages: int = _option(
        20, "Messages summarised", "How many of the last messages that note covers.", gt=0
    )
    min_user_messages: int = _option(
        3, "Fewest messages of yours", "Shorter conversations leave no note.", ge=0
    )


class MemorySettings(_Section):
    """Memory: how conversations become notes."""

    retired: ClassVar[frozenset[str]] = frozenset({"consolidate_messages", "consolidate_tokens"})
    review: Literal["auto", "ask"] = _option(
        "auto",
        "Ask before writing",
        "`auto`: only before changing your lines unasked, SOUL.md or USER.md. `ask`:"
        " before anything is written in a conversation or by another agent.",
    )
    journal: Literal["", "own", "daily"] = _option(
        "",
        "Where your statements go",
        "`own`: kbtui's notes by day. `daily`: a section of your vault's daily"
        " notes. Empty: own, after asking you once.",
    )
    consolidate: bool = _option(
        True, "Condense conversations", "Turns long conversations into memory automatically."
    )
    idle_minutes: float = _option(
        5,
        "Write down after minutes of silence",
        "Writes down what was said once you have been quiet this long. 0: never.",
        ge=0,
    )
    flush: FlushSettings = FlushSettings()
    session_notes: SessionNotesSettings = SessionNotesSettings()


class DreamSettings(_Section):
    """Dream, the background curation of memory."""

    retired: ClassVar[frozenset[str]] = frozenset({"max_iterations"})
    interval_hours: float = _option(
        2, "Hours between runs", "How often Dream curates memory. 0: only when asked.", ge=0
    )
    model_override: str | None = _option(
        None, "Model", "The model Dream uses instead of models.dream.model."
    )
    max_batch_size: int = _option(
        20, "Archive entries per run", "How many entries of the archive one run reads.", gt=0
    )


class BudgetSettings(_Section):
    """Limits of unattended work."""

    daily_usd: float = _option(
        1.0, "Dollars per day", "Most that background work may cost per day.", ge=0
    )
    turn_steps: int = _option(
        30, "Model calls per answer", "Most calls to a model for one answer.", gt=0
    )


class SyncSettings(_Section):
    """What is synced besides notes and memory."""

    documents: bool = _option(False, "Sync documents", "Syncs what is in docs/ as well.")
    conversations: bool = _option(False, "Sync conversations", "Syncs your conversations as well.")

    attachment_megabytes: float = _option(
        10,
        "Largest picture, MB",
        "Larger pictures, papers and recordings aren't recorded or synced. 0: none are.",
        ge=0,
        le=50,
    )


class PrivacySettings(_Section):
    """Files that never leave this machine."""

    private_paths: tuple[str, ...] = _option(
        (), "Private files", "Files that only models on this machine see, in .gitignore syntax."
    )


class McpSettings(_Section):
    """Permissions of other agents over MCP."""

    search_conversations: bool = _option(
        False, "May search conversations", "Lets other agents search your conversations, too."
    )


class WorkspaceSettings(_Section):
    """The workspace that is used without naming one."""

    default: str = _option(
        "",
        "Your workspace",
        "The workspace used outside of any, such as ~/notes. Empty: in your data folder.",
    )

    @field_validator("default")
    @classmethod
    def _whole(cls, default: str) -> str:
        """Reject paths that would mean something else in every folder."""
        if default and not default.startswith(("/", "~")):
            raise ValueError(f"{default!r} has to be a whole path, such as ~/notes")
        return default


class UiSettings(_Section):
    """The app's appearance and keys."""

    theme: str = _option("kbtui-dark", "Theme", "The colours; `/theme` previews them.")
    plain: bool = _option(
        False,
        "Letters instead of signs",
        "Letters (D P J T F S R) for the kinds of notes instead of signs.",
    )
    blink: bool = _option(True, "Blinking cursor", "Without it an idle screen sends nothing.")
    animation: bool = _option(
        True, "Animation", "Moves what shows that something runs; off for screen readers."
    )
    mouse: bool = _option(
        True, "Mouse", "Off, the terminal's own selection works, and no movement is sent."
    )
    escape_ms: int = _option(
        0,
        "Wait after Esc",
        "Milliseconds in which the rest of a key may come after its first byte; 0 takes `ESCDELAY`,"
        " or else 500 over SSH and 100 elsewhere.",
        ge=0,
        le=5_000,
    )
    keys: dict[str, str] = Field(
        default_factory=dict, title="Keys", description="Keys of your own, by action."
    )


class LogSettings(_Section):
    """The log file."""

    level: Literal["debug", "info", "warning", "error"] = _option(
        "info", "Log level", "The lowest level that the log keeps."
    )
    prompts: bool = _option(
        False, "Prompts and answers", "Writes prompts and answers to the log as well."
    )


class Settings(_Section):
    """All settings, by section."""

    models: ModelsSettings = Field(ModelsSettings(), title="Models in detail")
    context: ContextSettings = ContextSettings()
    search: SearchSettings = SearchSettings()
    memory: MemorySettings = MemorySettings()
    dream: DreamSettings = DreamSettings()
    budget: BudgetSettings = BudgetSettings()
    sync: SyncSettings = SyncSettings()
    privacy: PrivacySettings = PrivacySettings()
    mcp: McpSettings = Field(McpSettings(), title="Other agents")
    workspace: WorkspaceSettings = WorkspaceSettings()
    ui: UiSettings = Field(UiSettings(), title="Looks")
    log: LogSettings = LogSettings()

    @model_validator(mode="before")
    @classmethod
    def _override(cls, values: Any) -> Any:
        """Map `dream.model_override` (nanobot's name) to the model of the role ``dream``."""
        if not isinstance(values, dict) or not isinstance(values.get("dream"), dict):
            return values
        chosen = values["dream"].get("model_override")
        models = values.get("models") or {}
        dream = models.get("dream") or {} if isinstance(models, dict) else None
        if not chosen or not isinstance(dream, dict):
            return values
        return {**values, "models": {**models, "dream": {**dream, "model": chosen}}}


def config_folder() -> Path:
    """Return kbtui's config directory of the user; it need not exist."""
    return platformdirs.user_config_path("kbtui", appauthor=False)


def config_file() -> Path:
    """Return the user's settings file; it need not exist."""
    return config_folder() / "config.toml"


@contextmanager
def changed_config() -> Iterator[dict[str, Any]]:
    """Edit the user's settings file in a block, preserving comments and order.

    The file is replaced atomically and readable by its owner only, as it may contain a key.

    Raises:
        ConfigurationError: The file isn't TOML, or the change doesn't fit it; it is left unchanged.
        StorageError: The file can't be read or written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    file = config_file()
    try:
        before = file.read_text("utf-8") if file.exists() else ""
        document = tomlkit.parse(before)
        yield document
    except (TOMLKitError, UnicodeDecodeError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"{file} can't be changed: {error}.", "Correct it first."
        ) from None
    except OSError as error:
        raise StorageError(f"{file} can't be read: {error.strerror}.") from error
    after = tomlkit.dumps(document)
    if after == before:
        return
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(file.resolve() if file.is_symlink() else file, after.encode())
    except OSError as error:
        raise StorageError(f"{file} can't be written: {error.strerror}.") from error


def load_settings(
    workspace: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Load and validate the settings from all sources.

    Args:
        workspace: The workspace whose ``kbtui.toml`` is read, if it has one.
        environment: Used instead of the process's environment.
        overrides: Nested values that override all sources, such as command-line options.

    Raises:
        ConfigurationError: A file isn't TOML, a key is unknown, or a value is invalid.
    """
    environment = os.environ if environment is None else environment
    merged: dict[str, Any] = {}
    _merge(merged, _read_toml(config_file()))
    if workspace is not None:
        _merge(merged, _without_loosening(_workspace_values(workspace / "kbtui.toml"), merged))
    _merge(merged, _from_environment(environment))
    _merge(merged, overrides or {})
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigurationError(*_explain(error, given_values(workspace, environment))) from None


def setting_names() -> list[str]:
    """Return the full names of all settings, in the order of their definition."""
    return [name for name, _ in describe_settings()]


def describe_settings() -> list[tuple[str, str]]:
    """Return the full name and description of all settings; a description may be empty."""
    return [(name, field.description or "") for name, field, _ in described_fields()]


def described_fields() -> list[tuple[str, FieldInfo, list[FieldInfo]]]:
    """Return the full name and pydantic field of all settings, and the fields around each."""
    return list(_walk(Settings, "", []))


def given_values(
    workspace: Path | None, environment: Mapping[str, str]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the values of each source with the source's name, in increasing priority.

    Raises:
        ConfigurationError: A file isn't TOML, or a workspace's file sets something it may not.
    """
    sources = [(str(config_file()), _read_toml(config_file()))]
    if workspace is not None:
        file = workspace / "kbtui.toml"
        sources.append((str(file), _workspace_values(file)))
    return [*sources, ("the environment", _from_environment(environment))]


def _walk(
    model: type[BaseModel], prefix: str, around: list[FieldInfo]
) -> Iterable[tuple[str, FieldInfo, list[FieldInfo]]]:
    for name, field in model.model_fields.items():
        full = f"{prefix}{field.alias or name}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _walk(inner, full + ".", [*around, field])
        else:
            yield full, field, around


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file} is not valid TOML: {error}.", "Correct that line."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}.") from None


def _workspace_values(file: Path) -> dict[str, Any]:
    values = _read_toml(file)
    foreign = sorted(set(values) - WORKSPACE_SECTIONS)
    if foreign:
        raise ConfigurationError(
            f"{file} sets [{foreign[0]}], which a workspace's own file may not.",
            f"Move it to {config_file()}: a shared folder must not choose "
            "endpoints, keys or models.",
        )
    return values


def _without_loosening(values: dict[str, Any], users: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workspace's values without those that would loosen the user's.

    Private paths of both are combined; the user's come last, so that no negated pattern of the
    workspace can override them.
    """

    def of(settings: Mapping[str, Any], section: str, name: str) -> Any:
        found = settings.get(section)
        return found.get(name) if isinstance(found, dict) else None

    if of(users, "memory", "review") == "ask" and of(values, "memory", "review"):
        values["memory"]["review"] = "ask"
    private, more = of(users, "privacy", "private_paths"), of(values, "privacy", "private_paths")
    if isinstance(private, list) and isinstance(more, list):
        values["privacy"]["private_paths"] = [*more, *private]
    allowed, roots = of(users, "search", "roots"), of(values, "search", "roots")
    if isinstance(allowed, list) and isinstance(roots, list):
        values["search"]["roots"] = [
            root
            for root in roots
            if ".." not in (path := PurePosixPath(str(root))).parts
            and any(path.is_relative_to(str(each)) for each in allowed)
        ]
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, place in _QUICK.items():
        if environment.get(name):
            _set_nested(values, place, environment[name])
    for name, value in environment.items():
        if name.startswith("KBTUI_") and name not in _NOT_SETTINGS and "__" in name:
            _set_nested(
                values,
                tuple(name.removeprefix("KBTUI_").lower().split("__")),
                _parse_value(value),
            )
    return values


def _parse_value(value: str) -> Any:
    """Parse lists and tables as TOML; pydantic converts everything else."""
    if value[:1] in "[{":
        try:
            return tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            return value
    return value


def _set_nested(values: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for part in place[:-1]:
        values = values.setdefault(part, {})
    values[place[-1]] = value


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


_EXPECTED = {"bool_parsing": "true or false", "int_parsing": "a whole number"}
"""What a value has to be, by the name of pydantic's error, where its message isn't plain."""


def _problem(error: ErrorDetails) -> str:
    own = error.get("ctx", {}).get("error")
    if error["type"] in _EXPECTED:
        return f"it has to be {_EXPECTED[error['type']]}"
    return str(own) if isinstance(own, ValueError) else error["msg"].lower()


def _holds(values: object, place: Iterable[int | str]) -> bool:
    for part in place:
        if isinstance(values, dict) and part not in values:
            return False
        values = values[part] if isinstance(values, dict) else None
    return True


def hint_at(name: str, names: Iterable[str]) -> str:
    """Return a hint at the setting whose name is the most similar one, if one is."""
    from rapidfuzz import process

    near = process.extractOne(name, names, score_cutoff=_SIMILAR)
    return f"Did you mean `{near[0]}`?" if near else "`kbtui config list` shows all settings."


def _explain(
    error: ValidationError, sources: Sequence[tuple[str, dict[str, Any]]]
) -> tuple[str, str]:
    """Return the first validation error, with the source that it stands in, as message and hint."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    at = next((f" in {of}" for of, values in reversed(sources) if _holds(values, first["loc"])), "")
    if first["type"] == "extra_forbidden":
        names = setting_names() if "." in name else [*setting_names(), *Settings.model_fields]
        return f"There is no setting `{name}`, given{at}.", hint_at(name, names)
    return (
        f"The setting `{name}`{at} is wrong: {_problem(first)}.",
        "`kbtui config list` explains it.",
    )
