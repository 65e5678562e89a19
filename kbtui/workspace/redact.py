"""Secrets out of what a machine is about to write: keys, tokens, private keys, passwords.

Formats of known providers are certain enough by themselves. Anything else counts as a secret only
where it is assigned to a name that says so and looks random: hashes, ids and addresses of
everyday text are no secrets.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDS = r"(?![A-Za-z0-9_-])"
_STARTS = r"(?<![A-Za-z0-9_-])"
# Formats as their issuers document them; most are in gitleaks' and detect-secrets' rules as well.
# Each with the literal that every match holds: without it in the text the form isn't tried.
_PROVIDERS: tuple[tuple[str, str, str], ...] = (
    ("Anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{24,}"),
    ("OpenRouter key", "sk-or-v1-", r"sk-or-v1-[a-f0-9]{32,}"),
    ("OpenAI key", "sk-", r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("AWS access key", "AKIA", r"AKIA[A-Z0-9]{16}"),
    ("AWS access key", "ASIA", r"ASIA[A-Z0-9]{16}"),
    ("Google key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("Google OAuth token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("GitHub token", "gh", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    ("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("GitLab token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/services/T\w+/B\w+/[A-Za-z0-9]{16,}"),
    ("Stripe key", "k_live_", r"[sr]k_live_[A-Za-z0-9]{16,}"),
    ("Stripe key", "k_test_", r"[sr]k_test_[A-Za-z0-9]{16,}"),
    ("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("xAI key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    ("Replicate token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    ("PyPI token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    ("npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("SendGrid key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Telegram token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    ("DigitalOcean token", "_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    ("Tailscale key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    ("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("JSON web token", ".eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}"),
)
_KNOWN = tuple(
    (kind, marker, re.compile(_STARTS + form + _ENDS)) for kind, marker, form in _PROVIDERS
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
    r".*?(?:-----END (?P=label)-----|\Z)",
    re.DOTALL,
)
_IN_URL = re.compile(r"(?<=://)(?P<user>[^\s/:@]{1,64}):(?P<secret>[^\s/:@]{3,128})(?=@[\w.-]+)")
_ASSIGNED = re.compile(
    r"""(?P<name>(?:api[_-]?key|apikey|secret|token|passw(?:or)?d|passwd|access[_-]?key
        |private[_-]?key|credential|client[_-]?secret|auth[_-]?key)[\w.-]{0,20})
        ["']?[ \t]{0,4}(?:=|:|=>|:=)[ \t]{0,4}(?P<quote>["'`]?)
        (?P<secret>[A-Za-z0-9_+/=.~!@#$%^&*-]{8,256})(?P=quote)(?=[\s,;)\]}`]|$)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_BEARER = re.compile(r"(?i)\b(?:authorization:\s*)?bearer\s+(?P<secret>[A-Za-z0-9_.~+/=-]{20,})")
# Said in plain words: "the gate code is 4711", "pw hunter2", "mi contraseña es ...".
_PASSWORD_WORDS = (
    r"pass(?:word|wort|phrase|code)s?|pwd?|passwd|kennw(?:ort|örter)|losung|contraseñas?|clave"
    r"|[\w-]{0,24}(?:passwort|kennwort)"
)
_CODE_WORDS = (
    r"pin(?:[ -](?:code|number|nummer))?|puk|cvv|cvc|tan|otp|(?:[\w-]{1,24})?(?:pin|geheimzahl)"
    r"|(?:door|gate|alarm|entry|access|security|backup|recovery|unlock|safe|locker|lock|garage|verification|2fa|keypad|key ?safe)"
    r"[ -](?:codes?|combination|combo)|(?:tür|tor|zugangs|alarm|tresor|sicherheits|garagen|schloss|safe|zahlen)[ -]?(?:codes?|kombination)"
    r"|(?:code|combination|combo)\s(?:for|to|of)\s(?:the\s)?(?:\w+\s)?(?:door|gate|alarm|safe|locker|garage|lock|house|flat|building|shed|office|entrance)"
    r"|(?<!\w)(?!error|zip|post|area|country|status|dress|source|exit|product|discount|promo|bar|qr|colou?r|class|course|booking|response)[a-zäöü]{3,16}[ -]code"
    r"|code\s(?:für|zu|zum|zur)\s(?:der|die|das|den|dem|\w+)?\s?\w+"
    r"|c[oó]digo\s(?:de|del|para)\s(?:la\s|el\s)?(?:puerta|alarma|caja(?:\s\w+)?|portal|garaje|entrada|edificio|acceso|seguridad)"
    r"|(?:clave|combinaci[oó]n)\s(?:de|del)\s(?:la\s|el\s)?[\w-]+(?:\s[\w-]+)?|ssn|social security number"
)
_IS = (
    r"(?:(?![ \t]+(?:limit|budget|count|policy|reset|manager|length|change|rules?|usage|price|costs?)\b)"
    r"(?:[ \t]{1,3}[\w'’.-]{1,24}){0,5}?[ \t]{0,3}(?:['’]s|\b(?:is|was|are|ist|lautet|sind|es|son)\b|[:=])"
    r"(?:[ \t]{0,3}(?:now|jetzt|ahora|still|nun))?[ \t]{0,3}"
    r"|[ \t](?:for|of|on|to|vom|von|fürs?|zum|zur|del?|para)(?:[ \t][\w'’.-]{1,24}){1,4}?[ \t]|[ \t]{1,3})[\"'`“„«]?"
)
_SPOKEN_CODE = re.compile(
    rf"(?i)\b(?:{_CODE_WORDS}){_IS}(?P<secret>[#*]?\d[\d -]{{1,14}}\d[#*]?|[A-Z0-9]*\d[A-Z0-9-]{{3,}})(?![\w:/]|[.,]\d)"
)
_SPOKEN_PASSWORD = re.compile(
    rf"(?i)(?<![?&\w.])(?:{_PASSWORD_WORDS}|(?:api |access |auth |secret )?tokens?|secret key|api key){_IS}(?P<secret>[^\s\"'`”“«»]{{4,80}})"
)
_PHRASE = re.compile(
    r"(?i)\b(?:seed|recovery|backup) (?:phrase|words)\b[^\n:]{0,20}(?::|\bis\b|\bare\b)\s*(?P<secret>(?:[a-z]{2,12}[ ,]{1,2}){5,24}[a-z]{2,12})"
)
# Without gaps only as long as cards are: times and ids of posts have 13, 18 and 19 digits.
_CARD = re.compile(
    r"(?<![\w./-])(?P<secret>\d{4}([ -])\d{4}\2\d{4}\2\d{1,7}|\d{4}[ -]\d{6}[ -]\d{5}|[3-6]\d{14,15})(?![\w-])"
)
_IN_QUERY = re.compile(r"[?&][\w.-]*\Z")
_STAND_IN = re.compile(
    r"(?i)^(?:your|<|\$|\{|\[|xxx|\*{3}|\.)|example|changeme|redacted|placeholder|getenv|environ"
)
_NO_PASSWORD = frozenset(
    [
        "still",
        "always",
        "never",
        "also",
        "just",
        "only",
        "same",
        "different",
        "wrong",
        "correct",
        "right",
        "needed",
        "required",
        "expired",
        "stored",
        "kept",
        "saved",
        "written",
        "under",
        "inside",
        "with",
        "from",
        "that",
        "this",
        "there",
        "here",
        "unknown",
        "missing",
        "gone",
        "lost",
        "what",
        "where",
        "when",
        "changed",
        "reset",
        "very",
        "really",
        "about",
        "being",
        "something",
        "safe",
        "easy",
        "hard",
        "long",
        "short",
        "weak",
        "strong",
        "secret",
        "empty",
        "none",
        "case-sensitive",
        "case",
        "sensitive",
        "your",
        "mine",
        "ours",
        "theirs",
        "valid",
        "invalid",
        "broken",
        "known",
        "somewhere",
        "probably",
        "maybe",
        "taped",
        "shared",
        "managed",
        "protected",
        "generated",
        "longer",
        "shorter",
        "invalid",
        "noch",
        "immer",
        "falsch",
        "richtig",
        "nicht",
        "nötig",
        "abgelaufen",
        "beim",
        "unter",
        "dort",
        "hier",
        "unbekannt",
        "weg",
        "gleich",
        "dieselbe",
        "dasselbe",
        "sicher",
        "schwach",
        "stark",
        "lang",
        "kurz",
        "schon",
        "auch",
        "bereits",
        "jetzt",
        "sehr",
        "geändert",
        "notiert",
        "todavía",
        "siempre",
        "nunca",
        "misma",
        "mismo",
        "igual",
        "incorrecta",
        "correcta",
        "necesaria",
        "está",
        "aquí",
        "allí",
        "débil",
        "fuerte",
        "segura",
        "larga",
        "corta",
        "muy",
        "para",
        "desde",
        "bajo",
        "dentro",
        "importante",
        "clave",
    ]
)
# "The password is separate from ...": how a sentence goes on behind a word that is no secret.
_GOES_ON = re.compile(
    r"(?i)[ \t]+(?:from|to|than|in|on|for|of|by|as|at|when|if|until|unless|with|and not"
    r"|von|als|für|wenn|bis|que|de|con|en|para|si)\b"
)
_LOOK_BACK = 40
_LEAST_TOKEN = 8
_MIN_ENTROPY = 3.0
_MIN_LENGTH = 16
_MIN_PASSWORD = 10
_PLACEHOLDER = re.compile(
    r"(?i)your|example|sample|dummy|placeholder|redacted|changeme|xxx|\.\.\.|<|\$\{|\{\{|process\.env"
    r"|os\.environ|getenv|test[_-]?key|^[a-z_.-]+$|^[A-Z_.-]+$|^\$"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret: its kind, the line (1-based) it begins in, and what may be shown of it."""

    kind: str
    line: int
    preview: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """Text without its secrets, and what they were."""

    text: str
    found: tuple[Finding, ...]


def redact(text: str, keep: str = "") -> Redaction:
    """Replace every secret in `text` by ``[redacted: <kind>]``.

    Args:
        text: What a machine is about to store.
        keep: What stood there before: secrets that the user wrote into it are the user's to remove.
    """
    start = _looked_through(text, keep)
    pieces: list[str] = []
    found: list[Finding] = []
    end = 0
    for first, last, kind in _without_overlaps(_spans(text, start)):
        secret = text[first:last]
        if keep and secret in keep:
            continue
        pieces += [text[end:first], f"[redacted: {kind}]"]
        found.append(Finding(kind, text.count("\n", 0, first) + 1, f"{secret[:4]}…"))
        end = last
    return Redaction("".join([*pieces, text[end:]]), tuple(found))


def _looked_through(text: str, keep: str) -> int:
    """Where to begin: what only grew by whole lines needn't be searched from its beginning.

    Nothing but a private key goes over several lines.
    """
    grew = keep.endswith("\n") and text.startswith(keep)
    return len(keep) if grew and "PRIVATE KEY" not in text else 0


def _spans(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    """Where secrets stand after `start`, the certain kinds first."""
    yield from _with_known_form(text, start)
    for match in _IN_URL.finditer(text, start):
        if not _PLACEHOLDER.search(match["secret"]):
            yield *match.span("secret"), "password"
    for match in _ASSIGNED.finditer(text, start):
        is_password = "pass" in match["name"].lower()
        if _is_random(match["secret"], is_password=is_password) and not _is_in_link(text, match):
            yield *match.span("secret"), "password" if is_password else "secret"
    for match in _BEARER.finditer(text, start):
        if _is_random(match["secret"]):
            yield *match.span("secret"), "token"
    yield from _spoken(text, start)


def _spoken(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    """Secrets that are told in plain words."""
    for match in _SPOKEN_CODE.finditer(text, start):
        yield *match.span("secret"), "PIN or code"
    for match in _SPOKEN_PASSWORD.finditer(text, start):
        first = match.start("secret")
        secret = match["secret"].rstrip(".,;:!?)*_")
        goes_on = _GOES_ON.match(text, first + len(secret)) is not None and secret.islower()
        if not (goes_on and secret.isalpha()) and _is_spoken_password(
            secret, text[match.start() : first]
        ):
            yield first, first + len(secret), "password"
    for match in _PHRASE.finditer(text, start):
        yield *match.span("secret"), "recovery phrase"
    for match in _CARD.finditer(text, start):
        digits = [int(char) for char in match["secret"] if char.isdigit()]
        doubled = [
            n if place % 2 else sum(divmod(2 * n, 10)) for place, n in enumerate(digits[::-1], 1)
        ]
        if len(set(digits)) > 1 and sum(doubled) % 10 == 0:
            yield *match.span("secret"), "card number"


def _is_spoken_password(secret: str, before: str) -> bool:
    """True if the word behind "password is" is one, rather than how the sentence goes on."""
    if _STAND_IN.search(secret) or "://" in secret or "](" in secret:
        return False
    mixed = any(char.isdigit() for char in secret) and (
        any(char.isalpha() for char in secret) or len(secret) >= 4  # noqa: PLR2004
    )
    odd = re.search(r"[#$%&*!@^+=~]", secret) is not None and any(map(str.isalnum, secret))
    said = re.search(
        r"(?i)(?:['’]s|\b(?:is|was|ist|lautet|es)\b|[:=])(?:\s*(?:now|jetzt|ahora))?\s*[\"'`“„«]?$",
        before,
    )
    if not said and re.match(r"(?i)\w*\s?tokens?\b", before) and len(secret) < _LEAST_TOKEN:
        return False
    if not said or re.match(r"(?i)(?:clave|\w*\s?tokens?)\b", before):
        return mixed or odd
    return (
        mixed
        or odd
        or (secret.casefold() not in _NO_PASSWORD and not secret.endswith(("ed", "ing", "ly")))
    )


def _with_known_form(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    if "PRIVATE KEY" in text:
        for match in _PRIVATE_KEY.finditer(text):
            yield *match.span(), "private key"
    for kind, marker, form in _KNOWN:
        for match in form.finditer(text, start) if text.find(marker, start) >= 0 else ():
            # "sk-" begins words of everyday text as well.
            if marker != "sk-" or _is_random(match[0].removeprefix(marker)):
                yield *match.span(), kind


def _without_overlaps(spans: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The spans in order; of two that overlap the one that was found first stays."""
    kept: list[tuple[int, int, str]] = []
    for span in spans:
        if all(span[1] <= first or span[0] >= last for first, last, _ in kept):
            kept.append(span)
    return sorted(kept)


def _is_random(secret: str, *, is_password: bool = False) -> bool:
    """True if a string looks generated rather than written: long, mixed, no placeholder.

    A password may be shorter when it is mixed more.
    """
    if len(secret) < _MIN_PASSWORD or _PLACEHOLDER.search(secret):
        return False
    tests = (str.isdigit, str.islower, str.isupper, lambda char: not char.isalnum())
    kinds = [any(test(char) for char in secret) for test in tests]
    if is_password and sum(kinds) > 2:  # noqa: PLR2004 — of four
        return True
    return len(secret) >= _MIN_LENGTH and sum(kinds[:3]) > 1 and _entropy(secret) >= _MIN_ENTROPY


def _is_in_link(text: str, match: re.Match[str]) -> bool:
    """True if this is ``?token=...`` of a link: everyday sharing, and part of its address."""
    before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
    name = match.groupdict().get("name", "").lower()
    return name.endswith("token") and _IN_QUERY.search(before) is not None


def _entropy(text: str) -> float:
    """Shannon's entropy in bits a character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
