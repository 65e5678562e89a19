"""Frames: what keeps a sentence from stating its own words as a fact.

"If I moved to Lisbon I'd sell the van" has all the words of "I sell the van" and doesn't say so.
The kinds of frames are listed here; the words that mark them are data, in the section ``[frames]``
of each language's file: phrases in which ``*`` stands for any ending, or for a word, and ``..`` for
words in between.
A letter with an accent also matches without one, as many people type; one without doesn't match one
with (*si*, not *sí*).

A frame costs a paraphrase its place, never the sentence, so a list may rather have a word too many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from kbtui.offline.language import CACHE_LIMIT, Language, language_with, languages, tokens

CONDITION = "condition"  # if, unless, would
WISH = "wish"  # what is wanted, planned, owed: it isn't so yet
DROPPED = "dropped"  # a plan or thought that came to nothing
ALMOST = "almost"
PAST = "past"  # used to, no longer
BOUND = "bound"  # hardly, except: what the words without it say isn't so
LIMITED = "limited"  # only, at most, sometimes: it is so, and not more than so
DOUBT = "doubt"  # maybe, I think
COMPARED = "compared"  # than, rather: what is compared must keep its place
SAYS = "says"  # somebody says, writes, thinks
FICTION = "fiction"  # in a novel, a game, an example, a joke
IRONY = "irony"  # marked as such
WHOSE = "whose"  # my sister's, our neighbour's
QUOTED = "quoted"  # words of somebody else, in quotation marks or pasted

UNREAL = frozenset({CONDITION, DROPPED, ALMOST, FICTION, IRONY, QUOTED})
"""The kinds whose sentence says nothing that is so."""

UNSURE = frozenset({SAYS, DOUBT})
"""The kinds whose sentence may be so, and isn't a fact about its speaker."""

LOCAL = frozenset({PAST, BOUND, ALMOST})
"""The kinds that are about their own clause alone."""

MILD = frozenset({LIMITED, COMPARED})
"""The kinds that change a paraphrase only, and not what may be made of the sentence."""

_BY_WORDS = (
    CONDITION,
    WISH,
    DROPPED,
    ALMOST,
    PAST,
    BOUND,
    LIMITED,
    DOUBT,
    COMPARED,
    SAYS,
    FICTION,
    IRONY,
)
_OWN, _RELATION, _OTHERS, _SPEAKER, _CERTAIN = "own", "relation", "others", "speaker", "certain"
_KIN = "kin"
_MAX_ANSWER = 3  # words of an answer that says nothing by itself
_SUBJECTS = ("speaker", "own", "definite", "speaking")
_MAX_BETWEEN = 2  # words between "my" and "sister"
_QUOTED = re.compile(
    r"\"[^\"\n]{2,}\"|\u201c[^\u201d\n]{2,}[\u201d\u201c]|\u201e[^\u201c\u201d\n]{2,}[\u201c\u201d]"
    r"|\u00ab[^\u00bb\n]{2,}\u00bb|\u00bb[^\u00ab\n]{2,}\u00ab"
    r"|(?<![\w'])'[^'\n]{12,}'(?!\w)|\u2018[^\u2019\n]{12,}\u2019"
)
_MIN_QUOTED_WORDS = 3  # fewer are a name or a title


def frames_of(text: str) -> frozenset[str]:
    """Return the kinds of frames that a sentence has."""
    return _frames_of(text) if len(text) < CACHE_LIMIT else _frames_of.__wrapped__(text)


@lru_cache(maxsize=1_024)  # each turn asks for all sentences of its conversation
def _frames_of(text: str) -> frozenset[str]:
    plain = _plain(text)
    found = {kind for each in spoken_in(text) for kind in _kinds(each.code, plain)}
    if any(len(tokens(each[0])) >= _MIN_QUOTED_WORDS for each in _QUOTED.finditer(text)):
        found.add(QUOTED)
    return frozenset(found)


@cache
def all_codes() -> tuple[str, ...]:
    """Return the codes of all languages, for `found_in` where a text may be in any."""
    return tuple([each.code for each in languages()])


def relations_of(text: str) -> frozenset[str]:
    """Return the words by which a sentence names somebody of the speaker's: *sister*."""
    plain = _plain(text)
    return frozenset(word for each in spoken_in(text) for word in _relations(each.code, plain))


def kin_of(text: str, name: str) -> tuple[int, str] | None:
    """Return as what relative of the speaker's a text names somebody: *my sister Jana*.

    That is the position of the relation in the lists of kin, the same in every language, and the
    word for it.
    """
    wanted = tokens(name)[:1]
    for language in spoken_in(text) if wanted else ():
        own = frozenset(language.frames[_OWN])
        kin = _kin(language.code)
        found = tokens(text)
        words = [each.word for each in found]
        for at in [at for at, word in enumerate(words) if word == wanted[0].word]:
            before = range(max(at - _MAX_BETWEEN, 0), at)
            for place in (*before, *range(at + 1, at + 2 + _MAX_BETWEEN)):
                if place >= len(words) or words[place] not in kin:
                    continue
                if own.intersection(words[max(place - _MAX_BETWEEN, 0) : place]):
                    return kin[words[place]], text[found[place].start : found[place].end]
    return None


@cache
def _kin(code: str) -> dict[str, int]:
    """Return the words for relatives, folded, each with its relation."""
    groups = enumerate(_lists(code)[_KIN])
    return {token.word: number for number, group in groups for token in tokens(group)}


def pronouns_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the pronouns of a sentence that stand for others."""
    plain = _plain(text)
    for each in spoken_in(text):
        yield from (found.span() for found in _pattern(each.code, _OTHERS).finditer(plain))


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence says anything without the question that it answers."""
    return len(tokens(sentence)) > _MAX_ANSWER and not phrase_at_start(sentence.lstrip(), _OTHERS)


def has_subject(sentence: str) -> bool:
    """Return whether a sentence names what it is about: *I live in Oslo*, not *in Oslo*."""
    if not stands_alone(sentence):
        return False
    begun = sentence.lstrip()
    if any(phrase_at_start(begun, name) for name in _SUBJECTS):
        return True
    has_verb = any(event_verbs(begun, [each.code for each in spoken_in(begun)]))
    return has_verb or holds_frame(begun, "being")


def holds_frame(text: str, name: str) -> bool:
    """Return whether a text has a phrase of a list of frames."""
    return bool(marked_words(text, name))


def marked_words(text: str, name: str) -> list[str]:
    """Return the phrases of a list that a text has, in lower case."""
    plain = _plain(text)
    patterns = (_pattern(each.code, name) for each in spoken_in(text))
    return [found[0] for pattern in patterns for found in pattern.finditer(plain)]


def phrase_at_start(text: str, name: str) -> bool:
    """Return whether a text begins with a phrase of a list of frames, in whatever language."""
    plain = _plain(text)
    return any(_pattern(each.code, name).match(plain) for each in languages())


def is_instruction(text: str) -> bool:
    """Return whether a line tells whoever reads it what to do: *always answer me in Dutch*."""
    return (
        phrase_at_start(text.lstrip(), "instruction")
        or holds_frame(text, "reply")
        or (holds_frame(text, "talking") and holds_frame(text, "address"))
    )


def without_listed(text: str, name: str) -> str:
    """Return a text, in lower case, without the phrases of a list."""
    plain = _plain(text)
    for each in spoken_in(text):
        plain = _pattern(each.code, name).sub(" ", plain)
    return plain


def found_in(text: str, name: str, codes: Sequence[str]) -> list[tuple[int, int]]:
    """Return where phrases of a list stand in a text, in languages named by their codes."""
    return _found_in(text, name, tuple(codes))


@lru_cache(maxsize=1 << 13)  # the same short words are looked up in many lines
def _found_in(text: str, name: str, codes: tuple[str, ...]) -> list[tuple[int, int]]:
    plain = _plain(text)
    return sorted(found.span() for each in codes for found in _pattern(each, name).finditer(plain))


def event_verbs(text: str, codes: Sequence[str]) -> list[int]:
    """Return where verbs of events stand in a text: *came*, *painted*, but not *need*."""
    lasting = found_in(text, "lasting", codes)
    return [
        start
        for start, _ in found_in(text, "happened", codes)
        if not any(first <= start < last for first, last in lasting)
    ]


def blanked(text: str, name: str, codes: Sequence[str]) -> str:
    """Return a text with spaces in place of the phrases of a list; its length stays."""
    for start, end in found_in(text, name, codes):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def spoken_in(*texts: str) -> tuple[Language, ...]:
    """Return the languages with the most listed words in some texts; English if none has any."""
    listed = [
        _listed(text) if len(text) < CACHE_LIMIT else _listed.__wrapped__(text) for text in texts
    ]
    counts = [len(frozenset[str]().union(*words)) for words in zip(*listed, strict=True)]
    most = max(counts)
    best = [each for each, count in zip(languages(), counts, strict=True) if count == most]
    return tuple(best) if most else languages()[:1]


@lru_cache(maxsize=2_048)  # a line is compared with many others
def _listed(text: str) -> tuple[frozenset[str], ...]:
    """Return the listed words of a text, a set a language."""
    found = {token.word for token in tokens(text)}
    return tuple([_listed_words(each.code) & found for each in languages()])


def other_language(text: str, other: str) -> bool:
    """Return whether two texts are certainly in different languages."""
    return bool(_evident(text)) and bool(_evident(other)) and not _evident(text) & _evident(other)


def _evident(text: str) -> frozenset[str]:
    found = {token.word for token in tokens(text)}
    is_any = any(found & each.known for each in languages())
    return frozenset(each.code for each in spoken_in(text)) if is_any else frozenset()


def _kinds(code: str, plain: str) -> list[str]:
    certain = _pattern(code, _CERTAIN).sub(" ", plain)  # "wurde" is none, though "würde" is
    texts = {
        CONDITION: _pattern(code, WISH).sub(" ", certain),  # "would like" is none either
        PAST: certain,  # nor is "avant-hier", though "avant" is
        SAYS: _own_saying(code).sub(" ", plain),
    }
    found = [kind for kind in _BY_WORDS if _pattern(code, kind).search(texts.get(kind, plain))]
    return [*found, WHOSE] if next(_relations(code, plain), None) else found


def _relations(code: str, plain: str) -> Iterator[str]:
    """Yield the words for relatives and the like that follow a *my* closely."""
    for own in _pattern(code, _OWN).finditer(plain):
        end = own.end()
        for found in _pattern(code, _RELATION).finditer(plain, end):
            if len(plain[end : found.start()].split()) > _MAX_BETWEEN:
                break
            yield found[0]
            break


def _plain(text: str) -> str:
    """Return a text for matching: in lower case, with plain apostrophes; lengths don't change."""
    text = text.replace("\u2019", "'")
    lower = text.lower()
    if len(lower) == len(text) and "\u03a3" not in text:  # no letter becomes two, or its last form
        return lower
    return "".join([low if len(low := each.lower()) == 1 else each for each in text])


@cache
def _listed_words(code: str) -> frozenset[str]:
    language = language_with(code)
    framing = (language.frame_words[name] for name in (*_BY_WORDS, _OWN, _KIN))
    return language.known.union(*framing)


def _lists(code: str) -> Mapping[str, list[str]]:
    return language_with(code).frames


@cache
def _pattern(code: str, name: str) -> re.Pattern[str]:
    return re.compile(language_with(code).frame_patterns[name])


@cache
def _own_saying(code: str) -> re.Pattern[str]:
    """Return the pattern of what speakers say themselves: *I said*."""
    speaker, says = (_pattern(code, name).pattern for name in (_SPEAKER, SAYS))
    return re.compile(rf"(?:{speaker})\s+(?:{says})")
