"""Reads a message: what of it is worth keeping, what it asks, and what it is otherwise.

What is kept is the speaker's own clause, word for word. Nothing is kept of questions, thanks, small
talk, commands, hypotheticals, pasted text and secrets; a statement that isn't kept is named, so
that its writer can be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kbtui.knowledge.format.facts import Fact
from kbtui.offline import words as w
from kbtui.offline.corrections import Correction, find, without_cue
from kbtui.offline.judging import (
    WORTH_KEEPING,
    Sentence,
    is_chat,
    is_paste,
    is_question,
    sentences,
    worth_of,
)
from kbtui.offline.lines import Line
from kbtui.offline.subjects import about, is_named, titled
from kbtui.text import fold
from kbtui.workspace.redact import redact

Kind = Literal[
    "statement",
    "question",
    "chat",
    "greeting",
    "thanks",
    "command",
    "hypothetical",
    "secret",
    "paste",
]
_LONGEST = 6_000
_LONG_WORD = re.compile(r"\S{400,}")  # nothing that anybody said
_JOINT = re.compile(
    r",?\s+(?:and|und|y)\s+(?=(?:my|our|mein\w*|unser\w*|mi|nuestr\w+)\s+[\w-]+\s+[A-ZÄÖÜÁÉÍÓÚÑ])"
    r"|,\s+(?:and\s+|und\s+|y\s+|while\s+|aber\s+|but\s+)?(?=[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+\s+(?P<verb>\w+))"
)
_ANSWER = re.compile(
    r"^(?:it['’]?s|it is|they['’]?re|they are|that['’]?s|es ist|das ist|sie sind|es|son)?\s*(?P<value>\S.*?)[.!]*$",
    re.IGNORECASE | re.DOTALL,
)
_OF_MINE = re.compile(
    r"^(?:what|who|where|when|which|was|wer|wo|wann|qué|cuál|quién|dónde|cuándo)(?:['’]?s|\s+is|\s+are|\s+ist|\s+sind|\s+es|\s+son)?\s+(?P<what>(?:my|your|mein\w*|dein\w*|ihr\w*|mi|tu|su)\s+[^?]{2,60})\?*$",
    re.IGNORECASE,
)
_DO_I = re.compile(
    r"^(?:what|which)\s+(?P<what>[\w' -]+?)\s+do\s+(?:i|you)\s+(?P<verb>\w+)\?*$", re.IGNORECASE
)
_ANSWER_WORDS = 12
_BACK = 6
_REMEMBER_THAT = re.compile(
    r"^(?:please\s+|bitte\s+|por favor,?\s+)*(?:(?:remember|note|keep|save)\s+(?:that|this|it)|merk dir das|notier(?:e)? das|recuerda(?:lo)?(?: eso)?|apunta(?:lo)?(?: eso)?|guárdalo)(?:\s+(?:please|bitte|por favor))?[.!]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Understood:
    """The meaning of a message: its kind on the whole, its facts, and the part that asks.

    `not_kept` is a statement, or what looks like one, that isn't kept; `secret` the kind of one, if any.
    """

    kind: Kind
    facts: tuple[Fact, ...] = ()
    question: str = ""
    not_kept: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One message before; `role` is ``user`` or ``assistant``."""

    role: str
    text: str


def understand(text: str, before: Sequence[Said] = (), known: Sequence[Line] = ()) -> Understood:
    """Read a message, after the last messages before it, oldest first.

    `known` are lines that it may be about: of entries that it names, or that were spoken of last.
    """
    spoken = _LONG_WORD.sub("", text.strip()[:_LONGEST]).strip()
    hidden = redact(spoken)
    secret = hidden.found[0].kind if hidden.found else ""
    if is_paste(spoken):
        return Understood("secret" if secret else "paste", secret=secret)
    parts = sentences(hidden.text)
    if _REMEMBER_THAT.match(spoken):
        return _said_before(before, known)
    asked = [each for each in parts if _REMEMBER_THAT.match(each.text)]
    if asked:
        parts = [each for each in parts if each not in asked]
        spoken = " ".join(each.text for each in parts)
    if secret:
        parts = [each for each in parts if "[redacted" not in each.text]
        parts = [
            each for each in parts if each.worth >= 2 * WORTH_KEEPING or each.form != "statement"
        ]
    question = " ".join(each.text for each in parts if each.form == "question")
    reader = _Reader(hidden.text, parts, before, known)
    facts = reader.facts()
    if not facts and not secret and not question:
        facts = _answered(spoken, before)
        if asked and not facts:
            facts = [Fact(_plain(each.said), *about(each.said)) for each in parts]
    kind = _kind(spoken, parts, facts, question, secret)
    not_kept = ""
    if not facts and not secret and not question and kind in ("statement", "hypothetical"):
        not_kept = " ".join(
            each.text for each in parts if each.form in ("statement", "hypothetical")
        )
    return Understood(kind, tuple(facts[:12]), question, not_kept, secret)


class _Reader:
    """Makes facts of the sentences of one message."""

    def __init__(
        self, text: str, parts: Sequence[Sentence], before: Sequence[Said], known: Sequence[Line]
    ) -> None:
        self._text = text
        self._parts = parts
        self._known = known
        self._before = [each.text for each in reversed(before)]

    def facts(self) -> list[Fact]:
        found: list[Fact] = []
        for piece in self._pieces():
            found += self._of(piece, found)
        return list({(fold(fact.text), fact.replaces): fact for fact in found}.values())

    def _pieces(self) -> list[Sentence]:
        """What may be kept: sentences that go on from each other as one, clauses apart."""
        pieces: list[Sentence] = []
        one = self._one_correction()
        if one is not None:
            return [one]
        stated = [
            each
            for each in self._parts
            if each.form in ("statement", "remember", "todo", "wish", "chat")
        ]
        whole = " ".join(each.said for each in stated if each.form == "statement")
        corrects = any(self._corrects(each) for each in stated)
        together = corrects or worth_of(self._text, whole) >= WORTH_KEEPING
        for each in stated:
            if each.form == "chat":
                continue
            last = pieces[-1] if pieces else None
            goes_on = last is not None and self._goes_on(last, each)
            kept = each.is_kept or corrects
            if goes_on and last is not None and (kept or self._adds(each)):
                pieces[-1] = self._join(last, each)
            elif kept or (
                together and not any(p.form == "statement" for p in pieces) and self._adds(each)
            ):
                pieces.append(each)
        out: list[Sentence] = []
        for piece in pieces:
            out += self._clauses(piece)
        return out

    def _one_correction(self) -> Sentence | None:
        """All that is stated as one piece, where only together it corrects something."""
        stated = [each for each in self._parts if each.form in ("statement", "remember")]
        if len(stated) < 2 or any(each.bullets for each in stated):  # together
            return None
        whole = self._join(stated[0], stated[-1])
        alone = any(self._corrects(each) for each in stated)
        return None if alone or not self._corrects(whole) else whole

    def _corrects(self, each: Sentence) -> bool:
        if each.form not in ("statement", "remember"):
            return False
        return self._correction(each.said) is not None

    def _correction(self, said: str) -> Correction | None:
        return find(said, self._known, self._before, about(without_cue(said)[0])[1])

    @staticmethod
    def _adds(each: Sentence) -> bool:
        """True if a sentence beside one that is kept says something itself."""
        return bool(each.bullets) or (len(w.content(each.said)) > 0 and each.worth > -2.0)

    def _goes_on(self, last: Sentence, each: Sentence) -> bool:
        """True if a sentence goes on about what the one before it is about."""
        if each.form != "statement" or last.form == "wish":
            return False
        between = self._text[last.end : each.start]
        if between.count("\n") > 1 or w.content(between):
            return False
        if re.match(r"(?:dr\.?\s)?[A-ZÄÖÜ]\w+\s+(?:\w+)", each.said) and each.is_kept:
            kind, title = about(each.said)
            if kind in ("person", "decision") and fold(title) not in fold(last.said):
                return False
        return "\n" not in between or bool(last.bullets) or not each.is_kept

    def _join(self, last: Sentence, each: Sentence) -> Sentence:
        text = self._text[last.start : each.end]
        said = " ".join(text.split()) if not (last.bullets or each.bullets) else text
        return Sentence(
            text,
            said,
            last.form,
            max(last.worth, each.worth),
            (*last.bullets, *each.bullets),
            last.start,
            each.end,
        )

    def _clauses(self, piece: Sentence) -> list[Sentence]:
        """Cut a sentence where a clause about somebody else begins."""
        if piece.bullets or piece.form in ("wish", "todo") or self._correction(piece.said):
            return [piece]
        for match in _JOINT.finditer(piece.said):
            head, tail = piece.said[: match.start()], piece.said[match.end() :]
            verb = fold(match["verb"] or "")
            if match["verb"] and (w.values(verb) or verb not in _STATES):
                continue
            if not (set(w.words(head)) & (w.DURABLE | w.COPULA | {"im"} | _MINE)) and match["verb"]:
                continue
            if match["verb"] and about(head)[0] == "decision":
                continue
            if worth_of(tail, tail) < WORTH_KEEPING or len(w.content(head)) < 2:
                continue
            first = replace(piece, text=head, said=head)
            return [first, *self._clauses(replace(piece, text=tail, said=tail))]
        return [piece]

    def _of(self, piece: Sentence, earlier: Sequence[Fact]) -> list[Fact]:
        if piece.form in ("statement", "remember") and not piece.bullets:
            correction = self._correction(piece.said)
            if correction is not None:
                line = correction.line
                facts = [
                    self._fact(
                        correction.text, line.kind, line.title, replaces=line.text, line=line
                    )
                ]
                said = without_cue(piece.said)[0]
                if correction.more:
                    facts.append(self._fact(said, line.kind, line.title, line=line))
                return facts
        said, _ = without_cue(piece.said)
        if piece.bullets and not said:
            kind, title = self._title(_as_item(piece.bullets[0]).removeprefix("- "), earlier)
            return [self._fact(self._listed("", piece), kind, title)]
        kind, title = self._title(said, earlier)
        text = said
        if piece.bullets:
            text = self._listed(said, piece)
        if piece.form == "wish":
            return [Fact(_plain(text), "preference", title or about(said)[1], place="memory")]
        if title in ("My name", "Mein Name", "Mi nombre"):
            return [Fact(_plain(text), "fact", title, place="memory")]
        fact = self._fact(text, kind, title)
        if (
            earlier
            and w.words(said)[-1:]
            and w.words(said)[-1] in _IT
            and earlier[-1].subject != title
        ):
            fact = replace(fact, related=(earlier[-1].subject,))
        return [fact]

    @staticmethod
    def _listed(said: str, piece: Sentence) -> str:
        """A list with the line above it; a list of one item is a line."""
        items = [_as_item(each) for each in piece.bullets]
        head = said.split("\n", maxsplit=1)[0]
        return (
            items[0].removeprefix("- ")
            if not head and len(items) == 1
            else "\n".join(filter(None, [head, *items]))
        )

    @staticmethod
    def _fact(
        text: str, kind: str, title: str, *, replaces: str = "", line: Line | None = None
    ) -> Fact:
        in_memory = line is not None and line.source == "memory"
        return Fact(
            _plain(text), kind, title, replaces=replaces, place="memory" if in_memory else "entry"
        )

    def _title(self, said: str, earlier: Sequence[Fact] = ()) -> tuple[str, str]:
        """The entry that a statement belongs to: one that it names, the last one, or its own."""
        kind, title = about(said)
        first = w.words(said)[:3]
        if known := self._entry(title):
            return known.kind, known.title
        named = re.match(r"(?:das|dies\w*|es[et]\w?)\s+[\wäöü]", said, re.IGNORECASE) and (
            w.is_content(first[1]) and first[1] not in w.DURABLE
        )
        refers = bool(set(first[:1]) & w.pronouns(said) and not named) or bool(
            set(w.words(said.split(":", maxsplit=1)[0])) & _THEM and ":" in said
        )
        if not title or refers or not w.content(title):
            if earlier:
                return earlier[-1].kind, earlier[-1].subject
            if last := self._last_spoken_of():
                return last.kind, last.title
        if title and len(w.content(title)) == 0:
            title = ""
        return kind, title or titled(" ".join(said.split()[:4])) or "Notes"

    def _entry(self, title: str) -> Line | None:
        """The known entry that a title means: the same, a part of its name, or who is named."""
        wanted = [word for word in w.content(title) if word not in _WEAK]
        if not wanted:
            return None
        found: dict[str, Line] = {}
        for line in self._known:
            if line.source != "entry":
                continue
            theirs = [word for word in w.content(line.title) if word not in _WEAK]
            if not theirs:
                continue
            if fold(title) == fold(line.title):
                return line
            named = is_named(line.title)
            inside = _all_in(wanted, theirs) or (
                _all_in(theirs, wanted) and (named or len(theirs) > 1)
            )
            if named and not inside:
                first = w.words(title)[0].partition("'")[0] if w.words(title) else ""
                inside = (
                    first in [word.partition("'")[0] for word in theirs]
                    and title[:1].isupper()
                    and line.kind in ("person", "fact")
                    and "'s" in title.replace("’", "'")
                )
            if inside:
                found.setdefault(line.path, line)
        return next(iter(found.values())) if len(found) == 1 else None

    def _last_spoken_of(self) -> Line | None:
        """The entry that keeps what was said last."""
        for text in self._before[:_BACK]:
            told = set(w.content(text))
            for line in self._known:
                mine = set(w.content(line.text))
                if line.source == "entry" and mine and len(mine & told) >= 0.7 * len(mine):
                    return line
        return None


def _all_in(words: Iterable[str], others: Sequence[str]) -> bool:
    return all(any(w.alike(word, other) for other in others) for word in words)


def _as_item(bullet: str) -> str:
    return "- " + re.sub(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+", "", bullet).strip()


def _plain(text: str) -> str:
    return text.strip().strip(",;").strip()


def _answered(text: str, before: Sequence[Said]) -> list[Fact]:
    """Take a short message as the answer to the question before it, if it answers it."""
    asked = next((each.text for each in reversed(before)), "")
    mine = next((each.text for each in reversed(before) if each.role == "user"), "")
    for question in (_last_question(asked), mine):
        plain = question.strip()
        said = text.strip()
        value = _ANSWER.match(said)
        if not plain or value is None or len(said.split()) > _ANSWER_WORDS or is_chat(said):
            continue
        if is_question(said) or not _fits(plain, value["value"]):
            continue
        if match := _OF_MINE.match(plain):
            what = re.sub(
                r"^(?:your|dein\w*|ihr\w*|tu|su)\b",
                _own,
                match["what"].strip(),
                flags=re.IGNORECASE,
            )
            code = w.language(plain)
            verb = {"en": "is", "de": "ist", "es": "es"}[code]
            if code == "en" and re.search(r"\bare\b", plain, re.IGNORECASE):
                verb = "are"
            sentence = f"{what[:1].upper()}{what[1:]} {verb} {value['value']}"
            title = titled(re.sub(r"^(?:my|mein\w*|mi)\s+", "", what, flags=re.IGNORECASE))
            liking = re.search(r"favou?rite|lieblings|favorit", what, re.IGNORECASE)
            return [Fact(sentence, "preference" if liking else "fact", title)]
        if match := _DO_I.match(plain):
            return [Fact(f"I {match['verb']} {value['value']}", "fact", titled(match["what"]))]
    return []


def _own(match: re.Match[str]) -> str:
    return {"y": "my", "d": "mein", "i": "mein", "t": "mi", "s": "mi"}[match[0][0].lower()]


def _last_question(text: str) -> str:
    found = [each.text for each in sentences(text) if each.text.rstrip().endswith("?")]
    return found[-1] if found else ""


def _fits(question: str, value: str) -> bool:
    """True if a short text can answer a question: a number where one is asked for, and so on."""
    told = w.words(value)
    if not told or told[0] in w.FIRST_PERSON | w.CHAT | w.INTERJECTION | w.SECOND_PERSON:
        return False
    asked = w.words(question)
    kinds = {each.kind for each in w.values(value)}
    if set(asked) & {
        "size",
        "number",
        "old",
        "age",
        "many",
        "much",
        "grosse",
        "nummer",
        "alt",
        "talla",
        "numero",
        "edad",
    } or asked[:2] == ("how", "many"):
        return bool(kinds) or bool(re.fullmatch(r"[smlx]{1,3}", value.strip(), re.IGNORECASE))
    if asked[0] in ("when", "wann", "cuando"):
        return bool(kinds)
    return len([word for word in told if w.is_content(word)]) > 0


def _said_before(before: Sequence[Said], known: Sequence[Line]) -> Understood:
    """What "remember that" means: the message before it, whatever it is worth."""
    last = next((each.text for each in reversed(before) if each.role == "user"), "")
    if not last or is_question(last) or redact(last).found:
        return Understood("command")
    found = understand(last, (), known)
    facts = found.facts or (Fact(_plain(last), *about(last)),)
    return Understood("statement", facts)


def _kind(  # noqa: PLR0911 - a kind each
    text: str, parts: Sequence[Sentence], facts: Sequence[Fact], question: str, secret: str
) -> Kind:
    if secret:
        return "secret"
    if facts:
        return "statement"
    forms = [each.form for each in parts]
    if question:
        return "question"
    if "command" in forms:
        return "command"
    if "hypothetical" in forms:
        return "hypothetical"
    if not forms or set(forms) == {"chat"}:
        told = set(w.words(text))
        if told & w.THANKS:
            return "thanks"
        return "greeting" if told & w.GREETING and len(told) < 8 else "chat"
    if all(each.worth <= _REACTION for each in parts):
        return "chat"
    return "statement"


_STATES = w.DURABLE | w.COPULA | w.word_set("has hat tiene does will")
_REACTION = -1.0
_IT = w.word_set("it this that them es das dies ihn sie eso esto")
_THEM = w.word_set("them they their ihnen sie deren ellos ellas ese esa")
_WEAK = w.word_set("new old next first second neue neuer neues alte nuevo nueva viejo")
_MINE = w.word_set("prefer like love hate have am need want mag habe bin tengo soy quiero")
