"""Which model fits a machine, and fetching it."""

from __future__ import annotations

import pytest

from kbtui.errors import ModelError, ModelUnreachableError
from kbtui.models.fetching import memory_of_machine, offer_for, offers, pull
from tests.scripted_server import ScriptedServer

GB = 1_000_000_000
STEPS = [
    {"status": "pulling manifest"},
    {"status": "pulling 1a2b", "digest": "sha256:1a2b", "total": 100, "completed": 40},
    {"status": "verifying sha256 digest"},
    {"status": "success"},
]


@pytest.mark.parametrize(
    ("memory", "name"),
    [
        (64 * GB, "qwen3:4b-instruct"),
        (8 * GB, "qwen3:4b-instruct"),
        (4 * GB, "qwen3:1.7b"),
        (1 * GB, None),
        (0, None),
    ],
)
def test_the_best_that_fits_the_memory_is_offered(memory: int, name: str | None) -> None:
    offer = offer_for(memory)
    assert (offer.name if offer else None) == name


def test_what_is_offered_first_is_the_best_and_fits_where_it_says() -> None:
    needs = [each.memory_gb for each in offers()]
    assert needs == sorted(needs, reverse=True)
    assert all(each.size_gb < each.memory_gb for each in offers())
    assert memory_of_machine() > 0


def test_each_step_of_the_fetching_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    with ScriptedServer() as server:
        server.is_ollama, server.pulling = True, STEPS
        pull(server.origin, "qwen3:1.7b", lambda *step: told.append(step))
        assert server.requests[0].body == {"model": "qwen3:1.7b", "stream": True}
    assert told[1] == ("pulling 1a2b", 40, 100)
    assert told[-1][0] == "success"


@pytest.mark.parametrize(
    ("steps", "error", "words"),
    [
        (None, ModelError, "file does not exist"),
        ([*STEPS[:2], {"error": "no space left on device"}], ModelError, "no space left"),
        (STEPS[:2], ModelUnreachableError, "broke off"),
    ],
)
def test_what_goes_wrong_is_said(
    steps: list[dict[str, object]] | None, error: type, words: str
) -> None:
    with ScriptedServer() as server:
        server.is_ollama, server.pulling = True, steps
        with pytest.raises(error, match=words) as caught:
            pull(server.origin, "nonsense", lambda *_: None)
        origin = server.origin
    assert caught.value.hint
    with pytest.raises(ModelUnreachableError, match="doesn't answer"):
        pull(origin, "nonsense", lambda *_: None)
