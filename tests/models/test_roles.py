"""Which model does what: settings, keys, a look around."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import tomllib
import types
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import ConfigurationError, ModelAccessError, ModelError, UsageError
from kbtui.models.litellm_model import LiteLLMModel
from kbtui.models.port import OfflineModel
from kbtui.models.providers import PROVIDERS, KeyStore, host_of, is_loopback, ollama_base
from kbtui.models.roles import ModelRegistry
from kbtui.settings import Settings, config_folder, load_settings
from tests.patience import PATIENCE
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KEY = "sk-test-4f9aVq81LmZx07PdRt53WcYb"
NOWHERE = {"OLLAMA_HOST": "127.0.0.1:1"}


def registry(models: Mapping[str, Any] | None = None, **environment: str) -> ModelRegistry:
    settings = Settings.model_validate({"models": {"servers": [], **(models or {})}})
    return ModelRegistry(settings, KeyStore(), {**NOWHERE, **environment})


@pytest.fixture
def ollama() -> Iterator[ScriptedServer]:
    with ScriptedServer([Reply("ok")], ollama_models=["qwen3:8b"]) as server:
        yield server


def test_without_settings_keys_or_ollama_it_is_the_offline_model() -> None:
    models = registry()
    assert isinstance(models.chat(), OfflineModel)
    status = models.describe()
    assert status.offline
    assert status.is_local
    assert not status.chosen
    assert "/model" in status.reason


def test_the_quick_environment_chooses_model_endpoint_and_key() -> None:
    quick = {
        "KBTUI_MODEL": "openai/x",
        "KBTUI_API_BASE": "http://127.0.0.1:9/v1",
        "KBTUI_API_KEY": KEY,
    }
    models = ModelRegistry(load_settings(environment=quick), KeyStore(), NOWHERE)
    model = models.chat()
    assert isinstance(model, LiteLLMModel)
    assert (model.name, model.api_base, model.api_key) == ("openai/x", "http://127.0.0.1:9/v1", KEY)
    assert models.describe().chosen
    assert models.describe().is_local
    offline = ModelRegistry(load_settings(environment={"KBTUI_MODEL": "offline"}))
    assert isinstance(offline.chat(), OfflineModel)


def test_roles_fall_back_to_the_chat() -> None:
    chat = {
        "model": "openai/big",
        "api_base": "http://127.0.0.1:9/v1",
        "api_key": KEY,
        "temperature": 0.5,
    }
    models = registry(
        {"chat": chat, "dream": {"model": "openai/small"}, "import": {"max_tokens": 7}}
    )
    for role, name in (
        ("consolidate", "openai/big"),
        ("dream", "openai/small"),
        ("import", "openai/big"),
    ):
        model = models.chat(role)
        assert isinstance(model, LiteLLMModel)
        assert (model.name, model.api_base, model.api_key) == (name, chat["api_base"], KEY)
        assert model.options.temperature == 0.5
    imported = models.chat("import")
    assert isinstance(imported, LiteLLMModel)
    assert imported.options.max_tokens == 7
    with pytest.raises(UsageError, match="cook"):
        models.chat("cook")


def test_a_role_at_another_provider_is_not_given_the_chats_endpoint_or_key() -> None:
    chat = {"model": "openai/big", "api_base": "https://api.example.com/v1", "api_key": KEY}
    models = registry({"chat": chat, "dream": {"model": "ollama_chat/qwen3:8b"}})
    model = models.chat("dream")
    assert isinstance(model, LiteLLMModel)
    assert model.api_base == "http://127.0.0.1:1"
    assert model.api_key == ""
    assert model.is_local


def test_a_role_at_an_address_of_its_own_is_not_given_the_chats_key() -> None:
    chat = {"model": "openai/big", "api_key": KEY}
    there = "http://127.0.0.1:9/v1"
    models = registry({"chat": chat, "dream": {"model": "openai/small", "api_base": there}})
    model = models.chat("dream")
    assert isinstance(model, LiteLLMModel)
    assert (model.api_base, model.api_key) == (there, "")


def test_patience_comes_from_the_settings() -> None:
    models = registry(
        {
            "chat": {"model": "openai/x", "api_base": "http://127.0.0.1:9"},
            "retries": 7,
            "idle_seconds": 3,
        }
    )
    model = models.chat()
    assert isinstance(model, LiteLLMModel)
    assert (model.options.retries, model.options.idle_seconds) == (7, 3)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.prefix)
def test_the_only_key_in_the_environment_is_used_and_said(provider: Any) -> None:
    for variable in provider.variables:
        models = registry(**{variable: KEY})
        model = models.chat()
        assert isinstance(model, LiteLLMModel)
        assert model.name == provider.model
        assert variable in models.describe().reason
        assert KEY not in repr(models.describe())


def test_the_default_models_are_ones_that_litellm_knows_with_tools() -> None:
    from kbtui.models import litellm_model

    engine = litellm_model._load()
    for provider in PROVIDERS:
        if provider.prefix != "openrouter":  # it chooses by itself
            assert engine.supports_function_calling(provider.model), provider.model
        assert provider.prefix in {str(each.value) for each in engine.LlmProviders}


async def test_several_providers_are_named_and_none_is_taken() -> None:
    models = registry(OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY)
    assert isinstance(models.chat(), OfflineModel)
    status = models.describe()
    assert status.offline
    assert "openai/" in status.reason
    assert "anthropic/" in status.reason
    assert len([found for found in await models.discover() if found.usable]) == 2


async def test_a_running_ollama_is_found_and_used(ollama: ScriptedServer) -> None:
    models = registry(OLLAMA_HOST=f"127.0.0.1:{ollama.port}")
    (found,) = await models.discover()
    assert (found.name, found.source, found.usable) == ("ollama_chat/qwen3:8b", "Ollama", True)
    assert found.host == f"127.0.0.1:{ollama.port}"
    assert models.describe().name == "ollama_chat/qwen3:8b"
    assert models.describe().is_local
    model = models.chat()
    assert model.is_local
    fresh = registry(OLLAMA_HOST=f"127.0.0.1:{ollama.port}")
    assert fresh.describe().offline, "without a look around nothing is connected to"
    assert fresh.describe(look=True).name == "ollama_chat/qwen3:8b"


async def test_an_embedding_model_is_not_for_chat() -> None:
    with ScriptedServer(ollama_models=["nomic-embed-text", "qwen3:8b"]) as server:
        models = registry(OLLAMA_HOST=server.origin)
        assert [found.usable for found in await models.discover()] == [False, True]
        assert models.describe().name == "ollama_chat/qwen3:8b"


@pytest.mark.parametrize("mode", ["silent", "garbage", "wrong"])
async def test_an_ollama_that_misbehaves_is_as_good_as_none_and_holds_nobody_up(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    if mode == "silent":
        monkeypatch.setattr("kbtui.models.servers.TIMEOUT_SECONDS", 0.3)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def serve() -> None:
            listener.settimeout(0.05)
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                with connection:
                    if mode == "silent":
                        stop.wait(PATIENCE)
                    else:
                        body = (
                            b"\xff\xfe" if mode == "garbage" else b'{"models": [1, {"x": 2}, null]}'
                        )
                        connection.recv(4096)
                        head = f"HTTP/1.0 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                        connection.sendall(head.encode() + body)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            models = registry(OLLAMA_HOST=f"127.0.0.1:{listener.getsockname()[1]}")
            assert await models.discover() == []
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500"),
        ("http://box:1234/", "http://box:1234"),
        ("https://ollama.example.com", "https://ollama.example.com"),
    ],
)
def test_ollamas_own_variable_says_where_it_is(host: str, base: str) -> None:
    assert ollama_base({"OLLAMA_HOST": host}) == base


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:1", True),
        ("http://[::1]:8080", True),
        ("127.0.0.2:80", True),
        ("http://127.0.0.1.example.com", False),
        ("http://localhost.example.com", False),
        ("https://api.openai.com", False),
        ("http://192.168.1.5:11434", False),
        ("http://user@127.0.0.1@evil.example", False),
        ("", False),
    ],
)
def test_only_this_very_machine_is_local(url: str, local: bool) -> None:
    assert is_loopback(url) is local
    host_of(url)


def test_a_missing_key_is_said_before_anything_is_loaded_or_sent() -> None:
    with pytest.raises(ModelAccessError) as caught:
        registry({"chat": {"model": "openai/gpt-5.4-mini"}}).chat()
    assert "OPENAI_API_KEY" in caught.value.hint


def test_a_choice_holds_at_once_and_is_remembered_only_when_asked() -> None:
    models = registry()
    assert models.use("ollama_chat/qwen3:8b", remember=False).name == "ollama_chat/qwen3:8b"
    assert not (config_folder() / "config.toml").exists()
    models.use("openai/x", "http://127.0.0.1:9/v1", KEY, remember=True)
    written = (config_folder() / "config.toml").read_text()
    assert KEY not in written
    again = ModelRegistry(load_settings(environment={}), KeyStore(), NOWHERE)
    model = again.chat()
    assert isinstance(model, LiteLLMModel)
    assert (model.name, model.api_base, model.api_key) == ("openai/x", "http://127.0.0.1:9/v1", KEY)
    again.use("offline", remember=True)
    assert tomllib.loads((config_folder() / "config.toml").read_text()) == {
        "models": {"chat": {"model": "offline"}}
    }
    with pytest.raises(UsageError):
        models.use("  ", remember=False)


def test_what_else_stands_in_the_settings_stays() -> None:
    file = config_folder() / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '# mine\n[ui]\ntheme = "nord"  # nice\n\n[models.chat]\nmodel = "a"\napi_key = "old"\ntemperature = 0.5\n'
    )
    registry().use("openai/b", "https://other.example/v1", remember=True)
    text = file.read_text()
    assert text.startswith('# mine\n[ui]\ntheme = "nord"  # nice\n')
    assert "temperature = 0.5" in text
    assert "old" not in text, "the key of another endpoint doesn't go along"
    file.write_text("[models\n")
    with pytest.raises(ConfigurationError):
        registry().use("openai/b", remember=True)
    assert file.read_text() == "[models\n"


def test_keys_without_a_keyring_are_in_a_file_that_only_the_owner_can_read() -> None:
    keys = KeyStore()
    assert str(config_folder()) in keys.put("openai", KEY)
    file = config_folder() / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert KeyStore().get("openai") == KEY
    assert keys.get("other") == ""
    keys.forget("openai")
    assert KeyStore().get("openai") == ""
    file.write_bytes(b"\xff")
    assert KeyStore().get("openai") == ""


class Ring:
    """A keyring backend, good or bad."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.kept: dict[str, str] = {}
        self.release = threading.Event()

    def get_password(self, service: str, name: str) -> str | None:
        self._misbehave()
        return self.kept.get(name)

    def set_password(self, service: str, name: str, key: str) -> None:
        self._misbehave()
        self.kept[name] = key

    def _misbehave(self) -> None:
        if self.mode == "hangs":
            self.release.wait(PATIENCE)
        if self.mode == "fails":
            raise RuntimeError("org.freedesktop.DBus.Error")


def use_ring(monkeypatch: pytest.MonkeyPatch, ring: Ring) -> None:
    import keyring.errors

    module = types.SimpleNamespace(
        get_password=ring.get_password, set_password=ring.set_password, errors=keyring.errors
    )
    monkeypatch.setitem(sys.modules, "keyring", module)


def test_a_working_keyring_is_preferred_and_the_file_is_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    KeyStore().put("openai", "old")
    ring = Ring("works")
    use_ring(monkeypatch, ring)
    keys = KeyStore()
    assert keys.put("openai", KEY) == "the keyring"
    assert ring.kept == {"openai": KEY}
    assert json.loads((config_folder() / "keys.json").read_text()) == {}
    assert keys.get("openai") == KEY


@pytest.mark.parametrize("mode", ["hangs", "fails"])
def test_a_keyring_that_hangs_or_fails_costs_a_moment_once(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    ring = Ring(mode)
    use_ring(monkeypatch, ring)
    keys = KeyStore(patience=0.1)
    keys.put("openai", KEY)
    assert keys.get("openai") == KEY
    ring.release.set()


def test_no_keyring_is_asked_for_the_offline_or_a_local_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(KeyStore, "get", lambda *_: pytest.fail("asked"))
    registry({"chat": {"model": "offline"}}).chat()
    registry({"chat": {"model": "ollama_chat/qwen3:8b"}}).chat()
    registry({"chat": {"model": "openai/x"}}, OPENAI_API_KEY=KEY).chat()


async def test_a_key_is_tried_out_before_it_is_kept() -> None:
    with ScriptedServer([Reply("ok"), Reply("no", status=401)]) as server:
        models = registry()
        await models.try_out("openai/x", server.url, KEY)
        with pytest.raises(ModelError, match="refused the key"):
            await models.try_out("openai/x", server.url, KEY)
        assert server.prompts[0].headers["Authorization"] == f"Bearer {KEY}"
    assert models.describe().offline, "trying is not using"


def test_importing_the_registry_loads_no_engine() -> None:
    import subprocess

    script = (
        "import sys, kbtui.models.roles, kbtui.sessions.store;"
        "print([m for m in ('litellm', 'keyring', 'httpx', 'openai') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ, PYTHONPATH=str(_root())),
    )
    assert done.stdout.strip() == "[]"


def _root() -> Path:
    from pathlib import Path

    return Path(__file__).resolve().parents[2]


def test_warming_up_loads_nothing_while_the_chat_is_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kbtui.models import litellm_model

    warmed: list[int] = []
    monkeypatch.setattr(litellm_model, "warm_up", lambda: warmed.append(1))
    registry().warm_up()
    assert warmed == []
    registry({"chat": {"model": "openai/x"}}, OPENAI_API_KEY=KEY).warm_up()
    assert warmed == [1]
