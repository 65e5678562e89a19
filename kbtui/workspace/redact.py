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
_PROVIDERS: tuple[tuple[str, str], ...] = (
    ("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{24,}"),
    ("OpenRouter key", r"sk-or-v1-[a-f0-9]{32,}"),
    ("OpenAI key", r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("AWS access key", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    ("Google key", r"AIza[A-Za-z0-9_-]{35}"),
    ("Google OAuth token", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    ("GitHub token", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("GitLab token", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Stripe key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("Hugging Face token", r"hf_[A-Za-z0-9]{30,}"),
    ("Groq key", r"gsk_[A-Za-z0-9]{40,}"),
    ("xAI key", r"xai-[A-Za-z0-9]{40,}"),
    ("Replicate token", r"r8_[A-Za-z0-9]{30,}"),
    ("PyPI token", r"pypi-[A-Za-z0-9_-]{50,}"),
    ("npm token", r"npm_[A-Za-z0-9]{36}"),
    ("SendGrid key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Telegram token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    ("Discord token", r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("DigitalOcean token", r"do[opr]_v1_[a-f0-9]{64}"),
    ("Tailscale key", r"tskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("JSON web token", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}"),
    ("Slack webhook", r"https://hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,}"),
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
    r".*?(?:-----END (?P=label)-----|\Z)",
    re.DOTALL,
)
_KNOWN = re.compile(
    _STARTS
    + "(?:"
    + "|".join(f"(?P<p{i}>{form})" for i, (_, form) in enumerate(_PROVIDERS))
    + ")"
    + _ENDS
)
_IN_URL = re.compile(r"(?<=://)(?P<user>[^\s/:@]{1,64}):(?P<secret>[^\s/:@]{3,128})(?=@[\w.-]+)")
_ASSIGNED = re.compile(
    r"""(?P<name>[\w.-]{0,40}?(?:api[_-]?key|apikey|secret|token|passw(?:or)?d|passwd|access[_-]?key
        |private[_-]?key|credential|client[_-]?secret|auth[_-]?key)[\w.-]{0,20})
        ["']?[ \t]{0,4}(?:=|:|=>|:=)[ \t]{0,4}(?P<quote>["'`]?)
        (?P<secret>[A-Za-z0-9_+/=.~!@#$%^&*-]{8,256})(?P=quote)(?=[\s,;)\]}`]|$)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_BEARER = re.compile(r"(?i)\b(?:authorization:\s*)?bearer\s+(?P<secret>[A-Za-z0-9_.~+/=-]{20,})")
_MIN_ENTROPY = 3.0
_MIN_LENGTH = 16
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
    spans = _without_overlaps(_spans(text))
    pieces: list[str] = []
    found: list[Finding] = []
    end = 0
    for first, last, kind in spans:
        secret = text[first:last]
        if keep and secret in keep:
            continue
        pieces += [text[end:first], f"[redacted: {kind}]"]
        found.append(Finding(kind, text.count("\n", 0, first) + 1, f"{secret[:4]}…"))
        end = last
    return Redaction("".join([*pieces, text[end:]]), tuple(found))


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Where secrets stand, the certain kinds first."""
    if "PRIVATE KEY" in text:
        for match in _PRIVATE_KEY.finditer(text):
            yield *match.span(), "private key"
    for match in _KNOWN.finditer(text):
        kind = _PROVIDERS[int((match.lastgroup or "p0")[1:])][0]
        if kind != "OpenAI key" or _is_random(match[0].split("-", 1)[1]):
            yield *match.span(), kind
    for match in _IN_URL.finditer(text):
        if not _PLACEHOLDER.search(match["secret"]):
            yield *match.span("secret"), "password"
    for pattern, kind in ((_ASSIGNED, "secret"), (_BEARER, "token")):
        for match in pattern.finditer(text):
            if _is_random(match["secret"]) and not _is_link_token(text, match):
                yield *match.span("secret"), kind


def _without_overlaps(spans: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The spans in order; of two that overlap the one that was found first stays."""
    kept: list[tuple[int, int, str]] = []
    for span in spans:
        if all(span[1] <= first or span[0] >= last for first, last, _ in kept):
            kept.append(span)
    return sorted(kept)


def _is_random(secret: str) -> bool:
    """Whether a string looks generated rather than written: long, mixed, no placeholder."""
    if len(secret) < _MIN_LENGTH or _PLACEHOLDER.search(secret):
        return False
    kinds = sum(
        any(test(char) for char in secret) for test in (str.isdigit, str.islower, str.isupper)
    )
    return kinds > 1 and _entropy(secret) >= _MIN_ENTROPY


def _is_link_token(text: str, match: re.Match[str]) -> bool:
    """Whether this is ``?token=...`` of a link: everyday sharing, and part of its address."""
    before = text[max(0, match.start() - 1) : match.start()]
    return before in {"?", "&"} and match.groupdict().get("name", "").lower().endswith("token")


def _entropy(text: str) -> float:
    """Shannon's entropy in bits a character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
