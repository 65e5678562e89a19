"""Secrets out of what machines write, and nothing else."""

from __future__ import annotations

import random
import re
import runpy
import string
import time
from typing import TYPE_CHECKING

import pytest

from kbtui.redaction.redact import redact
from kbtui.workspace.files import decode
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

RNG = random.Random(20261121)


def made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Random characters: no key stands in this file, where a scanner would find it."""
    return "aB3" + "".join(RNG.choice(alphabet) for _ in range(length - 3))


FORMS = {
    "slack app": "xapp-1-A" + made(10).upper() + "-8116050190443-" + made(64),
    "slack hook": "https://hooks.slack.com/services/T00000000/B00000000/" + made(24),
    "azure connection": "AccountName=x;AccountKey=" + made(86) + "==;EndpointSuffix=core",
    "azure address": "https://a.blob.core.windows.net/c?sv=2022&sig=" + made(43) + "%3D",
    "header": "X-Api-Key: " + made(32),
    "shell": 'export STRANGE_SECRET_KEY="' + made(32) + '"',
    "json": '{"clientSecret":"' + made(32) + '"}',
    "xml": '<add key="ApiKey" value="' + made(32) + '"/>',
    "address": "https://x.org/v1?api_key=" + made(32),
    "cookie": "Set-Cookie: sid=" + made(40) + "; Path=/",
    "table": "| token | " + made(40) + " |",
    "below": "- Api Key\n  " + made(32),
    "bold": "**API key:** " + made(32),
    "zero width": "ghp_" + made(18) + "\u200b" + made(18),
    "escaped": "ghp\\_" + made(36),
    "wide": "password\uff1aTr0ub4dor&3xyz",
    "hash": "user:$apr1$" + made(8) + "$" + made(22),
    "basic": "Authorization: Basic " + made(27) + "=",
    "phrase": "seed phrase: " + " ".join(["abandon", "ability", "able"] * 4),
    "numbered phrase": "Recovery phrase\n" + " ".join(["abandon", "ability", "able"] * 4),
    "totp": "2FA secret: " + "JBSW Y3DP " * 3,
    "wifi": "WIFI:T:WPA;S:Home;P:sunflower77;;",
    "bytes": "PRIVATE_KEY=0x" + "9f3a" * 16,
    "backup codes": "Backup codes:\n1. 8372 1928\n2. 9382 1029",
}
LONG_RUN = re.compile(r"\b(?=\w*\d)(?=\w*[a-z])\w{17,}")
TOLD = [
    *("my bank card pin is {4411}", "the pin for my debit card is {4-7-1-1}", "PIN = {4711}"),
    *("my pin: {four seven one one}", "use {4711} as the door code", "{4711} is my pin"),
    *("{hunter2} is the wifi password", "changed my pin from {1234} to {5678}", "pwd {hunter2}"),
    *(
        "my new pin will be {9931}",
        "garage door opens with {4482}",
        "sim pin {1290}, puk {83726182}",
    ),
    *("I set my password to {hunter2}", "password I use for everything is {hunter2}"),
    *("The password for the NAS: {sunflower}", "log in as root with password {hunter2}"),
    *(
        "credentials: admin/{hunter2}",
        "bob / {hunter2} is the login",
        "wifi: HomeNet / {sunflower77}",
        "wifi HomeNet: {sunflower77}",
        "credentials: admin, {hunter2} as before",
        "user: bob, {hunter2}",
    ),
    *("wifi key is {sunflower77}", "mein Passwort lautet {Sonnenblume}", "Kennwort: {Geheim123}"),
    *(
        "mi contraseña del banco es {gatito99}",
        "mot de passe : {chaton99}",
        "minha senha é {gatinho99}",
    ),
    *("the combination is {12-34-56}", "the cvv on the back is {732}", "my passcode is {482910}"),
    *(
        "my ssn is {078-05-1120}",
        "recovery code: {A1B2-C3D4}",
        "passphrase: {correct horse battery}",
    ),
    *("the passphrase is {correct horse battery staple}", "Netflix password's {hunter2}"),
    *(
        "PIN der EC-Karte: {4711}",
        "das Passwort vom Router ist {Fritz!4711}",
        "tell her the key code, {2580}",
    ),
    *("| site | password |\n|---|---|\n| x | {hunter2} |", "## Password\n\n{hunter2}\n"),
    *("password - {hunter2}", "<password>{hunter2}</password>", "PGPASSWORD={hunter2} psql"),
    *(
        "Server=x;Uid=sa;Pwd={hunter2};",
        "mysql -u root -p{Tr0ub4dor3}",
        "curl -u admin:{Tr0ub4d} https://x",
    ),
    *("postgres://admin:{p@ss/w0rd!x}@db.corp.com/x", "redis://:{KJq7RcDz}@redis.corp.com:6379"),
    *("machine x.org login bob password {hunter2x}", "sshpass -p '{Tr0ub4dor3xyz}' ssh x"),
    *("the netflix pw changed, it's {Tuesday99} now", "the alarm: press {8245} then #"),
    *("le code de l'immeuble est {27B4}", "echo '{R00tPw!x}' | sudo -S apt update"),
    *("net user bob {Welcome2024!} /add", "PIN:\n{4409}", "PIN\n{8812}\nPUK\n{44910283}"),
    *("ledger seed: {army van defense carry jealous true garbage claim echo media make crunch}",),
    *("WLAN-Netzwerkschlüssel (WPA2) {48302917465028371645}", "contraseña wifi {Verano2023}"),
    *("BitLocker {513078-715609-643829-306706-659410-083684-036578-568906}",),
    *("FileVault recovery key: {11MA-DGF4-SMVV-RO39-LVI9-XWDK}", "our garage keypad is {3391}"),
    *("mother's maiden name (security answer): {Kowalski}", "suitcase lock {417}"),
    *("door code ({4410}) changes on Monday", "Tresor: {38-12-44}", "mi NIP es {4471}"),
    *("site,user,password\nbank.de,anna,{Rose1958}\nmail.de,,{Tulpe77}", "{4410#} on the keypad"),
    *("site;login;pass\nx.org;bob;{hunter22}", "the hotel safe is set to {5519}"),
    *("Tom: whats ur netflix password\nLea: {popcorn123}", "Zahlenschloss Fahrrad: {4711}"),
    *("Dein Bestätigungscode lautet {884201}", "backup codes: {8372-1928} {9382-1029}"),
    *("PIN Girocard {3381}", "Key for the API: {b7c1f8d2e94a4f0c8a6e5d3b2c1a0f9e}"),
    *("JWT_SECRET={mySuperS3cretJwtKey2024}", "code de la carte bancaire {6402}"),
    '!function(e){var t={host:"x.y",password:"{Tr0ub4d}",port:1};return t}(),f(e&&n);',
    'const t={token:"{GlSyrroUflJxynY7kUNn}",id:1};h(t),e.exports=t',
    *("foo(bar(1)); // the password is {k9]};aX3=b}", "x = f(y(1))  # password is {Tr0ub(4)d}"),
]
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


@pytest.mark.parametrize("name", FORMS)
def test_pasted_forms_are_found(name: str) -> None:
    result = redact(FORMS[name])
    assert result.found
    assert not any(run in result.text for run in LONG_RUN.findall(FORMS[name].split(": ")[-1]))


@pytest.mark.parametrize("text", TOLD)
def test_secrets_told_in_a_sentence_are_found(text: str) -> None:
    marked = text.replace("{", "").replace("}", "")
    for secret in re.findall(r"{(.+?)}", text):
        assert secret not in redact(marked).text


@pytest.mark.data
def test_forms_that_people_paste_are_found(data_dir: Path) -> None:
    source = data_dir.parent / "tools/secret_forms.py"
    if not source.is_file():
        pytest.skip(f"{source} is not here")
    forms = runpy.run_path(str(source))["forms"](11)
    missed = [name for name, text in forms.items() if not redact(text).found]
    assert len(missed) <= len(forms) // 20, missed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ghp_{}", "token: {}", "the password is {}", "x{}"])
def test_many_tokens_take_little_of_the_processor(kind: str) -> None:
    text = "\n".join(kind.format(f"{at:05}" + made(31)) for at in range(16_000))
    started = time.process_time()
    redact(text)
    redact(text, keep=text[:-5])
    assert time.process_time() - started < PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "api_key",
            "密码是",
            "password=",
            "sk-",
            "token: 'a",
            "://a:",
            "eyJ.",
            "x-",
            "pin 1",
            "code is ",
        ),
        *(
            "the password for ",
            "curl -u ",
            "cookie: a=",
            "-----BEGIN PRIVATE KEY-----\n",
            "| pin |",
        ),
        *("seed phrase: a ", "PuTTY-User-Key-File-3:\n", "WIFI:T:", "otpauth://a?b=&", "1 is my "),
        *(
            "a b c ",
            "\u200b",
            "| a |\n|---|\n",
            "MIIBAAK",
            "mysql -p ",
            "user a/b ",
            "eyJaaaaaaaaaaa.",
        ),
    ],
)
def test_hostile_text_takes_time_that_grows_with_its_size(piece: str) -> None:
    def took(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    small = min(took(20_000), took(20_000))
    assert took(80_000) < 8 * small + 0.05  # 4 times where it is linear, 16 where it is quadratic


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
        "The user said: Hello!",
        "- the user asked: 10am! Danke!",
        "The user wrote, covid19 again",
        "El usuario dijo: ¡Gracias! *Genial!*",
        "User: sure, 15Uhr passt",
        "the router says: offline!",
        "her PIN is the same as mine",
        "we moved to password managers in 2024",
        "la clave del éxito es trabajar",
        "the password is in the vault",
        "connect GPIO pin 17 to 3.3V, pin 12 and 13 are I2C",
        "a combination of 12 and 34",
        "Unicode code point is 1F600",
        "flight code LH1234 confirmed, tracking code RR123456789DE, discount code SAVE20",
        "seed 12345 gives the same numbers again; salt: 5 g",
        "the session key exchange happens first, the primary key: user_id",
        "https://medium.com/@bob/how-to-1a2b3c4d5e6f",
        "under section 423 of the internal revenue code of 1986",
        "in vivo assays for recombination, Immunity 2003 18 65 74 12530976",
        '{"text": "the level of recombination.", "start": 274294, "end": 274985}',
        "my username is bob, my passport expires 2027",
        "credential = Credential.create(name)",
        "enter your **password** and **6-digit authenticator code**",
        "Learning how to store passwords or add OAuth2 is not fun",
        "| `--password` | End-to-end encryption password (prompted if omitted) |",
        "class WebhookApplication(LiteLLMBaseModel): token = auth_header[7:]",
        "clock.pass_(minutes=31); credentials=credentials, queue_objects=[]",
        "install dbus-user-session:amd64 1.14.10, iso-codes:all 4.15.0-1",
        "Pass\nthe exam, and the password will be lost for good, it's forever",
        "A combination of CD4, CD25 and CD127",
        "class t{constructor(e){this.t=e}},f={row:g,column:y})}),{text:b,tokens:u}},m=function(){}",
        '},{token:"punctuation.definition.string.begin.actionscript.2",regex:/a/}',
        "e.locals),void 0!==t&&(n=t[0]),token:this.terminals_[ve]||ve,line:Se.yylineno,loc:_e,expected:ct})}if(mt[0]instanceof Array&&mt.l)",
        "springgreen:65407,steelblue:4620980,tan:13808780,teal:32896,thistle:14204888,tomato:16737095",
        '"Password:"),B?$e.createElement("code",null,e)),return!0}(s,o),f(t.key===Bs?0:e.length-1)',
        "def ask(password: bool = False, stream: Final = None) -> str: login(password=smtp_password)",
        "password (bool, optional): Enable it. hashlib.scrypt(password.encode(), salt=salt, n=2)",
        'torch.cat([k_embed, k_pass], dim=-1), f"token for user={user} server=%s", secret="my-secret"',
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact(text).text == text


ADDRESSES = [
    "https://login.example.com/4b7ux5Jq",
    "https://router.vuejs.org/guide2/x1",
    "https://account.example.com/users/4111111111111111",
    "https://example.com/a/qX7vR2mK9pL4wT8nB3/password-is-tr0ub4dor",
    "https://example.com/img/token:qX7vR2mK9pL4wT8nB3.png",
    "../login/4b7ux5Jq@2x.png",
    "Login/4b7ux5Jq#Codes^b1",
]
LINKS = [
    "My password is [here]({}).",
    "token: ![]({})",
    "- login: [[{}]]",
    "Password ![[{}]]",
    'pass <a href="{}">it</a>',
    "The door code ([a]({}), [b]({}))",
]


@pytest.mark.parametrize("form", LINKS)
def test_no_link_is_broken_by_what_stands_around_it(form: str) -> None:
    for address in ADDRESSES:
        text = form.format(address, address)
        assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "[api](https://example.com/v1?api_key=qX7vR2mK9pL4wT8nB3zJ)",
        "[db](postgres://admin:Tr0ub4dor3@db.example.com/x)",
        'if [[ $PASSWORD == "Tr0ub4dor&3xyz" ]]; then',
        '[["password", "Tr0ub4dor&3xyz"]]',
        "See https://example.com, the password is Tr0ub4dor&3xyz.",
        "[here](https://example.com) the password is Tr0ub4dor&3xyz",
    ],
)
def test_a_secret_in_a_link_or_beside_one_is_found(text: str) -> None:
    redaction = redact(text)
    assert redaction.found
    assert "Tr0ub4dor" not in redaction.text
    assert "qX7vR2" not in redaction.text


WHOLE = [
    "hasło do wifi: {Kotek2024!}",
    "mein WLAN-Passwort ist {Sonne Mond 77}",
    "password: {Sommer 2024!}",
    "disk passphrase {ember willow stone harbor}",
    "my google app password is {xkcd wqer plmo nbvz}",
    "recovery key: {8f3k-29dk-1m4n-9x2p}",
    "WiFiのパスワードは {neko1234} です",
    "비밀번호는 {nabi2024}입니다",
    "мой пароль: {kotik2024}",
    "il mot de passe du wifi est {Soleil2024}, je crois",
    "A: what was the password again?\nB: {hunter2}",
    "Wie lautet das Passwort nochmal?\n{Sonne2020}",
    "Tom: what's the wifi password?\nLea: it's {popcorn123}",
    "my iban is {FR14 2004 1010 0505 0001 3M02 606}",
]


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_found_goes_whole_and_nothing_beside_it(text: str) -> None:
    kept = re.escape(re.sub("{.*}", "\0", text)).replace("\0", r"\[redacted: [\w -]+\]")
    assert re.fullmatch(kept, redact(re.sub("[{}]", "", text)).text)


@pytest.mark.parametrize(
    "text",
    [
        "The password is different for every account and I forget them",
        "my passphrase is too long to type every morning",
        "A passphrase of several random words is easy to remember",
        "The password is usually written under the keyboard",
        "The secret is good olive oil and fresh basil",
        "le mot de passe est trop court pour ce site",
        "la contraseña es demasiado corta para este banco",
        "hasło reklamowe to ważna rzecz",
        "lösenordet är samma som förut",
        "请修改密码, 谢谢. 密码学是一门有趣的学科",
        "パスワードを忘れました",
        "Tom: do you know the password?\nLea: Yes",
        "What is the password?\nI don't know.",
        "Flight GB29 NW to London",
    ],
)
def test_what_sentences_of_any_language_say_of_passwords_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("word", ["pass", "password", "pw", "abc"])
def test_what_stands_for_a_password_in_an_address_is_none(word: str) -> None:
    text = f"HTTPS_PROXY=http://user:{word}@10.10.1.10:1080"
    assert redact(text).text == text
