"""Corrections: finds the line that a statement makes untrue, and what holds instead.

A value that stands in the place of another of its kind is put into the line; else the whole
statement takes the line's place. Either way the old line is named, so that it can be kept as past.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.offline import words as w
from kbtui.offline.judging import label_of
from kbtui.offline.lines import Line
from kbtui.offline.replacing import (
    CHANGES,
    MOVED_TO,
    PLACE,
    SWITCHED_TO,
    THERE_INSTEAD,
    denied,
    find_value,
    is_in,
    kind_of,
    number_of_same,
    replaced,
    same,
)
from kbtui.text import fold

_CUE = re.compile(
    r"^(?:(?:oh dear|dear|oh|ah|oops|ups|uy|hm+|ok|wait|hang on|hold on|sorry(?!\s+(?:to|about|for|that|if|i)\b)|no(?!\s+(?:worries|doubts|problem|idea|way|doubt|need|one|thanks?|wonder|kidding|matter|longer|rush|pressure|luck|clue|chance|prob|biggie|reason|more|thing|surprise)\b)|nah?(?!\s+(?:super|toll|ja|gut|klar|klasse|prima|und|dann|endlich)\b)|nope|nein|nee?|nö|ach|moment|warte|halt|perdón|espera|ay|well|so|and|und|y|pero|aber|but)[\s,.!:–-]+)*"
    r"(?:(?P<strong>no(?!\s+(?:worries|doubts|problem|idea|way|doubt|need|one|thanks?|wonder|kidding|matter|longer|rush|pressure|luck|clue|chance|prob|biggie|reason|more|thing|surprise)\b)|nah?(?!\s+(?:super|toll|ja|gut|klar|klasse|prima|und|dann|endlich)\b)|nope|rather|better|wait|oops|sorry(?!\s+(?:to|about|for|that|if|i)\b)|actually|correction|i meant|i mean|(?:make|change|move|push|set) (?:that|it)(?: to)?|hang on(?! to)|hold on(?! to)|warte|espera|mach (?:daraus|es)|ponlo|c[aá]mbialo a|that['’]s wrong|not right|my mistake|i made a mistake|i misspoke|i was wrong|i got (?:that|it) wrong|typo|my bad|change of plan(?:s)?|scratch that|update"
    r"|nein|nee?|nö|doch nicht|lieber|besser|korrektur|stimmt nicht|das stimmt nicht|ich meinte|ich meine|quatsch|ups|verschrieben|(?:ich )?hab(?:e)? mich (?:vertan|geirrt|verschrieben|vertippt)|vertippt|berichtigung|planänderung|doch"
    r"|perdón|perdona|en realidad|corrección|me equivoqué|me he equivocado|me confundí|mejor dicho|quise decir|digo|rectifico|cambio de planes?|al final|mejor|error m[ií]o)(?=[\s,.!:–-])[\s,.!:–-]+)"
    r"(?:(?:wait|no|nope|sorry|actually|i meant|it['’]?s actually|nein|eigentlich|doch|es|perdón|en realidad|ha sido)(?=[\s,.!:])[\s,.!:]+)*",
    re.IGNORECASE,
)
_SCRATCH = re.compile(
    r"^(?:(?:no|wait|sorry|ok)[\s,]+)*(?:scratch|forget|ignore|disregard|vergiss|streich(?:e)?|olvida|ignora)\s+(?:what i (?:said|told you|wrote)|that|the (?:bit|thing|part)|was ich|das|lo que (?:dije|te dije))(?:\s+(?:before|earlier|gesagt habe|sagte))?(?:\s+(?:about|on|über|zu|zum|zur|sobre|de|del))?\s+(?P<about>[^,.;:–-]+)[,.;:–-]+\s*(?P<rest>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_NOT_OLD = re.compile(
    r"(?P<new>(?:[^,.;:!?]|(?<=\d)[.:,](?=\d))+?),?\s+(?:and\s+|und\s+|y\s+)?(?:not|instead of|rather than|nicht|statt|anstatt|no|en vez de|en lugar de|en lugar del)\s+(?P<old>(?:the |der |die |den |am |um |el |la |on |at |in )?(?:[^\s,.;:!?]|(?<=\d)[.:,](?=\d))+(?:\s+[^\s,.;:!?]+){0,3})",
    re.IGNORECASE,
)
# "statt Kiel fahren wir ab Lübeck", "not Emma, we read Persuasion".
_OLD_FIRST = re.compile(
    r"^(?:statt|anstatt|anstelle von|instead of|rather than|en (?:vez|lugar) de|not|nicht)\s+(?:(?:the|der|dem|den|die|das|el|la|on|at|in|am|im|um)\s+)?(?P<old>[^\s,.;:!?]+)(?:,\s*|\s+)(?P<new>\S.{3,})$",
    re.IGNORECASE,
)
_CUE_LAST = re.compile(
    r",?\s+(?:actually|tats[aä]chlich|en realidad|sorry|perd[oó]n)[.!]*$", re.IGNORECASE
)
_NOT_BUT = re.compile(
    r"(?:not|nicht|no)\s+(?P<old>[^,.;:!?]+?),?\s+(?:but|sondern|sino)\s+(?P<new>[^,.;:!?]+)",
    re.IGNORECASE,
)
_FROM_TO = re.compile(
    r"\b(?:from|von|vom|del?|de las?)\s+(?P<old>[^,.;!?]+?)\s+(?:to|auf|nach|zu|zum|al?|a las?)\s+(?P<new>[^,.;!?]+)",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:is|are|was|were|be|been|got|has been|['’]s)\s+(?:out|off|cancel?led|called off|gone|dead|over|no longer)\b|\bcancel?led\b|\bcalled off\b|\b(?:not|isn['’]?t|aren['’]?t|won['’]?t be|no longer) (?:coming|joining|happening|going|available|starting)\b|\b(?:dropped|backed|pulled|fell) (?:out|through)\b|(?<!n['’]t )(?<!not )(?<!never )\b(?:quit|resigned|left (?:the|us|for))\b|\bno longer\b|\b(?:any ?more)\b"
    r"|\bfällt (?:aus|weg|flach)\b|\babgesagt\b|\bkommt (?:doch )?nicht\b|\bsagt\w* ab\b|\bhat gekündigt\b|\bist raus\b|\bnicht mehr\b|\babgesprungen\b|\bgestrichen\b|\bhat abgesagt\b"
    r"|\bcancelad[oa]s?\b|\bse cancel\w+\b|\bya no\b|\bno (?:viene|vendrá|va a venir)\b|\brenunció\b|\bse (?:fue|cayó|ha ido)\b|\banulad[oa]\b|\bsuspend\w+\b",
    re.IGNORECASE,
)
_OLD_FOR_NEW = re.compile(
    r"\b(?:swapped|replaced|exchanged|traded|dropped|cambi\w+|sustitu\w+)\s+(?P<old>[^,.;!?]+?)\s+(?:for|with|by|por)\s+(?P<new>[^,.;!?]+)",
    re.IGNORECASE,
)
# What was wrong or owed is so no longer: "got fixed", "paid Pete back", "works again".
_SETTLED = re.compile(
    r"\b(?:got|gets|is|are|was|were|been|['’]s|its)\s+(?:(?:all|finally|now|already)\s+)?(?:fixed|repaired|sorted|solved|resolved|settled)\b|\b(?:works?|working|running|fine|back|free)\s+again\b|\bfinished with\b|\b(?:paid|gave|handed|brought)(?=\s+(?:\w+\s+){0,3}back\b)"
    r"|\b(?:ist|sind|wurde|wurden|hab\w*)\s+(?:\w+\s+){0,3}(?:repariert|behoben|geklärt|gelöst|zurückgezahlt|zurückgegeben|zurückgebracht)\b|\b(?:geht|läuft|funktioniert)\s+(?:jetzt\s+)?wieder\b"
    r"|\b(?:ya|est[áa]n?|fue|qued[óo])\s+(?:arreglad|reparad|resuelt|solucionad)[oa]s?\b|\bya funcionan?\b|\bdevolv[íi]\b",
    re.IGNORECASE,
)
# What stays of an appointment says that something of it doesn't: "it's the 11th, same time".
_SAME = re.compile(
    r"(?<!at the )\bsame (?:time|place|day|room|hour|address|price)\b|\b(?:gleiche|selbe)[nrs]? (?:zeit|uhrzeit|ort|tag|raum)\b|\bmism[oa] (?:hora|lugar|sitio|d[ií]a|sala)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"\s(?:after|because|since|as|so|due|for now|wegen|weil|nach|seit|por|porque|tras|debido)\s",
    re.IGNORECASE,
)
_SITS = re.compile(
    r"\b(?:is|are|lives?|stays?|sits?|goes|hangs?|kept|stored|ist|sind|liegt|liegen|steht|stehen|hängt|est[áa]n?|queda)\s+(?:now\s|jetzt\s|ahora\s)?(?:in|under|on|behind|above|below|beside|next to|inside|im|unter|auf|hinter|neben|über|en|bajo|detrás de|encima de)\s+(?:(?:the|my|our|der|dem|die|das|el|la|los)\s+)?\w{3,}",
    re.IGNORECASE,
)
_SO_LATE = re.compile(r"\b(?:already|almost|nearly|schon|fast|bereits|ya|casi)\b", re.IGNORECASE)
_INTO = re.compile(r"\s(?:to|into|auf|zu|zum|zur|nach|al?|por)\s", re.IGNORECASE)
_SAID_AGAIN = w.listed("said again")
_LEAST = 1.0
_RECENT = 4
_WHOLE_LINE = 16
_BEGINNING = 4
_SURE = 2.5
_MOST_SAID, _MOST_WITH_CUE = 24, 40  # words
_SENTENCES = re.compile(r"(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\d)[.!?]+(?=\s+[A-ZÄÖÜ¡¿])")
_REACTS = re.compile(
    r"(?:that['’]?s|it['’]?s|it was|what|how|this is|das ist|es war|qu[ée])\s+(?:so |really |such |very |super |a |an |sehr |tan |un )*(?:great|awesome|amazing|cool|nice|good|wonderful|beautiful|gorgeous|lovely|fun|sweet|crazy|special|stunning|normal|tough|toll|schön|super|genial|bonito)\b"
    r"|(?:wow|thanks?|thank you|congrats|yeah|yep|totally|definitely|glad|i (?:totally |completely )?agree|agreed|danke|gracias)\b",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(
    r"^(?:i\s+|we\s+|i['’]ve\s+|we['’]ve\s+)?(\w+(?:ed|t|id|one|ent))\b|\b(?:is|are|was|were|been|got|have|has|['’]ve)\s+(?:\w+\s+)?(\w+(?:ed|t|id|one))\b",
    re.IGNORECASE,
)
_DONE_AS = {
    "send": "sent",
    "buy": "bought",
    "pay": "paid",
    "do": "done",
    "bring": "brought",
    "get": "got",
}
_WITH_TITLE = re.compile(r"\b(?:Frau|Herrn?|Dr\.?|Prof\.?|Mr\.?|Mrs\.?|Ms\.?)\s+([A-ZÄÖÜ][\w-]+)")
_NO_VALUE = w.word_set(
    "any a an gonna going sure only even just so too yet matter doubt idea problem way need wonder more"
)
_AUXILIARY = w.listed("auxiliary")
_IS = frozenset(["m", "re", "s", "ll", "d", "ve"])
_HONORIFIC = w.word_set("frau herr mr mrs ms dr prof señor señora sr sra")
_APPOINTMENT = w.word_set("meeting appointment appt date termin treffen cita reunion fecha")
_JUST_NOW = 0.75  # nearness: said last, or answered last


@dataclass(frozen=True, slots=True)
class Correction:
    """A line that no longer holds, and what takes its place; `more`: the statement says more."""

    line: Line
    text: str
    more: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
    """A correcting statement: without its cue; `about` is what it names, `old` what it denies."""

    said: str
    strong: bool
    about: str = ""
    old: str = ""
    new: str = ""


def without_cue(said: str) -> tuple[str, bool]:
    """A statement without *no, wait* and the like; True where it had one."""
    if scratch := _SCRATCH.match(said):
        return scratch["rest"].strip(), True
    cue = _CUE.match(said)
    if cue and said[cue.end() :].strip():
        return said[cue.end() :].strip(), True
    last = _CUE_LAST.search(said)
    if last and len(w.content(said[: last.start()])) > 1:
        return said[: last.start()].strip(), True
    return said, False


def ends_something(said: str) -> bool:
    """True if a statement says that something is over or off."""
    return _ENDS.search(said) is not None


def find(said: str, known: Sequence[Line], before: Sequence[str], title: str) -> Correction | None:
    """The known line that a statement corrects, with what it says from now on; None: none.

    `before` is what was said last, newest first: messages and what answers quoted.
    """
    current = [line for line in known if line.current and line.source in ("entry", "memory")]
    told = _read(said)
    best: tuple[float, Line] | None = None
    for line in () if _is_talk(told) else current:
        score = _Compared(told, line, before, title).score()
        if score >= _LEAST and (best is None or score > best[0]):
            best = score, line
    if best is None or fold(best[1].text) == fold(told.said):
        return None
    return _correction(told, best[1], sure=best[0] > _SURE and told.strong)


def _correction(told: _Told, line: Line, *, sure: bool) -> Correction | None:
    """What a line becomes; None where a statement has no value that takes another's place in it."""
    if _is_over(told.said) or _is_done(told.said, line.text):
        return Correction(line, told.said)
    text = replaced(told.said, line.text, told.old, told.new)
    if text is not None:
        more = _says_more(told, line, text)
        return Correction(line, text, more=more) if text != line.text else None
    if told.strong or told.old or _takes_its_place(told.said, line.text):
        short = len(line.text.split()) <= _WHOLE_LINE
        return (
            Correction(line, told.said) if (short or sure) and _gives_as_much(told, line) else None
        )
    return None


def _is_talk(told: _Told) -> bool:
    """True for what corrects nothing: a reaction, or more than a sentence, unless it says that it does."""
    many = len(told.said.split()) > (_MOST_WITH_CUE if told.strong else _MOST_SAID)
    parts = len(_SENTENCES.findall(told.said.strip()))
    return many or _REACTS.match(told.said) is not None or (parts > 1 and not told.strong)


def _gives_as_much(told: _Told, line: Line) -> bool:
    """True unless a statement gives a value of a kind that the line holds none of."""
    given = {kind_of(v) for v in w.values(told.said)}
    return not given or bool(given & {kind_of(v) for v in w.values(line.text)})


def _read(said: str) -> _Told:
    about = ""
    scratch = _SCRATCH.match(said)
    if scratch:
        about = scratch["about"]
    rest, strong = without_cue(said)
    strong = strong or _SAME.search(rest) is not None
    for form in (_NOT_BUT, _OLD_FIRST, _OLD_FOR_NEW, _NOT_OLD, _FROM_TO):
        if match := form.search(rest):
            old, new = match["old"].strip(), match["new"].strip()
            if form is _NOT_OLD and _is_plain_not(old, new):
                continue
            if form is _FROM_TO and not CHANGES.search(rest):
                continue  # "open from 9 to 12"
            if form is not _NOT_OLD:
                new = _WHY.split(new)[0]
            return _Told(rest, strong, about, old, new)
    return _Told(rest, strong, about)


def _is_plain_not(old: str, new: str) -> bool:
    """True if *not* only denies: "I'm not alone", "they do not a thing"."""
    first, last = w.words(old)[:1], w.words(new)[-1:]
    if first and first[0] in w.COPULA | _NO_VALUE:
        return True
    return bool(last) and (last[0] in w.COPULA | _AUXILIARY or last[0].partition("'")[2] in _IS)


class _Compared:
    """What a correcting statement, titled `title`, has in common with a line."""

    def __init__(self, told: _Told, line: Line, before: Sequence[str], title: str) -> None:
        self.told, self.line = told, line
        self.nearness = _nearness(line, before)
        here = [word for word in w.words(f"{line.title} {line.text}") if w.is_content(word)]
        exact = {
            word
            for value in w.values(told.said)
            for word in w.words(value.text)[-1 if value.kind == "room" else 0 :]
        }
        self.changing = {
            word
            for form in (_ENDS, _SETTLED, CHANGES)
            for match in form.finditer(told.said)
            for word in w.words(match[0])
        }
        mine = w.content(f"{told.about} {told.said}")
        self.mine = {word for word in mine if word not in _SAID_AGAIN | exact}
        self.shared = {word for word in self.mine if any(same(word, other) for other in here)}
        what = _INTO.split(title)[0] if self.changing else title
        passed_over = _SAID_AGAIN | _HONORIFIC | exact | self.changing
        subject = [word for word in w.content(what) if word not in passed_over]
        self.on_subject = bool(subject) and all(
            any(same(word, other) for other in here) for word in subject
        )
        self.kinds = {kind_of(value) for value in w.values(told.said)}
        self.fits = bool(self.kinds & {kind_of(value) for value in w.values(line.text)})

    def score(self) -> float:
        """How surely the line is the one that is meant; below `_LEAST` it isn't."""
        label = label_of(self.line.text)
        named = label is not None and any(
            same(word, other) for word in self.shared for other in w.words(label[0])
        )
        more = self._more()
        return 0.0 if more is None else 0.9 * len(self.shared) + self.nearness + 0.5 * named + more

    def _more(self) -> float | None:
        """What the form of the statement adds; None: it means another line, or none."""
        said = self.told.said
        near = self.nearness or self.on_subject
        if self.shared and near and denied(said, self.line.text):
            return 1.0
        if self.told.old and find_value(self.told.old, self.line.text):
            return 2.0 if self.shared or self.nearness or self.told.strong else 0.6
        if self._only_refers():
            return 0.5
        if not self.told.strong:
            return self._more_without_cue()
        one = not _SENTENCES.search(said)
        if self.shared or (one and self.nearness and (self.fits or not self.kinds)):
            refers = self.nearness and w.PRONOUN & set(w.words(said)[:1])
            return 0.8 * self.fits + 0.5 * bool(refers)
        return None

    def _only_refers(self) -> bool:
        """True for "they moved it to the 6th": it names nothing else than what was said last."""
        said = self.told.said
        refers = bool(self.changing) or bool(w.pronouns(said) & set(_bare(said)[:2]))
        just_now = self.fits and self.nearness >= _JUST_NOW and not _SO_LATE.search(said)
        return refers and just_now and not self.mine - self.changing - _APPOINTMENT

    def _more_without_cue(self) -> float | None:
        said, text = self.told.said, self.line.text
        if self.shared and _is_done(said, text):
            return 1.0
        if _is_over(said):
            return 0.3 if self.on_subject or (self.nearness and len(self.shared) > 1) else None
        if MOVED_TO.search(said):
            return 1.0 if self.on_subject and PLACE.search(text) else None
        if CHANGES.search(said):
            return 0.5 if self._is_alike() and _may_change(self.told, self.line) else None
        return 0.0 if self.on_subject and _same_slot(said, text) else None

    def _is_alike(self) -> bool:
        """True if a change is one of what the line is about."""
        text = self.line.text
        german = w.language(text) == "de"  # all nouns have a capital there
        names = set() if german else {fold(name) for name in w.names(text)}
        names -= set(w.words(text)[:_BEGINNING])  # who a line begins with is what it is about
        is_topic = any(word.partition("'")[0] not in names for word in self.shared)
        switched = SWITCHED_TO.search(self.told.said) is not None
        moved = bool(THERE_INSTEAD.search(self.told.said) and PLACE.search(text))
        placed = moved or _other_place(self.told.said, text)
        more = self.fits or len(self.shared) > 1 or switched or placed
        if self.on_subject and is_topic and more:
            return True
        counted = number_of_same(self.told.said, text) is not None
        return bool(self.shared) and (counted or (switched and self.fits))


def _is_done(said: str, text: str) -> bool:
    """True if a statement says that a task of a line is done: "tips are ordered", "order tips"."""
    task = next(iter(w.words(text)), "-")
    if not w.is_content(task) or len(text.split()) > _WHOLE_LINE:
        return False
    participle = _DONE_AS.get(task, task.removesuffix("e"))
    done = any(
        fold(match[match.lastindex or 0]).startswith(participle)
        for match in _PARTICIPLE.finditer(said)
    )
    rest = [word for word in w.content(said) if not word.startswith(participle)]
    return done and bool(rest) and all(is_in(word, text) for word in rest)


def _is_over(said: str) -> bool:
    return ends_something(said) or _SETTLED.search(said) is not None


def _bare(text: str) -> list[str]:
    return [word.partition("'")[0] for word in w.words(text)]


def _may_change(told: _Told, line: Line) -> bool:
    """True if a change that has no cue can mean a line: a value has its place, or the rest is the same."""
    return replaced(told.said, line.text, told.old, told.new) not in (
        None,
        line.text,
    ) or _takes_its_place(told.said, line.text)


def _takes_its_place(said: str, text: str) -> bool:
    """True if two sentences say the same of different values, persons or places."""
    return _same_slot(said, text) or _other_person(said, text) or _other_place(said, text)


def _other_person(said: str, text: str) -> bool:
    """True for "Orders are signed off by Dr. Lind now" and "Dr. Osei signs off the orders"."""
    mine, theirs = _people(said), _people(text)
    rest = {word for word in w.content(text) if word not in _HONORIFIC} - set(
        w.words(" ".join(theirs))
    )
    alike = len(rest) > 1 and all(is_in(word, said) for word in rest)
    return alike and bool(mine) and bool(theirs) and not mine & theirs


def _people(text: str) -> set[str]:
    if w.language(text) == "de":  # all nouns have a capital there
        return {match[1] for match in _WITH_TITLE.finditer(text)}
    titled = {match[1] for match in _WITH_TITLE.finditer(text)}
    first = re.match(r"\W*([A-Z][\w'’-]+)\s+\w+s\b", text)  # "Maria leads ..."
    named = {each for each in w.names(text) if not w.values(each) and fold(each) not in _HONORIFIC}
    return named | titled | ({first[1]} if first and fold(first[1]) not in w.FUNCTION else set())


def _other_place(said: str, text: str) -> bool:
    """True if a thing lies elsewhere now: "is kept under the till", "lives in the drawer"."""
    short = max(len(said.split()), len(text.split())) <= _WHOLE_LINE
    return short and bool(_SITS.search(said) and _SITS.search(text)) and not _people(said)


def _nearness(line: Line, before: Sequence[str]) -> float:
    """How lately a line was talked about: 1 for the last message, less for those before."""
    told = set(w.content(line.text))
    if not told:
        return 0.0
    for age, text in enumerate(before[: _RECENT * 2]):
        said = set(w.content(text))
        if said and len(told & said) >= 0.6 * len(told):
            return 1.0 - age / (_RECENT * 2)
    return 0.0


def _same_slot(said: str, text: str) -> bool:
    """True if two sentences give different values to one thing: "my X is A", "my X is B"."""
    first, second = _key(said), _key(text)
    return first is not None and first == second


def _key(text: str) -> tuple[str, ...] | None:
    if label := label_of(text):
        return tuple(w.stem(word) for word in w.content(label[0])) or None
    match = re.match(
        r"^(?:(?:the|my|our|der|die|das|mein\w*|unser\w*|el|la|mi|nuestr\w+)\s+)?(?P<key>[^,.;:]{2,50}?)\s+(?:is|are|ist|sind|es|son|costs?|kostet|cuesta)\s+(?:now\s+|jetzt\s+|ahora\s+)?(?P<value>[^,.;]+)",
        text,
        re.IGNORECASE,
    )
    if match is None or fold(match["key"]) in w.PRONOUN:
        return None
    mine = re.match(r"(?:my|our|mein|unser|mi\b|nuestr)", text, re.IGNORECASE)
    if not mine and not w.values(match["value"]):
        return None
    if len(match["value"].split()) > 5:
        return None
    return tuple(w.stem(word) for word in w.content(match["key"])) or None


def _says_more(told: _Told, line: Line, text: str) -> bool:
    """True if a statement says something beside the value that was put into the line."""
    known = [*w.words(text), *w.words(line.title), *w.words(told.old)]
    rest = [
        word
        for word in w.content(told.said)
        if word not in _SAID_AGAIN and not any(same(word, other) for other in known)
    ]
    return bool(rest)
