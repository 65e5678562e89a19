"""What a statement is about: the type of its entry, and a title as a person would give it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kbtui.offline import words as w
from kbtui.offline.judging import label_of
from kbtui.text import fold

MOST_WORDS = 6
_TOKEN = re.compile(r"[^\s,;:!?()\"“”„«»]+|[,;:!?()\"“”„«»]")
_NAME = r"[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+"
_TITLED = re.compile(
    rf"^(?:[\w.]+\s+\d+\w?[,:]?\s+)?(?P<name>(?i:dr|mr|mrs|ms|prof|frau|herr|sra?|señora?|don|doña|doctora?)\b\.?\s+[\w'’-]+(?:\s+{_NAME})?)"
)
_NAMED = re.compile(
    rf"^(?P<name>{_NAME}(?:\s+(?:de|von|van|del|la)?\s?{_NAME}){{0,2}})(?:'s|’s)?\s+(?P<verb>[\w'’]+)(?P<rest>.*)$",
    re.DOTALL,
)
_CALLED = re.compile(
    rf"^(?P<who>.{{2,40}}?)\s+(?:(?:is|are|was)\s+(?:called|named)|['’]?s\s+(?:called|named|name is)|name is|goes by|heißt|heissen|heisst|se llama|se llaman)\s+(?:now\s+)?(?P<name>{_NAME}(?:\s+{_NAME})?)",
    re.IGNORECASE,
)
_KIN = re.compile(
    rf"^(?i:my|our|mein\w*|unser\w*|mi|mis|nuestr\w+)\s+(?P<role>(?:[\w-]+\s+){{0,2}}?[\w-]+)\s*,?\s+(?P<name>(?:(?:Mr|Mrs|Ms|Dr|Prof|Frau|Herr|Sra?)\.?\s+)?{_NAME}(?:\s+{_NAME})?)\b"
)
_ROLE = re.compile(
    r"\b(?:is|was|ist|war|es|era|wird|becomes|now)\s+(?:(?:now|jetzt|ahora)\s+)?(?:the|our|my|a|an|her|his|der|die|das|ein|eine|mein\w*|unser\w*|el|la|un|una|mi|nuestr\w+)?\s*(?:new|neue\w*|nuev\w+)?\s*[\w -]{0,30}?"
    r"(?:lead|manager\w*|engineer|developer|designer|owner|maintainer|architect|analyst|director\w*|boss|colleague|friend|partner|doctor|dentist|teacher|lawyer|accountant|ceo|cto|cfo|coo|pm|nurse|intern|trainer|coach|assistant|contact|chair\w*|secretary|treasurer|head|leiter\w*|chef\w*|kolleg\w+|freund\w*|arzt|ärztin|lehrer\w*|anwalt|anwältin|ansprechpartner\w*|vorsitzende\w*|jefe|jefa|médic\w+|abogad\w+|profesor\w*|encargad\w+|responsable|compañer\w+|amig\w+|vecin\w+|nachbar\w*|neighbou?r)\b",
    re.IGNORECASE,
)
_PERSON_VERB = frozenset(
    """left leaves told asked wants turns promised knows thinks calls said paid
    kommt sagt will vertragt verträgt trinkt isst viene quiere dice cumple encarga renunció
    owns leads works lives manages runs heads covers handles teaches studies joined joins moved
    maintains quit resigned retired likes loves hates prefers speaks married
    leitet arbeitet wohnt lebt betreut unterrichtet studiert zieht mag hasst spricht verantwortet
    übernimmt kümmert dirige trabaja vive lleva estudia enseña prefiere habla gestiona""".split()  # noqa: SIM905
)
_DECIDED = re.compile(
    r"\b(?:(?:decided|agreed|chose|chosen|picked|selected|opted|settled|going|went|go|switching|switched|pivoting|moving|migrating)"
    r"(?:\s+(?:to go with|to use|to|on|for|with|that|against|from))?|decision\s*[:=]|we(?:'|’)?re going with)\s+(?P<what>.+)"
    r"|\b(?:uns|mich|haben|hab)\b(?P<de>.+?)\b(?:entschieden|beschlossen|geeinigt|entschlossen)\b(?P<rest>.*)"
    r"|\b(?:decid\w+|acord\w+|eleg\w+|escog\w+|optamos)(?:\s+(?:usar|que|por|ir con|a|en|utilizar))?\s+(?P<es>.+)"
    r"|\b(?:beschlossen|entschieden|entscheidung)\s*:?\s+(?P<what2>.+)",
    re.IGNORECASE | re.DOTALL,
)
_IS_DECISION = re.compile(
    r"^(?:decision|entscheidung|decisión|beschluss)\s*[:=]|\b(?:we|i|the (?:team|board|committee)|they)(?:['’]ve| have| had| are|['’]re| r)?\s+(?:\w+ly |all |just |finally )?"
    r"(?:decided|agreed|chose|chosen|picked|settled|opted|selected|going with|went with|switching|pivoting|switched)\b"
    r"|\b(?:haben|habe|hat|hab)\b.*\b(?:entschieden|beschlossen|geeinigt|entschlossen)\b|^(?:beschlossen|entschieden)\b"
    r"|\b(?:queda(?:mos|do) en|decid(?:imos|í|ido)|hemos (?:decidido|elegido|acordado)|acordamos|elegimos|he decidido|optamos)\b|^(?:decided|agreed|were (?:going with|switching|pivoting))\b",
    re.IGNORECASE,
)
_PREFERS = re.compile(
    r"^(?:i|we|ich|wir|yo)?['’]?\w*\s*(?:\w+\s+){0,2}?(?:prefer|like|love|enjoy|hate|dislike|avoid|always|never|can['’]?t stand|don['’]?t (?:like|eat|drink|want|use|do|take)|do not (?:like|eat|drink|want|use|take)"
    r"|bevorzuge\w*|mag|liebe|hasse|esse|trinke|nie|niemals|immer|lieber|am liebsten|prefiero|odio|me gusta\w*|no me gusta\w*|me encanta\w*|nunca|siempre|evito|no (?:como|bebo|tomo|quiero|uso))\b",
    re.IGNORECASE,
)
_GENERIC = w.listed("generic")
_AUX = w.listed("auxiliary")
_NOUNS = w.listed("nouns as well")
_VERBS = (w.COPULA | _AUX | (w.DURABLE - _NOUNS)) | w.word_set("works turns starts comes")
_STOP_AT = w.CONJUNCTION - {"and", "und", "y", "e", "&"}
_HOME = (
    (re.compile(r"^i(?: now| just)? (?:live|moved)\b", re.IGNORECASE), "Where I live"),
    (re.compile(r"^i(?: now)? work (?:in|at|for|as)\b", re.IGNORECASE), "Where I work"),
    (re.compile(r"^ich (?:wohne|lebe)\b", re.IGNORECASE), "Wo ich wohne"),
    (re.compile(r"^ich arbeite\b", re.IGNORECASE), "Wo ich arbeite"),
    (re.compile(r"^(?:yo )?vivo\b", re.IGNORECASE), "Dónde vivo"),
    (re.compile(r"^(?:yo )?trabajo (?:en|de|para|como)\b", re.IGNORECASE), "Dónde trabajo"),
    (re.compile(r"^(?:my name is|call me|i(?:'|’)?m called)\b", re.IGNORECASE), "My name"),
    (re.compile(r"^(?:ich heiße|ich heisse|mein name ist|nenn)", re.IGNORECASE), "Mein Name"),
    (re.compile(r"^(?:me llamo|mi nombre es|ll[aá]mame)\b", re.IGNORECASE), "Mi nombre"),
)


def about(said: str) -> tuple[str, str]:
    """The type of entry, of `ENTRY_TYPES`, and the title of a statement: a noun phrase, or ""."""
    text = " ".join(said.split("\n", 1)[0].split()).strip(" .!,;")
    for form, title in _HOME:
        if form.match(text):
            return "fact", title
    if _IS_DECISION.search(text):
        return "decision", _decided(text)
    if (person := _person(text)) is not None:
        return "person", person
    if (label := label_of(text)) is not None:
        return _kind(text, label[0]), _labelled(*label)
    if _PREFERS.match(text):
        return "preference", _object(text) or subject(text)
    title = subject(text)
    return _kind(text, title), title


def subject(text: str) -> str:
    """The noun phrase that a sentence begins with, before its verb; else its object."""
    exact = next((value for value in w.values(text) if value.kind in _EXACT), None)
    tokens = _TOKEN.findall(
        text[: exact.start] if exact and w.content(text[: exact.start]) else text
    )
    if tokens and (_speaks_first(tokens) or _WE_DO.fullmatch(tokens[0])):
        return _object(text)
    first = next((n for n, token in enumerate(tokens) if _is_verb(token, n)), len(tokens))
    first = min(first, _verb_behind_noun(tokens, w.language(text)))
    head = _phrase(tokens[:first], text)
    if head and w.content(head) and not _is_pronoun(tokens[:first]):
        return head
    return _object(text)


def titled(text: str) -> str:
    """A phrase as a title: its first letter large, nothing loose at its ends."""
    found = text.strip(" .,;:!?-–—=\"'“”„()[]&+*`#")
    tokens = found.split()[:MOST_WORDS]
    while tokens and fold(tokens[-1].strip("',")) in _LOOSE:
        tokens.pop()
    found = " ".join(tokens).rstrip(" ,;:&+-'")
    return found[:1].upper() + found[1:]


def is_named(phrase: str) -> bool:
    """True if a phrase is made of names alone: *Aisha & Florian*, *Dr. Fang*."""
    told = [token for token in re.findall(r"[\w'’-]+", phrase) if fold(token) not in w.FUNCTION]
    return bool(told) and all(token[0].isupper() for token in told)


def _person(text: str) -> str | None:  # noqa: C901, PLR0911 - a form each
    if kin := _KIN.match(text):
        role = fold(kin["role"]).split()
        if w.RELATION & set(role) and fold(kin["name"]) not in w.FUNCTION:
            return titled(kin["name"])
    if called := _CALLED.match(text):
        who = set(w.words(called["who"]))
        if who & (w.RELATION | w.PRONOUN | _ROLES) or re.search(
            r"nurse|teacher|lehrer|manager|chef", fold(called["who"])
        ):
            name = called["name"]
            return titled(name) if name[0].isupper() else None
    match = _TITLED.match(text)
    if match and fold(match["name"].split()[1]) not in w.FUNCTION | w.COPULA | w.DURABLE:
        return " ".join(part[:1].upper() + part[1:] for part in match["name"].split())
    match = _NAMED.match(text)
    if match and fold(match["name"]) not in w.FUNCTION | w.CHAT and not w.values(match["name"]):
        verb = fold(match["verb"])
        if verb in _PERSON_VERB or (
            verb in w.COPULA and _ROLE.search(text[len(match["name"]) :][:60])
        ):
            return titled(match["name"])
        if w.RELATION & set(w.words(match["rest"])[:4]) and verb in w.COPULA:
            return titled(match["name"])
    first = re.match(
        rf"^(?P<name>{_NAME}(?:\s+{_NAME})?)\s*(?:[,(=:–-]|is|ist|es)\s*(?P<rest>[^,)]*)", text
    )
    if (
        first
        and fold(first["name"]) not in w.FUNCTION
        and set(w.words(first["rest"])[:4]) & (w.RELATION | _ROLES)
    ):
        return titled(first["name"])
    kin_alone = re.match(
        r"^(?:my|our|mein\w*|unser\w*|mi|mis|nuestr\w+)\s+(?P<role>[\w-]+(?:\s[\w-]+)?)\b",
        text,
        re.IGNORECASE,
    )
    if kin_alone:
        for word in kin_alone["role"].split():
            if fold(word.removesuffix("'s")) in w.RELATION:
                return titled(kin_alone["role"].split(word)[0] + word.removesuffix("'s"))
    return None


def _labelled(label: str, value: str) -> str:
    telling = [word for word in w.content(label) if word not in _GENERIC]
    name = re.match(rf"^({_NAME}(?:\s+{_NAME})?(?:\s*[&+]\s*{_NAME})?)(?=[,(]|\s[-–]|$)", value)
    if not telling:
        return titled(name[1]) if name else subject(value) or titled(value)
    if (
        name
        and label.split(maxsplit=1)[0].casefold() in _ROLES | w.RELATION
        and not re.search(r",\s*[A-Z]", value)
    ):
        return titled(name[1])
    return titled(_without_article(label))


def _kind(text: str, title: str) -> str:
    folded = set(w.words(title))
    if re.search(r"\b(?:favou?rite|lieblings\w*|favorit[oa]s?)\b", text, re.IGNORECASE):
        return "preference"
    if folded & {"project", "projekt", "proyecto"}:
        return "project"
    if w.words(text)[:1] and _PREFERS.match(text) and w.FIRST_PERSON & set(w.words(text)[:2]):
        return "preference"
    return "fact"


def _decided(text: str) -> str:
    match = _DECIDED.search(text)
    if match is None:
        return subject(text)
    what = next((part for part in match.groups() if part and w.content(part)), text)
    what = re.sub(
        r"^\s*(?:dafür|dazu|darauf|für|auf|gegen|to|the|use|go with|usar|que)\b[\s,]*",
        "",
        what.strip(),
    )
    what = re.split(
        r"\b(?:because|since|due to|so that|weil|da|denn|porque|ya que|instead of|rather than|over|not|statt|anstatt|en vez de|en lugar de|reason)\b|[.;:(]|,",
        what,
        maxsplit=1,
        flags=re.IGNORECASE,
    )[0]
    return titled(_without_article(_phrase(_TOKEN.findall(what), what) or what)) or subject(text)


def _object(text: str) -> str:
    """The first noun phrase behind the verb."""
    tokens = _TOKEN.findall(text)
    start = 0
    if tokens and (_WE_DO.fullmatch(tokens[0]) or _speaks_first(tokens)):
        start = 1 + (fold(tokens[0]) in _SPEAKER)
    while start < len(tokens) - 1 and (
        _is_light(tokens[start]) or _is_verb(tokens[start], start + 1) or _is_done(tokens, start)
    ):
        start += 1
    for ahead in range(start, min(start + 4, len(tokens) - 1)):
        if fold(tokens[ahead]) in w.ARTICLE and ahead > start and tokens[ahead - 1] not in ",;:":
            if fold(tokens[ahead - 1]) not in w.PREPOSITION:
                start = ahead
            break
        if tokens[ahead] in ",;:":
            break
    return _phrase(tokens[start:], text)


def _phrase(tokens: Sequence[str], text: str) -> str:
    del text
    kept: list[str] = []
    for place, token in enumerate(tokens):
        low = fold(token.strip("'’"))
        if kept and token.islower() and fold(" ".join(tokens[place + 1 : place + 2])) in _SPEAKER:
            break
        if not kept and (low in w.ARTICLE or _is_light(token) or token in _MARKS):
            continue
        if (
            token in _MARKS
            or (kept and low in _STOP_AT | _BY_NOW)
            or (len(kept) > 1 and _is_verb(token, 1))
        ):
            break
        if kept and (token in _DASHES or any(v.kind in _EXACT for v in w.values(token))):
            break
        kept.append(token)
        if len(kept) == MOST_WORDS or (token.endswith(".") and len(token) > _ABBREVIATION):
            break
    return titled(" ".join(kept))


def _speaks_first(tokens: Sequence[str]) -> bool:
    """Whether a sentence begins with *I* or *we* and a verb."""
    return len(tokens) > 2 and fold(tokens[0]) in _SPEAKER and tokens[1].islower()


def _verb_behind_noun(tokens: Sequence[str], code: str) -> int:
    """Where a verb stands that no list has: by its place behind a noun, and its ending."""
    noun = False
    for place, token in enumerate(tokens[:-1]):
        low = fold(token.strip("'’"))
        if token in _MARKS:
            break
        small = token[0].islower() and low not in w.PREPOSITION | w.ARTICLE | w.CONJUNCTION
        if noun and small:
            after = fold(tokens[place + 1])
            ends_in_s = re.fullmatch(r"\w{3,}[^s\W]s", low) and after.isalpha()
            if code == "de" or (
                code == "es" and _MASCULINE_DOES.fullmatch(" ".join(tokens[: place + 1]))
            ):
                return place
            if code == "en" and ends_in_s and w.is_content(after) and not _is_verb(after, 1):
                return place
        noun = w.is_content(low) and (code != "de" or token[0].isupper())
    return len(tokens)


def _is_verb(token: str, place: int) -> bool:
    low = fold(token.strip("'’"))
    bare, _, rest = low.partition("'")
    if rest == "t" and f"{bare}t" not in w.CONJUNCTION:
        return True
    return (
        low in _VERBS
        or (rest in ("s", "re", "ll", "ve", "m") and bare in w.PRONOUN | {"i", "we", "you"})
    ) and place >= 0


def _is_done(tokens: Sequence[str], place: int) -> bool:
    """True if a word that could be a noun as well is what "I" or "never" does."""
    before = fold(tokens[place - 1]).partition("'")[0] if place else ""
    acts = before in w.FIRST_PERSON or before in _OFTEN
    return place > 0 and acts and fold(tokens[place]) in w.DURABLE


def _is_light(token: str) -> bool:
    low = fold(token.strip("'’")).partition("'")[0]
    return low in w.FUNCTION or low in _LIGHT


def _is_pronoun(tokens: Iterable[str]) -> bool:
    told = [fold(token) for token in tokens if token.isalpha()]
    return all(word in w.PRONOUN | w.FIRST_PERSON | w.FUNCTION for word in told)


def _without_article(text: str) -> str:
    tokens = text.split()
    while len(tokens) > 1 and fold(tokens[0]) in w.ARTICLE:
        tokens.pop(0)
    return " ".join(tokens)


_LOOSE = (w.FUNCTION | w.PREPOSITION | w.CONJUNCTION | w.ARTICLE) - {"us", "it"}
_LIGHT = w.word_set(
    "keep keeps kept finally always never usually really prefer prefers new always want ab lieber immer nie siempre nunca prefiero"
)
_SPEAKER = w.word_set("i we ich wir yo nosotros")
_WE_DO = re.compile(r"\w{2,}[aei]mos", re.IGNORECASE)
_MASCULINE_DOES = re.compile(r"(?:el|un|mi) \w+[^a\W] \w+a", re.IGNORECASE)
_ABBREVIATION = 4
_BY_NOW = w.word_set("now currently jetzt nun ahora")
_OFTEN = w.word_set("don don't dont not no never always usually nie immer niemals nunca siempre")
_MARKS, _DASHES = frozenset(',;:!?()"“”„«»'), frozenset("=–—-")
_EXACT = frozenset({"date", "time", "money", "percent", "weekday", "day", "id"})
_ROLES = w.listed("roles")
