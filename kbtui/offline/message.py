"""What kind of thing a message is, by its shape and by the lists of its language.

Nothing is understood here, and no word is taken away but the order that a message begins with: what
isn't a question, an order, a secret, a paste or small talk is a statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from kbtui.offline.language import begins, language_of, left_over, of_all, tokens
from kbtui.offline.lines import sentences
from kbtui.redaction.redact import redact
from kbtui.text import shorten

SmallTalk = Literal["greeting", "thanks", "talk"]
Order = Literal["remember", "forget", "decision", "task"]
Kind = Literal["statement", "question", "work", "secret", "paste"] | SmallTalk | Order
_SMALL_TALK: tuple[SmallTalk, ...] = get_args(SmallTalk)
_ORDERS: tuple[Order, ...] = get_args(Order)
_ASKS = tuple("?\uff1f\u061f\u037e")  # of full width, Arabic, Greek
_ENDS = tuple(".!\u2026\u3002\u0964")
_CLAUSE = re.compile(r"[,;\u2013\u2014]\s|\s-\s")
_END_OF_TITLE = re.compile(r"[.;:!?(\n]")
_TITLE_WIDTH = 60
_SHORTEST_TITLE = 20
_FEW_WORDS = 4
# What is longer than people type at once was pasted.
_MOST_CHARACTERS = 4_000
_MOST_LINES = 40
# Lines that no person types: of a mail's head, a stack trace, a log, a table, a program, a patch.
_MACHINE_LINE = re.compile(
    r"(?:From|To|Cc|Subject|Date|Sent|Message-ID): \S|[\w-]+: [^@\n]*[\w.]@[\w-]+\.\w"
    r'|\s+File ".*", line \d|\s+at [\w.$<>]+\(|Traceback \(|[\w.]*(?:Error|Exception): '
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|[^,;\t\s]*([,;\t])(?! )(?:[^,;\t]*\1(?! )){2,}[^,;\t]*$"
    r"|\s*[{}\[\]();]+\s*$|\s*(?:def|class|import|return|function|const|let|public|private|#include)"
    r"\b.*[:;({)]\s*$|.*(?:\{|[\])}\"'];|=.*;)$|@@ .* @@|diff --git "
)
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_LEAST_MACHINE_LINES = 2
_MACHINE_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message is.

    Attributes:
        kind: What it is.
        text: What of it counts: of an order what is ordered, else all of it, as it was typed.
        question: What it asks; empty where it asks nothing. A statement may ask something as well.
        secret: The kind of secret in it; empty where there is none.
        title: What was decided, in its words.
        surely: False of a question that only its first words tell.
    """

    kind: Kind
    text: str
    question: str = ""
    secret: str = ""
    title: str = ""
    surely: bool = True


def read_message(text: str) -> Reading:
    """Say what a message is."""
    text = text.strip()
    found = redact(text).found
    if found:
        return Reading("secret", text, secret=found[0].kind)
    small = _small_talk(text)
    if small is not None or is_pasted(text):
        return Reading(small or "paste", text)
    return _asking(text) if asks(text) else _order(text) or _telling(text)


def _telling(text: str) -> Reading:
    """A message that neither ends with a question mark nor begins with an order."""
    if begins(text, language_of(text).list("work")) is not None:
        return Reading("work", text)
    if text.endswith(_ENDS) or not all(asks(each) or _leads(each) for each in sentences(text)):
        return Reading("statement", text)
    if any(map(_says_much, _CLAUSE.split(_without_lead(text))[1:])):
        # "Who cares about the budget, I spent 300 on shoes"
        return Reading("statement", text, question=text)
    return Reading("question", text, question=text, surely=False)


def _leads(text: str) -> bool:
    """True if a text begins as questions do."""
    return begins(_without_lead(text), language_of(text).list("question")) is not None


def asks(text: str) -> bool:
    """True if a text ends with a question mark."""
    return text.rstrip().endswith(_ASKS)


def is_pasted(text: str) -> bool:
    """True if a message has the shape of something that wasn't typed here."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(text) > _MOST_CHARACTERS or len(lines) > _MOST_LINES or _FENCE.search(text):
        return True
    machine = sum(_MACHINE_LINE.match(line) is not None for line in lines)
    return machine >= _LEAST_MACHINE_LINES and machine >= _MACHINE_SHARE * len(lines)


def title_of(decided: str) -> str:
    """What was decided, in its own words: up to the reason, or to the end of the sentence."""
    found, reasons = tokens(decided), of_all("reason")
    ends = [match.start() for match in _END_OF_TITLE.finditer(decided)]
    ends += [found[n].start for n in range(1, len(found)) if reasons.match(decided, found, n)]
    title = decided[: min(ends, default=None)].strip(" ,\t-\N{EN DASH}\N{EM DASH}")
    if len(title) > _TITLE_WIDTH:
        head, comma, _ = title[:_TITLE_WIDTH].rpartition(",")
        title = head if comma and len(head) >= _SHORTEST_TITLE else shorten(title, _TITLE_WIDTH)
    return title[:1].upper() + title[1:]


def _small_talk(text: str) -> SmallTalk | None:
    """The kind of small talk that a message is nothing but; pictures alone are such, too."""
    found = tokens(text)
    if any(left_over(text, map(of_all, _SMALL_TALK))):
        return None
    if not found:
        return "talk"
    return max(_SMALL_TALK, key=lambda kind: of_all(kind).match(text, found))


def _without_lead(text: str) -> str:
    """A message without the small talk that it begins with: *ok*, *hey*."""
    for kind in _SMALL_TALK:
        rest = begins(text, of_all(kind))
        if rest:
            return _without_lead(rest)
    return text


def _order(text: str) -> Reading | None:
    """The order that a message begins with, by the longest phrase."""
    found = tokens(text)
    counts = {kind: of_all(kind).match(text, found) for kind in _ORDERS}
    kind = max(_ORDERS, key=counts.__getitem__)
    rest = begins(text, of_all(kind))
    is_none = asks(sentences(text)[0]) or begins(text, of_all("recall")) is not None
    if is_none or not rest or not tokens(rest):
        return None
    if kind == "decision":
        says_all = begins(text, of_all("keeps")) is not None
        return Reading(kind, text, title=title_of(text if says_all else rest))
    # A wish to be reminded stays as it was typed; a label says no more than the box does.
    is_label = text[found[counts[kind] - 1].end :].lstrip().startswith(":")
    return Reading(kind, rest if kind != "task" or is_label else text)


def _asking(text: str) -> Reading:
    """A message that ends with a question; what is stated before that counts as well."""
    *before, last = sentences(text)
    is_stated = any(_says_much(part) for each in (*before, last) for part in _stated(each))
    kind: Kind = "statement" if is_stated else "question"
    return Reading(kind, text, question=last if before else text)


def _stated(sentence: str) -> list[str]:
    """What of a sentence states something: "I moved to Berlin last week, who do I tell?"."""
    if not asks(sentence):
        return [sentence]
    return [] if _leads(sentence) else _CLAUSE.split(sentence)[:-1]


def _says_much(text: str) -> bool:
    return len(tokens(text)) >= _FEW_WORDS
