"""Tests whether a string may be a secret: random, a password, a code, a card number."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from kbtui.redaction import table

# A call, a subscript or a keyword argument: "token = header[7:]", "pass_(minutes=31)".
_CODED = re.compile(
    r"[A-Za-z_.]{2,}(?:[(\[]|=(?:[\w'\"({\[%-]|,|\Z))|[{(]|\w+\.\w+\(|=\w{1,20}(?:[.?)]|&&)"
)
_OF_SENTENCES = ("no password", "small words")
_ODD = re.compile(r"[#$%&*!@^+=~]")
_IN_CODE = re.compile(r"[(){}\[\]<>|\\]")
_TRANSITION = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_KINDS = (str.isdigit, str.islower, str.isupper)
_IN_NAME = re.compile(r"[A-Z]?[a-z]{2,}")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_MIN_WORDS, _MAX_WORDS, _MAX_MIXED_WORDS = 4, 12, 3
_MAX_WORD_SHARE = 0.55
_MAX_DIGIT_SHARE = 0.2
_MIN_ENTROPY = 3.0
_MIN_LENGTH = 16
_MIN_PASSWORD = 10
_MIN_TOKEN = 8
_MIN_TRANSITIONS = 0.22  # between letters and digits or lower and upper case, per character
_MAX_LENGTH = 256  # only so many characters of a value are examined
_LUHN = 10
_IBAN = 97


def is_password(secret: str, *, said: bool = False) -> bool:
    """Return whether a word is a password, not the rest of a sentence; `said`: after "is"."""
    secret = secret[:_MAX_LENGTH]
    if len(secret) < 4 or _CODED.match(secret) or table.part("placeholder").search(secret):
        return False
    letters = sum(map(str.isalpha, secret))
    digits = sum(map(str.isdigit, secret))
    odd = _ODD.search(secret) is not None and letters + digits > 1
    mixed = digits > 0 and letters > 0 and not table.part("technical").fullmatch(secret)
    if not said:
        return mixed or odd
    plain = not any(secret.casefold() in table.words(kind) for kind in _OF_SENTENCES)
    plain = plain and not secret.endswith(("ed", "ing", "ly"))
    return mixed or odd or digits > 3 or (plain and not _IN_CODE.search(secret))


def is_passphrase(secret: str, least: int = _MIN_WORDS) -> bool:
    """Return whether words form a passphrase rather than the rest of a sentence.

    Either several plain words, or a plain one and mixed ones: "Sommer 2024!".
    """
    words = [word.strip("\"'`,.").casefold() for word in secret.split()]
    if not 1 < len(words) <= _MAX_WORDS or len(words[0]) < 3 or not words[0].isalpha():
        return False
    of_sentences = sum(word in table.words("no password") for word in words)
    if of_sentences > 1 or not table.words("small words").isdisjoint(words):
        return False
    if all(word.replace("-", "").isalpha() for word in words):
        return len(words) >= least
    return len(words) <= _MAX_MIXED_WORDS and all(
        is_password(word, said=True) or word.isdigit() for word in words
    )


def is_random_text(secret: str) -> bool:
    """Return whether a string looks random: diverse characters with many changes of class."""
    if _is_mostly_words(secret):
        return False
    bare = re.sub(r"[\W_]", "", secret)
    transitions = len(_TRANSITION.findall(bare))
    return transitions >= _MIN_TRANSITIONS * len(bare) > 0 and _entropy(secret) >= _MIN_ENTROPY


def is_generated(secret: str, *, is_password: bool = False) -> bool:
    """Return whether a string looks generated: long, mixed, and no placeholder.

    With `is_password` it may be shorter if it mixes more classes of characters.
    """
    secret = secret[:_MAX_LENGTH]
    if len(secret) < _MIN_PASSWORD or _CODED.match(secret):
        return False
    if table.part("placeholder").search(secret):
        return False
    kinds = sum(any(map(test, secret)) for test in _KINDS)
    odd = re.search(r"[^\w./:-]", secret) is not None
    if is_password and kinds + odd > 2:  # of four
        return True
    return len(secret) >= _MIN_LENGTH and kinds > 1 and is_random_text(secret)


def _is_mostly_words(secret: str) -> bool:
    """Return whether a string mostly consists of words, as identifiers do: "AutoTokenizer"."""
    words = [word for word in _IN_NAME.findall(secret) if _VOWEL.search(word)]
    digits = sum(map(str.isdigit, secret))
    written = sum(map(len, words))
    return written > _MAX_WORD_SHARE * len(secret) and digits < _MAX_DIGIT_SHARE * len(secret)


def _entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    more = sum(n * math.log2(n) for n in Counter(text).values() if n > 1)
    return math.log2(len(text)) - more / len(text)


def is_card(number: str) -> bool:
    """Return whether the check digit is valid (Luhn)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [n if at % 2 else sum(divmod(2 * n, 10)) for at, n in enumerate(digits[::-1], 1)]
    return len(set(digits)) > 1 and sum(doubled) % _LUHN == 0


def is_iban(number: str) -> bool:
    """Return whether the check digits are valid (ISO 7064, modulo 97)."""
    bare = number.replace(" ", "")
    return int("".join(str(int(char, 36)) for char in bare[4:] + bare[:4])) % _IBAN == 1


def is_token(secret: str) -> bool:
    """Return whether a string is mixed, long enough for a token, and not a token's name."""
    named = secret.casefold().startswith("token")
    return len(secret) >= _MIN_TOKEN and not named and is_password(secret)


def is_code(secret: str) -> bool:
    """Return whether a string is a PIN or door code: digits, perhaps with some letters."""
    return table.part("code_value").fullmatch(secret) is not None


def _is_in_address(secret: str) -> bool:
    """Return whether the password of a URL, "user:pass@host", isn't a placeholder."""
    is_placeholder = table.part("placeholder").search(secret) is not None
    return not is_placeholder and not table.part("no_password").fullmatch(secret)


TESTS: Mapping[str, Callable[[str], bool]] = {
    "any": bool,
    "made": is_generated,
    "strong": partial(is_generated, is_password=True),
    "password": is_password,
    "said": partial(is_password, said=True),
    "phrase": partial(is_password, said=True),
    "secret": is_password,
    "digits": bool,
    "key": lambda secret: is_password(secret) or is_generated(secret, is_password=True),
    "token": is_token,
    "code": is_code,
    "card": is_card,
    "account": is_iban,
    "address": _is_in_address,
}
"""The tests that rows of the table refer to, by name."""
