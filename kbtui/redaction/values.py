"""Whether a string is a secret by itself: made by a machine, a password, a code, a card number."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from kbtui.redaction import table

# A call, an item or a named argument: "token = header[7:]", "pass_(minutes=31)".
_CODED = re.compile(
    r"[A-Za-z_.]{2,}(?:[(\[]|=(?:[\w'\"({\[%-]|,|\Z))|[{(]|\w+\.\w+\(|=\w{1,20}(?:[.?)]|&&)"
)
_OF_SENTENCES = ("no password", "small words")
_ODD = re.compile(r"[#$%&*!@^+=~]")
_IN_CODE = re.compile(r"[(){}\[\]<>|\\]")
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_KINDS = (str.isdigit, str.islower, str.isupper)
_IN_NAME = re.compile(r"[A-Z]?[a-z]{2,}")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_LEAST_WORDS, _MOST_WORDS, _MOST_MIXED = 4, 12, 3
_MOST_WRITTEN = 0.55
_MOST_DIGITS = 0.2
_MIN_ENTROPY = 3.0
_MIN_LENGTH = 16
_MIN_PASSWORD = 10
_LEAST_TOKEN = 8
_LEAST_TURNS = 0.22  # from letter to digit or small to capital, a character
_SEEN = 256  # characters of a value that are looked at
_LUHN = 10
_IBAN = 97


def is_password(secret: str, *, said: bool = False) -> bool:
    """True if a word is a password, rather than how a sentence goes on; `said`: behind "is"."""
    secret = secret[:_SEEN]
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


def is_passphrase(secret: str, least: int = _LEAST_WORDS) -> bool:
    """True if some words are a password together: no word of theirs is how a sentence goes on.

    Either they are several plain ones, or a plain one and others that are mixed: "Sommer 2024!".
    """
    words = [word.strip("\"'`,.").casefold() for word in secret.split()]
    if not 1 < len(words) <= _MOST_WORDS or len(words[0]) < 3 or not words[0].isalpha():
        return False
    of_sentences = sum(word in table.words("no password") for word in words)
    if of_sentences > 1 or not table.words("small words").isdisjoint(words):
        return False
    if all(word.replace("-", "").isalpha() for word in words):
        return len(words) >= least
    return len(words) <= _MOST_MIXED and all(
        is_password(word, said=True) or word.isdigit() for word in words
    )


def is_made(secret: str) -> bool:
    """True if nobody would write it: many different characters that change their kind often."""
    if _is_written(secret):
        return False
    bare = re.sub(r"[\W_]", "", secret)
    turns = len(_TURN.findall(bare))
    return turns >= _LEAST_TURNS * len(bare) > 0 and _entropy(secret) >= _MIN_ENTROPY


def is_random(secret: str, *, is_password: bool = False) -> bool:
    """True if a string looks generated rather than written: long, mixed, no placeholder.

    A password may be shorter when it is mixed more.
    """
    secret = secret[:_SEEN]
    if len(secret) < _MIN_PASSWORD or _CODED.match(secret):
        return False
    if table.part("placeholder").search(secret):
        return False
    kinds = sum(any(map(test, secret)) for test in _KINDS)
    odd = re.search(r"[^\w./:-]", secret) is not None
    if is_password and kinds + odd > 2:  # of four
        return True
    return len(secret) >= _MIN_LENGTH and kinds > 1 and is_made(secret)


def _is_written(secret: str) -> bool:
    """True if most of it are words, as in names of programs: "AutoTokenizer", "seed_of_model"."""
    words = [word for word in _IN_NAME.findall(secret) if _VOWEL.search(word)]
    digits = sum(map(str.isdigit, secret))
    written = sum(map(len, words))
    return written > _MOST_WRITTEN * len(secret) and digits < _MOST_DIGITS * len(secret)


def _entropy(text: str) -> float:
    """Shannon's entropy in bits a character."""
    more = sum(n * math.log2(n) for n in Counter(text).values() if n > 1)
    return math.log2(len(text)) - more / len(text)


def is_card(number: str) -> bool:
    """True if the check digit is right (Luhn)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [n if at % 2 else sum(divmod(2 * n, 10)) for at, n in enumerate(digits[::-1], 1)]
    return len(set(digits)) > 1 and sum(doubled) % _LUHN == 0


def is_iban(number: str) -> bool:
    """True if the check digits are right (ISO 7064, modulo 97)."""
    bare = number.replace(" ", "")
    return int("".join(str(int(char, 36)) for char in bare[4:] + bare[:4])) % _IBAN == 1


def is_token(secret: str) -> bool:
    """True for what is mixed, long enough for a token, and not the name of one."""
    named = secret.casefold().startswith("token")
    return len(secret) >= _LEAST_TOKEN and not named and is_password(secret)


def is_code(secret: str) -> bool:
    """True for what is typed at a door or a bank: digits, some letters among them perhaps."""
    return table.part("code_value").fullmatch(secret) is not None


def _is_in_address(secret: str) -> bool:
    """True unless it stands for a password in an address: "user:pass@host"."""
    is_placeholder = table.part("placeholder").search(secret) is not None
    return not is_placeholder and not table.part("no_password").fullmatch(secret)


TESTS: Mapping[str, Callable[[str], bool]] = {
    "any": bool,
    "made": is_random,
    "strong": partial(is_random, is_password=True),
    "password": is_password,
    "said": partial(is_password, said=True),
    "phrase": partial(is_password, said=True),
    "secret": is_password,
    "digits": bool,
    "key": lambda secret: is_password(secret) or is_random(secret, is_password=True),
    "token": is_token,
    "code": is_code,
    "card": is_card,
    "account": is_iban,
    "address": _is_in_address,
}
"""What a row may ask of a secret, by the name that it has there."""
