"""What kbtui works around in litellm, whose import takes seconds: once for all of these."""

from __future__ import annotations

import importlib.abc
import sys
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.models import litellm_model
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.filterwarnings("ignore")
_OURS = "kbtui/models/litellm_model.py"
_SAID = [{"role": "user", "content": "Hello."}]
_TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
_TOOLS = [{"type": "function", "function": _TOOL}]


@pytest.fixture(scope="module")
def litellm() -> Any:
    return litellm_model._load()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([Reply("Hello there.")]) as opened:
        yield opened


async def _ask(litellm: Any, server: ScriptedServer, **more: Any) -> Any:
    request = {"model": "openai/scripted", "messages": _SAID, "api_base": server.url}
    patience = {"num_retries": 0, "max_retries": 0, "timeout": 60}
    return await litellm.acompletion(**{**request, **patience, "api_key": "none", **more})


def test_every_switch_that_is_set_exists(litellm: Any) -> None:
    class Noted:
        pass

    noted = Noted()
    litellm_model._disable_extras(noted)
    unknown = [name for name in vars(noted) if not hasattr(litellm, name)]
    assert not unknown, f"`_disable_extras` of {_OURS} sets what nobody reads any more: {unknown}"


async def test_a_stream_that_just_stops_looks_like_a_normal_end(litellm: Any) -> None:
    with ScriptedServer([Reply("Hello there.", finish=None, done=False, cut="clean")]) as server:
        stream = await _ask(litellm, server, stream=True)
        last = [chunk.choices[0].finish_reason async for chunk in stream][-1]
    assert last == "stop", f"`_attempt` of {_OURS} may go by the finish reason of the last chunk"
    assert not stream.received_finish_reason


async def test_a_stream_without_a_reason_says_nothing_of_done(litellm: Any) -> None:
    with ScriptedServer([Reply("Hello there.", finish=None)]) as server:
        stream = await _ask(litellm, server, stream=True)
        last = [chunk.choices[0].finish_reason async for chunk in stream][-1]
    assert last == "stop"
    assert not stream.received_finish_reason, "`kbtui.models.stream_ending` can go"


async def test_a_providers_key_is_sent_to_any_endpoint(
    litellm: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    await _ask(litellm, server, api_key=None)
    (request,) = server.requests
    assert request.headers["Authorization"] == "Bearer sk-of-the-user", (
        f'the key "none" in `_request` of {_OURS} can go'
    )


class _Forbid(importlib.abc.MetaPathFinder):
    """Notes and forbids what would be imported of an MCP client."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        if "mcp" in name:
            self.asked.append(name)
            raise ImportError(name)


@pytest.mark.parametrize("skips", [True, False])
async def test_a_request_with_tools_imports_an_mcp_client(
    litellm: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, *, skips: bool
) -> None:
    for name in [name for name in sys.modules if name.startswith("litellm.") and "mcp" in name]:
        monkeypatch.delitem(sys.modules, name)
    forbid = _Forbid()
    monkeypatch.setattr(sys, "meta_path", [forbid, *sys.meta_path])
    if skips:
        await _ask(litellm, server, tools=_TOOLS, _skip_mcp_handler=True)
        assert not forbid.asked, f"`_skip_mcp_handler` in {_OURS} has no effect"
    else:
        with pytest.raises(Exception, match="mcp"):
            await _ask(litellm, server, tools=_TOOLS)
        assert forbid.asked, f"`_skip_mcp_handler` in {_OURS} can go"


async def test_tools_are_written_into_the_prompt_of_the_provider_ollama(
    litellm: Any, server: ScriptedServer
) -> None:
    named = {"model": "ollama/scripted", "api_base": server.origin}
    await _ask(litellm, server, **named, tools=_TOOLS, _skip_mcp_handler=True)
    body = server.requests[-1].body
    assert "look" in body["prompt"], f"`_litellm_name` of {_OURS} may leave `ollama/` as it is"
    assert "tools" not in body


def test_a_model_that_is_not_known_is_an_error_without_a_base_class(litellm: Any) -> None:
    with pytest.raises(Exception, match="isn't mapped") as raised:
        litellm.get_model_info("nobody/knows")
    assert type(raised.value).__mro__[1] is Exception, (
        f"`_metadata` of {_OURS} may catch {type(raised.value).__mro__[1]}"
    )
