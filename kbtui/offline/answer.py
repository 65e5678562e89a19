"""Chooses the lines that answer a question, and none where nothing does.

A line answers where it, with its title, is about all that the question names, and where it holds
what is asked for: a person, a time, a number, a place, a reason. Entries come before notes, notes
before what was said. No word is added to a line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from kbtui.offline import words as w
from kbtui.offline.corrections import ends_something
from kbtui.offline.judging import is_question, sentences, without_lead
from kbtui.offline.lines import Line
from kbtui.offline.subjects import is_named
from kbtui.text import fold

_ABOUT_ME = re.compile(
    r"\b(?:know|remember|noted?|stored?|saved?|written down)\b.*\babout me\b|\bwho am i\b|\b(?:weißt|weisst|merkst|kennst)\b.*\b(?:über mich|von mir|mich)\b|\bwer bin ich\b"
    r"|\bsab(?:es|éis)\b.*\b(?:de|sobre) m[ií]\b|\bquién soy\b|\bwhat have i told you\b|\bwas hab(?:e)? ich dir (?:alles )?(?:erzählt|gesagt)\b|\bqué te he (?:contado|dicho)\b",
    re.IGNORECASE,
)
_KIND: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(form, re.IGNORECASE))
    for kind, form in (
        (
            "why",
            r"\bwhy\b|\breason\b|\bhow come\b|\bwarum\b|\bwieso\b|\bweshalb\b|\bwozu\b|\bpor qu[eé]\b|^(?:xq|pq)\b",
        ),
        (
            "digits",
            r"\b(?:phone|number|extension|ext|tel|telefon\w*|handy\w*|nummer|durchwahl|teléfono|número|móvil|zip|postcode|iban|plz|ip|port|version)\b",
        ),
        ("mail", r"\b(?:e-?mail|mail address|correo)\b"),
        (
            "amount",
            (
                r"\bhow (?:many|much|old|long|big|tall|far|often|heavy|high|large|wide|deep)\b|\bwie (?:viele?|alt|lange?|gro(?:ß|ss)|weit|oft|schwer|hoch|teuer)\b|\bcu[aá]nt[oa]s?\b|\bqu[eé] edad\b|\bwhat (?:size|age|price|dose|dosage|percentage)\b|\bwelche\w* \w*(?:größe|gewicht|preis|höhe|länge)\b|\bqu[eé] talla\b"
                r"|^(?!.*\b(?:who\w*|when|where|why|wer|wem|wann|wo|warum|qui[eé]n|cu[aá]ndo|d[oó]nde)\b).*\b(?:cost|costs|price|charge|pay|kostet|kosten|preis|cuesta|precio|cobramos|cobro)\b"
            ),
        ),
        ("age", r"\bhow old\b|\bwhat age\b|\bwie alt\b|\bqu[eé] edad\b|\bcu[aá]ntos años\b"),
        ("time", r"\bwhat time\b|\bum wie ?viel uhr\b|\bqu[eé] hora\b"),
        (
            "when",
            r"\bwhen(?:['’]?s)?\b|\bwhat (?:day|date|time)\b|\bwhich (?:day|date|month)\b|\bwann\b|\bwelche[nmr]? tag\b|\bum wie ?viel uhr\b|\bcu[aá]ndo\b|\bqu[eé] (?:d[ií]a|hora|fecha)\b|\bdeadline\b",
        ),
        (
            "who",
            r"\bwho(?:m|se|['’]?s)?\b|\bwe[rnm]\b|\bwessen\b|\bqui[eé]n(?:es)?\b|(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bto )\b(?:name|nombre)\b|\bc[oó]mo se llaman?\b|\bwie hei(?:ß|ss)(?:t|en)\b",
        ),
        (
            "where",
            r"\bwhere(?:['’]?s)?\b|\bwo\b|\bwohin\b|\bwoher\b|\b(?:a|de)?d[oó]nde\b|\bwhich (?:room|city|town)\b|\bwelche[nmr]? (?:raum|zimmer|saal|stadt|ort)\b|\b(?:qu[eé]|cu[aá]l) (?:sala|aula|ciudad|calle)\b",
        ),
    )
)
_TOLD = re.compile(
    r"\b(?:what|was|qué|que) (?:did i (?:say|tell|write|note)|have i (?:said|told)|do (?:you|i|we) (?:know|have)|hab(?:e)? ich|weißt du|weisst du|sabes|dije|he dicho)\b|\b(?:tell me|erzähl(?:e)? mir|cuéntame|dime) (?:about|everything|von|über|sobre|de|todo|alles)\b|^(?:list|show|find|search|zeig|such|busca|muestra|lista)\w*\b|\bwho(?:['’]?s| is)\b|\bwer ist\b|\bqui[eé]n es\b|\banything (?:about|on)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"\b(?:because|since|due to|reason|so that|as it|as they|in order|therefore|thanks to|owing|weil|denn|wegen|damit|grund|deshalb|da|porque|ya que|debido|por|para que|motivo|puesto)\b|[:(–—]",
    re.IGNORECASE,
)
_WHERE = re.compile(
    r"\b(?:in|at|on|behind|near|next to|under|opposite|from|to|via|inside|beside|with|bei|im|am|auf|hinter|neben|unter|nach|aus|über|gegenüber|zu|en|junto|detrás|bajo|sobre|a|al|desde|cerca)\b\s+\S|\d|/|\b(?:room|floor|street|str|lot|building|raum|stock|calle|planta|sala|piso)\b",
    re.IGNORECASE,
)
_SEASON = re.compile(
    r"\b(?:morning|afternoon|evening|night|noon|spring|summer|autumn|winter|weekend|year|month|week|hour|minute|day|stunde|minute|tag|hora|minuto|d[ií]a|early|late|morgens?|abends?|nachmittags?|nachts?|frühling|sommer|herbst|winter|wochenende|jahr|monat|woche|mañana|tarde|noche|primavera|verano|otoño|invierno|semana|mes|año|(?:1[5-9]|20)\d\d)s?\b",
    re.IGNORECASE,
)
_SCAFFOLD = w.listed("asking")
_LIGHT = w.listed("light")
# A place is what "where" asks for: the line needn't say that it is one.
_PLACES = w.listed("places")
_SUBJECT = r"(?:i|we|you|he|she|they|it|(?:(?:the|my|our|his|her|their)\s+)?[\w'’]+)"
# What the asked thing does: a statement often says it with another verb.
_VERB = re.compile(
    rf"\b(?:do|does|did|can|could|should|will|would|must)(?:n['’]?t)?\s+{_SUBJECT}\s+(?P<en>\w+)"
    r"(?=\W*$|\s+(?:in|on|at|to|for|with|from|by|about|if|when|this|next|after|before|until|every|the|my|our)\b)"
    r"|^(?:\w+ )?(?:wo|wann|wie|wohin|woher|warum|wie ?viele?(?: \w+)?|(?:\w+ )?welche[nrms]? \w+)\s+(?P<de>\w+)"
    r"|^(?:cu[aá]ndo|d[oó]nde|c[oó]mo|(?:\w+ )?(?:qu[eé]|q) \w+|cu[aá]nt\w+)\s+(?:(?:me|te|se|nos|lo|la|le)\s+)?(?P<es>\w+)",
    re.IGNORECASE,
)
# "which blade", "qué aula": the kind of thing asked for, which an answer needn't name.
_WANTED = re.compile(
    r"\b(?:which|what|welche[nrms]?|qu[eé]|cu[aá]l(?:es)?|q)\s+(?P<what>[^\W\d]\w+)", re.IGNORECASE
)
_WHO_IS = re.compile(
    r"\b(?:who(?:['’]?s| is| was)|name of|name|wer ist|wie hei(?:ß|ss)(?:t|en)|qui[eé]n es|c[oó]mo se llaman?)\b",
    re.IGNORECASE,
)
_ATTRIBUTES: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (w.word_set("ip"), re.compile(r"\d+\.\d+\.\d+")),
    (
        w.word_set(
            "phone telephone telefon telefonnummer handynummer telefono movil extension durchwahl"
        ),
        re.compile(r"\d[\d /()-]{4,}\d|\b(?:ext|durchwahl|dw)\b\.?\s*\d", re.IGNORECASE),
    ),
    (w.word_set("email mail correo"), re.compile("@")),
)
_WHAT_IS = re.compile(
    r"\W*(?:what(?:['’]?s| is| are)|was (?:ist|sind)|qu[eé] (?:es|son))\s+(?:(?:an?|the|eine?|der|die|das|una?|el|la|los|las)\s+)?\S+(?: \S+)?\W*$",
    re.IGNORECASE,
)
_DEFINES = re.compile(
    r"^\W*(?:(?:an?|the|eine?|der|die|das|una?|el|la)\s)?\S+(?: \S+)?\W+(?:is|are|ist|sind|es|son)\b",
    re.IGNORECASE,
)
# "who do i text if i'm late": when it is asked for matters less than what.
_RIDER = re.compile(r"\s(?:if|when|wenn|falls|si|cuando)\s+\S.*$", re.IGNORECASE)
_DEGREE = re.compile(
    r"\b(?P<how>how|wie)\s*(?:many|much|old|long|big|tall|far|often|heavy|high|large|wide|deep"
    r"|viele?|alt|lange?|gro(?:ß|ss)|weit|oft|schwer|hoch|teuer)\b",
    re.IGNORECASE,
)
_PRICED = re.compile(
    r"\d\s?/\s?\w|[€$£]|\d\s?(?:euros?|eur|dollars?|pounds?|quid)\b", re.IGNORECASE
)
_THRESHOLD = 0.66
_TRUST = 0.5  # how much of a line's score hangs on what search thinks of it
_SURE, _ENOUGH = 0.9, 0.5  # of a passage, and of a line in it
_NOT_OPENING = 0.9
_PROSE, _STRAY = 160, 0.25  # characters of a paragraph, and the relevance that it needs
_MOST = 3
_MOST_ABOUT = 6
_MOST_LED_TO = 3
_MOST_CODE = 12
_MOST_OF_ME = 12
_NEAR_BEST, _NEAR_ENOUGH = 0.93, 0.8
_RANK: Mapping[str, int] = {"entry": 0, "memory": 0, "note": 1, "said": 2, "told": 3}


@dataclass(frozen=True, slots=True)
class Answer:
    """The lines that answer, best first; `about` is what was asked about, to be named."""

    lines: tuple[Line, ...] = ()
    about: str = ""


def answer(question: str, lines: Sequence[Line]) -> Answer:
    """Choose the lines that answer a question, of which several sentences may ask."""
    about = asked_about(question)
    if _ABOUT_ME.search(question):
        return Answer(_of_me(lines), about)
    asked = _Asked(question)
    if not asked.words:
        return Answer((), about)
    told = [line for line in lines if not (line.code or _asks(line) or _is_stray(line))]
    by_file: dict[str, set[str]] = {}
    for line in told:
        if line.source == "entry":
            by_file.setdefault(line.path, set()).update(w.words(f"{line.title} {line.text}"))
    openings: dict[str, int] = {}
    for line in told:
        openings[line.path] = min(line.number, openings.get(line.path, line.number))
    scores = [(asked.score(line, by_file.get(line.path, set())), line) for line in told]
    good = [
        (_trusted(score, line) * asked.opens(line, openings), line)
        for score, line in scores
        if score >= _THRESHOLD
    ]
    over = {fold(line.text) for line in told if not line.current}
    past = max(
        ((score, line) for score, line in good if not line.current), key=_score, default=None
    )
    good = [(score, line) for score, line in good if line.current and fold(line.text) not in over]
    current = [(score, line) for score, line in good if _RANK[line.source] == 0]
    if past is not None and not current:
        return Answer(tuple(_instead(past[1], told)), about)
    if not good:
        return Answer(_led_on(_from_passage(asked, told), lines), about)
    first = min(_RANK[line.source] for _, line in good)
    current = [(score, line) for score, line in good if _RANK[line.source] == first]
    best = max(score for score, _ in current)
    near = _NEAR_ENOUGH if asked.told else _NEAR_BEST
    chosen = sorted(
        ((s, line) for s, line in current if s >= best * near), key=lambda each: -each[0]
    )
    distinct = _distinct([line for _, line in chosen], _MOST_ABOUT if asked.told else _MOST)
    return Answer(_led_on(distinct, lines), about)


def _trusted(score: float, line: Line) -> float:
    return score * (1 - _TRUST + _TRUST * line.relevance)


def _is_stray(line: Line) -> bool:
    """True for a paragraph that search doesn't find to be about the question."""
    return len(line.text) > _PROSE and line.relevance < _STRAY


def _score(scored: tuple[float, Line]) -> float:
    return scored[0]


def asked_about(question: str) -> str:
    """What a question is about, in its own words, for "nothing about X"."""
    text = without_lead(question).strip(" ?¿!¡.")
    found = re.search(
        r"\b(?:about|on|über|von|sobre|acerca de)\s+(?P<what>[^?]+)$", text, re.IGNORECASE
    )
    if found and w.content(found["what"]):
        return found["what"].strip()
    spans = [
        match
        for match in re.finditer(r"[\w'’#.-]*\w", text)
        if w.is_content(fold(match[0].replace("’", "'").removesuffix("'s")))
        and fold(match[0]) not in _SCAFFOLD
    ]
    if not spans:
        return ""
    return text[spans[0].start() : spans[-1].end()].removesuffix("'s")


class _Asked:
    """A question: its telling words with their weights, and what kind of thing is asked for."""

    def __init__(self, question: str) -> None:
        self.kinds = [kind for kind, form in _KIND if form.search(question)]
        self.defines = _WHAT_IS.match(question) is not None
        self.told = bool(_TOLD.search(question))
        self.values = [
            v for v in w.values(question) if v.kind in ("date", "time", "weekday", "month", "id")
        ]
        exact = {word for value in self.values for word in w.words(value.text)}
        german = w.language(question) == "de"  # all nouns have a capital there
        capital = set() if german else {fold(n).partition("'")[0] for n in w.names(question)}
        rider = _RIDER.search(question)
        main, beside = (question, "") if rider is None else (question[: rider.start()], rider[0])
        if not any(word not in _SCAFFOLD | _LIGHT for word in w.content(main)):
            main, beside = question, ""
        verbs = {
            fold(verb) for match in _VERB.finditer(question) for verb in match.groups() if verb
        }
        self.wanted = {fold(match["what"]) for match in _WANTED.finditer(question)} - verbs
        self.role = _WHO_IS.search(question) is not None
        self.words: dict[str, float] = {}
        for word in [*w.words(_DEGREE.sub(" ", main)), *w.words(beside)]:
            bare = word.partition("'")[0] if len(word.partition("'")[0]) > 1 else word
            if not w.is_content(bare) or bare in _SCAFFOLD or bare in exact:
                continue
            light = bare in _LIGHT or bare in verbs or ("where" in self.kinds and bare in _PLACES)
            weight = 0.35 if light else 1.5 if bare in capital or bare.isdigit() else 1.0
            self.words.setdefault(bare, weight)
        for word in set(w.words(beside)) - set(w.words(main)):
            self.words.pop(word, None)
        if self.words and all(weight < 0.5 for weight in self.words.values()):
            self.words = dict.fromkeys(self.words, 1.0)

    def score(self, line: Line, file: set[str]) -> float:
        """How well a line answers, from 0 to 1."""
        mine = [word.partition("'")[0] for word in w.words(line.text)]
        title = (
            [word.partition("'")[0] for word in w.words(f"{line.title} {line.heading}")]
            if line.source == "entry"
            else []
        )
        parts = [self._word(word, line.text, mine, title, file) for word in self.words]
        own = any(each is not None and each[2] for each in parts)
        for value in self.values:
            there = any(_same_value(value, other) for other in w.values(line.text)) or (
                value.kind == "weekday" and w.weekday(value.text) in w.weekdays(line.text)
            )
            inside = there or any(word in file for word in w.words(value.text) if word.isdigit())
            parts.append((1.0, 1.0 if there else 0.7 if inside else 0.0, there))
            own = own or there
        found = [each for each in parts if each is not None]
        if len(found) < len(parts) or not (own or (title and _match_any(self.words, title))):
            return 0.0
        score = sum(weight * part for weight, part, _ in found) / sum(each[0] for each in found)
        return math.prod(
            [score, 1.0 if own else 0.95, *(_TYPED[kind](line) for kind in self.kinds)]
        )

    def opens(self, line: Line, openings: Mapping[str, int]) -> float:
        """How likely a line says what the asked thing is: the first of the note that is about it."""
        if not self.defines or line.number == openings[line.path]:
            return 1.0
        return 1.0 if _DEFINES.search(line.text) else _NOT_OPENING

    def share(self, text: str) -> float:
        """How much of what the question names a text holds, from 0 to 1."""
        told = list(dict.fromkeys(word.partition("'")[0] for word in w.words(text)))
        held = sum(weight for word, weight in self.words.items() if _match(word, told))
        return held / sum(self.words.values())

    def _word(
        self, word: str, text: str, mine: Sequence[str], title: Sequence[str], file: set[str]
    ) -> tuple[float, float, bool] | None:
        """How much a word of the question weighs, how well it is met, True where the line itself does.

        None where that rules the line out.
        """
        weight = self.words[word]
        part = own = _part(word, text, mine)
        if part is None:
            return None
        part = part or 0.85 * _match(word, title) or 0.25 * _match(word, list(file))
        if not part and (weight > 1 or (self.role and word in w.RELATION)):
            return None
        if not part and word in self.wanted and _match_any(self.words, title):
            weight = min(weight, 0.5)
        return weight, part, bool(own)


def _part(word: str, text: str, mine: Sequence[str]) -> float | None:
    """How well a line holds a word of the question; None where that rules it out."""
    asked = _attribute(word, text)
    if asked is not None:
        return asked or None
    part = _match(word, mine)
    if not part and w.concepts(word) & w.concepts("price") and _PRICED.search(text):
        return 0.85
    return part


def _attribute(word: str, text: str) -> float | None:
    """True if a line holds what a word like *phone* asks for; None for other words."""
    form = next((form for group, form in _ATTRIBUTES if word in group), None)
    return None if form is None else 0.9 if form.search(text) else 0.0


def _match(word: str, others: Sequence[str]) -> float:
    if any(w.alike(word, other) for other in others):
        return 1.0
    meant = w.concepts(word)
    return 0.85 if meant and any(meant & w.concepts(other) for other in others) else 0.0


def _match_any(words: Mapping[str, float], others: Sequence[str]) -> bool:
    return any(_match(word, others) for word in words)


def _same_value(one: w.Value, other: w.Value) -> bool:
    if one.kind == other.kind == "weekday":
        return w.weekday(one.text) == w.weekday(other.text)
    mine, theirs = set(w.words(one.text)), set(w.words(other.text))
    if one.kind in ("date", "month") and other.kind in ("date", "month"):
        digits = {word.rstrip("stndrh") for word in mine if word[0].isdigit()}
        months = {word[:3] for word in mine if word.isalpha() and len(word) > 2}
        return digits <= {word.rstrip("stndrh") for word in theirs if word[0].isdigit()} and (
            months <= {word[:3] for word in theirs if word.isalpha()}
        )
    return mine == theirs


def _of_me(lines: Sequence[Line]) -> tuple[Line, ...]:
    """What is known about whoever asks: what is said with *I* and *my*."""
    found = [
        line
        for line in lines
        if line.current
        and line.source in ("entry", "memory")
        and (
            w.SINGULAR & {word.partition("'")[0] for word in w.words(line.text)[:2]}
            or line.source == "memory"
            or line.kind == "preference"
        )
    ]
    return _distinct(found, _MOST_OF_ME)


def _from_passage(asked: _Asked, lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines of a passage that search is sure of, where no line says it all by itself."""
    passages: dict[str, list[Line]] = {}
    for line in lines:
        if line.relevance >= _SURE and line.current and line.source != "said":
            passages.setdefault(line.path, []).append(line)
    found: list[tuple[float, Line]] = []
    for passage in passages.values():
        whole = asked.share(" ".join([passage[0].title, *(line.text for line in passage)]))
        for line in passage:
            own = asked.share(line.text)
            score = math.prod([(whole + own) / 2, *(_TYPED[kind](line) for kind in asked.kinds)])
            if own and score >= _ENOUGH:
                found.append((score * line.relevance, line))
    found.sort(key=lambda each: -each[0])
    return _distinct([line for score, line in found if score >= found[0][0] * _NEAR_BEST], _MOST)


def _instead(old: Line, lines: Sequence[Line]) -> list[Line]:
    """What holds now in the place of a line that doesn't any more."""
    here = [
        line for line in lines if line.path == old.path and line.current and line.source == "entry"
    ]
    told = set(w.content(old.text))
    over = [line for line in here if ends_something(line.text)]
    alike = [line for line in here if told & set(w.content(line.text))]
    return (over or alike or here)[-1:]


def _distinct(lines: Sequence[Line], most: int) -> tuple[Line, ...]:
    kept: list[Line] = []
    seen: list[set[str]] = []
    for line in lines:
        told = set(w.content(line.text)) or set(w.words(line.text))
        if any(len(told & other) >= 0.8 * max(len(told), len(other)) for other in seen):
            continue
        kept.append(line)
        seen.append(told)
        if len(kept) == most:
            break
    return tuple(kept)


def _led_on(chosen: Sequence[Line], lines: Sequence[Line]) -> tuple[Line, ...]:
    """The chosen lines; one that only leads to what follows is followed by the beginning of it."""
    found: dict[Line, None] = {}
    for line in chosen:
        found[line] = None
        if line.text.endswith(":"):
            found |= dict.fromkeys(_follows(line, lines))
    return tuple(found)


def _follows(line: Line, lines: Sequence[Line]) -> Iterator[Line]:
    """A block of code, or the first lines, right after a line and under the same heading."""
    at = lines.index(line) + 1
    here = (line.path, line.heading, line.current)
    spoken = line.source in ("said", "told")  # a message's lines bear its number

    def goes_on(each: Line) -> bool:
        same = (each.path, each.heading, each.current) == here
        return same and (not spoken or each.number == line.number)

    after = takewhile(goes_on, lines[at : at + _MOST_CODE])
    for n, each in enumerate(after):
        if each.code != lines[at].code or (n >= _MOST_LED_TO and not each.code):
            return
        yield each


def _asks(line: Line) -> bool:
    if line.source != "said":
        return line.text.rstrip().endswith("?")
    return all(
        each.form in ("question", "command", "chat") for each in sentences(line.text)
    ) or is_question(line.text)


def _who(line: Line) -> float:
    told = w.words(line.text)
    named = next(iter(w.names(line.text)), "") or is_named(line.title) or line.kind == "person"
    starts = line.text[:1].isupper() and told[:1] and told[0] not in w.FUNCTION
    return 1.0 if named or starts or w.RELATION & set(told) else 0.55


def _when(line: Line) -> float:
    kinds = _kinds(line)
    if re.search(r"\b(?:mo|di|mi|do|fr|sa)\b[ ,:/-]", line.text, re.IGNORECASE):
        return 1.0
    if kinds & {"date", "time", "weekday", "month", "day"} or _SEASON.search(line.text):
        return 1.0
    return 0.7 if ends_something(line.text) else 0.3


_AGED = re.compile(
    r"\b(?:age[ds]?|old|years?|turn\w*|born|birthday|bday|jahre?|alt|geboren|geburtstag|wird|años?|edad|naci[óo]|cumple\w*)\b|(?:, | \()\d{1,3}\b(?![.:/ ]?\d)",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\d.:])(?:[01]?\d|2[0-3])[.:][0-5]\d(?![\d.:])")


def _kinds(line: Line) -> set[str]:
    return {value.kind for value in w.values(line.text)}


def _amount(line: Line) -> float:
    return (
        1.0
        if w.values(line.text)
        or re.search(r"\b(?:one|ein|eine|uno|una|half|free|gratis)\b", line.text, re.IGNORECASE)
        else 0.3
    )


_TYPED: Mapping[str, Callable[[Line], float]] = {
    "why": lambda line: 1.0 if _WHY.search(line.text) else 0.75,
    "digits": lambda line: 1.0 if re.search(r"\d", line.text) else 0.3,
    "mail": lambda line: 1.0 if "@" in line.text else 0.3,
    "amount": _amount,
    "age": lambda line: 1.0 if _AGED.search(line.text) else 0.3,
    "when": _when,
    "time": lambda line: 1.0 if _CLOCK.search(line.text) or "time" in _kinds(line) else 0.3,
    "who": _who,
    "where": lambda line: 1.0 if _WHERE.search(line.text) else 0.6,
}
