"""Secrets out of what machines write, and nothing else."""

from __future__ import annotations

import random
import string
import time
from typing import TYPE_CHECKING

import pytest

from kbtui.workspace.files import decode
from kbtui.workspace.redact import redact

if TYPE_CHECKING:
    from pathlib import Path

RNG = random.Random(20261121)


def made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Random characters: no key stands in this file, where a scanner would find it."""
    return "aB3" + "".join(RNG.choice(alphabet) for _ in range(length - 3))


UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
PLANTED = {
    "anthropic": "sk-ant-" + "api03-" + made(80),
    "openai": "sk-" + made(48),
    "openai project": "sk-proj-" + made(100),
    "openrouter": "sk-or-v1-" + "".join(RNG.choice(HEX) for _ in range(64)),
    "aws": "AKIA" + "".join(RNG.choice(UPPER) for _ in range(16)),
    "google": "AIza" + made(35),
    "github": "ghp_" + made(36),
    "github fine": "github_pat_" + made(80),
    "gitlab": "glpat-" + made(20),
    "slack": "xoxb-" + "1234567890-" + made(24),
    "stripe": "sk_live_" + made(24),
    "huggingface": "hf_" + made(34),
    "groq": "gsk_" + made(52),
    "pypi": "pypi-" + made(120),
    "npm": "npm_" + made(36),
    "jwt": "eyJ" + made(30) + ".eyJ" + made(60) + "." + made(43),
    "telegram": "123456789:AA" + made(33),
}
ASSIGNED = [
    'api_key = "{}"',
    "API_KEY={}",
    "export OPENWEATHER_TOKEN={}",
    "password: {}",
    '"client_secret": "{}",',
    "- my wifi password: `{}`",
    "Authorization: Bearer {}",
    "curl -H 'Authorization: Bearer {}' https://example.org",
    "secret := '{}'",
]


@pytest.mark.parametrize("name", PLANTED)
def test_keys_of_providers_are_found_wherever_they_stand(name: str) -> None:
    secret = PLANTED[name]
    for text in (secret, f"my key is {secret}.", f"`{secret}`", f"key={secret}\n", f"({secret})"):
        result = redact(text)
        assert secret not in result.text
        assert len(result.found) == 1
        assert secret not in result.found[0].preview


@pytest.mark.parametrize("form", ASSIGNED)
def test_random_values_assigned_to_secret_names_are_found(form: str) -> None:
    secret = made(32)
    result = redact("before\n" + form.format(secret) + "\nafter")
    assert secret not in result.text
    assert result.text.startswith("before\n")
    assert result.text.endswith("\nafter")
    assert result.found[0].line == 2


def test_a_private_key_goes_whole() -> None:
    body = "\n".join(made(64) for _ in range(5))
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"
    result = redact(f"here:\n{key}\nthat was it")
    assert result.text == "here:\n[redacted: private key]\nthat was it"
    cut = redact(f"here:\n{key[:200]}")
    assert cut.text == "here:\n[redacted: private key]"


def test_a_password_in_an_address_is_found() -> None:
    result = redact("postgres://admin:hunter2abc@db.example.org/x")
    assert result.text == "postgres://admin:[redacted: password]@db.example.org/x"


def test_a_short_password_counts_when_it_is_mixed() -> None:
    assert redact("password: Tr0ub4dor&3").text == "password: [redacted: password]"
    assert redact("password: different").text == "password: different"


def test_a_secret_that_stood_there_before_stays() -> None:
    old, new = PLANTED["github"], PLANTED["openai"]
    result = redact(f"{old}\n{new}\n", keep=f"mine: {old}")
    assert old in result.text
    assert new not in result.text


def test_redacting_twice_changes_nothing_more() -> None:
    once = redact("token=" + made(40) + " " + PLANTED["slack"])
    assert redact(once.text) == type(once)(once.text, ())


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id: 550e8400-e29b-41d4-a716-446655440000",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "password: your-password-here",
        "api_key: ${API_KEY}",
        "token = os.environ['TOKEN']",
        "The token budget is 128000 tokens per minute",
        "secret: the ingredient is cinnamon",
        "passwords should be long, e.g. correct-horse-battery-staple",
        "sk-learn and sk-image are short for scikit-learn-and-scikit-image",
        "[[token]]: see https://example.org/a?token=aGVsbG8gd29ybGQgaGVsbG8xMjM0",
        "AKIA is the prefix of AWS keys",
        "created: 1634067145297",
        "https://example.org/status/1544420768137740288",
        "The vault password is separate from your account's.",
        "see the [Token Race](https://example.org/dLLIq4Iebg5D)",
        "vectors which we call the **token embeddings**.",
        "max_tokens: 1234567890123456",
        "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ)",
    ],
)
def test_everyday_text_is_left_alone(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.data
def test_no_note_of_the_real_vaults_would_be_changed(data_dir: Path) -> None:
    notes = [path for path in (data_dir / "vaults").rglob("*") if path.is_file()]
    assert len(notes) > 1000
    changed = {}
    for path in notes:
        found = redact(decode(path.read_bytes()).text).found
        if found:
            changed[str(path)] = found
    assert changed == {}


@pytest.mark.parametrize(
    "piece", ["api_key", "password=", "sk-", "token: 'a", "://a:", "eyJ.", "x-"]
)
def test_hostile_text_does_not_take_long(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 5


def test_what_only_grew_is_searched_where_it_grew() -> None:
    mine = "my key: AKIAABCDEFGHIJKLMNOP\n"
    added = f"theirs: ghp_{'a1B2' * 9}\n"
    result = redact(mine + added, keep=mine)
    assert result.text == mine + "theirs: [redacted: GitHub token]\n"
    assert [finding.line for finding in result.found] == [2]
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\n"
    assert "MIIE" not in redact(key + "abc\n-----END PRIVATE KEY-----\n", keep=key).text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("med cabinet pin is 90417, who comes up with these", "90417"),
        ("my bank card pin is 4411", "4411"),
        ("PIN for the gym locker 5519", "5519"),
        ("aws root login founders@vetly.example pw Tr0ub4dor&3!kk", "Tr0ub4dor&3!kk"),
        ("the wifi password is swordfish", "swordfish"),
        ("the gate code is 2580", "2580"),
        ("the controlled drugs cabinet code is 8823.", "8823"),
        ("Das WLAN-Passwort ist Sonnenblume7", "Sonnenblume7"),
        ("der Türcode ist 4711", "4711"),
        ("pin vom schrank 5590", "5590"),
        ("Mi contraseña es gatito99", "gatito99"),
        ("La clave del wifi es Masa_2024", "Masa_2024"),
        ("el PIN de la tarjeta es 7731", "7731"),
        ("token: tok_live_93jd82hskq", "tok_live_93jd82hskq"),
        ("card 4111 1111 1111 1111 exp 12/27 cvv 123", "4111 1111"),
    ],
)
def test_what_is_told_in_plain_words_is_taken_out(text: str, secret: str) -> None:
    found = redact(text)
    assert secret not in found.text
    assert found.found


@pytest.mark.parametrize(
    "text",
    [
        "remember that the staging server is at 10.0.3.7 and the password is in the vault",
        "password is stored in the safe",
        "error code is 404, zip code is 90210",
        "the token limit is 4096",
        "password policy: 12 characters",
        "her PIN is the same as mine",
        "we moved to password managers in 2024",
        "la clave del éxito es trabajar",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact(text).text == text
