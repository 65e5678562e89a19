"""Words that say a time, and questions that ask for one, in five languages.

They move a hit by a few places, no more: which day a phrase means is for `kbtui.offline.times`. All
languages share a list, so a word that is a common one in another language isn't on it: hier, été,
mes, Tag, fall, may.
"""

from __future__ import annotations

import re

from kbtui.search.index.letters import fold

_SAID = """
    yesterday today tonight tomorrow ago last next recently lately day days week weeks weekend
    weekends month months year years monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december spring summer
    autumn winter morning mornings night nights noon midnight mondays tuesdays wednesdays
    thursdays fridays saturdays sundays weekdays weekday

    gestern vorgestern heute morgen übermorgen neulich letzte letzten letzter letztes nächste
    nächsten nächster nächstes tage tagen woche wochen wochenende monat monate monaten jahr
    jahre jahren montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz
    mai juni juli oktober dezember frühling sommer herbst montags dienstags mittwochs donnerstags
    freitags samstags sonntags uhr mittags nachts

    demain dernier dernière prochain prochaine jour jours semaine semaines mois année années
    lundi mardi mercredi jeudi vendredi samedi dimanche lundis mardis mercredis jeudis vendredis
    samedis dimanches minuit heures janvier février avril juin juillet août
    septembre octobre novembre décembre printemps automne hiver mars

    ayer anteayer hoy mañana pasado pasada próximo próxima día días semana semanas meses año
    años lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio
    julio agosto septiembre octubre noviembre diciembre primavera verano otoño invierno

    ieri oggi domani scorso scorsa prossimo prossima giorno giorni settimana settimane mese mesi
    anno anni lunedì martedì mercoledì giovedì venerdì gennaio febbraio aprile maggio giugno luglio
    settembre ottobre dicembre sabato domenica
"""
_SAYING = frozenset([*_SAID.split(), *fold(_SAID).split()])  # many type no accents
_WORD = re.compile(r"[^\W\d_]+")
_IN_DIGITS = re.compile(
    r"(?<![\w.,])(?:1[5-9]|20)\d\d(?![\w.,]\d)|(?<![\w:])(?<!- )\d{1,2}:\d\d(?![\w:])"
)  # the time before an item is that of its writing
_ASKED = re.compile(
    r"""\bwhen(?:'s|\ (?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should)\b)
    |\bhow\ long\b|\b(?:what|which)\ (?:day|date|week|month|year|season|time)\b
    |\bhow\ (?:many|much)\ (?:days|weeks|months|years|time)\b
    |\bwann\b|\bwie\ lange\b|\bwelche[mnrs]?\ (?:tag|woche|monat|jahr)
    |\A\W*quand\b|\b(?:depuis|jusqu'à)\ quand\b|\bcombien\ de\ temps\b
    |\bquel(?:le)?\ (?:jour|date|semaine|mois|année)\b
    |\bcuándo\b|\bcuánto\ tiempo\b|\bqué\ (?:día|fecha|semana|mes|año)\b
    |\A\W*quando\b|\bda\ quando\b|\bquanto\ tempo\b|\bche\ (?:giorno|data|settimana|mese|anno)\b""",
    re.IGNORECASE | re.VERBOSE,
)


def says_when(text: str) -> bool:
    """Return whether a text has a word for a time, a time of the day, or a year."""
    text = text.lower()
    return not _SAYING.isdisjoint(_WORD.findall(text)) or _IN_DIGITS.search(text) is not None


def asks_when(text: str) -> bool:
    """Return whether a question asks for a time."""
    return _ASKED.search(text) is not None
