"""What goes wrong with a server is said in a sentence that leads the right way."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import (
    ModelAccessError,
    ModelAnswerError,
    ModelError,
    ModelOverloadedError,
    ModelUnreachableError,
)
from kbtui.models import litellm_model
from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
from kbtui.models.port import Message, Reply, ReplyNotice, ReplyText
from tests.scripted_server import Reply as Scripted, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-test-4f9aVq81LmZx07PdRt53WcYb"
ASK = [Message("user", "Hi")]
ONCE = ModelOptions(retries=0)
PAGE = b"<!doctype html><html><body>LM Studio is running</body></html>"
NO_SUCH_PAGE = b'{"error": "Unexpected endpoint or method. (POST /chat/completions)"}'


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    litellm_model.warm_up()


async def streamed(model: LiteLLMModel) -> list[Any]:
    return [event async for event in model.stream(ASK)]


async def completed(model: LiteLLMModel) -> Any:
    return await model.complete(ASK)


async def failure(
    script: Scripted,
    ask: Callable[[LiteLLMModel], Any] = streamed,
    *,
    name: str = "openai/scripted",
    path: str = "/v1",
    key: str = KEY,
) -> ModelError:
    with ScriptedServer([script]) as server:
        with pytest.raises(ModelError) as caught:
            await ask(LiteLLMModel(name, server.origin + path, key, ONCE))
        shown = str(caught.value)
        assert f"127.0.0.1:{server.port}" in shown
    assert caught.value.hint
    assert "litellm" not in shown
    assert KEY not in shown
    return caught.value


@pytest.mark.parametrize("ask", [streamed, completed])
@pytest.mark.parametrize("body", [PAGE, NO_SUCH_PAGE, b""])
async def test_an_address_without_its_end_is_told_with_the_end(
    ask: Callable[[LiteLLMModel], Any], body: bytes
) -> None:
    error = await failure(Scripted(body=body), ask, path="")
    assert isinstance(error, ModelAnswerError | ModelUnreachableError)
    assert "isn't an answer" in error.message
    assert "most likely /v1: `kbtui config set models.chat.api_base http://127" in error.hint
    assert error.hint.endswith("/v1`.")
    error = await failure(Scripted(body=body), ask)
    assert "most likely" not in error.hint, "it has one"


@pytest.mark.parametrize("ask", [streamed, completed])
async def test_a_page_that_is_not_there_is_no_model_that_is_not_there(
    ask: Callable[[LiteLLMModel], Any],
) -> None:
    page = Scripted("404 page not found", status=404)
    error = await failure(page, ask, path="")
    assert isinstance(error, ModelAccessError)
    assert "has nothing at the address http://127.0.0.1:" in error.message
    assert error.hint.endswith("/v1`.")
    error = await failure(page, ask, name="ollama_chat/scripted", path="/v1")
    assert "has nothing at the address" in error.message
    assert "has no /v1" in error.hint
    error = await failure(Scripted("model 'scripted' not found", status=404), ask, path="")
    assert "doesn't know the model openai/scripted" in error.message
    error = await failure(page, ask, name="ollama_chat/scripted", path="")
    assert "ollama pull scripted" in error.hint


async def test_a_key_that_nobody_gave_is_asked_for_and_none_is_called_wrong() -> None:
    script = Scripted("Unauthorized", status=401)
    error = await failure(script, key="")
    assert "wants a key" in error.message
    assert "KBTUI_API_KEY" in error.hint
    assert "refused the key" in (await failure(script)).message


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("1", "wait 1 second."),
        ("20", "wait 20 seconds."),
        ("120", "wait 2 minutes."),
        ("7200", "wait 2 hours."),
        ("0", "Wait a moment."),
        ("soon", "Wait a moment."),
        ("nan", "Wait a moment."),
    ],
)
async def test_how_long_a_server_asks_to_wait_is_said_in_words(asked: str, words: str) -> None:
    await asked_to_wait(asked, words)


@pytest.mark.parametrize(("hours", "words"), [(2, "wait 2 hours."), (-2, "Wait a moment.")])
async def test_a_server_may_name_the_moment_to_come_back(hours: int, words: str) -> None:
    # The date is made here: as a parameter it would be in the test's name, which the workers of
    # xdist compare, each a second later than the other.
    moment = datetime.now(UTC) + timedelta(hours=hours)
    await asked_to_wait(format_datetime(moment, usegmt=True), words)


async def asked_to_wait(asked: str, words: str) -> None:
    error = await failure(Scripted("slow down", status=429, headers={"Retry-After": asked}))
    assert isinstance(error, ModelOverloadedError)
    assert words in error.hint
    error = await failure(Scripted("busy", status=503, headers={"Retry-After": asked}))
    assert (words in error.hint) is words.startswith("wait")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "Try again in a while"),
        (502, "the server itself runs"),
        (503, "still loads its model"),
    ],
)
async def test_a_server_that_fails_is_told_apart_by_its_status(status: int, words: str) -> None:
    error = await failure(Scripted("Loading model", status=status))
    assert f"failed with {status}: Loading model" in error.message
    assert words in error.hint


async def test_the_words_of_a_server_are_taken_out_of_their_wrapping() -> None:
    script = Scripted("it is out of memory", status=500)
    error = await failure(script, name="ollama_chat/scripted", path="")
    assert error.message.endswith("failed with 500: it is out of memory")
    error = await failure(Scripted(PAGE.decode(), status=500))
    assert error.message.endswith("failed with 500: a web page")


async def test_an_error_in_the_middle_of_an_answer_is_the_servers_own() -> None:
    body = b'event: error\ndata: {"error": {"message": "The model has crashed."}}\n\n'
    error = await failure(Scripted(body=body))
    assert isinstance(error, ModelAnswerError)
    assert error.message.endswith("ended its answer with an error: The model has crashed.")


async def test_silence_is_told_once_while_it_is_waited_for() -> None:
    options = ModelOptions(retries=0, quiet_seconds=0.1, first_token_seconds=90)
    with ScriptedServer([Scripted("Hello", stall_at=0)]) as server:
        stream = LiteLLMModel("openai/scripted", server.url, KEY, options).stream(ASK)
        told = await anext(stream)
        assert isinstance(told, ReplyNotice)
        assert f"Nothing came from 127.0.0.1:{server.port} for 0.1 seconds." in told.text
        assert "up to 2 minutes" in told.text
        await stream.aclose()  # type: ignore[attr-defined]


async def test_who_was_silent_for_a_while_still_answers() -> None:
    def late(_request: Any) -> Scripted:
        waited.wait(60)
        return Scripted("Hello.")

    waited = threading.Event()
    options = ModelOptions(retries=0, quiet_seconds=0.1)
    with ScriptedServer([late]) as server:
        events = []
        async for event in LiteLLMModel("openai/scripted", server.url, KEY, options).stream(ASK):
            events.append(event)
            waited.set()
    assert [type(each) for each in events] == [ReplyNotice, ReplyText, Reply]


async def test_silence_to_the_end_is_an_error_and_tried_no_more() -> None:
    options = ModelOptions(quiet_seconds=0.1, first_token_seconds=0.3)
    with ScriptedServer([Scripted("Hello", stall_at=0)]) as server:
        model = LiteLLMModel("openai/scripted", server.url, KEY, options)
        with pytest.raises(ModelUnreachableError, match=r"sent nothing for 0\.3 seconds"):
            await streamed(model)


async def test_trouble_after_a_silence_is_still_tried_again() -> None:

    waited = threading.Event()

    def late(_request: Any) -> Scripted:
        waited.wait(60)
        return Scripted("busy", status=503)

    options = ModelOptions(quiet_seconds=0.1, backoff_seconds=0.01)
    with ScriptedServer([late, Scripted("Hello.")]) as server:
        events = []
        async for event in LiteLLMModel("openai/scripted", server.url, KEY, options).stream(ASK):
            events.append(event)
            waited.set()
    assert isinstance(events[-1], Reply)
    assert events[-1].text == "Hello."
