"""Puts the user's own sentences in place of what a model makes of them.

"Yusuf is my head baker, on the early shift from 3" becomes "Yusuf is the head baker", "If I moved
I'd sell the van" becomes "The user sells the van", two people's names are joined, German is written
in English. So an answer only selects among the user's sentences. Which of them are only noted on
their day, `Fact.importance` says: those that say nothing that is so, and those of a line about the
user that nobody had said.

Small models drop whole messages as well, which `omissions` finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kbtui.knowledge.format.facts import Fact
from kbtui.memory.consolidation.answer import NOTED, Answer
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.said import Kept, Spoken, UserSentences
from kbtui.memory.edits.subjects import is_user
from kbtui.memory.records.dates import local
from kbtui.memory.records.transcript import questions_in
from kbtui.models.port import ChatModel
from kbtui.offline.frames import other_language
from kbtui.offline.language import significant_terms
from kbtui.offline.lines import sentences
from kbtui.sessions.store import SessionMessage

_SMALL_WINDOW = 8_192
_MIN_WORDS = 3  # content words of a possible statement


def is_small(model: ChatModel) -> bool:
    """Return whether a model tends to repeat extra context and to omit the rest."""
    return model.context_window <= _SMALL_WINDOW


def user_sentences(messages: Iterable[SessionMessage]) -> UserSentences:
    """Return the user's sentences in a conversation."""
    return UserSentences(_spoken(messages))


def _spoken(messages: Iterable[SessionMessage]) -> Iterator[Spoken]:
    """Yield the user's messages, each with the last questions of both sides before it."""
    asked: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    for message in messages:
        questions = tuple(questions_in(message.content))
        if message.role == "user":
            yield Spoken(message.content, local(message.time), message.id, (*asked, *own))
            own, asked = questions, ()
        elif message.role == "assistant" and message.content.strip():
            asked = questions


def in_users_words(
    answer: Answer,
    source: UserSentences,
    ground: Ground,
    names: Iterable[str] = (),
    *,
    is_strict: bool = False,
) -> Answer:
    """Replace the lines of an answer with the user's sentences that they are based on.

    A line without any stays, and is checked when it is written. In the summary, only sentences
    that distort what was said are replaced, or, if `is_strict`, all without `ground`. An answer in
    another language than the user's doesn't tell what it left out; then all that was stated is
    noted. `names` are the user's, which need no ground.
    """
    words = _Wording(source, ground, tuple(names), is_strict)
    notes = {note: words.kept_for_note(note) for note in answer.notes}
    facts = [each for fact in answer.facts for each in words.kept_for(fact)]
    facts += (each for kept in notes.values() for each in kept)
    if words.is_translated:
        facts += omissions(replace(answer, facts=tuple(facts)), source)
    return replace(
        answer,
        summary=words.summary(answer.summary),
        facts=tuple(dict.fromkeys(facts)),
        notes=tuple(note for note, kept in notes.items() if not kept),
        refused=tuple(words.refused),
    )


@dataclass(slots=True)
class _Wording:
    """Finds the sentences for the lines of an answer.

    `refused` are lines that nobody had said; `is_translated` becomes true with a line in another
    language than its sentence.
    """

    source: UserSentences
    ground: Ground
    names: Sequence[str]
    is_strict: bool
    refused: dict[str, None] = field(default_factory=dict)
    is_translated: bool = False

    def kept_for_note(self, note: str) -> list[Fact]:
        kept = self.source.kept_for(note)
        self._compare(note, kept)
        if kept and self.ground.lacks(note, self._known("")):
            self.refused[note] = None
        return [*map(_noted, kept)]

    def kept_for(self, fact: Fact) -> Iterator[Fact]:
        """Yield a fact as sentences; those after the first may be about another subject.

        A correction stays, unless what it is based on says nothing that is so.
        """
        of_user = fact.place == "memory" or is_user(fact.subject, self.names)
        if not fact.text:  # nothing takes the place of what was true
            yield fact
            return
        kept = self.source.kept_for(fact.text, fact.message, subject=fact.subject, of_user=of_user)
        if not kept or (fact.replaces and not any(each.is_unreal for each in kept)):
            yield fact
            return
        self._compare(fact.text, kept)
        is_refused = self.ground.lacks(fact.text, self._known(fact.subject), of_user=of_user)
        if is_refused:
            self.refused[fact.text] = None
        about = set(significant_terms(fact.subject))
        for position, each in enumerate(kept):
            is_about = not (position or is_refused) or about & set(significant_terms(each.text))
            is_passing = each.is_passing or (is_refused and of_user)
            yield replace(
                fact,
                text=each.text,
                subject=fact.subject if is_about else "",
                message=each.number or fact.message,
                importance=NOTED if is_passing else fact.importance,
                replaces="",
            )

    def summary(self, text: str) -> str:
        """Return a summary with sentences in place of those that aren't what was said."""
        lines = {line: self._summed(line) for line in sentences(text)}
        if all(found == [line] for line, found in lines.items()):
            return text
        found = dict.fromkeys(each for line in lines.values() for each in line)
        return " ".join(each if each[-1] in ".!?" else f"{each}." for each in found)

    def _summed(self, line: str) -> list[str]:
        lacks = self.ground.lacks if self.is_strict else self.ground.distorts
        kept = self.source.kept_for(line) if lacks(line) else []
        return [each.text for each in kept] or [line]

    def _compare(self, line: str, kept: Iterable[Kept]) -> None:
        self.is_translated |= any(other_language(line, each.text) for each in kept)

    def _known(self, subject: str) -> Ground:
        return Ground.knowing(" ".join((subject, *self.names)))


def omissions(answer: Answer, source: UserSentences) -> list[Fact]:
    """Return the statements that an answer doesn't mention, to be noted on their days."""
    facts = (f"{each.subject} {each.text} {each.replaces}" for each in answer.facts)
    return [*map(_noted, source.unmentioned((*facts, *answer.notes), _MIN_WORDS))]


def _noted(kept: Kept) -> Fact:
    return Fact(kept.text, "fact", message=kept.number, importance=NOTED)
