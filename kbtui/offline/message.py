"""Classification of messages by their shape and the word lists of their language.

Nothing is interpreted, and no word removed but a leading command: what isn't a question, a command,
a secret, a paste or small talk is a statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from kbtui.knowledge.format.document import Document
from kbtui.offline.asked import tells_of_a_list, without_days
from kbtui.offline.dated import time_named
from kbtui.offline.language import begins, language_of, languages, of_all, tokens, unmatched
from kbtui.offline.lines import sentences
from kbtui.offline.orders import Order, OrderKind, read_order, without_lead
from kbtui.redaction.redact import redact
from kbtui.text import shorten

SmallTalk = Literal["greeting", "thanks", "talk"]
Keeps = Literal["remember", "decision", "task"]
Kind = Literal["statement", "question", "work", "secret", "paste"] | SmallTalk | Keeps | OrderKind
_SMALL_TALK: tuple[SmallTalk, ...] = get_args(SmallTalk)
_KEEPS: tuple[Keeps, ...] = get_args(Keeps)
_QUESTION_MARKS = tuple("?\uff1f\u061f\u037e")  # ASCII, full width, Arabic, Greek
_SENTENCE_ENDS = tuple(".!\u2026\u3002\u0964")
_CLAUSE = re.compile(r"[,;\u2013\u2014]\s|\s-\s")
_END_OF_TITLE = re.compile(r"[.;:!?(\n]")
_TITLE_WIDTH = 60
_MIN_TITLE = 20
_MIN_STATEMENT_WORDS = 4
_MAX_BETWEEN = 8  # words of a time within a phrase
# Messages longer than people type at once were pasted.
_MAX_CHARACTERS = 4_000
_MAX_LINES = 40
# Lines nobody types: of mail headers, stack traces, logs, tables, programs, patches.
_MACHINE_LINE = re.compile(
    r"(?:From|To|Cc|Subject|Date|Sent|Message-ID): \S|[\w-]+: [^@\n]*[\w.]@[\w-]+\.\w"
    r'|\s+File ".*", line \d|\s+at [\w.$<>]+\(|Traceback \(|[\w.]*(?:Error|Exception): '
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|[^,;\t\s]*([,;\t])(?! )(?:[^,;\t]*\1(?! )){2,}[^,;\t]*$"
    r"|\s*[{}\[\]();]+\s*$|\s*(?:def|class|import|return|function|const|let|public|private|#include)"
    r"\b.*[:;({)]\s*$|.*(?:\{|[\])}\"'];|=.*;)$|@@ .* @@|diff --git "
)
_MIN_MACHINE_LINES = 2
_MACHINE_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Reading:
    """The classification of a message.

    Attributes:
        kind: The kind of message.
        text: The relevant text as typed: without the command if there is one, else all of it.
        question: The question in it, if any; a statement may have one as well.
        secret: The kind of secret in it, if any.
        title: What was decided, in the user's words.
        is_certain: False for a question recognized only by its first words.
        order: What it tells to do with the notes, if it does.
    """

    kind: Kind
    text: str
    question: str = ""
    secret: str = ""
    title: str = ""
    is_certain: bool = True
    order: Order | None = None


def read_message(text: str) -> Reading:
    """Classify a message."""
    text = text.strip()
    found = redact(text).found
    if found:
        return Reading("secret", text, secret=found[0].kind)
    small = _small_talk(text)
    if small is not None or is_pasted(text):
        return Reading(small or "paste", text)
    if (order := read_order(text)) is not None:
        return Reading(order.kind, text, order=order)
    return (
        _classify_question(text) if asks(text) else _classify_command(text) or _classify_other(text)
    )


def _classify_other(text: str) -> Reading:
    """Classify a message without a final question mark or a leading command."""
    if begins(text, language_of(text).list("work")) is not None:
        return Reading("work", text)
    if tells_of_a_list(text):
        return Reading("statement", text)  # "What happened today was awful"
    if text.endswith(_SENTENCE_ENDS) or not all(
        asks(each) or _has_question_start(each) for each in sentences(text)
    ):
        return Reading("statement", text)
    if any(map(_is_long_enough, _CLAUSE.split(without_lead(text))[1:])):
        # "Who cares about the budget, I spent 300 on shoes"
        return Reading("statement", text, question=text)
    return Reading("question", text, question=text, is_certain=False)


def _has_question_start(text: str) -> bool:
    return begins(without_lead(text), language_of(text).list("question")) is not None


def asks(text: str) -> bool:
    """Return whether a text ends with a question mark."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def is_pasted(text: str) -> bool:
    """Return whether a message looks pasted rather than typed."""
    lines = [line for line in text.splitlines() if line.strip()]
    is_long = len(text) > _MAX_CHARACTERS or len(lines) > _MAX_LINES
    return is_long or _has_code(text) or is_machine_made(text)


def is_machine_made(text: str) -> bool:
    """Return whether a message consists of mail headers, logs, tables or programs."""
    lines = [line for line in text.splitlines() if line.strip()]
    machine = sum(_MACHINE_LINE.match(line) is not None for line in lines)
    return machine >= _MIN_MACHINE_LINES and machine >= _MACHINE_SHARE * len(lines)


def _has_code(text: str) -> bool:
    return bool(Document(text, has_head=False, is_excerpt=True).fenced_blocks)


def title_of(decided: str) -> str:
    """Return what was decided, verbatim up to the reason or the end of the sentence."""
    found, reasons = tokens(decided), of_all("reason")
    ends = [match.start() for match in _END_OF_TITLE.finditer(decided)]
    ends += [found[n].start for n in range(1, len(found)) if reasons.match(decided, found, n)]
    title = decided[: min(ends, default=None)].strip(" ,\t-\N{EN DASH}\N{EM DASH}")
    if len(title) > _TITLE_WIDTH:
        head, comma, _ = title[:_TITLE_WIDTH].rpartition(",")
        title = head if comma and len(head) >= _MIN_TITLE else shorten(title, _TITLE_WIDTH)
    return title[:1].upper() + title[1:]


def _small_talk(text: str) -> SmallTalk | None:
    """Return the kind of a message that is only small talk (or emoji), else None."""
    found = tokens(text)
    if any(unmatched(text, map(of_all, _SMALL_TALK))):
        return None
    if not found:
        return "talk"
    return max(_SMALL_TALK, key=lambda kind: of_all(kind).match(text, found))


def _classify_command(text: str) -> Reading | None:
    """Classify a message by its leading command, the longest phrase; None if there is none."""
    *before, last = sentences(text)
    if before and not any(unmatched(last, [of_all("remember that")])):
        return Reading("remember", text[: text.rindex(last)].rstrip())
    found = tokens(text)
    counts = {kind: of_all(kind).match(text, found) for kind in _KEEPS}
    kind = max(_KEEPS, key=counts.__getitem__)
    rest = begins(text, of_all(kind))
    is_none = asks(sentences(text)[0]) or begins(text, of_all("recall")) is not None
    if not is_none and rest is None and _asks_for_task(text):
        return Reading("task", text)
    is_asked = language_of(text).list("question").match(text, found) > counts[kind]
    if is_none or is_asked or not rest or not tokens(rest):
        return None
    if kind == "decision":
        says_all = begins(text, of_all("keeps")) is not None
        return Reading(kind, text, title=title_of(text if says_all else rest))
    # "Remind me to" stays as typed; a label such as "todo:" says no more than the checkbox.
    is_label = text[found[counts[kind] - 1].end :].lstrip().startswith(":")
    return Reading(kind, rest if kind != "task" or is_label else text)


def _asks_for_task(text: str) -> bool:
    """Return whether a message leads to a task with a time inside: *remind me on Friday to ...*."""
    found = tokens(text)
    for phrase in _task_phrases() if found else ():
        head, last = phrase[:-1], phrase[-1]
        words = [each.word for each in found[: len(head) + _MAX_BETWEEN]]
        if tuple(words[: len(head)]) == head and last in words[len(head) + 1 :]:
            at = words.index(last, len(head) + 1)
            inside = text[found[len(head) - 1].end : found[at].start]
            is_time = without_days(inside) != " ".join(inside.split()) or bool(time_named(inside))
            return len(found) > at + 1 and is_time
    return False


@cache
def _task_phrases() -> list[tuple[str, ...]]:
    """Return the phrases of more than one word that lead to a task, as words."""
    phrases = [phrase for language in languages() for phrase in language.lists["task"]]
    words = [tuple(each.word for each in tokens(phrase)) for phrase in phrases]
    return [each for each in words if len(each) > 1]


def _classify_question(text: str) -> Reading:
    """Classify a message that ends with a question, which may be preceded by a statement."""
    *before, last = sentences(text)
    is_stated = any(
        _is_long_enough(part) for each in (*before, last) for part in _statement_parts(each)
    )
    kind: Kind = "statement" if is_stated else "question"
    return Reading(kind, text, question=last if before else text)


def _statement_parts(sentence: str) -> list[str]:
    """Return the stating parts of a sentence: "I moved to Berlin last week, who do I tell?"."""
    if not asks(sentence):
        return [sentence]
    return [] if _has_question_start(sentence) else _CLAUSE.split(sentence)[:-1]


def _is_long_enough(text: str) -> bool:
    return len(tokens(text)) >= _MIN_STATEMENT_WORDS
