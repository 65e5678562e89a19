"""The small parts: token estimates, argument checks, answers put together, the far loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.models.background import BackgroundLoop
from kbtui.models.dialects import AnswerScanner
from kbtui.models.port import (
    Message,
    ReplyReasoning,
    ReplyText,
    ToolCall,
    cut_to_tokens,
    estimate_tokens,
    prompt_tokens,
)
from kbtui.models.reply_builder import ReplyBuilder
from kbtui.models.schema import ArgumentError, check_arguments, data_in, parse_arguments
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

ROOT = Path(__file__).parents[2]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "by_name": {"type": "object", "additionalProperties": {"type": "string"}},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}},
                "required": ["old"],
            },
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": "x"}, {"name": "x"}),
        ({"name": "x", "count": "3"}, {"name": "x", "count": 3}),
        ({"name": "x", "count": 3.0}, {"name": "x", "count": 3}),
        ({"name": "x", "ratio": "0.5"}, {"name": "x", "ratio": 0.5}),
        ({"name": "x", "deep": "True"}, {"name": "x", "deep": True}),
        ({"name": "x", "tags": "one"}, {"name": "x", "tags": ["one"]}),
        ({"name": "x", "tags": '["one", "two"]'}, {"name": "x", "tags": ["one", "two"]}),
        ({"name": "x", "by_name": '{"a": "b"}'}, {"name": "x", "by_name": {"a": "b"}}),
        ({"name": "x", "tags": None}, {"name": "x"}),
        ({"name": "x", "edits": [{"old": "y"}]}, {"name": "x", "edits": [{"old": "y"}]}),
    ],
)
def test_harmless_slips_in_arguments_are_put_right(given: Any, expected: Any) -> None:
    assert check_arguments(given, SCHEMA) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "'name' is missing"),
        ({"name": None}, "must be a string"),
        ({"name": 3}, "must be a string, not an integer"),
        ({"name": "x", "count": True}, "must be an integer, not a boolean"),
        ({"name": "x", "count": "many"}, "must be an integer"),
        ({"name": "x", "kind": "c"}, "must be one of a, b"),
        ({"name": "x", "tags": [1]}, "'tags[0]' must be a string"),
        ({"name": "x", "tags": ["1"] * 4}, "more than 3"),
        ({"name": "x", "by_name": {"a": 1}}, "'by_name.a' must be a string"),
        ({"name": "x", "edits": [{}]}, "'edits[0].old' is missing"),
        ({"name": "x", "what": 1}, "no argument 'what'; there are: name"),
        ({"name": "x" * 21}, "longer than 20"),
        ([], "must be a JSON object"),
        (None, "must be a JSON object"),
    ],
)
def test_wrong_arguments_are_named_in_a_sentence(given: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments(given, SCHEMA)
    assert words in caught.value.message


def test_half_a_character_is_put_right_wherever_it_stands() -> None:
    schema = {"properties": {"tags": {"items": {"type": "string"}}}}
    given = '{"tags": ["a \\ud800 b"], "\\udcff": {"x": "\\ud83d\\ude00\\ud83d"}}'
    found = parse_arguments(given, schema)
    assert found == {"tags": ["a ? b"], "?": {"x": "\U0001f600?"}}


def test_arguments_come_as_json_text() -> None:
    assert parse_arguments('{"name": "x"}', SCHEMA) == {"name": "x"}
    assert parse_arguments('"{\\"name\\": \\"x\\"}"', SCHEMA) == {"name": "x"}
    assert parse_arguments("", {"type": "object"}) == {}
    for broken in ('{"name": "x', "NaN", "[" * 100_000, '"text"', "\x00"):
        with pytest.raises(ArgumentError):
            parse_arguments(broken, SCHEMA)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("Hello <think>x</think>", "", "Hello <think>x</think>"),
        ("<think>hm</think>Hello", "hm", "Hello"),
        ("\n <think>\nhm < 3 </thin\n</think>\n\nHello", "\nhm < 3 </thin\n", "Hello"),
        ("<think>never ends", "never ends", ""),
        ("<thin air", "", "<thin air"),
        ("<think></think>", "", ""),
        ("", "", ""),
    ],
)
def test_reasoning_in_tags_is_split_off_however_it_is_cut(
    text: str, thought: str, answer: str, size: int
) -> None:
    splitter = AnswerScanner()
    pieces = [
        piece
        for start in range(0, len(text), size)
        for piece in splitter.feed(text[start : start + size])
    ]
    pieces += splitter.flush()
    assert "".join(p.text for p in pieces if isinstance(p, ReplyReasoning)) == thought
    assert "".join(p.text for p in pieces if isinstance(p, ReplyText)) == answer


def test_calls_without_ids_or_indexes_are_told_apart() -> None:
    builder = ReplyBuilder()
    builder.add_call_piece(None, None, "one", '{"a": 1}')
    builder.add_call_piece(None, None, "two", {"b": 2})
    builder.add_call_piece(None, "", None, "")
    assert builder.calls() == (
        ToolCall("call_1", "one", '{"a": 1}'),
        ToolCall("call_2", "two", '{"b": 2}'),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('The answer is {"a": {"b": 2}} as asked.', {"a": {"b": 2}}),
        ("[1]", [1]),
        ('Here: [{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ("nothing", None),
        ('{"a": ', None),
    ],
)
def test_an_object_is_found_in_what_a_model_says(text: str, value: Any) -> None:
    assert next(data_in(text), None) == value


def test_tokens_are_estimated_within_a_third_of_a_real_tokenizer() -> None:
    from kbtui.models import litellm_model

    engine = litellm_model._load()
    texts = {
        "prose": "The committee met on Tuesday to decide about the budget, and nobody was happy with it. "
        * 20,
        "markdown": "- **Alice** owns [[topics/docker]] (see `docker-compose.yml`)\n\n## Notes\n"
        * 20,
        "code": "def read(path: Path) -> bytes:\n    return files.read_bytes(root, path, limit=50)\n"
        * 20,
        "german": "Die Entscheidung fiel am Dienstag, und über die Gründe wurde ausführlich gesprochen. "
        * 20,
        "chinese": "我们决定使用数据库进行分析, 因为它很快。" * 20,
        "log": "2026-11-23 14:05:09,381 INFO worker[4711] took 83.204 ms bytes=518220\n" * 20,
        "table": "4711,83.20,518220,0.07,99131\n" * 20,
    }
    for name, text in texts.items():
        real = engine.token_counter(model="gpt-4", text=text)
        assert 0.66 < estimate_tokens(text) / real < 1.5, name


def test_a_text_is_cut_at_a_line() -> None:
    text = "one two three four\n" * 10
    cut = cut_to_tokens(text, 12)
    assert cut == "one two three four\n" * 2
    assert cut_to_tokens(text, 1000) == text
    assert cut_to_tokens("word " * 100, 3) == ""
    assert estimate_tokens("") == 0
    assert prompt_tokens([Message("user", "")]) > 0


async def test_the_far_loop_yields_here_raises_here_and_stops_there() -> None:
    loop = BackgroundLoop("test-loop")
    closed, entered = threading.Event(), threading.Event()
    threads = set()

    async def count(stop: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(stop):
                threads.add(threading.current_thread().name)
                yield number
                await asyncio.sleep(0)
            if stop == 3:
                raise ValueError("three")
            entered.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    seen = []
    with pytest.raises(ValueError, match="three"):  # noqa: PT012 - what came before counts too
        async for number in loop.iterate(count(3)):
            seen.append(number)  # noqa: PERF401
    assert seen == [0, 1, 2]
    assert threads == {"test-loop"}
    closed.clear()
    stream = loop.iterate(count(2))
    assert await anext(stream) == 0
    await stream.aclose()  # type: ignore[attr-defined]
    assert closed.wait(PATIENCE)

    closed.clear()
    entered.clear()
    task = asyncio.create_task(loop.run(anext(count(0))))
    assert await asyncio.to_thread(entered.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.wait(PATIENCE)


def test_a_program_ends_though_the_far_loop_is_in_the_middle_of_an_import(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(1)\n")
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """
            import asyncio, sys, time
            from kbtui.models.background import BackgroundLoop

            class Held:
                def __del__(self):
                    try:
                        import slow
                    except ImportError:
                        pass

            async def imports():
                import slow

            async def leaves():
                task = asyncio.create_task(BackgroundLoop("far").run(imports()))
                while "slow" not in sys.modules:
                    await asyncio.sleep(0.01)

            asyncio.run(leaves())
            left = Held()
            left.itself = left
            del left
            """
        )
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n", "")
