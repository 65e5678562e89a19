"""What families of models write into their text: thoughts are no answer, and calls are run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from kbtui.models.dialects import without_thoughts
from kbtui.models.port import ReplyReasoning, ReplyRevoked, ReplyText
from kbtui.models.reply_builder import ReplyBuilder

TOOLS = frozenset({"write_entry", "search", "rename_entry"})
ARGUMENTS = {"kind": "fact", "title": "Boiler pressure", "body": "It is 1.6 bar.\nSince “May”."}
JSON = json.dumps(ARGUMENTS)
CALL = json.dumps({"name": "write_entry", "arguments": ARGUMENTS})
BAR, SPACE = "\uff5c", "\u2581"

THOUGHTS = {
    "think": "<think>{}</think>\n",
    "thinking": "<thinking>{}</thinking>",
    "thought": "<thought>\n{}\n</thought>\n",
    "reasoning": "<reasoning>{}</reasoning>\n\n",
    "seed": "<seed:think>{}</seed:think>",
    "magistral": "[THINK]{}[/THINK]",
    "kimi": "\u25c1think\u25b7{}\u25c1/think\u25b7",
    "openthinker": "<|begin_of_thought|>{}<|end_of_thought|>\n<|begin_of_solution|>",
    "command": "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>",
    "harmony": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "gemma": "<|channel>thought\n{}<channel|>",
    "medgemma": "<unused94>thought\n{}<unused95>",
    "apertus": "<|inner_prefix|>{}<|inner_suffix|>",
    "begun in the prompt": "{}\n</think>\n\n",
    "begun in the prompt, one line": "{}</think>",
    "kimi, begun in the prompt": "{}\u25c1/think\u25b7",
    "magistral, begun in the prompt": "{}\n[/THINK]\n",
}


def _xml(outer: str, inner: str, argument: str, end: str) -> str:
    held = "".join(argument.format(key, value) for key, value in ARGUMENTS.items())
    return f"{outer.format(f'{inner}{held}{end}')}"


_PYTHON = f"write_entry({', '.join(f'{key}={value!r}' for key, value in ARGUMENTS.items())})"
_GEMMA = (
    "call:write_entry{" + ",".join(f"{k}:<escape>{v}<escape>" for k, v in ARGUMENTS.items()) + "}"
)
_DSML = f"{BAR}DSML{BAR}"
CALLS = {
    "bare": CALL,
    "hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "hermes, not ended": f"<tool_call>\n{CALL}",
    "fence": f"```json\n{CALL}\n```",
    "fence, no language": f"```\n{CALL}\n```",
    "list": f"[{CALL}]",
    "wrapped": f'{{"tool_calls": [{{"type": "function", "function": {CALL}}}]}}',
    "nemotron": f"<TOOLCALL>[{CALL}]</TOOLCALL>",
    "jamba": f"<tool_calls>[{CALL}]</tool_calls>",
    "qwen coder": _xml("<tool_call>\n{}</tool_call>", "<function=write_entry>\n",
                       "<parameter={}>\n{}\n</parameter>\n", "</function>\n"),
    "qwen coder, bare": _xml("{}", "<function=write_entry>\n",
                             "<parameter={}>\n{}\n</parameter>\n", "</function>\n"),
    "seed": _xml("<seed:tool_call>{}</seed:tool_call>", "<function=write_entry>",
                 "<parameter={}>{}</parameter>", "</function>"),
    "glm": _xml("<tool_call>{}</tool_call>", "write_entry\n",
                "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n", ""),
    "minimax": _xml("<minimax:tool_call>\n{}</minimax:tool_call>", '<invoke name="write_entry">\n',
                    '<parameter name="{}">{}</parameter>\n', "</invoke>\n"),
    "invoke": _xml("<function_calls>\n{}</function_calls>", '<invoke name="write_entry">\n',
                   '<parameter name="{}">{}</parameter>\n', "</invoke>\n"),
    "deepseek 3.2": _xml(f"<{_DSML}function_calls>\n{{}}</{_DSML}function_calls>",
                         f'<{_DSML}invoke name="write_entry">\n',
                         f'<{_DSML}parameter name="{{}}" string="true">{{}}</{_DSML}parameter>\n',
                         f"</{_DSML}invoke>\n"),
    "deepseek 3": f"<{BAR}tool{SPACE}calls{SPACE}begin{BAR}><{BAR}tool{SPACE}call{SPACE}begin{BAR}>"
    f"function<{BAR}tool{SPACE}sep{BAR}>write_entry\n```json\n{JSON}\n```"
    f"<{BAR}tool{SPACE}call{SPACE}end{BAR}><{BAR}tool{SPACE}calls{SPACE}end{BAR}>",
    "deepseek 3.1": f"<{BAR}tool{SPACE}calls{SPACE}begin{BAR}><{BAR}tool{SPACE}call{SPACE}begin{BAR}>"
    f"write_entry<{BAR}tool{SPACE}sep{BAR}>{JSON}<{BAR}tool{SPACE}call{SPACE}end{BAR}>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_entry:0"
    f"<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>",
    "mistral": f"[TOOL_CALLS][{CALL}]",
    "mistral, newer": f"[TOOL_CALLS]write_entry[ARGS]{JSON}",
    "mistral, newest": f"[TOOL_CALLS]write_entry{JSON}",
    "llama 3": f'<|python_tag|>{{"name": "write_entry", "parameters": {JSON}}}',
    "llama 3.1": f"<function=write_entry>{JSON}</function>",
    "llama 4": f"<|python_start|>[{_PYTHON}]<|python_end|>",
    "pythonic": f"[{_PYTHON}]",
    "tool code": f"```tool_code\n{_PYTHON}\n```",
    "tool code, printed": f"```tool_code\nprint(default_api.{_PYTHON})\n```",
    "functiongemma": f"<start_function_call>{_GEMMA}<end_function_call>",
    "gemma 4": f"<|tool_call>{_GEMMA}<tool_call|>".replace("<escape>", '<|"|>'),
    "harmony": "<|channel|>commentary to=functions.write_entry <|constrain|>json<|message|>"
    f"{JSON}<|call|>",
    "harmony, to first": "<|start|>assistant to=functions.write_entry<|channel|>commentary json"
    f"<|message|>{JSON}<|call|>",
    "command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "write_entry", "parameters": '
    f"{JSON}}}]<|END_ACTION|>",
    "granite": f"<|tool_call|>[{CALL}]",
    "phi": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "internlm": f'<|action_start|><|plugin|>{{"name": "write_entry", "parameters": {JSON}}}'
    "<|action_end|>",
    "apertus": f'<|tools_prefix|>[{{"write_entry": {JSON}}}]<|tools_suffix|>',
    "functionary": f">>>write_entry\n{JSON}",
    "react": f"Action: write_entry\nAction Input: {JSON}",
}  # fmt: skip
OTHER = [
    "Hello.",
    "Use `<think>` and `</think>` around it.",
    "The </think> tag closes it.",
    "Hello <think>x</think> there.",
    "```html\n<think>\nx\n</think>\n```\nThat is all.",
    'It takes JSON:\n\n```json\n{"port": 8080, "host": "::1"}\n```\nStart it.',
    "```python\nwrite(1)\n```",
    "See `[TOOL_CALLS]` of Mistral.",
    "[1] says so, [[boiler]] too.\n[Ottokar](x.md) {curly} text.",
    ">>> print(1)\n1",
    "Action: none needed.\nfunction=3 <function of x>",
    "It is XML:\n<reasoning>\nwhy\n</reasoning>\nand so on.",
    "a < b and b > c, <b>bold</b>, x |> f <| y",
    "~~~\n{\n~~~\n",
]


def told(text: str, size: int, tools: frozenset[str] | None = TOOLS) -> tuple[str, str, list[Any]]:
    """Stream a text in pieces; return the answer, the thoughts, and the calls."""
    builder = ReplyBuilder(tools)
    shown, thought = "", ""
    pieces: list[Any] = []
    for at in range(0, len(text), size):
        pieces += builder.add_text(text[at : at + size])
    pieces += builder.finish_text()
    for piece in pieces:
        match piece:
            case ReplyText(text=part):
                shown += part
            case ReplyReasoning(text=part):
                thought += part
            case ReplyRevoked():
                shown, thought = "", thought + shown
    assert builder.is_data or shown == builder.text
    calls = [(call.name, json.loads(call.arguments)) for call in builder.calls()]
    assert all(call.is_written for call in builder.calls())
    return shown, thought, calls


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
@pytest.mark.parametrize("family", THOUGHTS)
def test_a_thought_is_never_the_answer(family: str, size: int) -> None:
    text = THOUGHTS[family].format("The user wonders.\nIt may be < 3 bar.") + "The boiler is below."
    shown, thought, calls = told(text, size)
    assert shown == "The boiler is below."
    assert thought.strip() == "The user wonders.\nIt may be < 3 bar."
    assert not calls
    assert without_thoughts(text) == "The boiler is below."


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
@pytest.mark.parametrize(
    "before", ["", "I'll write that down.\n", "<think>hm {}</think>\nYes.\n\n"]
)
@pytest.mark.parametrize("family", CALLS)
def test_a_call_of_each_family_is_run_and_never_shown(family: str, before: str, size: int) -> None:
    shown, _, calls = told(before + CALLS[family], size)
    assert shown.strip() == before.rpartition("</think>")[2].strip()
    ((name, arguments),) = calls
    assert name == "write_entry"
    assert arguments == ARGUMENTS


@pytest.mark.parametrize("size", [1, 3, 10_000])
@pytest.mark.parametrize("text", OTHER)
def test_what_only_looks_like_a_mark_is_text(text: str, size: int) -> None:
    assert told(text, size) == (text, "", [])
    assert told(text, size, None) == (text, "", [])
    assert without_thoughts(text) == text


def test_two_calls_in_one_answer_are_two() -> None:
    for family in ("hermes", "deepseek 3.1", "kimi", "qwen coder", "glm", "gemma 4", "functionary"):
        _, _, calls = told(f"{CALLS[family]}\n{CALLS[family].replace('1.6', '2.6')}", 5)
        assert [call[1]["body"][:9] for call in calls] == ["It is 1.6", "It is 2.6"], family


def test_a_call_within_a_thought_is_none() -> None:
    assert told(f"<think>{CALLS['hermes']}</think>Done.", 4)[2] == []


def test_an_unknown_or_broken_call_is_data_and_not_shown() -> None:
    for text in ('{"name": "launch", "arguments": {}}', '<tool_call>\n{"name": "write_en'):
        builder = ReplyBuilder(TOOLS)
        assert [*builder.add_text(text), *builder.finish_text()] == []
        assert builder.is_data


@pytest.mark.parametrize(
    "call",
    [
        '<tool_call>\n{"name": "write_entry", "argum',
        '{"name": "write_entry", "arguments": {"title": }}',
    ],
)
def test_a_broken_call_after_prose_is_not_shown(call: str) -> None:
    builder = ReplyBuilder(TOOLS)
    shown = [*builder.add_text(f"I'll note it.\n\n{call}"), *builder.finish_text()]
    assert "".join(each.text for each in shown if isinstance(each, ReplyText)).strip() == (
        "I'll note it."
    )
    assert builder.text.strip() == "I'll note it."
    assert builder.written == call
    assert not builder.calls()
    assert not builder.is_data


def test_scanning_takes_time_in_proportion_to_the_text() -> None:
    def steps(text: str) -> int:
        builder = ReplyBuilder(TOOLS)
        return sum(1 for at in range(len(text)) for _ in builder.add_text(text[at]))

    counts: Iterable[int] = [
        steps("A line of <words> and [links].\n" * times) for times in (50, 100)
    ]
    assert all(later <= earlier * 2.1 for earlier, later in pairwise(counts))
