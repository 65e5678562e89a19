"""Which line a statement corrects, and which it leaves alone."""

from __future__ import annotations

import pytest

from kbtui.offline.corrections import find, without_cue
from kbtui.offline.lines import Line
from kbtui.offline.subjects import about
from kbtui.offline.understand import Said, understand


def _entry(title: str, text: str) -> Line:
    return Line(f"knowledge/facts/{title.lower()}.md", title, text)


def test_a_new_fact_about_a_named_person_changes_no_number_of_another_subject() -> None:
    known = _entry("Lessons", "swim lessons wed 16:15 for Nora, football sat 10 for Ben")
    assert find("Ben's jacket is size 116 now, shoes 29", [known], [], "Ben") is None


def test_a_correction_with_a_time_leaves_a_line_without_one_alone() -> None:
    known = _entry("Swim club", "swim club bag is the blue one")
    assert find("oops swim is at 16:45", [known], ["swim club bag is the blue one"], "swim") is None


@pytest.mark.parametrize(
    "said",
    [
        "I misspoke: it is due on 15 October",
        "hab mich vertan, it is due on 15 October",
        "me he equivocado, it is due on 15 October",
    ],
)
def test_admitting_a_mistake_is_a_cue(said: str) -> None:
    assert without_cue(said) == ("it is due on 15 October", True)


@pytest.mark.parametrize(
    ("stated", "said", "new", "old"),
    [
        ("dentist is on the 14th at 10", "no, thursday actually", "thursday", "14th"),
        ("the ferry leaves from Dover", "its Harwich not Dover", "Harwich", "Dover"),
        ("flight to Oslo is on 3 march at 7:15", "flight moved to 9:40", "9:40", "7:15"),
        ("Interne Frist ist der 12.4.", "ne, die Frist ist der 20.4.", "20.4.", "12.4."),
        ("Abfahrt ist in Kiel um 9 Uhr", "statt Kiel fahren wir ab Lübeck", "Lübeck", "in Kiel"),
        (
            "die Feier ist im Löwen am 4. Mai",
            "Feier doch im Hirschen, nicht im Löwen",
            "Hirschen",
            "im Löwen am",
        ),
        ("Chorprobe dienstags 19 Uhr", "Chorprobe ist jetzt mittwochs", "mittwochs", "dienstags"),
        ("la cena es el viernes a las 9", "mejor el sábado", "sábado", "viernes"),
        ("el examen es el 5 de mayo", "no, el examen es el 8", "8", "el 5"),
        ("la clase es en el aula 12", "la clase cambia al aula 14", "14", "12"),
        ("invoice total is 420 euros", "it's 450 not 420", "450", "420"),
        (
            "Tom picks up the kids on mondays",
            "scratch that, Ana picks up the kids on mondays",
            "Ana",
            "Tom",
        ),
        (
            "parents evening 27 nov room 6 with mr Bell",
            "hang on its room 9 for parents evening",
            "9",
            "room 6",
        ),
        ("we leave at 6am on saturday", "make it 7am", "7am", "6am"),
        ("swim lessons wed 4pm for Otis", "swim lessons are now 5pm", "5pm", "4pm"),
        ("the van is a white Transit", "the van is a blue Transit actually", "blue", "white"),
        (
            "Handwerker kommt am Montag zwischen 8 und 10",
            "Handwerker kommt erst am Dienstag",
            "Dienstag",
            "Montag",
        ),
        (
            "mi tutora es Begoña, reuniones los martes a las 12",
            "ahora las reuniones son los jueves",
            "jueves",
            "martes",
        ),
        ("rent is 900 due on the 1st", "rent went up to 950", "950", "900"),
        (
            "deadline for the grant is friday",
            "grant deadline got pushed to monday",
            "monday",
            "friday",
        ),
        (
            "book club reads Emma in june",
            "not Emma, we're reading Persuasion in june",
            "Persuasion",
            "Emma in",
        ),
        ("Mias Schuhgröße ist 31", "Mia hat jetzt Schuhgröße 32", "32", "31"),
        ("the meeting is in room B12", "meeting's in C4 now", "C4", "B12"),
        (
            "bread comes mondays and saturdays",
            "bread comes fridays and saturdays now, not mondays",
            "fridays and saturdays",
            "mondays",
        ),
        (
            "the lift in block 3 is broken",
            "the lift got repaired this morning",
            "repaired",
            "broken",
        ),
        ("I owe Dana 60 for the tickets", "paid Dana back yesterday", "paid", "owe"),
        (
            "survey is set for the 9th at 8:30",
            "surveyor rang, it's the 11th, same time",
            "11th",
            "9th",
        ),
        ("survey is on the 9th of May", "they moved it to the 12th", "12th", "9th"),
        ("physio on 4 May at 10", "Termin ist jetzt am 6. Mai", "6. Mai", "4 May"),
        (
            "home insurance with Axa, about 310 a year",
            "switched the home insurance to Allianz, 280 a year",
            "with Allianz, about 280",
            "Axa",
        ),
        ("our bank is Barclays", "we changed our bank to Monzo", "Monzo", "Barclays"),
        ("posters: 40 prints left, 12 of them A2", "down to 31 prints after the fair", "31", "40"),
        ("we keep 14 hens and 2 geese", "gave away three hens so 11 left", "11 hens", "14"),
        (
            "my tablets are bisoprolol 5 mg, one at night",
            "doctor put me on bisoprolol 10 mg now",
            "10 mg",
            "5 mg",
        ),
        ("Frist bei Huber ist 10 Tage", "Frist bei Huber ist nur noch 5 Tage", "5 Tage", "10"),
        (
            "Nina's leaving do is on Friday at the Red Lion",
            "Nina's do is at the Swan instead, the Lion was full",
            "the Swan",
            "Red Lion",
        ),
        (
            "roofer comes on the 14th of june",
            "roofer can't do the 14th so its the 17th",
            "the 17th",
            "14th",
        ),
        ("maths exam: dec 12, 9am, hall B", "exam got moved to hall C btw", "hall C", "hall B"),
        (
            "Kontakt bei der Bank ist Eva Kroll",
            "Frau Kroll ist nicht mehr da, jetzt Herr Adams",
            "Adams",
            "Kontakt",
        ),
        (
            "the fence was to be done in grey",
            "fence changed from grey to cream after complaints",
            "in cream",
            "grey",
        ),
        (
            "milk comes from Greenhill, not on sundays",
            "we've swapped Greenhill for Oakdale dairy",
            "Oakdale",
            "Greenhill",
        ),
        ("Window cleaner: Swift & Sons, 220 a month", "Swift & Sons now charge 245", "245", "220"),
        ("order new hinges before Monday", "the hinges are ordered", "ordered", "before"),
        (
            "the ladder is kept under the stairs",
            "the ladder lives in the shed these days",
            "shed",
            "stairs",
        ),
        (
            "Dr. Osei signs off the forms",
            "forms are signed off by Dr. Lind from now on",
            "Lind",
            "Osei",
        ),
        (
            "Tom geht dienstags zum Sport und donnerstags zur Gitarre",
            "Gitarre ist bei Tom neuerdings freitags",
            "freitags zur Gitarre",
            "donnerstags",
        ),
        (
            "Wartung am Samstag von 22 bis 2 Uhr",
            "Wartung wurde auf Sonntag geschoben",
            "Sonntag",
            "Samstag",
        ),
    ],
)
def test_a_correction_in_other_words_puts_the_new_in_the_place_of_the_old(
    stated: str, said: str, new: str, old: str
) -> None:
    lines = [
        _entry(about(stated)[1], stated),
        _entry("Car park", "the car park opens at 8 on weekdays"),
    ]
    before = [Said("user", stated), Said("assistant", "Kept.")]
    facts = [f for f in understand(said, before, lines).facts if f.replaces == stated]
    assert facts
    assert new in facts[0].text
    denied = facts[0].text.replace(f"not {old}", "").replace("nicht im Löwen", "")
    assert old not in denied.replace("statt Kiel", "")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("holiday booked: Elba, 8 to 22 August", "so done with today. night"),
        ("dentist is on the 4th of May at 10", "it's 5 pm already"),
        ("bread comes on the 14th", "bread comes on the 14th and the 17th"),
        ("the shop is open from 9 to 12", "the bakery is open from 9 to 12 and 14 to 18"),
        ("Wartung am Samstag von 22 bis 2 Uhr", "na super, wieder alles kaputt"),
        ("Ana is on leave until Friday", "paid the deposit back in June"),
        (
            "Pete said that he would help with the fence",
            "No worries, Pete. We can do the fence ourselves.",
        ),
        (
            "I felt alone with the flood at first",
            "I'm not alone with the flood, that much is clear",
        ),
        (
            "The choir meets in the old school",
            "Sorry to hear about the choir. I loved the old school.",
        ),
        ("We painted the hall on Saturday", "Thanks! The hall looks great now, you did so well"),
        ("I won't give up the garden", "At the same time the garden takes all of my evenings"),
        ("Sam has my drill", "Having you at my back helps a lot with Sam and the drill"),
    ],
)
def test_what_only_sounds_like_a_correction_leaves_a_line_alone(stated: str, said: str) -> None:
    known = [_entry(about(stated)[1], stated)]
    assert find(said, known, ["Kept.", stated], about(said)[1]) is None


def test_a_name_that_is_a_pronoun_elsewhere_is_a_name() -> None:
    last = _entry("No screens", "no screens before homework")
    (fact,) = understand("Ella doesn't like green olives", [Said("user", last.text)], [last]).facts
    assert fact.subject != last.title


def test_a_contraction_typed_without_its_apostrophe_asks_nothing() -> None:
    understood = understand("were dropping the lunch menu on weekdays from June")
    assert understood.facts
    assert not understood.question
    assert understand("were the lunch menus printed").question
