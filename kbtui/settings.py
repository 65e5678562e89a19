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
        None,
        title="model",
        description="Such as ollama/qwen3:8b; `offline` for none. Empty: what is found.",
    )
    api_base: str | None = Field(
        None,
        title="server's address",
        description="Where a server that speaks OpenAI's protocol answers.",
    )
    api_key: SecretStr | None = Field(
        None, title="key", description="What the provider gave you. It is safer in the keyring."
    )
    context_window: int | None = Field(
        None,
        gt=0,
        title="context window",
        description="How many tokens it can read at once, where that isn't known.",
    )
    max_tokens: int | None = Field(
        None, gt=0, title="longest answer", description="The most tokens of one answer."
    )
    temperature: float | None = Field(
        None,
        ge=0,
        le=2,
        title="temperature",
        description="How freely it words things. Empty: the model's own; 0.1 where memory is made.",
    )
    vision: bool | None = Field(
        None,
        title="takes pictures",
        description="Whether it understands pictures. Empty: as far as that is known.",
    )


class ModelsSettings(_Section):
    """Which model does what."""

    chat: RoleSettings = RoleSettings()
    consolidate: RoleSettings = RoleSettings()
    dream: RoleSettings = RoleSettings()
    extract: RoleSettings = Field(RoleSettings(), alias="import")
    embed: RoleSettings = Field(
        RoleSettings(),
        description="A name or folder of sentence-transformers, or `litellm:NAME`.",
    )
    servers: tuple[str, ...] = Field(
        LOCAL_SERVERS,
        title="Servers to look for",
        description="Where llama.cpp, LM Studio or vLLM may answer, beside Ollama.",
    )
    first_token_seconds: float | None = Field(
        None,
        gt=0,
        title="Wait for the first word, seconds",
        description="How long an answer may take to begin. Empty: 60, or 900 on this machine.",
    )
    idle_seconds: float = Field(
        120,
        gt=0,
        title="Wait between words, seconds",
        description="How long it may pause while it answers.",
    )
    retries: int = Field(
        2,
        ge=0,
        le=10,
        title="Tries again",
        description="How often it is asked again when a server is busy or fails.",
    )


class ContextSettings(_Section):
    """Sizes of a prompt's parts, in tokens unless said otherwise."""

    memory_window: int | None = Field(
        None,
        gt=0,
        title="Messages of the conversation",
        description="How many a prompt holds at most. Empty: as many as fit.",
    )
    session_tokens: int = Field(
        50_000,
        gt=0,
        title="Conversation, tokens",
        description="The most that a prompt holds of the conversation.",
    )
    index_tokens: int = Field(
        1_200,
        ge=0,
        title="List of notes, tokens",
        description="The most that a prompt holds of the list of your notes.",
    )
    memory_tokens: int = Field(
        4_000,
        ge=0,
        title="Memory, tokens",
        description="The most that a prompt holds of what is remembered.",
    )
    bootstrap_tokens: int = Field(
        4_000,
        ge=0,
        title="Who kbtui is, tokens",
        description="The most that a prompt holds of SOUL, USER, AGENTS, TOOLS and IDENTITY.",
    )
    skills_tokens: int = Field(
        2_000,
        ge=0,
        title="How-tos, tokens",
        description="The most that a prompt holds of them; those that always count are whole.",
    )
    notes_tokens: int = Field(
        2_000,
        ge=0,
        title="Daily notes, tokens",
        description="The most that a prompt holds of the last days.",
    )
    notes_days: int = Field(
        7, ge=0, title="Daily notes, days", description="How many of the last days a prompt holds."
    )

    def session_share(self, window: int) -> int:
        """The tokens that a session may always have in a context window of so many."""
        return max(1, min(self.session_tokens, window // 3))


class SearchSettings(_Section):
    """Chunks, weights and where to look."""

    retired: ClassVar[frozenset[str]] = frozenset({"diversity", "link_boost", "neighbour_boost"})
    semantic: bool = Field(
        default=True,
        title="Search by meaning",
        description="Finds what is meant as well as what is written.",
    )
    background: bool = Field(
        default=True,
        title="Prepare it after a command",
        description="After a command, a process goes on preparing the search by meaning.",
    )
    chunk_tokens: int = Field(
        512,
        ge=64,
        le=8192,
        title="Passage, tokens",
        description="How long the pieces are that are found.",
    )
    chunk_overlap: int = Field(
        64,
        ge=0,
        le=1024,
        title="Shared by neighbours, tokens",
        description="What a passage repeats of the one before it.",
    )
    vector_weight: float = Field(
        0.7,
        ge=0,
        le=1,
        title="Weight of meaning",
        description="How much it counts that a passage means the same.",
    )
    text_weight: float = Field(
        0.3,
        ge=0,
        le=1,
        title="Weight of words",
        description="How much it counts that a passage has the same words.",
    )
    decay_days: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        title="Older counts less",
        description="Days until a hit counts half, by folder: memory = 90. 0 or none: never.",
    )
    sync_interval_seconds: float = Field(
        60,
        gt=0,
        title="Look for edits, seconds",
        description="How often all files are looked at for edits made elsewhere.",
    )
    max_file_megabytes: float = Field(
        5, gt=0, title="Largest text, MB", description="Larger files are listed, but not searched."
    )
    roots: tuple[str, ...] = Field(
        (),
        title="Further folders",
        description="Folders of the workspace that are searched as well.",
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
        default=True,
        title="Notes of the day",
        description="Writes what matters into the day's note before a conversation is condensed.",
    )


class SessionNotesSettings(_Section):
    """The file that a session leaves behind when it ends."""

    enabled: bool = Field(
        default=True,
        title="A note of each conversation",
        description="Leaves a note of what was said when a conversation ends.",
    )
    max_messages: int = Field(
        20,
        gt=0,
        title="Messages that it is made of",
        description="How many of the last ones that note sums up.",
    )
    min_user_messages: int = Field(
        3,
        ge=0,
        title="Fewest messages of yours",
        description="Shorter conversations leave no note.",
    )


class MemorySettings(_Section):
    """How conversation becomes memory."""

    retired: ClassVar[frozenset[str]] = frozenset({"consolidate_messages", "consolidate_tokens"})
    review: Literal["auto", "ask"] = Field(
        "auto",
        title="Asks before it writes",
        description="`auto`: only before it changes lines of yours unasked, or who it is. `ask`:"
        " before anything is written, by you and it or by other agents.",
    )
    journal: Literal["", "own", "daily"] = Field(
        "",
        title="Where statements are kept",
        description="`own`: in notes by day of kbtui's. `daily`: in a section of your vault's daily"
        " notes. Empty: own, and you are asked once.",
    )
    consolidate: bool = Field(
        default=True,
        title="Condense conversations",
        description="Long conversations become memory by themselves.",
    )
    idle_minutes: float = Field(
        5,
        ge=0,
        title="Write down after quiet minutes",
        description="Writes down what was said when nothing was said for so long. 0: never.",
    )
    flush: FlushSettings = FlushSettings()
    session_notes: SessionNotesSettings = SessionNotesSettings()


class DreamSettings(_Section):
    """The slow curation of what is known, while nobody waits."""

    retired: ClassVar[frozenset[str]] = frozenset({"max_iterations"})
    interval_hours: float = Field(
        2,
        ge=0,
        title="Every so many hours",
        description="How often Dream tidies what is known. 0: only when asked.",
    )
    model_override: str | None = Field(
        None,
        title="Model",
        description="The model that Dream uses; the same as models.dream.model.",
    )
    max_batch_size: int = Field(
        20,
        gt=0,
        title="Archive entries a run",
        description="How many entries of the archive one run reads.",
    )


class BudgetSettings(_Section):
    """Limits of what runs without being watched."""

    daily_usd: float = Field(
        1.0,
        ge=0,
        title="Dollars a day",
        description="The most that work in the background may cost a day.",
    )
    turn_steps: int = Field(
        30,
        gt=0,
        title="Questions to a model",
        description="How often a model may be asked for one answer.",
    )


class SyncSettings(_Section):
    """What travels to other machines, beside notes and memory."""

    documents: bool = Field(
        default=False, title="Documents travel", description="Sync takes along what lies in docs/."
    )
    conversations: bool = Field(
        default=False,
        title="Conversations travel",
        description="Sync takes along your conversations.",
    )

    attachment_megabytes: float = Field(
        10,
        ge=0,
        le=50,
        title="Largest picture, MB",
        description="Larger pictures, papers and recordings stay here. 0: all do.",
    )


class PrivacySettings(_Section):
    """Paths that never leave this machine."""

    private_paths: tuple[str, ...] = Field(
        (),
        title="Private files",
        description="Only models on this machine see them. Patterns as in .gitignore.",
    )


class McpSettings(_Section):
    """Rights of other agents over MCP."""

    search_conversations: bool = Field(
        default=False,
        title="May search conversations",
        description="Other agents may search what you said, too.",
    )


class UiSettings(_Section):
    """The app's looks and keys."""

    theme: str = Field(
        "kbtui-dark", title="Theme", description="The colours; `/theme` shows each as you choose."
    )
    plain: bool = Field(
        default=False,
        title="Letters for signs",
        description="Letters (D P J T F S R) for the kinds of notes, in place of signs.",
    )
    keys: dict[str, str] = Field(
        default_factory=dict, title="Keys", description="Keys of your own, by action."
    )


class LogSettings(_Section):
    """The log file."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info",
        title="Least that is kept",
        description="The least grave messages that the log keeps.",
    )
    prompts: bool = Field(
        default=False,
        title="Prompts and answers",
        description="Writes prompts and answers into the log as well.",
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
