"""Every setting, where it comes from, and what it means.

Later sources win: defaults, ``config.toml`` in the user's config directory, ``kbtui.toml`` in the
workspace, ``KBTUI_*`` in the environment. A workspace can be a shared folder, so its file may not
set endpoints, keys or models (see `WORKSPACE_SECTIONS`), nor loosen what the user set of review,
privacy and the folders that are searched.

The sources are read here and not by pydantic-settings, which takes 0.2 s more to import, reads no
TOML lists out of the environment, and passes over a variable of a section that doesn't exist.

Importing this module imports pydantic, which takes a while: the app does so after first paint.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
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

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

OFFLINE = "offline"
BUNDLED_EMBEDDING_MODEL = "all-MiniLM-L6-v2"
LOCAL_SERVERS = tuple(f"http://127.0.0.1:{port}/v1" for port in (8080, 1234, 8000))
WORKSPACE_SECTIONS = frozenset({"context", "search", "memory", "privacy", "ui"})
_QUICK = {
    "KBTUI_MODEL": ("models", "chat", "model"),
    "KBTUI_API_BASE": ("models", "chat", "api_base"),
    "KBTUI_API_KEY": ("models", "chat", "api_key"),
}
_NOT_SETTINGS = frozenset({"KBTUI_WORKSPACE", "KBTUI_DATA", "KBTUI_LOG", *_QUICK})


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    retired: ClassVar[frozenset[str]] = frozenset()
    """Options of older versions that changed little; files may still hold them."""

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, values: Any) -> Any:
        """Pass over what is retired."""
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if name not in cls.retired}


class RoleSettings(_Section):
    """The model of one role; what is None is taken from the role ``chat``."""

    model: str | None = Field(
        None, title="model", description="provider/model or `offline`; empty: what is found"
    )
    api_base: str | None = Field(
        None, title="server's address", description="OpenAI-compatible endpoint"
    )
    api_key: SecretStr | None = Field(None, title="key", description="better kept in the keyring")
    context_window: int | None = Field(
        None, gt=0, title="context window", description="tokens, if litellm doesn't know"
    )
    max_tokens: int | None = Field(
        None, gt=0, title="longest answer", description="limit of one answer, in tokens"
    )
    temperature: float | None = Field(
        None,
        ge=0,
        le=2,
        title="temperature",
        description="empty: the model's own; 0.1 where memory is made",
    )
    vision: bool | None = Field(
        None, title="takes pictures", description="takes pictures; empty: as litellm knows"
    )


class ModelsSettings(_Section):
    """Which model does what."""

    chat: RoleSettings = RoleSettings()
    consolidate: RoleSettings = RoleSettings()
    dream: RoleSettings = RoleSettings()
    extract: RoleSettings = Field(RoleSettings(), alias="import")
    embed: RoleSettings = Field(
        RoleSettings(),
        description="embedding model: a sentence-transformers name or folder, or `litellm:NAME`",
    )
    servers: tuple[str, ...] = Field(
        LOCAL_SERVERS,
        title="Servers to look for",
        description="where a server is looked for beside Ollama (llama.cpp, LM Studio, vLLM)",
    )
    first_token_seconds: float | None = Field(
        None,
        gt=0,
        title="Wait for the first word, seconds",
        description="wait for the first piece; empty: 60, or 900 for one on this machine",
    )
    idle_seconds: float = Field(
        120, gt=0, title="Wait between words, seconds", description="wait between two pieces"
    )
    retries: int = Field(
        2, ge=0, le=10, title="Tries again", description="tries again after 429, 5xx, no connection"
    )


class ContextSettings(_Section):
    """Sizes of a prompt's parts, in tokens unless said otherwise."""

    memory_window: int | None = Field(
        None,
        gt=0,
        title="Messages of the conversation",
        description="messages of the session in the prompt; empty: as many as fit",
    )
    session_tokens: int = Field(
        50_000,
        gt=0,
        title="Conversation, tokens",
        description="tokens of the session in the prompt",
    )
    index_tokens: int = Field(
        1_200, ge=0, title="List of notes, tokens", description="the part of INDEX.md"
    )
    memory_tokens: int = Field(4_000, ge=0, title="Memory, tokens", description="MEMORY.md")
    bootstrap_tokens: int = Field(
        4_000, ge=0, title="Who kbtui is, tokens", description="SOUL, USER, AGENTS, TOOLS, IDENTITY"
    )
    skills_tokens: int = Field(
        2_000, ge=0, title="How-tos, tokens", description="skills: always-on ones in full"
    )
    notes_tokens: int = Field(2_000, ge=0, title="Daily notes, tokens", description="daily notes")
    notes_days: int = Field(
        7, ge=0, title="Daily notes, days", description="how many days of daily notes"
    )

    def session_share(self, window: int) -> int:
        """The tokens that a session may always have in a context window of so many."""
        return max(1, min(self.session_tokens, window // 3))


class SearchSettings(_Section):
    """Chunks, weights and where to look."""

    retired: ClassVar[frozenset[str]] = frozenset({"diversity", "link_boost", "neighbour_boost"})
    semantic: bool = Field(
        default=True, title="Search by meaning", description="search by meaning as well as by words"
    )
    background: bool = Field(
        default=True,
        title="Prepare it after a command",
        description="after a command, a process goes on to prepare the search by meaning",
    )
    chunk_tokens: int = Field(
        512, ge=64, le=8192, title="Passage, tokens", description="the unit that is found"
    )
    chunk_overlap: int = Field(
        64,
        ge=0,
        le=1024,
        title="Shared by neighbours, tokens",
        description="tokens that neighbours share",
    )
    vector_weight: float = Field(
        0.7, ge=0, le=1, title="Weight of meaning", description="weight of meaning"
    )
    text_weight: float = Field(
        0.3, ge=0, le=1, title="Weight of words", description="weight of words"
    )
    decay_days: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        title="Older counts less",
        description="half-life of a hit's score, in days by folder: memory = 90; 0 or none: never",
    )
    sync_interval_seconds: float = Field(
        60, gt=0, title="Look for edits, seconds", description="look at all files so often"
    )
    max_file_megabytes: float = Field(
        5, gt=0, title="Largest text, MB", description="larger text files are listed, not indexed"
    )
    roots: tuple[str, ...] = Field(
        (), title="Further folders", description="further folders of the workspace to index"
    )

    @field_validator("roots")
    @classmethod
    def _plain(cls, roots: tuple[str, ...]) -> tuple[str, ...]:
        """Write ``Notes/`` and ``./Notes`` as paths are written everywhere: ``Notes``.

        What lies in these folders is read to models and programs elsewhere, so conversations and
        the files of kbtui itself can't be among them, nor what leads there in a roundabout way.
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
    """Notes of the day, taken before a conversation is condensed."""

    retired: ClassVar[frozenset[str]] = frozenset({"threshold_tokens"})
    enabled: bool = Field(
        default=True, title="Notes of the day", description="write what matters into memory/DATE.md"
    )


class SessionNotesSettings(_Section):
    """The file that a session leaves behind when it ends."""

    enabled: bool = Field(
        default=True,
        title="A note of each conversation",
        description="write memory/DATE-slug.md at a session's end",
    )
    max_messages: int = Field(
        20,
        gt=0,
        title="Messages that it is made of",
        description="messages of the session's end to summarise",
    )
    min_user_messages: int = Field(
        3, ge=0, title="Fewest messages of yours", description="shorter sessions leave no file"
    )


class MemorySettings(_Section):
    """How conversation becomes memory."""

    retired: ClassVar[frozenset[str]] = frozenset({"consolidate_messages", "consolidate_tokens"})
    review: Literal["auto", "ask"] = Field(
        "auto",
        title="Asks before it writes",
        description="`auto`: only what would change lines of yours unasked, SOUL.md or USER.md is"
        " proposed; `ask`: all that is written in conversations and over MCP",
    )
    journal: Literal["", "own", "daily"] = Field(
        "",
        title="Where statements are kept",
        description="where what you state is kept: `own`: notes by day of kbtui's; `daily`: a"
        " section of the daily notes that a vault has; empty: own, and asked once",
    )
    consolidate: bool = Field(
        default=True,
        title="Condense conversations",
        description="condense conversations by themselves",
    )
    idle_minutes: float = Field(
        5,
        ge=0,
        title="Write down after quiet minutes",
        description="write down what was said after so long a quiet time; 0: never",
    )
    flush: FlushSettings = FlushSettings()
    session_notes: SessionNotesSettings = SessionNotesSettings()


class DreamSettings(_Section):
    """The slow curation of what is known, while nobody waits."""

    retired: ClassVar[frozenset[str]] = frozenset({"max_iterations"})
    interval_hours: float = Field(
        2, ge=0, title="Every so many hours", description="how often Dream runs; 0: only when asked"
    )
    model_override: str | None = Field(
        None, title="Model", description="instead of models.dream.model"
    )
    max_batch_size: int = Field(
        20, gt=0, title="Archive entries a run", description="archive entries read in one run"
    )


class BudgetSettings(_Section):
    """Limits of what runs without being watched."""

    daily_usd: float = Field(
        1.0, ge=0, title="Dollars a day", description="background work with paid models, a day"
    )
    turn_steps: int = Field(
        30, gt=0, title="Calls a message", description="model calls in one turn"
    )


class SyncSettings(_Section):
    """What travels to other machines, beside notes and memory."""

    documents: bool = Field(
        default=False, title="Documents travel", description="what lies under docs/ travels as well"
    )
    conversations: bool = Field(
        default=False,
        title="Conversations travel",
        description="conversations travel as well",
    )

    attachment_megabytes: float = Field(
        10,
        ge=0,
        le=50,
        title="Largest picture, MB",
        description="largest picture, paper, recording to take up; 0: none",
    )


class PrivacySettings(_Section):
    """Paths that never leave this machine."""

    private_paths: tuple[str, ...] = Field(
        (), title="Private files", description=".gitignore syntax, local models only"
    )


class McpSettings(_Section):
    """Rights of other agents over MCP."""

    search_conversations: bool = Field(
        default=False,
        title="May search conversations",
        description="let them search earlier conversations as well",
    )


class UiSettings(_Section):
    """The app's looks and keys."""

    theme: str = Field("kbtui-dark", title="Theme", description="`/theme` shows all")
    plain: bool = Field(
        default=False,
        title="Letters for signs",
        description="letters (D P J T F S R) for the kinds of notes, in place of signs",
    )
    keys: dict[str, str] = Field(default_factory=dict, title="Keys", description="action id = keys")


class LogSettings(_Section):
    """The log file."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", title="Least that is kept", description="the least kept"
    )
    prompts: bool = Field(
        default=False,
        title="Prompts and answers",
        description="write prompts and answers into the log",
    )


class Settings(_Section):
    """All settings, by section."""

    models: ModelsSettings = ModelsSettings()
    context: ContextSettings = ContextSettings()
    search: SearchSettings = SearchSettings()
    memory: MemorySettings = MemorySettings()
    dream: DreamSettings = DreamSettings()
    budget: BudgetSettings = BudgetSettings()
    sync: SyncSettings = SyncSettings()
    privacy: PrivacySettings = PrivacySettings()
    mcp: McpSettings = McpSettings()
    ui: UiSettings = UiSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="before")
    @classmethod
    def _override(cls, values: Any) -> Any:
        """Let `dream.model_override` (nanobot's name for it) be the model of the role ``dream``."""
        if not isinstance(values, dict) or not isinstance(values.get("dream"), dict):
            return values
        chosen = values["dream"].get("model_override")
        models = values.get("models") or {}
        dream = models.get("dream") or {} if isinstance(models, dict) else None
        if not chosen or not isinstance(dream, dict):
            return values
        return {**values, "models": {**models, "dream": {**dream, "model": chosen}}}


def config_folder() -> Path:
    """The user's config directory for kbtui; it need not exist."""
    return platformdirs.user_config_path("kbtui", appauthor=False)


def config_file() -> Path:
    """The user's settings file; it need not exist."""
    return config_folder() / "config.toml"


@contextmanager
def changed_config() -> Iterator[dict[str, Any]]:
    """Change the user's file in the block; its comments and order stay.

    It is replaced whole, readable by its owner only, as it may hold a key.

    Raises:
        ConfigurationError: it isn't TOML, or the change doesn't fit it; it is left as it is.
        StorageError: it can't be read or written.
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
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".config-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(file.resolve() if file.is_symlink() else file)
    except OSError as error:
        raise StorageError(f"{file} can't be written: {error.strerror}.") from error


def load_settings(
    workspace: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Read all sources, the later over the earlier.

    Args:
        workspace: Its ``kbtui.toml`` is read when there is one.
        environment: Instead of the process's own.
        overrides: Nested values over all sources, as from command-line options.

    Raises:
        ConfigurationError: a file that isn't TOML, an unknown key, or a value out of range.
    """
    merged: dict[str, Any] = {}
    _merge(merged, _read_toml(config_file()))
    if workspace is not None:
        _merge(merged, _tightened(_workspace_values(workspace / "kbtui.toml"), merged))
    _merge(merged, _from_environment(os.environ if environment is None else environment))
    _merge(merged, overrides or {})
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigurationError(*_explain(error)) from None


def setting_names() -> list[str]:
    """Every setting as ``section.name``, in the order of the code."""
    return [name for name, _ in describe_settings()]


def describe_settings() -> list[tuple[str, str]]:
    """Every setting as ``section.name`` with its description, which may be empty."""
    return [(name, field.description or "") for name, field in described_fields()]


def described_fields() -> list[tuple[str, FieldInfo]]:
    """Every setting as ``section.name`` with what pydantic knows of it."""
    return list(_walk(Settings, ""))


def given_values(
    workspace: Path | None, environment: Mapping[str, str]
) -> list[tuple[str, dict[str, Any]]]:
    """What each source says, by its name; the later win.

    Raises:
        ConfigurationError: A file isn't TOML, or a workspace's sets what it may not.
    """
    sources = [(str(config_file()), _read_toml(config_file()))]
    if workspace is not None:
        file = workspace / "kbtui.toml"
        sources.append((str(file), _workspace_values(file)))
    return [*sources, ("the environment (KBTUI_ …)", _from_environment(environment))]


def _walk(model: type[BaseModel], prefix: str) -> Iterable[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        full = f"{prefix}{field.alias or name}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _walk(inner, full + ".")
        else:
            yield full, field


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


def _tightened(values: dict[str, Any], users: Mapping[str, Any]) -> dict[str, Any]:
    """A workspace's values without what would loosen what the user set.

    Private paths of both count; the user's come last, so that no pattern takes one of them back.
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
            _put(values, place, environment[name])
    for name, value in environment.items():
        if name.startswith("KBTUI_") and name not in _NOT_SETTINGS and "__" in name:
            _put(values, tuple(name.removeprefix("KBTUI_").lower().split("__")), _typed(value))
    return values


def _typed(value: str) -> Any:
    """Read lists and tables as TOML; leave plain words to pydantic, which knows the type."""
    if value[:1] in "[{":
        try:
            return tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            return value
    return value


def _put(values: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for part in place[:-1]:
        values = values.setdefault(part, {})
    values[place[-1]] = value


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _problem(error: ErrorDetails) -> str:
    own = error.get("ctx", {}).get("error")
    return str(own) if isinstance(own, ValueError) else error["msg"].lower()


def _explain(error: ValidationError) -> tuple[str, str]:
    """Say in words what the first problem is, and what was probably meant."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        from rapidfuzz import process

        near = process.extractOne(name, [*setting_names(), *Settings.model_fields], score_cutoff=60)
        hint = f"Did you mean `{near[0]}`?" if near else "`kbtui config list` shows all settings."
        return f"There is no setting `{name}`.", hint
    return (
        f"The setting `{name}` is wrong: {_problem(first)}.",
        "`kbtui config list` explains it.",
    )
