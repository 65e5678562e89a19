"""What the user said, sentence by sentence, and what is kept for a line that a model makes of it.

A model chooses what to keep, and where; the words are the user's. For a line there are the
sentences that it is based on, as they were said. The line itself is kept only where it is plainly
the same: it has the same words in the same order but for articles and the like, with the question
that the sentence answers before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from kbtui.knowledge.format.facts import normalise
from kbtui.memory.comparing.figures import figures_and_dates
from kbtui.memory.comparing.sentences import Sentence, beyond_small_talk, shared_stems
from kbtui.memory.comparing.turned import missing_frames, names_in
from kbtui.memory.records.dates import with_dates
from kbtui.offline.borrowed import sentences_with_owner
from kbtui.offline.frames import (
    DROPPED,
    UNREAL,
    UNSURE,
    other_language,
    pronouns_in,
    without_listed,
)
from kbtui.offline.language import significant_terms, tokens
from kbtui.text import clean_line, shorten

MAX_LENGTH = 3_500  # characters of a sentence that is kept; more is cut off
_MAX_LASTING = 600  # of one that stands elsewhere than where its day is
_MIN_SHARE = 0.4  # of a line's stems
_MIN_STEMS = 2  # content words that another sentence adds to a line
_MAX_ANSWER = 4  # words of an answer that needs its question
_MAX_DEPENDENT = 6  # words of a sentence without a pronoun that may need its question
_MAX_WORDS = 6  # of what a pronoun stands for
_CLAUSE = re.compile(r"[,;]\s+(?:(?:and|und|y|et|e)\s+)?")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_QUOTATION_MARK = re.compile('["\u201c\u201e\u00ab]')
_IGNORED = ("plain", "speaker", "own")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of the user's: its time and id, and the questions that it may answer."""

    text: str
    said: datetime | date | None = None
    number: int | None = None
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for a line.

    Attributes:
        text: The text to write.
        said: When it was said.
        number: The id of its message.
        is_passing: Whether it stands only where its day is: what it says isn't so, or isn't what
            the line made of it, or it is too long.
        is_unreal: Whether what it says isn't so, or is only what somebody says or guesses.
        is_said: Whether it was said so. False: it is the line itself.
    """

    text: str
    said: datetime | date | None = None
    number: int | None = None
    is_passing: bool = False
    is_unreal: bool = False
    is_said: bool = True


@dataclass(frozen=True, slots=True)
class _Row:
    sentence: Sentence
    of: Spoken


class UserSentences:
    """The statements of the user. Sentences that only ask are left out."""

    def __init__(self, said: Iterable[Spoken]) -> None:
        rows = (
            _Row(Sentence.of(each, message.text, may_ask=True, is_borrowed=is_borrowed), message)
            for message in said
            for each, is_borrowed in sentences_with_owner(message.text)
        )
        self._rows = [
            row
            for row in rows
            if row.sentence.stems and not row.sentence.asks
            if any(beyond_small_talk(row.sentence.text))
        ]

    def unmentioned(self, lines: Iterable[str], minimum: int) -> list[Kept]:
        """Return the statements that no line covers half of.

        Only those with `minimum` content words, or two and a number or a date.
        """
        known = [Sentence.of(line) for line in lines]
        return [
            replace(self._as_said(row, Sentence.of("")), is_passing=True)
            for row in self._rows
            if row.of.number is not None
            and len(row.sentence.stems)
            >= (_MIN_STEMS if any(figures_and_dates(row.sentence.text)) else minimum)
            and not any(line.covers(row.sentence) for line in known)
        ]

    def kept_for(
        self, line: str, number: int | None = None, *, subject: str = "", of_user: bool = False
    ) -> list[Kept]:
        """Return what is kept for a line; nothing if it only asks, or no sentence resembles it.

        Args:
            line: What somebody made of it.
            number: The id of the message that it is said to be from.
            subject: Whom or what it is about.
            of_user: Whether it stands where everything is about the user.
        """
        claim = Sentence.of(line, may_ask=True)
        if claim.asks:
            return []
        found = self._based_on(claim, number)
        if len(found) == 1 and (same := self._plainly_same(found[0], claim, subject)):
            row = found[0]
            text = _with_days(clean_line(same), row.of.said)
            return [Kept(text, row.of.said, row.of.number, is_said=False)]
        kept: dict[str, Kept] = {}
        for row in self._standing_alone(found, claim):
            told = self._as_said(row, claim)
            names = names_in(row.sentence.text, claim.text)
            about = frozenset(significant_terms(subject))
            missing = missing_frames(row.sentence, claim, names, about, of_user=of_user)
            is_long = len(row.sentence.text) > _MAX_LASTING
            passing = bool(is_long or missing or row.sentence.frames & UNREAL)
            unreal = bool(row.sentence.frames & (UNREAL - {DROPPED}) or missing & UNSURE)
            kept.setdefault(told.text, replace(told, is_passing=passing, is_unreal=unreal))
        return list(kept.values())

    # Choosing --------------------------------------------------------------------------------

    def _based_on(self, claim: Sentence, number: int | None) -> list[_Row]:
        """Return the sentences that a line is based on, in the order they were said in.

        So a correction follows what it corrects. A line in another language names none of their
        words; then its message tells.
        """
        rest = set(claim.stems)
        found: list[int] = []

        def adds(at: int) -> bool:
            shared = shared_stems(rest, self._rows[at].sentence.stems)
            if at in found or not shared:
                return False
            least = max(_MIN_STEMS if found else 1, _MIN_SHARE * len(rest))
            is_other = other_language(self._rows[at].sentence.text, claim.text)
            if is_other and not found and self._rows[at].of.number == number:
                return True
            return len(shared) >= least or bool(found and claim.covers(self._rows[at].sentence))

        def nearness(at: int) -> tuple[int, int, int, int]:
            row = self._rows[at]
            shared = len(shared_stems(rest, row.sentence.stems))
            return shared, row.of.number == number, -len(row.sentence.stems), at

        while (best := max(filter(adds, range(len(self._rows))), key=nearness, default=-1)) >= 0:
            found.append(best)
            rest -= shared_stems(rest, self._rows[best].sentence.stems)
        if not found and number is not None:
            found = self._in_message(claim, number)
        return [self._rows[at] for at in sorted(found)]

    def _in_message(self, claim: Sentence, number: int) -> list[int]:
        """Return the statements of a message that are closest to a line it is said to say."""
        own = [at for at, row in enumerate(self._rows) if row.of.number == number]
        stems = {at: self._rows[at].sentence.stems for at in own}
        shared = [at for at in own if shared_stems(claim.stems, stems[at])]
        if shared or len(own) == 1:
            return (shared or own)[:1]
        texts = (self._rows[at].sentence.text for at in own)
        return own if any(other_language(each, claim.text) for each in texts) else []

    def _plainly_same(self, row: _Row, claim: Sentence, subject: str) -> str:
        """Return what is kept for a line that is plainly the same as a sentence; else "".

        It has all words of the sentence or of a clause of it, in order, and no others, or those of
        the question before it as well. A clause is kept as it was said, unless the line is shorter.
        """
        said = row.sentence
        if said.is_borrowed or said.frames != claim.frames or said.denies != claim.denies:
            return ""
        theirs = _telling_words(claim.text)
        begun = [*_as_begun(theirs, subject)]
        if _telling_words(said.text) in (begun, theirs):
            return claim.text
        if not (said.frames or said.denies):
            for each in _CLAUSE.split(said.text):
                if _telling_words(each) == begun:
                    return min(claim.text, each, key=lambda text: len(tokens(text)))
        return claim.text if _is_led_by_question(row, theirs) else ""

    def _standing_alone(self, found: Sequence[_Row], claim: Sentence) -> list[_Row]:
        """Return the sentences without those that only name what a pronoun of another means."""
        named = [each for row in found for each in self._antecedents(row, claim)[:1]]
        return [
            row
            for row in found
            if not any(
                row is other and claim.stems & row.sentence.stems <= {*significant_terms(noun)}
                for noun, other in named
            )
        ]

    # Writing ---------------------------------------------------------------------------------

    def _as_said(self, row: _Row, claim: Sentence) -> Kept:
        """Return a sentence with what makes it stand alone: its question, its day, a name."""
        text = row.sentence.text
        nouns = self._antecedents(row, claim)
        if nouns:
            _, end = next(pronouns_in(text))
            text = f"{text[:end]} [{nouns[0][0]}]{text[end:]}"
        text = clean_line(text)
        if len(text) > MAX_LENGTH:
            text = shorten(text, MAX_LENGTH)
        if row.sentence.is_borrowed:
            text = _in_quotation_marks(text)
        asked = "" if nouns else _question(row, claim)
        text = f"{asked} {text}" if asked else text
        return Kept(_with_days(text, row.of.said), row.of.said, row.of.number)

    def _antecedents(self, row: _Row, claim: Sentence) -> list[tuple[str, _Row]]:
        """Return what the first pronoun of a sentence may stand for, nearest first.

        Each in the words that a sentence before it has in common with the line, and with that
        sentence.
        """
        if next(pronouns_in(row.sentence.text), None) is None:
            return []
        wanted = claim.stems - row.sentence.stems
        before = reversed(self._rows[: self._rows.index(row)])
        return [(noun, each) for each in before if (noun := _noun_in(each.sentence.text, wanted))]


def _is_led_by_question(row: _Row, words: Sequence[str]) -> bool:
    """Return whether words are those of a sentence, behind some of the question it answers."""
    text = row.sentence.text
    own = [each for each in _telling_words(text) if each not in _pronouns(text)]
    lead = words[: len(words) - len(own)]
    asked = iter([word for each in row.of.questions for word in _telling_words(each)])
    is_led = own and lead and words[len(lead) :] == own
    return bool(is_led) and all(each in asked for each in lead)


def _with_days(text: str, said: datetime | date | None) -> str:
    """Return a text with the days that its words meant, in brackets."""
    return with_dates(text, said) if said else text


def _noun_in(text: str, wanted: frozenset[str]) -> str:
    """Return the words of a text with some stems if they stand together, with their article."""
    found = tokens(text)
    stems = [{*significant_terms(text[each.start : each.end])} for each in found]
    marked = [number for number, own in enumerate(stems) if own & wanted]
    if not 0 < len(marked) <= _MAX_WORDS or marked[-1] - marked[0] >= len(marked):
        return ""
    first, last = found[marked[0]], found[marked[-1]]
    article = text[found[marked[0] - 1].start : first.start] if marked[0] else ""
    is_article = article.strip() and not without_listed(article, "plain").strip()
    return f"{article if is_article else ''}{text[first.start : last.end]}"


def _question(row: _Row, claim: Sentence) -> str:
    """Return the question that a sentence answers, if it says what the line is about.

    A sentence that stands alone needs none, and what was asked before may be something else.
    """
    text = row.sentence.text
    if _length(text) > _MAX_DEPENDENT and next(pronouns_in(text), None) is None:
        return ""
    lacking = claim.stems - row.sentence.stems
    asked = {each: {*significant_terms(each)} for each in row.of.questions}
    naming = (each for each, stems in asked.items() if stems & lacking)
    # A few words that begin a message are an answer, whatever a line makes of them.
    is_answer = _length(row.sentence.text) <= _MAX_ANSWER and row.of.text.lstrip().startswith(
        row.sentence.text
    )
    telling = (each for each, stems in asked.items() if stems and is_answer)
    return clean_line(next(naming, next(telling, "")))


def _length(text: str) -> int:
    """Return the number of a text's words; where no blanks are between them, of its letters."""
    return len(tokens(text)) + len(_UNSPACED.findall(text))


def _telling_words(text: str) -> list[str]:
    """Return the words of a text in their normal form, without articles and the speaker."""
    for name in _IGNORED:
        text = without_listed(text, name)
    return normalise(text).split()


def _pronouns(text: str) -> set[str]:
    return {word for start, end in pronouns_in(text) for word in normalise(text[start:end]).split()}


def _as_begun(words: Sequence[str], subject: str) -> Iterable[str]:
    """Return the words of a line about a subject, which is named first where it isn't in them."""
    about = normalise(subject).split()
    return words if set(about) & set(words) else [*about, *words]


def _in_quotation_marks(text: str) -> str:
    plain = text.lstrip("> ").strip()
    return plain if _QUOTATION_MARK.search(plain) else f'"{plain}"'
