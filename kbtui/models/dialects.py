"""The marks by which families of models write thoughts and tool calls into their text.

A server that knows a model takes its thoughts and calls out of the text. One that doesn't passes
them on in the model's own marks. `AnswerScanner` tells the answer from them while it streams in;
`written_calls.py` reads the calls.

Models also write about such marks. In code they are text, therefore, and so are tags within a
line: a model that thinks or calls begins a line with it. Special tokens stand in no text by chance
and are marks anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from kbtui.models.port import ReplyReasoning, ReplyRevoked, ReplyText
from kbtui.models.written_calls import Guess, guess_call, guess_data

_TAGS = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")
_ONLY_FIRST = ("<thought>", "<thoughts>", "<reasoning>")  # later on, an answer may have such XML
_FINAL = "<|channel|>final<|message|>"
_THOUGHTS = {
    **{f"<{tag}>": (f"</{tag}>",) for tag in _TAGS},
    "[think]": ("[/think]",),  # Magistral
    "\u25c1think\u25b7": ("\u25c1/think\u25b7",),  # Kimi
    "<|begin_of_thought|>": ("<|end_of_thought|>",),  # OpenThinker
    "<|start_thinking|>": ("<|end_thinking|>",),  # Command A
    "<|channel|>analysis<|message|>": ("<|end|>", _FINAL),  # gpt-oss
    "<|channel>thought": ("<channel|>",),  # Gemma 4
    "<unused94>thought": ("<unused95>",),  # MedGemma
    "<|inner_prefix|>": ("<|inner_suffix|>",),  # Apertus
}
_CALLS = (
    "<tool_call>",  # Hermes, Qwen, GLM
    "<tool_calls>",  # Jamba
    "<toolcall>",  # Nemotron
    "<function_calls>",
    "<function_call>",
    "<function=",  # Llama 3.1; Qwen Coder, where it forgets the tag around it
    "<invoke ",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "[tool_calls]",  # Mistral
    "<|tool_call|>",  # Granite, Phi-4
    "<|tool_call>",  # Gemma 4
    "<start_function_call>",  # FunctionGemma
    "<|python_tag|>",  # Llama 3
    "<|python_start|>",  # Llama 4
    "<|tool_calls_section_begin|>",  # Kimi K2
    "<|tool_call_begin|>",
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",  # DeepSeek
    "<\uff5ctool\u2581call\u2581begin\uff5c>",
    "<\uff5cdsml\uff5c",
    "<|start_action|>",  # Command A
    "<|action_start|>",  # InternLM
    "<|tools_prefix|>",  # Apertus
    "<|channel|>commentary to=",  # gpt-oss
    "<|start|>assistant to=",
    "<|start|>assistant<|channel|>commentary to=",
    *(_BEFORE_NAMES := (">>>", "action:")),  # Functionary, ReAct
)
_NOISE = (
    "<|start|>assistant",
    _FINAL,
    "<|channel|>commentary<|message|>",
    "<|begin_of_solution|>",
    "<|end_of_solution|>",
    "<|start_response|>",
    "<|end_response|>",
    "<|return|>",
    "<|end|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<end_of_turn>",
)
# What an end without a beginning may follow: a line's beginning, or the end of a sentence.
_MAY_PRECEDE_END = re.compile(r"(?:^|[^\w\s,])\s*\Z")


class _Kind(Enum):
    THOUGHT = "thought"
    END = "end of a thought that wasn't begun"
    CALL = "call"
    NOISE = "noise"
    FENCE = "fence"
    JSON = "JSON, or a list of calls as in Python"


_MARKS: dict[str, _Kind] = {
    **dict.fromkeys(("{", "["), _Kind.JSON),
    **dict.fromkeys(("```", "~~~"), _Kind.FENCE),
    **dict.fromkeys([end for ends in _THOUGHTS.values() for end in ends], _Kind.END),
    **dict.fromkeys(_NOISE, _Kind.NOISE),
    **dict.fromkeys(_CALLS, _Kind.CALL),
    **dict.fromkeys(_THOUGHTS, _Kind.THOUGHT),
}
_BEGINNINGS = {mark[:length] for mark in _MARKS for length in range(1, len(mark))}
_LONGEST = max(map(len, _BEGINNINGS))
_SPECIAL = re.compile(r"<\||\|>|[\uff5c\u25c1]|<unused|\[/?(?:think|tool_calls)\]|<end_of_turn>")
Piece = ReplyText | ReplyReasoning | ReplyRevoked


@cache
def _any_mark() -> re.Pattern[str]:
    """Return a pattern for all marks, compiled when a model first says something."""
    longest_first = sorted(_MARKS, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)


@dataclass(slots=True)
class AnswerScanner:
    """Splits a text into answer and thoughts, and holds back what may be tool calls.

    Where a thought ends that wasn't begun (some templates begin it in the prompt), all that came
    before was a thought: a `ReplyRevoked` says so.

    Attributes:
        tools: The tools that may be called in the text; if None, calls in it are text.
        held: The text from the first mark of a call on; complete after `flush`.
    """

    tools: Collection[str] | None = None
    held: str = ""
    _rest: str = ""
    _line: str = ""  # what was yielded of the answer's last line
    _fence: str = ""
    _ends: tuple[str, ...] = ()
    _is_empty: bool = True
    _as_text: set[str] = field(default_factory=set)  # ends of thoughts whose beginning is text

    @property
    def has_begun(self) -> bool:
        """Whether anything of the answer has arrived."""
        return bool(self.held or self._rest.strip() or not self._is_empty)

    def feed(self, piece: str) -> Iterator[Piece]:
        """Process the next piece and yield what can be told."""
        self._rest += piece
        yield from self._scan(is_last=False)

    def flush(self) -> Iterator[Piece]:
        """Yield the rest, except for what is `held`."""
        yield from self._scan(is_last=True)

    def _scan(self, *, is_last: bool) -> Iterator[Piece]:
        left = len(self._rest) + 1
        while self._rest and len(self._rest) < left:
            left = len(self._rest)
            if self.held:
                self._hold()
            elif self._ends:
                yield from self._thought(is_last=is_last)
            else:
                yield from self._answer(is_last=is_last)

    def _hold(self) -> None:
        self.held, self._rest = self.held + self._rest, ""

    def _thought(self, *, is_last: bool) -> Iterator[Piece]:
        lower = self._rest.lower()
        found = min(((at, end) for end in self._ends if (at := lower.find(end)) >= 0), default=None)
        if found is None:
            at = len(self._rest) - (0 if is_last else _partial(self._rest))
            thought, self._rest = self._rest[:at], self._rest[at:]
        else:
            thought = self._rest[: found[0]]
            self._rest = self._rest[found[0] + len(found[1]) :]
            self._ends, self._line, self._is_empty = (), "", True
        if thought:
            yield ReplyReasoning(thought)

    def _answer(self, *, is_last: bool) -> Iterator[Piece]:
        found = _any_mark().search(self._rest)
        if found is None:
            yield from self._text(len(self._rest) - (0 if is_last else _partial(self._rest)))
            return
        yield from self._text(found.start())
        mark = found[0].lower()
        if is_last or self._rest.lower() not in _BEGINNINGS:
            yield from self._mark(mark, is_last=is_last)

    def _text(self, length: int) -> Iterator[Piece]:
        """Yield the next so many characters as the answer's; blanks before it are dropped."""
        text, self._rest = self._rest[:length], self._rest[length:]
        if self._is_empty:
            text = text.lstrip()
        if text:
            self._is_empty = False
            self._line = (self._line + text).rpartition("\n")[2]
            yield ReplyText(text)

    def _mark(self, mark: str, *, is_last: bool) -> Iterator[Piece]:
        """Process a mark that the rest begins with, or wait for more of it."""
        kind = _MARKS[mark]
        begins_line = not self._line.strip()
        if kind is _Kind.FENCE:
            yield from self._fenced(mark, begins_line=begins_line, is_last=is_last)
        elif self._fence or self._line.count("`") % 2:
            yield from self._text(len(mark))
        elif kind is _Kind.JSON:
            yield from self._json(begins_line=begins_line, is_last=is_last)
        elif kind is _Kind.END:
            yield from self._end(mark)
        elif not _SPECIAL.match(mark) and (
            not begins_line or (mark in _ONLY_FIRST and not self._is_empty)
        ):
            self._as_text.update(_THOUGHTS.get(mark, ()))
            yield from self._text(len(mark))
        elif kind is _Kind.THOUGHT:
            self._ends, self._rest = _THOUGHTS[mark], self._rest[len(mark) :]
        elif kind is _Kind.NOISE:
            self._rest = self._rest[len(mark) :]
        else:
            yield from self._call(mark, is_last=is_last)

    def _call(self, mark: str, *, is_last: bool) -> Iterator[Piece]:
        """Hold back a call; some marks are words of any text unless a tool's name follows."""
        name, *more = self._rest[len(mark) :].split(maxsplit=1) or ("",)
        is_cut = not (more or (name and self._rest[-1:].isspace()) or is_last)
        if self.tools is None or (mark in _BEFORE_NAMES and name not in self.tools and not is_cut):
            yield from self._text(len(mark))
        elif mark not in _BEFORE_NAMES or name in self.tools:
            self._hold()

    def _end(self, mark: str) -> Iterator[Piece]:
        if mark in _NOISE:
            self._rest = self._rest[len(mark) :]
        elif mark in self._as_text or not _MAY_PRECEDE_END.search(self._line):
            self._as_text.discard(mark)
            yield from self._text(len(mark))
        else:
            self._rest = self._rest[len(mark) :]
            self._line, self._is_empty = "", True
            yield ReplyRevoked()

    def _json(self, *, begins_line: bool, is_last: bool) -> Iterator[Piece]:
        guess = self._guess(self._rest) if begins_line else Guess.NO
        if guess is Guess.NO:
            yield from self._text(1)
        elif guess is Guess.YES or is_last:
            self._hold()

    def _guess(self, text: str) -> Guess:
        """Return whether text at a line's beginning is to be held back."""
        if self.tools is None:
            return Guess.NO
        guesses = {guess_call(text, self.tools), guess_data(text) if self._is_empty else Guess.NO}
        return next(each for each in (Guess.YES, Guess.OPEN, Guess.NO) if each in guesses)

    def _fenced(self, mark: str, *, begins_line: bool, is_last: bool) -> Iterator[Piece]:
        """Process a fence; one that may hold a call is held back until that is known."""
        if self._fence or not begins_line or self.tools is None:
            if begins_line and self._fence in ("", mark):
                self._fence = "" if self._fence else mark
            yield from self._text(len(mark))
            return
        info, newline, inside = self._rest.partition("\n")
        guess = self._guess(inside) if newline else Guess.OPEN
        if guess is Guess.NO or (guess is Guess.OPEN and is_last and not self._is_empty):
            self._fence = mark
            yield from self._text(len(info) + len(newline))
        elif guess is Guess.YES or is_last:
            self._hold()


def without_thoughts(text: str) -> str:
    """Return a model's text without its thoughts; one that isn't ended reaches to the end."""
    scanner = AnswerScanner()
    answer: list[str] = []
    for piece in (*scanner.feed(text), *scanner.flush()):
        if isinstance(piece, ReplyRevoked):
            answer.clear()
        elif isinstance(piece, ReplyText):
            answer.append(piece.text)
    return "".join(answer)


def _partial(text: str) -> int:
    """Return how many characters at a text's end may begin a mark."""
    ending = text[-_LONGEST:].lower()
    return next((n for n in range(len(ending), 0, -1) if ending[-n:] in _BEGINNINGS), 0)
