"""Whether a line turns what was said: drops its frame, gives it to another, or swaps its sides.

All words of "The user sells the van" are in "If I moved to Lisbon I'd sell the van", and all of "Bo
owes Ada" in "Ada owes Bo". A line that can be told apart from its sentence by this alone isn't what
was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kbtui.memory.comparing.sentences import Sentence, form_among, shared_stems
from kbtui.offline.frames import (
    COMPARED,
    LOCAL,
    MILD,
    QUOTED,
    SAYS,
    WHOSE,
    holds_frame,
    marked_words,
    relations_of,
)
from kbtui.offline.language import significant_terms, tokens
from kbtui.offline.names import NameReader
from kbtui.search.index import analyser

_CLAUSE = re.compile(r"[,;]\s")
_SPEAKER = ""
_SIDES = 2


def missing_frames(
    said: Sentence, line: Sentence, names: Iterable[str], about: frozenset[str], *, of_user: bool
) -> frozenset[str]:
    """Return the kinds of frames that a sentence has and a line based on it lacks.

    `names` are the names in the sentence; `about` are the stems of what the line is known to be
    about. `of_user`: it stands where everything is about the user.
    """
    missing = said.frames - line.frames - MILD
    missing -= {kind for kind in missing & LOCAL if _is_elsewhere(kind, said, line)}
    if WHOSE in missing and _names_relation(said, frozenset(analyser.terms(line.text)) | about):
        missing -= {WHOSE}
    if is_about_speaker(line, names, of_user=of_user):
        return missing
    # It is about somebody else; if it says who, it needn't say whose that is, or who said so.
    known = about | frozenset(analyser.terms(line.text))
    told = [each for each in names if {*analyser.terms(each)} & known]
    free = {QUOTED}
    if told:
        free.add(WHOSE)
    says = min((said.text.lower().find(each) for each in marked_words(said.text, SAYS)), default=-1)
    if any(0 <= said.text.find(each) < says for each in told):
        free.add(SAYS)
    return missing - free


def _is_elsewhere(kind: str, said: Sentence, line: Sentence) -> bool:
    """Return whether a frame is only in clauses of which a line says nothing: formerly blue."""
    clauses = [Sentence.of(each) for each in _CLAUSE.split(said.text)]
    framed = [each for each in clauses if kind in each.frames]
    others = [each for each in clauses if each not in framed]
    return any(shared_stems(each.stems, line.stems) for each in others) and not any(
        len(each.stems) <= 1 or shared_stems(each.stems, line.stems) for each in framed
    )


def _names_relation(said: Sentence, known: frozenset[str]) -> bool:
    """Return whether a line names all that a sentence calls the speaker's: my sister."""
    related = relations_of(said.text)
    is_plain = not any(each.endswith(("'s", "\u2019s")) for each in related)
    return is_plain and all(known & {*analyser.terms(each)} for each in related)


def is_about_speaker(line: Sentence, names: Iterable[str], *, of_user: bool) -> bool:
    """Return whether the subject of a line is the user; `of_user` as in `missing_frames`."""
    sides = _sides(line.text, names)
    return sides[0] == _SPEAKER if sides else of_user


def swaps_sides(said: Sentence, line: Sentence, names: Iterable[str]) -> bool:
    """Return whether a line says the same of the same, with who and whom the other way round."""
    speaker = analyser.terms(" ".join(marked_words(line.text, "speaker")))
    is_other_voice = holds_frame(said.text, "by") != holds_frame(line.text, "by")
    forms = {each: form_among(each, said.stems) for each in line.stems}
    if is_other_voice or any(not form and each not in speaker for each, form in forms.items()):
        return False
    if has_other_order(said.text, line.text, list(names)):
        return True
    if COMPARED not in said.frames:
        return False
    own, theirs = _stems_in_order(said), _stems_in_order(line)
    return _is_swapped(own, [forms[each] for each in theirs])


def has_other_order(said: str, line: str, names: Sequence[str]) -> bool:
    """Return whether two texts name people, or the speaker, in another order."""
    return _is_swapped(_sides(said, names), _sides(line, names))


def _is_swapped(own: list[str], theirs: list[str]) -> bool:
    """Return whether two sequences have two or more in common, in another order."""
    common = set(own) & set(theirs)
    first, second = ([each for each in side if each in common] for side in (own, theirs))
    return len(common) >= _SIDES and first != second


def _sides(text: str, names: Iterable[str]) -> list[str]:
    """Return the names in a text, and the speaker, in the order of their first mention."""
    named = {token.word for name in names for token in tokens(name)}
    speaker = set(marked_words(text, "speaker"))
    found: dict[str, None] = {}
    for token in tokens(text):
        shown = text[token.start : token.end].lower().replace("\u2019", "'")
        if shown in speaker or shown.partition("'")[2] in speaker:
            found[_SPEAKER] = None
        elif token.word in named:
            found[token.word] = None
    return list(found)


def _stems_in_order(sentence: Sentence) -> list[str]:
    text = sentence.text
    words = (text[token.start : token.end] for token in tokens(text))
    found = (stem for word in words for stem in significant_terms(word))
    return list(dict.fromkeys(each for each in found if each in sentence.stems))


def names_in(*texts: str) -> list[str]:
    """Return the names in texts that may share some; each tells more about the others' words."""
    names = NameReader(_SIDES)
    for each in texts:
        names.read(each)
    return [name for each in texts for name in names.names_in(each)]
