"""Lines that say what the person has to do, as they write them: *I have to pay*, *Milch kaufen*.

They aren't noted as tasks, since nobody said so; they are told where one asks what there is to do.
"""

from __future__ import annotations

from kbtui.offline.asked import without_days
from kbtui.offline.language import Language, Token, language_of, of_all, tokens

_DENIED_WITHIN = 3  # words behind: *ich muss am Freitag nicht arbeiten*
_ARTICLES = ("definite", "indefinite", "own")


def names_duty(text: str) -> bool:
    """Return whether a line says what is to be done, beside the days that it names."""
    text = without_days(text, of_all("on"))
    found = tokens(text)
    return bool(found) and (_is_owed(text, found) or _is_order(text, found, language_of(text)))


def _is_owed(text: str, found: list[Token]) -> bool:
    denied = {at for at, _ in of_all("deny").places(text, found)}
    return any(
        at - 1 not in denied and denied.isdisjoint(range(at + count, at + count + _DENIED_WITHIN))
        for at, count in of_all("owes").places(text, found)
    )


def _is_order(text: str, found: list[Token], language: Language) -> bool:
    """Return whether the verb stands as in a note to oneself: first, in German last."""
    if language.nouns_have_capitals:
        return _ends_with_verb(text, found, language)
    does = language.list("does")
    count = does.match(text, found)
    is_verb = bool(count)
    count = count or language.list("does the").match(text, found)
    if not 0 < count < len(found) or text[found[count - 1].end] == "-":
        return False
    after = found[count]
    # Some verbs are nouns as well: *book the hall*, *call Ada*, but *book club*.
    is_verb = is_verb or text[after.start].isupper()
    is_verb = is_verb or any(after.word in language.frame_words[name] for name in _ARTICLES)
    return is_verb and not language.has("unlike", after.word)


def _ends_with_verb(text: str, found: list[Token], language: Language) -> bool:
    """Return whether a line without subject or another verb ends so, but for a preposition."""
    bare = [each for each in found if not of_all("through").match(text, [each])]
    is_said = any(language.has("clause", each.word) for each in bare)
    return not is_said and any(
        language.list("does").match(text, bare[:end], end - 1) for end in (len(bare), len(bare) - 1)
    )
