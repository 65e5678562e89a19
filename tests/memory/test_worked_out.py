"""Dates and times that a model works out are written if they are what was meant, and only then."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from kbtui.memory.edits.grounding import Ground
from kbtui.memory.records.dates import with_dates
from kbtui.offline.times import clock_times

THURSDAY = datetime(2026, 11, 26, 14, 30)  # noqa: DTZ001 - the user's own clock

RIGHT = [
    ("I've had the dog for four years now.", "The user has had the dog since 2022"),
    ("Doors open at ten to eight tonight.", "Doors open on 2026-11-26 at 19:50"),
    ("The MOT runs out mid-December.", "The MOT runs out in December 2026"),
    ("The course starts in the new year.", "The course starts in 2027"),
    ("I bought the bike a year and a half ago.", "The user bought the bike in May 2025"),
    ("The report is due by the end of the year.", "The report is due in 2026"),
    ("Seit anderthalb Jahren wohne ich in Kassel.", "Wohnt seit Mai 2025 in Kassel"),
    ("Vor einem Vierteljahr habe ich gekündigt.", "Der Nutzer hat im August 2026 gekündigt"),
    ("Die Miete ist bis Monatsende fällig.", "Die Miete ist im November 2026 fällig"),
    ("Hace año y medio dejé el club.", "El usuario dejó el club en mayo de 2025"),
    ("El informe es para finales de año.", "El informe es para 2026"),
    ("Le bail finit dans un an et demi.", "Le bail finit en mai 2028"),
    (
        "Avant-hier, la chaudière est tombée en panne.",
        "La chaudière est tombée en panne le 2026-11-24",
    ),
    ("Il corso finisce a fine mese.", "Il corso finisce a novembre 2026"),
    ("Ho venduto la barca un anno e mezzo fa.", "Ha venduto la barca a maggio 2025"),
    ("The lease of the Linden flat ends in two months.", "The Linden lease ends in January 2027"),
    ("I quit smoking three months ago.", "The user quit smoking in August 2026"),
    ("I moved to Ulm two years ago.", "The user moved to Ulm in 2024"),
    ("The exam in statistics is in a fortnight.", "The exam in statistics is on 2026-12-10"),
    (
        "The boiler gets checked tomorrow at half past six.",
        "The boiler is checked on 2026-11-27, 6:30",
    ),
    ("The tax form is due next month.", "The tax form is due in December 2026"),
    ("Ada's wedding is in half a year.", "Ada's wedding is in May 2027"),
    ("The talk starts at a quarter to five.", "The talk starts at 16:45"),
    ("My daughter Lena turned six yesterday.", "Lena was born in 2020"),
    ("We painted the fence the day before yesterday.", "The fence was painted on 2026-11-24"),
    ("The movers come Monday next week.", "The movers come on 2026-11-30"),
    ("I started at the mill last year.", "The user started at the mill in 2025"),
    (
        "Der Kachelofen wird in drei Wochen geliefert.",
        "Der Kachelofen wird am 2026-12-17 geliefert",
    ),
    ("Der Klempner kommt morgen um 8.", "Der Klempner kommt am 2026-11-27 um 8"),
    ("Wir sind vor zwei Jahren nach Graz gezogen.", "Wir sind 2024 nach Graz gezogen"),
    ("Das Konzert beginnt um Viertel nach acht.", "Das Konzert beginnt um 20:15"),
    ("Nächsten Monat zieht Jonas aus.", "Jonas zieht im Dezember 2026 aus"),
    ("Der Vertrag endet in einem halben Jahr.", "Der Vertrag endet im Mai 2027"),
    ("El fontanero viene mañana.", "El fontanero viene el 2026-11-27"),
    ("Hace dos años compramos la casa.", "La casa se compró en 2024"),
    ("El curso empieza dentro de cuatro semanas.", "El curso empieza el 2026-12-24"),
    ("La cena es a las nueve y media.", "La cena es a las 21:30"),
    ("El mes que viene cambio de trabajo.", "El usuario cambia de trabajo en diciembre de 2026"),
    ("Le couvreur vient demain.", "Le couvreur vient le 2026-11-27"),
    ("Nous avons vendu le bateau l'année dernière.", "Le bateau a été vendu en 2025"),
    ("L'examen est dans dix jours.", "L'examen est le 2026-12-06"),
    ("Le cours finit à cinq heures moins le quart.", "Le cours finit à 16:45"),
    ("Ho smesso di fumare tre anni fa.", "L'utente ha smesso di fumare nel 2023"),
    ("Il tecnico viene tra due settimane.", "Il tecnico viene il 2026-12-10"),
    ("La riunione è alle sette meno un quarto.", "La riunione è alle 6:45"),
    ("The lease of the garage ends in four months.", "The lease of the garage ends in March 2027."),
    (
        "I stopped drinking coffee five months ago.",
        "The user stopped drinking coffee in June 2026.",
    ),
    ("We moved to Graz a decade ago.", "The user moved to Graz in 2016."),
    ("The audit starts in ten days.", "The audit starts on 2026-12-06."),
    ("The roofer came the day before yesterday.", "The roofer came on 2026-11-24."),
    ("Grandma's operation is a week from tomorrow.", "Grandma's operation is on 2026-12-04."),
    ("My flight leaves at a quarter past nine in the evening.", "The flight leaves at 21:15."),
    ("We opened the bakery last month.", "The user opened the bakery in October 2026."),
    ("The passport runs out next year.", "The passport runs out in 2027."),
    ("My nephew Jonas turned nine yesterday.", "Jonas was born in 2017."),
    ("Der Mietvertrag endet in zwei Monaten.", "Der Mietvertrag endet im Januar 2027."),
    (
        "Vor drei Jahren habe ich mit Klettern angefangen.",
        "Ich habe 2023 mit Klettern angefangen.",
    ),
    ("Der Zahnarzttermin ist übermorgen.", "Der Zahnarzttermin ist am 2026-11-28."),
    ("Der Zug fährt um halb sieben.", "Der Zug fährt um 6:30."),
    ("Letztes Jahr haben wir das Dach gedeckt.", "Wir haben 2025 das Dach gedeckt."),
    ("Vorgestern kam die Waschmaschine.", "Die Waschmaschine kam am 2026-11-24."),
    ("Die Prüfung ist heute in vierzehn Tagen.", "Die Prüfung ist am 2026-12-10."),
    ("La mudanza es pasado mañana.", "La mudanza es el 2026-11-28."),
    ("Dejé de fumar hace seis meses.", "El usuario dejó de fumar en mayo de 2026."),
    ("El examen es dentro de tres semanas.", "El examen es el 2026-12-17."),
    ("La reunión es a las siete menos cuarto.", "La reunión es a las 6:45."),
    ("El año pasado viajamos a Quito.", "Viajamos a Quito en 2025."),
    ("Le plombier passe après-demain.", "Le plombier passe le 2026-11-28."),
    (
        "J'ai vendu la voiture il y a deux mois.",
        "L'utilisateur a vendu la voiture en septembre 2026.",
    ),
    ("Le bail se termine dans trois ans.", "Le bail se termine en 2029."),
    ("Le train part à huit heures et demie.", "Le train part à 8:30."),
    ("Il contratto scade tra due mesi.", "Il contratto scade a gennaio 2027."),
    ("Ho comprato la bici tre settimane fa.", "L'utente ha comprato la bici il 2026-11-05."),
    ("L'idraulico viene dopodomani.", "L'idraulico viene il 2026-11-28."),
    ("La cena è alle otto e mezza.", "La cena è alle 20:30."),
]
WRONG = [
    ("The lease of the Linden flat ends in two months.", "The Linden lease ends in February 2027"),
    ("I moved to Ulm two years ago.", "The user moved to Ulm in 2026"),
    ("I moved to Ulm two years ago.", "The user moved to Ulm in 2023"),
    ("The exam in statistics is in a fortnight.", "The exam in statistics is on 2026-12-11"),
    ("The sweep comes next Friday.", "The sweep comes on 2026-11-27"),
    ("The sweep comes next Friday.", "The sweep comes on Friday, 4 December 2026"),
    ("The sweep comes tomorrow.", "The sweep comes on 2026-11-26"),
    ("The talk starts at a quarter to five.", "The talk starts at 17:15"),
    ("My daughter Lena turned six yesterday.", "Lena was born in 2021"),
    ("My daughter Lena is six years old.", "Lena was born in 2019"),
    ("The pipes froze last winter.", "The pipes froze in 2025"),
    ("We met a few weeks ago.", "We met on 2026-11-05"),
    (
        "Der Kachelofen wird in drei Wochen geliefert.",
        "Der Kachelofen wird am 2026-12-16 geliefert",
    ),
    ("Das Konzert beginnt um halb acht.", "Das Konzert beginnt um 20:30"),
    ("Nächsten Freitag kommt der Klempner.", "Der Klempner kommt am 2026-12-04"),
    ("Hace dos años compramos la casa.", "La casa se compró en 2025"),
    ("La cena es a las nueve y media.", "La cena es a las 22:30"),
    ("L'examen est dans dix jours.", "L'examen est le 2026-12-05"),
    ("Nous avons vendu le bateau l'année dernière.", "Le bateau a été vendu en 2024"),
    ("Il tecnico viene tra due settimane.", "Il tecnico viene il 2026-12-09"),
    ("The lease of the garage ends in four months.", "The lease of the garage ends in April 2027."),
    ("The chimney sweep comes next Friday.", "The chimney sweep comes on 2026-11-27."),
    ("The chimney sweep comes next Friday.", "The chimney sweep comes on 2026-12-04."),
    ("Last Wednesday the cellar was flooded.", "The cellar was flooded on 2026-11-25."),
    ("The audit starts in ten days.", "The audit starts on 2026-12-05."),
    ("We moved to Graz a decade ago.", "The user moved to Graz in 2015."),
    ("I stopped drinking coffee five months ago.", "The user stopped drinking coffee in May 2026."),
    ("My flight leaves at a quarter past nine in the evening.", "The flight leaves at 20:45."),
    ("My nephew Jonas turned nine yesterday.", "Jonas was born in 2016."),
    ("Der Mietvertrag endet in zwei Monaten.", "Der Mietvertrag endet im Februar 2027."),
    ("Der Zug fährt um halb sieben.", "Der Zug fährt um 7:30."),
    ("Der Zahnarzttermin ist übermorgen.", "Der Zahnarzttermin ist am 2026-11-27."),
    (
        "Vor drei Jahren habe ich mit Klettern angefangen.",
        "Ich habe 2022 mit Klettern angefangen.",
    ),
    ("La mudanza es pasado mañana.", "La mudanza es el 2026-11-27."),
    ("La reunión es a las siete menos cuarto.", "La reunión es a las 7:45."),
    ("Le plombier passe après-demain.", "Le plombier passe le 2026-11-27."),
    ("Le train part à huit heures et demie.", "Le train part à 9:30."),
    ("Il contratto scade tra due mesi.", "Il contratto scade a marzo 2027."),
    ("La cena è alle otto e mezza.", "La cena è alle 9:30."),
    ("Ho comprato la bici tre settimane fa.", "L'utente ha comprato la bici il 2026-11-12."),
]


@pytest.mark.parametrize(("said", "line"), RIGHT)
def test_a_date_or_time_that_was_worked_out_rightly_may_be_written(said: str, line: str) -> None:
    assert not Ground.of([(THURSDAY, said)]).lacks(line)


@pytest.mark.parametrize(("said", "line"), WRONG)
def test_a_date_or_time_that_was_not_meant_is_refused(said: str, line: str) -> None:
    ground = Ground.of([(THURSDAY, said)])
    assert ground.lacks(line)
    assert not ground.lacks(with_dates(said, THURSDAY)), "the sentence itself is kept"


def test_a_date_counts_from_the_day_of_its_own_message() -> None:
    monday = THURSDAY.replace(day=23)
    ground = Ground.of(
        [(monday, "The sweep comes tomorrow."), (THURSDAY, "The plumber comes tomorrow.")]
    )
    assert not ground.lacks("The sweep comes on 2026-11-24")
    assert not ground.lacks("The plumber comes on 2026-11-27")
    assert ground.lacks("The sweep comes on 2026-11-27")
    assert ground.lacks("The plumber comes on 2026-11-24")
    assert ground.said("The sweep comes tomorrow") == monday


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("Meet at five to seven tomorrow", {"6:55", "18:55"}),
        ("We meet at a quarter to seven in the evening", {"18:45"}),
        ("Heute Abend um halb acht", {"19:30"}),
        ("Quedamos a las siete menos cuarto de la tarde", {"18:45"}),
        ("Rendez-vous à cinq heures et quart du matin", {"5:15"}),
        ("Ci vediamo domani sera alle otto e mezza", {"20:30"}),
        ("It takes five to seven days", set()),
    ],
)
def test_a_time_of_day_in_words_is_read_with_the_half_of_the_day(
    text: str, times: set[str]
) -> None:
    found = clock_times(text)
    assert {f"{each // 60}:{each % 60:02}" for clock in found for each in clock.minutes} == times


@pytest.mark.parametrize(
    ("said", "right", "wrong"),
    [
        ("The wedding is on 20 June next year.", "The wedding is on 2027-06-20", "2026-06-20"),
        ("Dad fell ill in March last year.", "Dad fell ill in March 2025", "March 2026"),
        ("The rent is due on the 5th next month.", "The rent is due on 2026-12-05", "2027-01-05"),
        ("Nächstes Jahr im Mai ziehen wir um.", "Im Mai 2027 ziehen wir um", "Mai 2026"),
    ],
)
def test_a_date_of_which_only_a_part_is_relative_is_put_together(
    said: str, right: str, wrong: str
) -> None:
    ground = Ground.of([(THURSDAY, said)])
    assert not ground.lacks(right)
    dates = r"\d{4}-\d\d-\d\d|[A-Z][a-z]+ \d{4}"
    assert ground.lacks(re.sub(dates, wrong, right))


def test_a_date_from_the_sentence_before_tells_of_whoever_it_names() -> None:
    said = "The chimney sweep called about the bill. He comes tomorrow."
    assert not Ground.of([(THURSDAY, said)]).lacks("The chimney sweep comes on 2026-11-27")
