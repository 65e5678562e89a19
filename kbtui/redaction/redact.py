"""Secrets out of what a machine is about to write: keys, tokens, private keys, passwords, cards.

Three ways of knowing one, cheapest first: an issuer's own form (rows of ``secrets.tsv``), a value
that looks made by a machine behind a name that says so, and what is told in plain words. Hashes,
ids and addresses of everyday text are no secrets. The time is linear in the text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect, bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice

Span = tuple[int, int, str]
_CLASSES = {
    "w": "[A-Za-z0-9]",
    "u": "[A-Z0-9]",
    "x": "[0-9a-fA-F]",
    "b": r"[\w-]",
    "t": r"[\w.-]",
    "e": r"[\w+/=.-]",
}
# A name that says that a secret follows, how it is joined to it, and the value. The names are parts:
# "DB_PASS", "clientSecret" and "X-Api-Key" hold one as well.
_NAME = re.compile(
    r"pass(?:wor[dt]|wd|phrase|code|w)?|pwd|kennwort|contrase[nñ]a|mot[ _]de[ _]passe"
    r"|senha|wachtwoord|parola|(?:api|access|auth|account|admin|app|client|consumer|deploy|encryption"
    r"|host|integration|license|master|private|root|secret|service|session|shared|signing|sas|ssh"
    r"|storage|subscription|write)[ _.-]?key|apikey|secret|token|credentials?|creds|[_.-]auth|[\"']auth"
    r"|_key|[\"']key|authori[sz]ation|bearer|webhook|cookie|session[_-]?id|jwt|dsn|salt|seed|nonce"
    r"|otp|hmac|signature|oauth|app_?id(?==)|\bkey(?==)"
)
_ASSIGNED = re.compile(
    r"(?P<rest>[\w.-]{0,24})"
    r"(?:[\"'`*_)\]\\]{0,4}[ \t]{0,8}(?:=>|:=|->|→|==?|:|\||>|,|\(|\bis\b|\bist\b|\bes\b|\best\b)"
    r"[\"'`*_(\\<|]{0,4}(?:[ \t]{0,8}\r?\n)?[ \t>]{0,12}(?:value=|Basic |Bearer |Token |CDATA\[)?"
    r"|[*_`:]{0,4}(?:[ \t]{0,4}\r?\n){1,2}[ \t>]{0,12}(?:[-*+:][ \t]{1,4})?"
    r"|[\"'][ \t]{1,4}(?:value|content)[ \t]?=[ \t]?|[ \t]{1,4}(?=[\"'`]))"
    r"(?P<quote>[\"'`]?)(?P<secret>[A-Za-z0-9_+/=.~!@#$%^&*:?-]{6,4096}+)(?![\w(\[])",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?i)(?<![a-z])(?:passw(?:or[dt])?|passwd|passphrase|passwort|kennwort|contraseña|pwd|secret)[\w.-]{0,20}"
    r"[\"'`*]{0,3}[ \t]{0,4}(?:=|:|\bis\b|\bist\b|\bes\b)[ \t*]{0,4}([\"'`])(?P<secret>[^\"'`\n]{4,80})\1"
)
_IN_QUOTES = re.compile(r"([\"'`])[\w .-]*\Z")
_A_PAIR = 2
_BEARER = re.compile(r"(?i)\b(?:bearer|basic|token)[ \t]+(?P<secret>[A-Za-z0-9_.~+/=-]{16,4096})")
_IN_URL = re.compile(
    r"(?<=://)[^\s/:@\"'<>]{0,64}:(?!\d{1,5}/)(?P<secret>[^\s\"'`<>]{1,200})(?=@[\w\[-][\w.-]*)"
)
# A login: "admin/hunter2". With a gap after the sign it may be a sentence: "The user said: Hello!"
_PAIR = re.compile(
    r"(?i)(?<![\w-])(?:(?P<person>user|benutzer|usuario)|log-?ins?|credentials?|creds|account|zugangsdaten|username|acceso|wi-?fi|wlan|router)\b(?!-)"
    r"(?:[ \t]{1,2}(?:is|are|for|of|ist|sind|es|son|für|de|[\w.-]{2,20})){0,3}?[ \t]{0,2}(?P<label>[:=]?)[ \t]{0,2}"
    r"[\"'`(]?[\w.@+-]{2,60}[ \t]?(?:/|(?P<gap>[:,][ \t])|:|,|\|)[ \t]?(?P<secret>[^\s/:,\"'`)(\[\]]{5,64})(?![/:@])"
)
_NO_PASSWORD = re.compile(r"(?i).{1,3}|pass(?:word|wd|phrase)?|pwd?|secret")
# The address of a link or picture, what a wiki link names, and any address that stands by itself.
_LINK = re.compile(
    r"\[\[(?![\s\"'\[{])[^\[\]\n]{1,500}\]\]|\]\(<?[^\s<>)]{1,4096}|(?:href|src)=[\"'][^\"'\n]{1,4096}"
    r"|(?<![\w+.-])[A-Za-z][\w+.-]{1,20}://[^\s<>\"'`)\]]{1,4096}|(?m:^ {0,3}\[[^\]\n]{1,500}\]:[ \t]+[#./]\S*)"
)
_IS_VALUE = re.compile(r"[?&;#](?!(?i:X-Amz-|X-Goog-|Signature=))[\w.-]*=\Z")
_ENDS_LINE = re.compile(r"[A-Za-z0-9][!-~]{3,62}[A-Za-z0-9][ \t]*(?:\r?\n|\Z)")
# Told in plain words: "the gate code is 4711", "pw hunter2", "mi contraseña es ...".
_PASSWORD_WORD = (
    r"passwort|kennwort|pass(?:word|phrase|key)s?|pwd?|passwd|kennwörter|losung|contraseñas?"
    r"|mot de passe|mdp|senha|wachtwoord|parola d'ordine|lösenord|adgangskode|hasło|пароль|密码|密碼|パスワード"
    r"|비밀번호|(?:wi-?fi|wlan|wpa\d?|network)[ -]?(?:key|(?:netzwerk)?schlüssel|pass|code)|netzwerkschlüssel"
    r"|answer to (?:the|my) security question|(?:security|secret) (?:question )?answer|sicherheitsantwort"
)
# These are said of other things as well: what follows must look like a password.
_SECRET_WORD = (
    r"clave|(?:api |access |auth |secret |bearer )?tokens?|(?:the |my |our )secret|secret key|api[ -]?key"
    r"|credentials?|creds|pass|login"
    r"|key for (?:the |my |our )?(?:api|server|account|service|bot|app|endpoint)"
)
_PLACES = (
    "door|gate|alarm|entry|access|security|backup|recovery|rescue|unlock|safe|locker|lock|garage|verification"
    "|2fa|keypad|key ?safe|voicemail|sim|padlock|bike lock|lockbox|passcode|login|one[- ]time|auth"
)
_CODE_WORD = (
    r"(?:pin|geheimzahl)(?:[ -](?:code|number|nummer|no\.?|nr\.?))?|(?<!\w)(?:puk|cvv2?|cvc|tan|otp|ssn|nip)"
    rf"|(?<!\w)(?:{_PLACES})[ -](?:codes?|combination|combo)|(?<!\w)combination|passcode|(?:opens?|unlocks?|öffnet)(?: it| up)? (?:with|mit|using)|código pin|code pin|codice pin"
    r"|(?:tür|tor|zugangs|alarm|tresor|sicherheits|bestätigungs|einmal|freischalt|entsperr|aktivierungs|anmelde|haus|garagen|schloss|safe|zahlen)[ -]?(?:codes?|kombination)"
    r"|(?:code|combo)\s(?:for|to|of|on)\s(?:my\s|our\s|the\s)?(?:[\w'-]+\s){0,2}?(?:door|gate|alarm|safe"
    r"|locker|garage|lock|house|flat|building|shed|office|entrance|phone|vault|box|apartment|bike|suitcase)"
    r"|code\s(?:für|zu|zum|zur)\s(?:der|die|das|den|dem|\w+)?\s?\w+"
    r"|c[oó]digo\s(?:de|del|para)\s(?:la\s|el\s|mi\s)?(?:puerta|alarma|caja(?:\s\w+)?|portal|garaje|entrada"
    r"|edificio|acceso|seguridad|verificación)|code (?:de la|de l['’]|d['’]|du) ?(?:porte|alarme"
    r"|entrée|coffre|immeuble|portail|garage|cave|cadenas|parking|bâtiment|maison|carte(?: bancaire| bleue)?)|digicode|(?:karten)?prüf(?:ziffer|nummer)"
    r"|(?:recovery|backup|master|emergency|rescue|wiederherstellungs)[ -]?(?:keys?|schlüssel)"
    r"|(?:bike|suitcase|luggage|locker|gym|shed)[ -]?lock"
    rf"|(?<!\w)(?:{_PLACES})s?[:,]? (?:you )?(?:press|enter|type|dial|punch in)|(?<!\w)keypad"
    r"|(?<!\w)(?:tresor|safe|locker|schließfach)(?=[ \t]?[:=])|(?<!\w)(?:safe|lock)(?= is (?:now )?set to )"
    r"|(?:zahlen|fahrrad|koffer|vorhänge)schloss"
    r"|(?:clave|combinaci[oó]n)\s(?:de|del)\s(?:la\s|el\s)?[\w-]+(?:\s[\w-]+)?|social security number"
)
_SAID = re.compile(
    r"(?i)(?:(?<!\w)(?:is|was|are|be|becomes?|ist|lautet|sind|war|es|son|era|est|sont|è|é)(?![\w'’])|[:=]|->|→)"
    r"(?:[ \t]+(?:now|jetzt|ahora|still|nun|again|set to|(?:now )?changed to))?[ \t]*[\"'`“„«*_(]{0,3}"
)
_SAYS_OF = re.compile(
    r"(?i)[\"'`*_]{0,3}[ \t]+(?:for|of|on|to|at|in|with|from|vom|von|fürs?|zum|zur|auf|der|des|meine[rs]|unsere[rs]|del?|du|para|pour|à"
    r"|wi-?fi|wlan|router|laptop|ordi|pc|e-?mail|bank|changed|set|reset|giro-?card|visa|mastercard|amex|karte|card|handy|iphone|ipad|phone|debit|credit|tarjeta|m[óo]vil|carte|geändert|numbers?|code|again|now|stays)[ \t]"
)
_LAST_WORD = re.compile(r"(\w+).?\Z")
_NOT_BEFORE = re.compile(r"[?&\w.\[/]")
_ASIDE = re.compile(r"[ \t]*\((?P<inside>[^()\n\"'{};]{1,24})\)")
# What stands for a parameter: "password (bool, optional): Enable ..."
_TYPED = re.compile(
    r"[ \t]*\(`?(?:bool|boolean|str|string|int|float|bytes|list|dict|object|Optional|Union)\b"
)
_BELOW = re.compile(r"[\"'`*_)]{0,3}[ \t]*[:=][ \t*_]*\r?\n[ \t>*+-]{0,8}(?=\S+[ \t]*(?:\n|\Z))")
_ALONE = re.compile(r"[\"'`*_)]{0,3}[ \t]*\r?\n[ \t>*+-]{0,8}(?=\S+[ \t]*(?:\n|\Z))")
_REPLY = re.compile(r"[\"'`]{0,2}[ ?]{0,3}\r?\n[\w. \[\]:<-]{1,24}[:>][ ](?=\S+[ \t]*(?:\n|\Z))")
_LONG_NUMBER = re.compile(r"\d{8,64}")
_GAP = re.compile(r"[ \t]{1,3}[\"'`“„«*_(]{0,3}")
_ITS = re.compile(r"(?i)\b(?:it['’]s|c['’]est)[ \t]+(?:now[ \t]+)?[\"'`“„«*_(]{0,3}")
_DASH = re.compile(r"[\"'`*_]{0,3}[ \t]*[,»–—-][ \t]*[\"'`“„«*_(]{0,3}")
_CLAUSE_END = re.compile(r"[.!?;]\s|\s[–—]\s|\"[,}]")
_TECHNICAL = re.compile(
    r"(?i)boto3|gh-\d+|\d+-?[a-z]{1,12}|v?\d+(?:\.\d+)*[a-z]?|o?auth\d|1password|(?:sha|md|aes|rsa|hs|rs|es|utf|base|wpa|ipv|h|http"
    r"|web|win|s|k|p|ed|mp|ps|ios|bcrypt|tls|usb|ntlm|pbkdf|argon|uuid|id)v?-?\d+[a-z]?s?"
)
_PASSWORD_SAID = re.compile(rf"(?:(?P<plain>{_PASSWORD_WORD})|{_SECRET_WORD})(?![\w\]])")
_CODE_SAID = re.compile(rf"(?:{_CODE_WORD}|(?<=[a-zäöü]{{3}}[ -])(?P<any>codes?))(?!\w)")
_NOT_SAID = re.compile(
    r"(?i)[ \t]+(?:limits?|budgets?|counts?|policy|resets?|managers?|lengths?|changes?|rules?|usage|price"
    r"|costs?|ids?|types?|names?|fields?|generators?|strength|count|point|per|window|size|address|hash(?:es)?)\b"
)
_NUMBERS = (
    "zero|oh|one|two|three|four|five|six|seven|eight|nine|double|null|eins|zwei|drei|vier|fünf|sechs"
    "|sieben|acht|neun|cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve"
)
_CODE = re.compile(
    rf"[#*]?\d(?:[ .-]?\d){{2,30}}[#*]?(?![\w:/%€$£°]|[.,-]\d)|(?=[A-Z-]*\d)[A-Z0-9](?:-?[A-Z0-9]){{3,}}(?![\w:/]|[.,]\d)"
    rf"|(?i:(?:(?:{_NUMBERS})[ ,-]{{1,2}}){{3,11}}(?:{_NUMBERS}))(?!\w)"
)
_ONLY_DIGITS = {"combination": re.compile(r"[\W\d]+|[^\d]+"), "tan": re.compile(r"\d[\d ]{4,}")}
_VERSION = re.compile(r"\d+\.\d+\.\d")
_NO_NUMBER = re.compile(
    r"\d{4}-\d\d-\d\d|(?i:[ \t]*(?:am|pm|h|uhr|times|people|characters|chars|digits|letters|words|tokens|users"
    r"|attempts|minutes|hours|days|weeks|months|years|euros?|dollars?|usd|eur|kb|mb|gb|km|kg|zeichen|stellen"
    r"|minuten|stunden|tage|dígitos|caracteres|horas|días))\b"
)
_WORD = re.compile(r"[^\s\"'`”“«»]{4,80}")
_REVERSED = re.compile(
    r"(?i)(?<![\w.,:/$€£#&-])[\"'`“„«]?(?P<secret>[^\s\"'`”“«»,;()]{3,64}?)[\"'`”“»]?[ \t](?:is|was|=|ist|es|est|as|als|como|on|into)[ \t]"
    r"(?:still |now |also |jetzt |ahora )?(?:my|the|our|his|her|their|your|mein|meine|unser|das|die|der|mi|la|el"
    rf"|nuestra|mon|notre|le)[ \t](?:[\w'’-]{{1,24}}[ \t]){{0,3}}?(?:(?P<code>{_CODE_WORD}|code)|{_PASSWORD_WORD}|{_SECRET_WORD})(?!\w)"
)
_WORD_SAID = re.compile(rf"(?i)(?:{_CODE_WORD}|code|{_PASSWORD_WORD}|{_SECRET_WORD})(?!\w)")
_SEED_WORD = r"(?!(?:the|and|for|are|was|has|not|but|our|its|her|his)\b)[a-z]{3,8}"
_PHRASE = re.compile(
    r"(?i)\b(?:(?:seed|recovery|backup|mnemonic|secret|wallet|wiederherstellungs|semilla)[ -]?(?:phrase|words?|seed)"
    r"|mnemonic|frase (?:semilla|de recuperación))\b[^\n:=]{0,30}(?:(?:[:=]|\bis\b|\bare\b|\bist\b|\bes\b)[\s\"'`]{0,8}|\n\s{0,8}(?=(?:[\d.) ]{0,4}[a-z]{2,12}[ ,\n]{1,3}){11}))"
    r"(?P<secret>(?:(?:\d{1,2}[.)][ ]?)?[a-z]{2,12}[ ,\n]{1,3}){5,24}(?:\d{1,2}[.)][ ]?)?[a-z]{2,12})"
    rf"|\b(?:seed|wallet|ledger|trezor|metamask|mnemonic|bip-?39|(?:12|24|twelve|twenty-four)[ -]words?)\b[^\n]{{0,40}}?[\s:=\"'`]{{1,8}}"
    rf"(?P<loose>(?:{_SEED_WORD}[ ,\n]{{1,3}}){{11,23}}{_SEED_WORD})(?![\w'’-])"
    r"|\bpassphrase[ \t]?(?:[:=]|is)[ \t\"'`]{1,4}(?!(?:[\w-]+ ){0,7}(?:the|of|be|to|a|on|in|must|for|not|and|with)\b)"
    r"(?P<words>(?:[a-z]{2,12}[ -]){2,7}[a-z]{2,12})(?=[.\s\"'`]*$)",
    re.MULTILINE,
)
_LIST = re.compile(
    r"(?i)\b(?:backup|recovery|rescue|wiederherstellungs|2fa)[ -]?codes?\b[^\n]{0,40}(?:\n[ \t]*){1,2}"
    r"(?P<secret>(?:[ \t>*+-]{0,6}(?:\d{1,2}[.)] )?(?=[^\s\d]{0,12}\d)\w{4,12}(?:[ -]\w{4,12}){0,3}[ \t]*(?:\n|\Z)){1,20})"
)
_TABLE = re.compile(
    r"(?m)^[ \t]*(\|[^\n]*\|)[ \t]*\n[ \t]*\|[-:| \t]+\n((?:[ \t]*\|[^\n]*(?:\n|\Z))+)"
)
_COLUMN = re.compile(
    rf"(?i)[\s*`]*(?:[\w-]+ )?(?:{_PASSWORD_WORD}|{_SECRET_WORD}|(?P<code>{_CODE_WORD}|[\w-]+ code))[\s*`]*"
)
_FIELD = re.compile(r"[\"']?[\w .:-]{0,30}[\"']?\r?")
# Without gaps only as long as cards are: times and ids of posts have 13, 18 and 19 digits.
_CARD = re.compile(
    r"(?P<secret>\d(?<![\w./-]\d)(?:\d{3}([ -])\d{4}\2\d{4}\2\d{1,7}|\d{3}[ -]\d{6}[ -]\d{5}|(?<=[3-6])\d{14,15}))"
    r"(?![\w-])"
)


def _either(words: str) -> frozenset[str]:
    return frozenset(words.split("|"))


# All that a pattern finds begins with one of these, so that it is tried there alone; what `_NAME` and
# `_REVERSED` find holds one, in one line.
_QUOTED_HEADS = _either("pass|kennwort|contraseña|pwd|secret")
_BEARER_HEADS = _either("bearer|basic|token")
_PAIR_HEADS = _either(
    "login|log-in|cred|account|zugangsdaten|user|benutzer|usuario|acceso|wifi|wi-fi|wlan|router"
)
_PASSWORD_HEADS = _either(
    "security|secret|sicherheitsantw|netzwerksch|key for|pass|kennw|pw|losung|contraseña|mot de|mdp|senha|wachtwoord|parola d|lösenord|adgangskode|hasło"
    "|пароль|密码|密碼|パスワード|비밀번호|wifi|wi-fi|wlan|wpa|network|answer to|clave|api|access|auth"
    "|bearer|token|the secret|my secret|our secret|cred|login"
)
_CODE_HEADS = _either(
    "pin|geheimzahl|puk|cvv|cvc|tan|otp|ssn|nip|combination|passcode|open|unlock|öffnet|código|codigo|code"
    "|codice|combo|clave|combinaci|social sec|tür|tor|zugangs|tresor|sicherheits|schloss|zahlen"
    "|bestätigungs|einmal|freischalt|entsperr|aktivierungs|anmelde|haus|fahrrad|koffer|vorhänge|safe|lock"
    "|digicode|prüf|karten|recovery|backup|master|emergency|rescue|wiederherst|schließfach|bike|suitcase|luggage|locker|gym|shed"
)
_PLACE_HEADS = _either(_PLACES.replace("key ?safe", "key").replace("one[- ]", "one-time|one "))
_PLACES_HAVE = _either("code|combination|combo|press|enter|type|dial|punch")
_PHRASE_HEADS = _either(
    "seed|recovery|backup|mnemonic|secret|wallet|wiederherstellungs|semilla|frase|pass"
    "|ledger|trezor|metamask|bip39|bip-39|12|24|twelve|twenty-four"
)
_LIST_HEADS = _either("backup|recovery|rescue|wiederherstellungs|2fa")
_COLUMN_HEADS = _either("pass|pwd|kennwort|contraseña|pin")
_NAMES = _either(
    "pass|pwd|kennwort|contrase|senha|wachtwoord|parola|key|secret|token|cred|auth|bearer|webhook|cookie"
    "|session|jwt|dsn|salt|seed|nonce|otp|hmac|signature|appid=|app_id="
)
_HEADS = frozenset().union(
    *(_QUOTED_HEADS, _BEARER_HEADS, _PAIR_HEADS, _PASSWORD_HEADS, _CODE_HEADS, _PHRASE_HEADS),
    *(_LIST_HEADS, _NAMES, _PLACES_HAVE, _COLUMN_HEADS),
)
# "The password is separate from ...": how a sentence goes on behind a word that is no secret.
_GOES_ON = re.compile(
    r"(?i)[ \t]+(?:from|to|than|in|on|for|of|by|as|at|when|if|until|unless|with|and not"
    r"|von|als|für|wenn|bis|que|de|con|en|para|si)\b"
)
_IN_QUERY = re.compile(r"[?&](?:[\w-]*)\Z")
_PLACEHOLDER = re.compile(
    r"(?i)your|example|sample|dummy|placeholder|redacted|change_?me|x{4}|\*{3}|\.\.\.|<|\$\{|\{\{|process\.env"
    r"|os\.environ|getenv|test[_-]?key|secret[_-]value|^my[_-](?:secret|password|token)(?:[_-][a-z]+)?$|^\$|^%\w+%$|^[.~]?/|://|^\[|^@|\]\(|:://|^(?:https?|file|mailto):"
)
_SPLITS = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]|\\\\(?=[_*.~-])")
_IS_WIDE = re.compile("[\uff01-\uff5e\u3000\xa0]")
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xA0: 0x20}
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_KINDS = (str.isdigit, str.islower, str.isupper)
_IN_NAME = re.compile(r"[A-Z]?[a-z]{2,}")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_MOST_WRITTEN = 0.55
_MOST_DIGITS = 0.2
# A call, an item or a named argument: "token = header[7:]", "pass_(minutes=31)".
_CODED = re.compile(
    r"[A-Za-z_.]{2,}(?:[(\[]|=(?:[\w'\"({\[%-]|,|\Z))|[{(]|\w+\.\w+\(|=\w{1,20}(?:[.?)]|&&)"
)
# Of a program that was made small: "e&&(t=n),", "return!0", "(a,b){", ");".
_CODE_MARK = re.compile(
    r"=>|[=!]==?|&&\b|\w\|\||[)\]}][)\]}{;.,:?=]|\w\([\w!)]|[,;({?]\w{1,3}[=:,()]|,\w+:\d|![01]|\bfunction\b|\breturn\b"
)
_IS_NAME = re.compile(r"[A-Za-z]\.[A-Za-z$]|[/\\]")
_OF_A_SECRET = re.compile(
    r"(?:[A-Za-z]\w*[._])+(?:passw(?:or)?d|passphrase|pwd?|secret|token|credential|cred)s?"
)
_DIGIT = re.compile(r"\d")
_COMMENT = re.compile(r"(?://|#|/\*)[ \t]")
_QUOTES = frozenset("\"'`")
_MOST_CODE = 2  # such marks near a secret that is told in words
_NEAR = 80
_MIN_ENTROPY = 3.0
_MIN_LENGTH = 16
_MIN_PASSWORD = 10
_LEAST_TOKEN = 8
_LEAST_TURNS = 0.22  # from letter to digit or small to capital, a character
_LOOK_BACK = 40
_SEEN = 256  # characters of a value that are looked at
_LOOK_AHEAD = 110
_MOST_WORDS = 6
_MOST_MARKS = 12  # of Markdown before a word that stands alone in its line
_SINGLE_LOOKUPS = 500
_LEAST_ISSUED = 15  # characters of the shortest key that is known by how it begins
_REVERSED_LINES = 6  # over which the name of a code may stretch
_LUHN = 10
_MOST_LINES = 60


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


@dataclass(frozen=True, slots=True)
class _Issued:
    """How an issuer's keys look: their beginning, and the pattern."""

    kind: str
    prefix: str
    pattern: re.Pattern[str]
    is_weak: bool


@dataclass(frozen=True, slots=True)
class _Shaped:
    """How one kind looks: texts of which each match holds one, in small letters, and the pattern."""

    kind: str
    markers: tuple[str, ...]
    pattern: re.Pattern[str]
    in_a_line: bool


class _Read:
    """A text, and where the words stand in it that tell of secrets."""

    def __init__(self, text: str) -> None:
        self.text = text
        # As long as the text: of one letter `lower` makes two. `re` takes the others for small ones.
        even = text.replace("İ", "i").replace("ı", "i").replace("ſ", "s")
        self.lowered = even.lower()
        self.heads = {head for head in _HEADS if head in self.lowered}
        if not self.heads.isdisjoint(_PLACES_HAVE):
            self.heads |= {head for head in _PLACE_HEADS if head in self.lowered}

    def begun(
        self, pattern: re.Pattern[str], heads: frozenset[str], *, small: bool = False
    ) -> Iterator[re.Match[str]]:
        """All that a pattern finds, in `small` letters or as they are, and begins with such a word."""
        text = self.lowered if small else self.text
        end = 0
        for place in self.places(heads & self.heads):
            if place >= end and (match := pattern.match(text, place)):
                end = match.end()
                yield match

    def lines(self, places: Iterable[int], more: int = 0) -> Iterator[tuple[int, int]]:
        """Where the lines of these places begin and end, with so many more each."""
        first = last = line = 0
        for place in places:
            if place < line:
                continue
            begin = self.text.rfind("\n", 0, place) + 1
            end = line = self.end(place)
            for _ in range(more):
                end = self.end(end)
            if begin >= last:
                if last:
                    yield first, last
                first = begin
            last = end
        if last:
            yield first, last

    def places(self, words: Iterable[str]) -> list[int]:
        """Where one of these words stands, in order."""
        places = set[int]()
        for word in words:
            at = self.lowered.find(word)
            while at >= 0:
                places.add(at)
                at = self.lowered.find(word, at + 1)
        return sorted(places)

    def end(self, place: int) -> int:
        """Where the line of a place ends."""
        return self.text.find("\n", place) + 1 or len(self.text)


def redact(text: str, keep: str = "") -> Redaction:
    """Replace every secret in `text` by ``[redacted: <kind>]``.

    Secrets in what stood there before, `keep`, are the user's own, and the user's to remove.
    """
    spans = [
        (start + first, start + last, kind)
        for start, part in _changed(text, keep)
        for first, last, kind in _secrets(part)
    ]
    if not spans:
        return Redaction(text, ())
    known = _kept(spans, text, keep)
    lines = [match.start() for match in re.finditer("\n", text)]
    pieces: list[str] = []
    found: list[Finding] = []
    end = 0
    for first, last, kind in spans:
        secret = text[first:last]
        if secret in known:
            continue
        pieces += [text[end:first], f"[redacted: {kind}]"]
        found.append(Finding(kind, bisect_right(lines, first - 1) + 1, f"{secret[:4]}…"))
        end = last
    return Redaction("".join([*pieces, text[end:]]), tuple(found))


def _changed(text: str, keep: str) -> Iterator[tuple[int, str]]:
    """The parts with lines that didn't stand there before, and where each begins.

    A name or the head of a table may stand above its secret, so that the whole paragraph is looked
    at, and two lines above it; only private keys may be longer.
    """
    if not keep or "PRIVATE KEY" in text or "PuTTY-" in text:
        yield 0, text
        return
    known = set(keep.splitlines(keepends=True))
    above = deque[int](maxlen=_MOST_LINES)  # where the lines of this paragraph and two before begin
    begun = -1
    at = 0
    for line in text.splitlines(keepends=True):
        if line not in known and begun < 0:
            begun = above[0] if above else at
        elif line in known and begun >= 0:
            yield begun, text[begun:at]
            begun = -1
        above.append(at)
        if not line.strip():
            above = deque(list(above)[-2:], maxlen=_MOST_LINES)
        at += len(line)
    if begun >= 0:
        yield begun, text[begun:]


def _kept(spans: list[Span], text: str, keep: str) -> set[str]:
    """Those of the secrets that stood there before."""
    if not keep:
        return set()
    secrets = {text[first:last] for first, last, _ in spans}
    if len(secrets) > _SINGLE_LOOKUPS:
        return secrets & {keep[first:last] for first, last, _ in _secrets(keep)}
    return {secret for secret in secrets if secret in keep}


def _secrets(text: str) -> list[Span]:
    """Where secrets stand, in order; of two that overlap the one that is more certain stays."""
    plain = text.translate(_WIDE) if not text.isascii() and _IS_WIDE.search(text) else text
    cuts: list[int] = []
    if not plain.isascii() or "\\" in plain:
        cuts = [match.start() for match in _SPLITS.finditer(plain)]
    if cuts:
        plain = _SPLITS.sub("", plain)
        moved = [cut - nth for nth, cut in enumerate(cuts)]
    kept: list[Span] = []
    for first, last, kind in _spans(plain):
        span = (first, last, kind)
        if cuts:
            span = (first + bisect_right(moved, first), last + bisect_right(moved, last - 1), kind)
        place = bisect(kept, span)
        is_free = place == 0 or kept[place - 1][1] <= span[0]
        if first < last and is_free and (place == len(kept) or span[1] <= kept[place][0]):
            kept.insert(place, span)
    return kept


def _spans(text: str) -> Iterator[Span]:
    """Where secrets stand, the certain kinds first."""
    read = _Read(text)
    yield from _shaped(read)
    yield from _issued(text)
    if "://" in text:
        for match in _IN_URL.finditer(text):
            if not (
                _PLACEHOLDER.search(match["secret"]) or _NO_PASSWORD.fullmatch(match["secret"])
            ):
                yield *match.span("secret"), "password"
    yield from _outside_of_links(text, _guessed(read))


def _guessed(read: _Read) -> Iterator[Span]:
    """Secrets that are known by what stands around them, or by a check digit alone."""
    if read.heads:
        yield from _assigned(read)
        yield from _codes_told(read)
        yield from _passwords_told(read)
        yield from _told_otherwise(read)
    for match in _CARD.finditer(read.text):
        if _is_card(match["secret"]):
            yield *match.span("secret"), "card number"


def _outside_of_links(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Leave out what is a part of an address: it is no guess that could be worth a broken link.

    But ``?api_key=...`` says so itself, unless the link is signed for a while (``X-Amz-Signature``).
    """
    links: list[tuple[int, int]] | None = None
    for span in spans:
        if links is None:
            links = [match.span() for match in _LINK.finditer(text)]
        first, last, _ = span
        place = bisect(links, (last,)) - 1
        is_inside = place >= 0 and links[place][1] > first
        if not is_inside or _IS_VALUE.search(text, max(0, first - _LOOK_BACK), first):
            yield span


def _shaped(read: _Read) -> Iterator[Span]:
    """Secrets that have a form of the table without being known by how they begin."""
    lowered = read.lowered
    for form in _forms()[0]:
        for marker in form.markers:
            if marker in lowered:
                break
        else:
            continue
        within = read.lines(read.places(form.markers)) if form.in_a_line else ((0, len(lowered)),)
        for match in (each for part in within for each in form.pattern.finditer(read.text, *part)):
            group = 0 if "label" in form.pattern.groupindex else match.lastindex or 0
            yield *match.span(group), form.kind


def _issued(text: str) -> Iterator[Span]:
    """Keys that are known by how they begin."""
    words = " ".join(word for word in text.split() if len(word) >= _LEAST_ISSUED)
    for form in _forms()[1] if words else ():
        if form.prefix in words:
            for match in form.pattern.finditer(text):
                secret = match[0].rstrip("-_.")  # markup may follow
                if not form.is_weak or _is_made(match[0].removeprefix(form.prefix)):
                    yield match.start(), match.start() + len(secret), form.kind


@cache
def _forms() -> tuple[list[_Shaped], list[_Issued]]:
    """The rows of the table, read once."""
    issued: list[_Issued] = []
    shaped: list[_Shaped] = []
    for row in _section("issued"):
        kind, prefixes, rest = row.split("\t")
        chars, counts = _CLASSES[rest[0]], rest[1:].rstrip("!")
        least, dash, most = counts.partition("-")
        ends = "[A-Za-z0-9]*" if dash and not most else "(?![A-Za-z0-9])"
        for prefix in prefixes.split():
            begin = re.escape(prefix)
            # Begins with the text itself, so that `re` can look for that first.
            form = f"{begin}(?<![A-Za-z0-9]{begin}){chars}{{{least}{dash and ','}{most}}}{ends}"
            issued.append(_Issued(kind, prefix, re.compile(form, re.ASCII), rest.endswith("!")))
    for row in _section("shaped"):
        kind, where, markers, form = row.split("\t")
        marked = tuple(markers.lower().split("|"))
        shaped.append(_Shaped(kind, marked, re.compile(form), where == "line"))
    return shaped, issued


def _section(name: str) -> Iterator[str]:
    table = files(__package__).joinpath("secrets.tsv").read_text("utf-8")
    rows = table.partition(f"\n[{name}]\n")[2].partition("\n[")[0].splitlines()
    return (row for row in rows if row.strip() and not row.startswith("# "))


@cache
def _words(section: str) -> frozenset[str]:
    return frozenset(" ".join(_section(section)).split())


def _assigned(read: _Read) -> Iterator[Span]:
    """Secrets behind a name that says so, and that look made by a machine."""
    text, end = read.text, 0
    lines = read.lines(read.places(_NAMES & read.heads))
    for named in (each for line in lines for each in _NAME.finditer(read.lowered, *line)):
        match = _ASSIGNED.match(text, named.end()) if named.start() >= end else None
        if match is None:
            continue
        first, secret, name = match.start("secret"), match["secret"].rstrip(".,:?*_"), named[0]
        is_password = name.startswith(("pass", "pwd", "kenn", "contr", "mot", "senha", "wacht"))
        mixed = is_password and not match["rest"] and _is_password(secret, said=False)
        if (mixed or _is_random(secret, is_password=is_password)) and not _is_in_link(text, named):
            end = first + len(secret)
            yield first, end, "password" if is_password else "secret"
    yield from _quoted(read)
    for match in read.begun(_BEARER, _BEARER_HEADS):
        if _is_random(match["secret"]):
            yield *match.span("secret"), "token"
    for match in read.begun(_PAIR, _PAIR_HEADS):
        if _is_pair(match) and _is_password(match["secret"], said=False):
            yield *match.span("secret"), "password"


def _is_pair(match: re.Match[str]) -> bool:
    """True if a name and a password are joined, rather than words of a sentence.

    What comes after a gap has a label before it, or nothing but the end of the line behind it; both
    where it is a person that is named, for people speak.
    """
    if match["gap"] is None:
        return True
    signs = match["label"] != "", _ENDS_LINE.match(match.string, match.start("secret")) is not None
    return all(signs) if match["person"] else any(signs)


def _quoted(read: _Read) -> Iterator[Span]:
    """Passwords in quotes behind a name that says so."""
    text = read.text
    for match in read.begun(_QUOTED, _QUOTED_HEADS):
        quoted = _IN_QUOTES.search(text, max(0, match.start() - _LOOK_BACK), match.start())
        if quoted and quoted[1] == match[1] and match[0].count(match[1]) == _A_PAIR:
            continue  # the name stands in quotes with its colon: what follows is between two texts
        if _is_password(match["secret"], said=" " not in match["secret"] or "phrase" in match[0]):
            yield *match.span("secret"), "password"


def _codes_told(read: _Read) -> Iterator[Span]:
    """PINs, and codes of doors and the like, that are told in plain words."""
    text, lowered = read.text, read.lowered
    for match in read.begun(_CODE_SAID, _CODE_HEADS | _PLACE_HEADS, small=True):
        before = lowered[max(0, match.start() - _LOOK_BACK) : match.start()]
        word = _LAST_WORD.search(before) if match["any"] else None
        if before.endswith(("/", ".", "#")) or (word and word[1] in _words("codes")):
            continue
        for first, _ in _candidates(text, *match.span()):
            code = _CODE.match(text, first)
            if code and match[0] in {"combination", "tan"}:  # of letters, and a colour
                code = code if _ONLY_DIGITS[match[0]].fullmatch(code[0]) else None
            if code and match["any"] and _VERSION.match(code[0]):
                continue
            if not code or any(_NO_NUMBER.match(text, at) for at in code.span()):
                continue
            if not _is_in_code(text, *code.span()):
                yield *code.span(), "PIN or code"


def _passwords_told(read: _Read) -> Iterator[Span]:
    """Passwords and tokens that are told in plain words."""
    text, lowered = read.text, read.lowered
    for match in read.begun(_PASSWORD_SAID, _PASSWORD_HEADS, small=True):
        if _NOT_BEFORE.match(lowered, match.start() - 1) and match.start():
            continue
        is_token = "token" in match[0]
        for first, said in _candidates(text, *match.span()):
            found = _WORD.match(text, first)
            secret = found[0].rstrip(".,;:!?)*_|") if found else ""
            goes_on = secret.isalpha() and _GOES_ON.match(text, first + len(secret))
            if goes_on or (is_token and (len(secret) < _LEAST_TOKEN or secret.startswith("token"))):
                continue
            is_plain = match["plain"] is not None
            is_secret = _is_password(secret, said=said and is_plain) or (
                is_plain and _LONG_NUMBER.fullmatch(secret)
            )
            last = first + len(secret)
            if is_secret and not (
                _is_variable(text, first, last) or _is_in_code(text, first, last)
            ):
                yield first, last, "password"
                break


def _told_otherwise(read: _Read) -> Iterator[Span]:
    """Secrets before the word that tells of them, phrases, and those in lists and tables."""
    text = read.text
    said = [
        each.start()
        for each in read.begun(_WORD_SAID, _CODE_HEADS | _PLACE_HEADS | _PASSWORD_HEADS)
    ]
    lines = read.lines(said, _REVERSED_LINES)
    for match in (each for line in lines for each in _REVERSED.finditer(text, *line)):
        secret = match["secret"]
        is_secret = _CODE.fullmatch(secret) if match["code"] else _is_password(secret, said=False)
        if is_secret and not _is_in_code(text, *match.span()):
            yield *match.span("secret"), "PIN or code" if match["code"] else "password"
    for match in read.begun(_PHRASE, _PHRASE_HEADS):
        yield *match.span(match.lastgroup or 0), "recovery phrase"
    for match in read.begun(_LIST, _LIST_HEADS):
        yield match.start("secret"), match.start("secret") + len(match["secret"].rstrip()), "codes"
    for table in _TABLE.finditer(text) if "|" in text else ():
        yield from _in_columns(table[1].split("|"), table.start(2), table[2], "|")
    end = 0
    for first, last in read.lines(read.places(_COLUMN_HEADS & read.heads)):
        line = text[first:last].rstrip("\n")
        sign = max(",;\t", key=line.count)
        if first >= end and sign in line and all(map(_FIELD.fullmatch, heads := line.split(sign))):
            end = last
            while sign in text[end : (more := read.end(end))]:
                end = more
            yield from _in_columns(heads, last, text[last:end], sign)


def _in_columns(heads: list[str], place: int, rows: str, sign: str) -> Iterator[Span]:
    """Secrets in the columns of a table whose heads promise some, and whose rows begin at a place."""
    columns = [_COLUMN.fullmatch(head.strip("\"'\r")) for head in heads]
    for row in rows.splitlines(keepends=True) if any(columns) else ():
        first = place + (row.find(sign) if sign == "|" else 0)
        for column, cell in zip(columns, row[first - place :].split(sign), strict=False):
            secret = cell.strip(" \t\r\n\"'`*_")
            begin = first + cell.find(secret)
            is_code = column and column["code"] and _CODE.fullmatch(secret)
            if secret and column and (is_code or _is_password(secret, said=False)):
                yield begin, begin + len(secret), "PIN or code" if is_code else "password"
            first += len(cell) + 1
        place += len(row)


def _candidates(text: str, begin: int, end: int) -> Iterator[tuple[int, bool]]:
    """Where the secret may begin that a word promises, and if "is" or a colon stands before it."""
    if _NOT_SAID.match(text, end) or _TYPED.match(text, end):
        return
    if aside := _ASIDE.match(text, end):
        yield aside.start("inside"), False
        end = aside.end()
    named = _BELOW.match(text, end)
    if below := named or (_is_alone(text, begin) and _ALONE.match(text, end)):
        yield below.end(), named is not None
        return
    if reply := _REPLY.match(text, end):
        yield reply.end(), False
    line = text.find("\n", end, end + _LOOK_AHEAD)
    stop = min(end + _LOOK_AHEAD, len(text)) if line < 0 else line
    clause = _CLAUSE_END.search(text, min(end + 3, stop), stop)
    stop = clause.start() if clause else stop
    if text.startswith(("'s ", "’s "), end):
        yield end + 3, True
    yield from _in_clause(text, end, stop)


def _in_clause(text: str, end: int, stop: int) -> Iterator[tuple[int, bool]]:
    for said in _SAID.finditer(text, end, stop):
        if text.count(" ", end, said.start()) > _MOST_WORDS:
            break
        yield said.end(), True
    if dash := _DASH.match(text, end, stop):
        yield dash.end(), False
    if its := _ITS.search(text, end, stop):
        yield its.end(), False
    words = _MOST_WORDS if _SAYS_OF.match(text, end) else 1
    for place in islice(_GAP.finditer(text, end, stop), words):
        yield place.end(), False


def _is_variable(text: str, first: int, last: int) -> bool:
    """True if a variable is handed on: "password=smtp_password,", "salt=salt)"."""
    name = text[first:last]
    is_given = text[last : last + 1] in {",", ")"} and _OF_A_SECRET.fullmatch(name)
    return bool(is_given) or text.startswith(f"{name}=", first - len(name) - 1)


def _is_in_code(text: str, first: int, last: int) -> bool:
    """True if what stands around in its line is a program's text, in which nobody tells anything.

    What is quoted there is a value all the same, if it holds a digit and is no name.
    """
    inside = len(_CODE_MARK.findall(text, first, last))
    is_quoted = text[first - 1 : first] in _QUOTES and text[last : last + 1] in _QUOTES
    if is_quoted and not inside and _DIGIT.search(text, first, last):
        return _IS_NAME.search(text, first, last) is not None
    begin, end = max(0, first - _NEAR), last + _NEAR
    before = _COMMENT.split(text[begin:first].rpartition("\n")[2])[-1]
    around = before, text[last:end].partition("\n")[0]
    marks = sum(len(_CODE_MARK.findall(each)) for each in around)
    return marks > 1 and marks + inside > _MOST_CODE


def _is_alone(text: str, begin: int) -> bool:
    """True if nothing but marks stands in its line before a word."""
    before = text[max(0, begin - _MOST_MARKS) : begin]
    line = before.rpartition("\n")[2]
    return not line.strip(" \t>*#_-") and (line != before or begin < _MOST_MARKS)


def _is_password(secret: str, *, said: bool) -> bool:
    """True if a word is a password, rather than how a sentence goes on; `said`: behind "is"."""
    secret = secret[:_SEEN]
    if len(secret) < 4 or _CODED.match(secret) or _PLACEHOLDER.search(secret):
        return False
    letters = sum(map(str.isalpha, secret))
    digits = sum(map(str.isdigit, secret))
    odd = re.search(r"[#$%&*!@^+=~]", secret) is not None and letters + digits > 1
    mixed = digits > 0 and letters > 0 and not _TECHNICAL.fullmatch(secret)
    if not said:
        return mixed or odd
    plain = secret.casefold() not in _words("words") and not secret.endswith(("ed", "ing", "ly"))
    return mixed or odd or digits > 3 or (plain and not re.search(r"[(){}\[\]<>|\\]", secret))


def _is_random(secret: str, *, is_password: bool = False) -> bool:
    """True if a string looks generated rather than written: long, mixed, no placeholder.

    A password may be shorter when it is mixed more.
    """
    secret = secret[:_SEEN]
    if len(secret) < _MIN_PASSWORD or _CODED.match(secret) or _PLACEHOLDER.search(secret):
        return False
    kinds = sum(any(map(test, secret)) for test in _KINDS)
    odd = re.search(r"[^\w./:-]", secret) is not None
    if is_password and kinds + odd > 2:  # of four
        return True
    return len(secret) >= _MIN_LENGTH and kinds > 1 and _is_made(secret)


def _is_made(secret: str) -> bool:
    """True if nobody would write it: many different characters that change their kind often."""
    if _is_written(secret):
        return False
    bare = re.sub(r"[\W_]", "", secret)
    turns = len(_TURN.findall(bare))
    return turns >= _LEAST_TURNS * len(bare) > 0 and _entropy(secret) >= _MIN_ENTROPY


def _is_written(secret: str) -> bool:
    """True if most of it are words, as in names of programs: "AutoTokenizer", "seed_of_model"."""
    words = [word for word in _IN_NAME.findall(secret) if _VOWEL.search(word)]
    digits = sum(map(str.isdigit, secret))
    return sum(map(len, words)) > _MOST_WRITTEN * len(secret) and digits < _MOST_DIGITS * len(
        secret
    )


def _is_in_link(text: str, name: re.Match[str]) -> bool:
    """True if this is ``?token=...`` of a link: everyday sharing, and part of its address."""
    before = text[max(0, name.start() - _LOOK_BACK) : name.start()]
    return name[0] == "token" and _IN_QUERY.search(before) is not None


def _is_card(number: str) -> bool:
    """True if the check digit is right (Luhn)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [n if at % 2 else sum(divmod(2 * n, 10)) for at, n in enumerate(digits[::-1], 1)]
    return len(set(digits)) > 1 and sum(doubled) % _LUHN == 0


def _entropy(text: str) -> float:
    """Shannon's entropy in bits a character."""
    more = sum(n * math.log2(n) for n in Counter(text).values() if n > 1)
    return math.log2(len(text)) - more / len(text)
