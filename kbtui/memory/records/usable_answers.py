"""Checks whether a text that a model wrote can be stored, or only looks like an answer."""

from __future__ import annotations

import re

from kbtui.errors import ModelAnswerError
from kbtui.text import clean, storable

_ECHO_LINES = 2
_TIME = re.compile(r"^\[[^\]\n]{0,40}\]\s*")
_TRANSCRIPT = re.compile(
    r"^\s*\[[^\]\n]{4,40}\]\s*(?:USER|ASSISTANT|TOOL|SYSTEM)\b[^:\n]{0,80}:", re.MULTILINE
)
_PROMPT = re.compile(
    r"process this conversation and call|call the save_memory tool|## current long-term memory"
    r"|## conversation to process|start with \[yyyy-mm-dd|include detail useful for grep"
    r"|full updated long-term memory as markdown|a paragraph \(2-5 sentences\)",
    re.IGNORECASE,
)
# \u2019 is the typographic apostrophe.
_PLACEHOLDERS = (
    r"empty|none|null|nil|n/?a|nothing(?: new)?|string|text|todo|tbd|placeholder|unchanged|silent",
    r"no (?:new )?(?:facts?|changes?|updates?|information)|no change|undefined|unknown",
    r"your (?:text|answer|summary) here|(?:new )?fact ?\d*|history_entry|memory_update",
    r"lorem ipsum.*|yyyy-mm-dd(?: hh:mm)?",
)
_PLACEHOLDER = re.compile(rf"\W*(?:{'|'.join(_PLACEHOLDERS)})?\W*", re.IGNORECASE)
_APOLOGY = r"(?:i['\u2019]?m sorry|i am sorry|sorry|unfortunately|i apologi[sz]e)?[,.! ]*(?:but )?"
_CANNOT = r"can['\u2019]?t|cannot|can not|won['\u2019]?t|am unable to|must decline to"
# "I can't do weekends" is a person's; "I can't do that" is a model's refusal.
_ANY = r"(?:\s+(?:you|your|with|that|this|it|any|such|so|in this)\b|\W*$|[.,!])"
_REFUSALS = (
    r"as an ai\b|i['\u2019]?m unable to|i (?:don['\u2019]?t|do not) have access",
    rf"i (?:{_CANNOT}) (?:help|assist|comply|process|fulfil|do|provide|complete|call|access){_ANY}",
    rf"i (?:{_CANNOT}) (?:engage|continue|summari[sz]e|share|discuss){_ANY}",
)
_REFUSAL = re.compile(rf"{_APOLOGY}(?:{'|'.join(_REFUSALS)})", re.IGNORECASE)
_STATUS = r"bad gateway|gateway time-?out|too many requests|server error|not found"
_TROUBLE = (
    r"service (?:is )?(?:temporarily )?unavailable|rate limit (?:reached|exceeded)|invalid api key"
    r"|upstream (?:connect error|request timeout)|context length exceeded|quota exceeded"
    r"|connection (?:error|refused|reset)"
)
_ERRORS = (
    r"\{\s*\"?error|<!doctype|<html|traceback \(most recent|error(?: code)?\s*[:(]|error \d{3}\b",
    r"(?:http(?:/[\d.]+)?|status)[ :]+[45]\d\d\b|internal server error\W*$",
    rf"[45]\d\d\s+(?:{_STATUS}|internal|service|too many|gateway|unauthori[sz]ed|forbidden)",
    rf"(?:{_STATUS}|{_TROUBLE})(?=\s*(?:[:.,;(!-]|$|for |after |or ))",
)
_ERROR = re.compile("|".join(_ERRORS), re.IGNORECASE)


def clean_answer(text: str) -> str:
    """Strip reasoning, control characters and lone surrogates from a model's text."""
    # Whoever writes loads this module, but only a model's answers have thoughts.
    from kbtui.models.dialects import without_thoughts

    return clean(without_thoughts(storable(text))).strip()


def is_placeholder(text: str) -> bool:
    """Return whether a text stands for having nothing to say, like ``(empty)`` or ``None``."""
    return _PLACEHOLDER.fullmatch(text) is not None


def why_unusable(text: str) -> str | None:
    """Return what is wrong with an answer (an echo, a refusal, an error text), or None."""
    answer = _TIME.sub("", text, count=1).strip()
    if _PROMPT.search(text) or len(_TRANSCRIPT.findall(text)) >= _ECHO_LINES:
        return "repeats the prompt instead of answering it"
    if _REFUSAL.match(answer):
        return f"is a refusal: {answer[:80]!r}"
    if _ERROR.match(answer):
        return f"is an error text: {answer[:80]!r}"
    return None


def usable_text(text: str, name: str = "The answer") -> str:
    """Clean a text that a model wrote so that it can be stored.

    Raises:
        ModelAnswerError: It is empty or a placeholder, an echo of the prompt, a refusal, or an
            error text; the message says which.
    """
    plain = clean_answer(text)
    if is_placeholder(_TIME.sub("", plain, count=1)):
        raise ModelAnswerError(f"{name} is empty or a placeholder: {plain[:60]!r}.")
    why = why_unusable(plain)
    if why is not None:
        raise ModelAnswerError(f"{name} {why}.")
    return plain
