"""Understands plain English statements by explicit patterns (design 10, 23).

Only what is stated is taken: no question, no condition, nothing read between the lines. Titles,
sections and lines are made of the user's own words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kbtui.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TITLE_WIDTH = 60
_ANSWER_WORDS = 14
_NAME = r"[A-Z][\w'’-]*(?:[ -][A-Z][\w'’-]*){0,2}"  # noqa: RUF001 - typographic apostrophes in names
_LEAD = re.compile(
    r"^(?:(?:so|ok|okay|well|also|and|but|then|btw|by the way|fyi|yes|no|today|yesterday|finally|"
    r"please|hey|just|for the record)[,:]?\s+)+",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"^(?:can you\s+|could you\s+)?(?:please\s+)?(?:remember|note|keep in mind|don['’]t forget|"  # noqa: RUF001
    r"make a note|write down|save)(?:\s+(?:that|this|down))*\s*[:,]?\s+(?P<what>.+)$",
    re.IGNORECASE,
)
_REMEMBER_THAT = re.compile(
    r"^(?:please\s+)?(?:remember|note|keep|save)\s+(?:that|this|it)(?:\s+please)?$", re.IGNORECASE
)
_DECIDED = re.compile(
    r"^(?:we|i|the team|our team|they)(?:['’]ve|\s+have|\s+had)?\s+(?:\w+ly\s+|just\s+)?"  # noqa: RUF001
    r"(?:(?P<verb>decided|agreed)\s+(?P<how>to|on|that|against|not to|upon)|"
    r"chose|picked|selected|opted for|settled on|went with|are going with|will go with)\s+"
    r"(?P<what>.+)$",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"^(?P<what>.+?)[,]?\s+(?P<reason>(?:because|since|due to|so that|in order to)\b.+)$",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"\s(?:over|instead of|rather than|and not)\s+(?P<other>.+)$", re.IGNORECASE)
_DOES = re.compile(
    rf"^(?P<who>{_NAME})\s+(?P<does>(?:now\s+)?(?:owns|leads|works on|manages|maintains|runs|heads|"
    r"is responsible for|is in charge of|takes care of|is working on|looks after))\s+(?P<what>.+)$"
)
_ROLE = re.compile(
    rf"^(?P<who>{_NAME})\s+is\s+(?P<role>(?:our|the|a|an|my)\s+(?:[\w-]+\s+){{0,3}}(?:lead|manager|"
    r"engineer|developer|designer|owner|maintainer|architect|analyst|director|boss|colleague|"
    r"friend|wife|husband|partner|sister|brother|mother|father|son|daughter|doctor|dentist|"
    r"teacher|lawyer|accountant|ceo|cto|cfo|coo|pm)\b.*)$",
    re.IGNORECASE,
)
_MY = re.compile(
    r"^my\s+(?P<what>[\w' -]{2,60}?)\s+(?P<verb>is|are|was|were)\s+(?P<value>.+)$", re.IGNORECASE
)
_I_PREFER = re.compile(
    r"^i\s+(?:(?:really|always|usually|generally|mostly|still)\s+)*"
    r"(?P<verb>prefer|like|love|enjoy|hate|dislike|avoid|use|do not like|don['’]t like|"  # noqa: RUF001
    r"never use)\s+(?P<what>.+)$",
    re.IGNORECASE,
)
_I_AM = re.compile(
    r"^(?:i\s+(?P<verb>know|speak|own|play|study|teach)|"
    r"i\s+(?P<place>live|work)\s+(?P<where>in|at|for|near|on|with))\s+(?P<what>.+)$",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"^(?:call me|my name is|i am called)\s+(?P<what>[\w' -]{1,60})$", re.IGNORECASE
)
_WHAT_IS_MY = re.compile(
    r"^(?:what|who|where|when|which)(?:['’]s|\s+is|\s+are|\s+was|\s+were)\s+my\s+(?P<what>.+)$",  # noqa: RUF001
    re.IGNORECASE,
)
_WHAT_DO_I = re.compile(
    r"^(?:what|which)\s+(?P<what>[\w' -]+?)\s+do\s+i\s+(?P<verb>\w+)$", re.IGNORECASE
)
_ANSWER = re.compile(
    r"^(?:it['’]s|it is|they['’]re|they are|that['’]s|that is|that would be|those are)?\s*"  # noqa: RUF001
    r"(?P<value>.+)$",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"^(?:thanks|thank you|thx|ok|okay|hm+|never ?mind|nothing|none|no|nope|yes|yep|cool|great|"
    r"good|nice|hi|hello|hey|sorry|i\b|we\b|you\b|not sure|forget|no idea|stop|bye)\b",
    re.IGNORECASE,
)
_PRONOUNS = frozenset({"it", "this", "that", "them", "these", "those", "this one", "that one"})
_QUESTION = re.compile(
    r"^(?:what|who|whom|whose|why|when|where|which|how|do|does|did|is|are|was|were|can|could|"
    r"should|shall|will|would|have|has|had|am|tell me|show me|find|list|search|look up|look for|"
    r"explain|summari[sz]e|give me|compare)\b",
    re.IGNORECASE,
)
# "I like that", "I know what you mean", "my question is": talk, not something to keep.
_TALK = re.compile(
    r"^(?:it|this|that|these|those|you|your|yours|him|her|them|how|what|when|where|which|who|why|"
    r"if|whether|about|nothing|nobody|everything|to (?:know|see|hear|ask|think))\b",
    re.IGNORECASE,
)
_TALK_OF = re.compile(
    r"^(?:question|point|guess|problem|bad|mistake|hope|plan|idea|next)\b", re.IGNORECASE
)
_CLAUSES = re.compile(r"(?<=[.!?])\s+|\s*;\s*|\n+")
_ABBREVIATED = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|jr|sr|vs|etc|approx|no|inc|ltd|e\.g|i\.e)|\b[a-z])\.$",
    re.IGNORECASE,
)
_USE = re.compile(r"^(?:use|using|go with|adopt|have)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Note:
    """Something to keep.

    Attributes:
        type: The type of entry that it belongs into.
        title: What the entry is called.
        line: What is added where the entry exists already.
        sections: What a new one says; ``""`` is the text above all headings.
        section: Where `line` goes in an existing one; "" is its end.
        key: The beginning of a line that `line` takes the place of.
        summary: One line for the catalogue, where the first sentence wouldn't do.
        about: The title of another note that `line` refers to by a pronoun.
    """

    type: str
    title: str
    line: str
    sections: Mapping[str, str] = field(default_factory=dict)
    section: str = ""
    key: str = ""
    summary: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Understood:
    """What a message states, and what it asks; both may be empty."""

    notes: tuple[Note, ...]
    question: str
    asked_to_remember: bool = False


def understand(text: str, before: str = "") -> Understood:
    """Take a message apart into statements and questions.

    Args:
        text: What the user says now.
        before: What the user said last before it: an answer to his own question is understood,
            and so is "remember that".
    """
    notes: list[Note] = []
    questions: list[str] = []
    rest: list[str] = []
    asked = that = False
    for clause in clauses(text):
        said = _LEAD.sub("", clause).rstrip(".!").strip()
        if _REMEMBER_THAT.match(said):
            asked = that = True
        elif is_question(clause) and not _REMEMBER.match(said):
            questions.append(clause)
        else:
            found, remember = _read(said, notes)
            asked = asked or remember
            notes += found
            rest += [] if found else [clause]
    if not notes and not questions:
        notes += _answer(" ".join(rest), before)
    if not notes and that:
        notes += [_fact(said) for said in rest] or _said_before(before)
    return Understood(tuple(_merged(notes)), " ".join(questions), asked)


def clauses(text: str) -> list[str]:
    """Cut a message into its sentences and the parts between semicolons."""
    parts: list[str] = []
    for part in (each.strip() for each in _CLAUSES.split(text)):
        if parts and part and _ABBREVIATED.search(parts[-1]):
            parts[-1] += f" {part}"
        elif part:
            parts.append(part)
    return parts


def is_question(clause: str) -> bool:
    """Whether a sentence asks for something."""
    return clause.endswith("?") or _QUESTION.match(_LEAD.sub("", clause)) is not None


def _read(said: str, before: Sequence[Note]) -> tuple[list[Note], bool]:
    """What a sentence states, and whether the user asked to remember it."""
    remember = _REMEMBER.match(said)
    if remember:
        inner = remember["what"].strip()
        return list(_statement(inner, before)) or [_fact(inner)], True
    return list(_statement(said, before)), False


def _said_before(text: str) -> list[Note]:
    """What "remember that" means when nothing else is said: the message before it."""
    if not text or is_question(text):
        return []
    return list(understand(text).notes) or [_fact(text.strip().rstrip(".!"))]


def _statement(said: str, before: Sequence[Note]) -> Iterator[Note]:
    """Try each pattern on a statement; the first that fits counts."""
    for pattern, make in _PATTERNS:
        match = pattern.match(said)
        if match and not _is_talk(match):
            yield make(said, match, before)
            return


def _is_talk(match: re.Match[str]) -> bool:
    what = match.groupdict().get("what") or ""
    if match.re is _MY:
        return _TALK_OF.match(what) is not None
    return match.re in (_I_PREFER, _I_AM) and _TALK.match(what) is not None


def _decision(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del before
    what, reason = match["what"], ""
    if parts := _REASON.match(what):
        what, reason = parts["what"], parts["reason"]
    title = what
    if match["how"] and match["how"].lower() in ("against", "not to"):
        title = f"{match['how']} {what}"
    sentence = _sentence(said)
    sections = {"Decision": sentence}
    if reason:
        sections["Context"] = _sentence(reason)
    if other := _INSTEAD.search(what):
        sections["Alternatives considered"] = f"- {other['other']}"
    return Note(
        "decision",
        _title(_USE.sub("", title)),
        sentence,
        sections,
        section="Evolution",
        summary=sentence,
    )


def _person(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del said
    does, what = match["does"], match["what"]
    about = ""
    if what.lower() in _PRONOUNS and before:
        about = what = before[-1].title
    line = f"- {_capital(does)} {what}"
    return Note(
        "person",
        match["who"],
        line,
        {"Works on": line},
        section="Works on",
        about=about,
    )


def _role(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del said, before
    role = _capital(match["role"])
    return Note("person", match["who"], role, {"Role": role}, section="Role")


def _mine(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del before
    what = match["what"].strip()
    liking = re.match(r"(?:favou?rite|preferred)\b", what, re.IGNORECASE)
    key = f"My {what.lower()} {match['verb'].lower()}"
    return _own("preference" if liking else "fact", what, said, key)


def _preference(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del before
    what = match["what"]
    if parts := _REASON.match(what):
        what = parts["what"]
    return _own("preference", what, said)


def _myself(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del before
    if match["place"]:
        return _own(
            "fact", f"Where I {match['place'].lower()}", said, f"I {match['place'].lower()}"
        )
    return _own("fact", f"What I {match['verb'].lower()}", said)


def _name(said: str, match: re.Match[str], before: Sequence[Note]) -> Note:
    del match, before
    return _own("fact", "My name", said, "My name is")


def _fact(said: str) -> Note:
    return _own("fact", said, said)


def _own(kind: str, title: str, said: str, key: str = "") -> Note:
    """Keep a sentence about the user, or about anything, as it was said."""
    sentence = _sentence(said)
    return Note(kind, _title(title), sentence, {"": sentence}, key=key)


def _answer(text: str, question: str) -> list[Note]:
    """Take a short message as the answer to what the user himself has just asked."""
    said = _LEAD.sub("", text.strip()).rstrip(".!").strip()
    asked = question.strip().rstrip("?!. ").strip()
    value = _ANSWER.match(said)
    if value is None or len(said.split()) > _ANSWER_WORDS or _NO_ANSWER.match(said):
        return []
    if mine := _WHAT_IS_MY.match(asked):
        verb = "are" if re.search(r"\bare\b", asked, re.IGNORECASE) else "is"
        return list(_statement(f"My {mine['what']} {verb} {value['value']}", ()))
    if do := _WHAT_DO_I.match(asked):
        sentence = f"I {do['verb']} {value['value']}"
        return [_own("fact", do["what"], sentence, f"I {do['verb']}")]
    return []


def _merged(notes: Sequence[Note]) -> Iterator[Note]:
    """Join what goes into the same entry."""
    by_entry: dict[tuple[str, str], Note] = {}
    for note in notes:
        place = (note.type, note.title.casefold())
        known = by_entry.get(place)
        if known is None:
            by_entry[place] = note
            continue
        sections = dict(known.sections)
        for name, text in note.sections.items():
            sections[name] = f"{sections[name]}\n{text}" if name in sections else text
        by_entry[place] = replace(
            known,
            line=f"{known.line}\n{note.line}",
            sections=sections,
            about=known.about or note.about,
        )
    yield from by_entry.values()


def _title(text: str) -> str:
    return _capital(shorten(text.strip().strip("\"'“”‘’").rstrip(".,!"), _TITLE_WIDTH).rstrip("…"))  # noqa: RUF001


def _sentence(text: str) -> str:
    text = _capital(text.strip())
    return text if text[-1:] in ".!?:" else f"{text}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_PATTERNS = (
    (_DECIDED, _decision),
    (_DOES, _person),
    (_ROLE, _role),
    (_CALLED, _name),
    (_MY, _mine),
    (_I_PREFER, _preference),
    (_I_AM, _myself),
)
