"""Words of English, German and Spanish: classes, stems, and typed values such as dates.

Rules elsewhere in this room are written over these classes, so that they hold for any trade.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kbtui.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterator


def word_set(*texts: str) -> frozenset[str]:
    """The words of some texts, folded."""
    return frozenset(fold(word) for text in texts for word in text.split())


FUNCTION = word_set(
    """a an the and or but nor so yet if then than that this these those there here it its i me my
    mine we us our ours you your yours he him his she her hers they them their theirs who whom whose
    which what when where why how is are was were be been being am do does did done have has had
    having will would shall should can could may might must no not don doesn didn isn aren wasn
    weren won t s m re ve ll d to of in on at by for with from into onto over under about as until
    till after before between during per via up down out off just also too very really only again
    now ok okay well please some any all each every both more most much many few other another same
    such own said say says tell told got get let one im ive dont doesnt didnt cant wont isnt arent
    wasnt whats whos wheres whens hows thats theres id ill youre theyre were still already even
    something anything nothing anymore wot wots wat wats these days currently right moment ago going go went come
    comes came take takes took use used using run runs make makes made need needs want wants like
    likes think know see give gives gave put have't u r ur w w/o thx pls btw fyi""",
    """ich du er sie es wir ihr mich mir mein meine meinen meiner meinem meines dich dir dein deine
    deinen deiner der die das den dem des ein eine einen einem einer eines und oder aber nicht kein
    keine keinen keinem keiner ist sind war waren bin bist seid hat habe haben hatte hatten hast
    wird werden wurde wurden zu zum zur im in am an auf aus bei beim mit von vom vor nach fur uber um
    als wie was wer wen wem wo wann warum wieso weshalb woher wohin welche welcher welches welchen
    welchem mehr weniger adonde dass wenn weil denn ja nein noch nur auch schon sehr mal doch jetzt dann hier da man uns unser
    unsere unseren unserer unserem euch euer eure sich sein seine seinen seiner ihre ihren ihrem
    ihrer so also ganz gerade immer wieder eben halt denn etwas alles nichts bitte gibt es kann
    konnen konnte muss mussen soll sollen sollte will wollen wollte darf durfen macht machen gemacht
    geht gehen kommt kommen nimmt nehmen ab bis durch gegen ohne unter zwischen seit wegen statt
    heisst heissen eigentlich uberhaupt nun diese dieser dieses diesen diesem""",
    """yo tu el ella usted nosotros nosotras vosotros ellos ellas me te se lo la los las le les mi
    mis tu tus su sus nuestro nuestra nuestros nuestras un una unos unas y e o u pero no es son era
    eran fue fueron esta estan estaba estoy estamos soy somos eres ser estar ha han he hemos habia
    haber hay de del al a en con por para sin sobre que quien quienes como cuando donde cual cuales
    cuanto cuanta cuantos cuantas si mas muy ya tambien esto este estos estas ese esa eso esos esas
    aquel aquella tiene tienen tengo tenemos tener va van voy vamos ir hace hacen hago hacer puede
    puedo podemos poder debe debo hasta desde entre hacia porque pues entonces ahora aqui alli todo
    toda todos todas algo nada otra otro otros otras cada solo tan tanto""",
)
"""Words that say nothing by themselves."""

GREETING = word_set(
    "hi hello hey hiya yo howdy morning evening afternoon hallo moin servus tag morgen abend guten "
    "gruss hola buenas buenos dias tardes noches saludos",
)
THANKS = word_set(
    "thanks thank thx ty tysm cheers thankyou danke dank merci dankeschon vielen herzlichen gracias",
)
CHAT = (
    GREETING
    | THANKS
    | word_set(
        """ok okay k kk yes yep yeah yup yea no nope nah sure right cool great nice good fine
        perfect awesome amazing brilliant lovely sweet super excellent wonderful lol lmao rofl haha
        hahaha hehe heh hm hmm mhm hmmm oh ah aha wow omg ugh argh meh phew whoa yay woohoo woo damn
        ouch oops lgtm np yw welcome bye goodbye ciao later see ya night goodnight gn gm brb gtg ttyl
        back exactly indeed true agreed got gotcha understood noted makes sense helps helped helpful
        works worked lot much again so well done correct works very all ha anyway anyways whatever
        sorry nvm never mind nevermind please love it that this is was day days week weekend have
        good you too yours how are doing today friend mate buddy folks everyone there kbtui""",
        """ja nein jo jup klar gut prima toll klasse spitze genau stimmt richtig passt alles schon
        wunderbar perfekt okay aha achso ach so oh puh uff boah krass tja hach juhu haha tschuss bis
        spater bald gute nacht bitte gern gerne sehr viel wie geht geht's dir ihnen es heute na
        gott schonen wochenende feierabend hilft mir weiter verstanden alles egal wirklich echt""",
        """si no vale claro bueno buena bien genial perfecto estupendo fenomenal guay jaja jajaja
        jeje uf vaya anda ay madre mia adios hasta luego manana pronto muchas muchisimas mil por todo
        de nada que tal como estas muy entendido exacto cierto correcto listo hecho dale venga eso es
        buen finde fin semana""",
    )
)
INTERJECTION = word_set(
    """lol lmao rofl haha hahaha hehe omg ugh argh arg meh phew whoa wow yay woohoo damn ouch oops
    ew yikes geez jeez gosh boy man ha hah heh bah grr sigh wtf boah puh uff ach oje ojemine krass
    hach juhu mann tja igitt menno manno herrje jaja jajaja jeje uf vaya anda ay madre uy ostras
    jolin bah hala caray caramba dios""",
)
_EMOTIVE = word_set(
    """tired exhausted hungry bored boring weird funny crazy annoying annoyed sad happy excited
    nervous stressed sleepy cold hot miserable awful terrible horrible ridiculous hilarious gorgeous
    cute adorable sweetheart insane wild mood vibes dreamed dreaming literally apparently honestly
    imagine kidding joke joking traffic weather rain raining sunny snowing coffee wish ages endless
    forever finally madness nightmare hell heaven bloody freaking unbelievable amazing brilliant
    fantastic lovely tiring dead dying starving weird long day glad sick hate
    mude erschopft hungrig langweilig komisch lustig verruckt nervig genervt traurig froh gestresst
    kalt heiss furchtbar schrecklich lacherlich suss wahnsinn irre regen regnet wetter stau kaffee
    endlich traum fertig kaputt anstrengend verkehr wunderbar toll
    cansado cansada agotado agotada hambre aburrido aburrida raro rara gracioso loco loca triste feliz
    contento contenta frio calor horrible ridiculo mono lluvia llueve tiempo trafico atasco cafe
    sueno increible pesadilla locura harto harta menudo menuda""",
)
DURABLE = word_set(
    """owns own leads lead manages runs maintains heads covers handles lives live living based
    prefer prefers preferred hates hate avoid avoids allergic allergy intolerant vegetarian vegan
    decided decide agreed chose chosen picked settled switched moved moving move married engaged
    divorced born died graduated named called nickname studies study teaches teach speaks speak
    costs cost charges charge pays pay paid belongs belong starts start started begins ends end
    opens open closes closed due expires expire renews promised signed bought buy sold sell hired
    booked ordered replaced changed renamed cancelled canceled postponed rescheduled scheduled
    installed planted broken repaired fixed uses weighs measures located stands lies connects
    requires needs works work quit resigned retired joined joining joins leaves leaving left
    arrives arriving visiting rents rented plays collects drives rides takes birthday anniversary
    deadline meeting appointment interview exam rehearsal flight train password always never usually
    every only must cannot stop stopped stops dropped ditched opted swapped banned stored stays staying hangs lent borrowed owes owe responsible charge
    drink drinks eat eats wear wears know knows diagnosed prescribed raised hosting hosts turns vaccinated enrolled transferred promoted
    gehort leitet besitzt wohnt wohne wohnen arbeitet arbeite arbeiten lebt lebe leben bevorzuge
    bevorzugt mag hasse hasst vermeide allergisch allergie vegetarier vegetarisch vegan entschieden
    beschlossen entschlossen einigt geeinigt gewahlt ausgesucht gewechselt umgezogen zieht
    verheiratet verlobt geschieden geboren gestorben heisst heissen genannt studiert unterrichtet
    spricht kostet kosten bezahlt zahlt zahlen beginnt fangt endet offnet schliesst fallig lauft ab
    versprochen unterschrieben gekauft verkauft eingestellt gebucht bestellt ersetzt geandert
    umbenannt abgesagt verschoben verlegt geplant installiert gepflanzt repariert nutzt benutze
    benutzen verwenden verwendet wiegt misst liegt steht hangt befindet vertrage vertragt braucht brauche gekundigt
    geburtstag frist termin treffen prufung probe flug immer nie niemals jeden jede jedes montags
    dienstags mittwochs donnerstags freitags samstags sonntags zustandig verantwortlich ubernimmt
    aufgehort verzichten verzichte verzichtet kundige gestrichen getauscht abgeschafft trage tragt fahrt fahre spielt spiele esse isst trinke trinkt ausgeliehen geliehen schuldet
    cuelga guarda quedamos quedado posee dirige lleva vive vivo vivimos trabaja trabajo trabajamos prefiero prefiere odio odia
    evito alergico alergica alergia vegetariano vegetariana vegano vegana decidimos decidido decidi
    acordamos acordado elegimos elegido escogido cambiado cambiamos mudado mudo mudarse mudamos
    casado casada prometido divorciado nacio murio llama llamamos llaman estudia ensena habla cuesta
    cuestan cobra cobro cobramos paga pago pagamos pertenece empieza empezamos comienza termina abre
    cierra vence caduca prometi firmado firmamos compramos comprado vendido contratado contratamos
    reservado reservamos pedido sustituido cancelado cancelada aplazado aplazada pospuesto
    reprogramado instalado plantado reparado usa usamos uso utilizamos pesa mide ubicado queda
    necesita necesito renuncio jubilo cumpleanos plazo cita reunion examen ensayo vuelo siempre nunca
    deje dejo dejamos dejado dejar jamas encarga responsable encargado encargada toma bebe como come prestado debe""",
)
RELATION = word_set(
    """wife husband partner boyfriend girlfriend fiance fiancee mother mum mom mama father dad papa
    sister brother sibling son daughter kid kids child children baby aunt uncle cousin niece nephew
    grandmother grandma granny grandfather grandpa friend neighbour neighbor colleague coworker boss
    manager assistant intern doctor dentist vet lawyer accountant landlord landlady plumber
    electrician teacher coach trainer tutor supervisor advisor therapist nurse director principal
    dog cat horse
    frau mann partnerin freund freundin mutter mama vater papa schwester bruder sohn tochter kind
    kinder baby tante onkel cousine nichte neffe oma grossmutter opa grossvater nachbar nachbarin
    kollege kollegin chef chefin arzt arztin zahnarzt zahnarztin tierarzt tierarztin anwalt anwaltin
    steuerberater steuerberaterin vermieter vermieterin lehrer lehrerin trainer trainerin betreuer
    betreuerin hund katze schwiegermutter schwiegervater enkel enkelin hausmeister
    esposa mujer marido esposo pareja novio novia madre padre hermana hermano hijo hija hijos bebe
    tia tio prima primo sobrina sobrino abuela abuelo amigo amiga vecino vecina companero companera
    jefe jefa medico medica doctora dentista veterinario veterinaria abogado abogada contable casero
    casera profesor profesora maestro maestra entrenador entrenadora tutora perro perra gato gata
    suegra suegro nieto nieta""",
)
PRONOUN = word_set(
    "he she it they him her them this that these those er sie es ihn ihm ihr ihnen dies das ella "
    "ellos ellas esto eso este his their its seine ihre su sus"
)
FIRST_PERSON = word_set(
    "i im ive id ill my me mine we our us ich mir mich mein meine meinen meinem meiner wir uns "
    "unser unsere unseren unserem yo mi mis me nos nosotros nosotras nuestro nuestra nuestros "
    "nuestras estoy soy tengo vivo trabajo prefiero odio"
)
SECOND_PERSON = word_set(
    "you your you're youre u ur yourself du dein deine dir dich tu te ti usted"
)
COPULA = word_set(
    "is are was were am s ist sind war waren bin seid es son era eran soy somos esta estan fue"
)
ARTICLE = word_set(
    "a an the our my your his her their its this that some der die das den dem des ein eine einen "
    "einem einer mein meine meinen meinem meiner unser unsere unseren unserem unserer dein deine "
    "el la los las un una unos unas mi mis nuestro nuestra nuestros nuestras su sus lo"
)
PREPOSITION = word_set(
    "of in on at by for with from into to over under about as until till after before between "
    "during per via zu zum zur im in am an auf aus bei beim mit von vom vor nach fur uber um bis ab "
    "gegen ohne seit de del al a en con por para sin sobre hasta desde entre"
)
CONJUNCTION = word_set(
    "and or but because since so which who that when while if und oder aber weil da dass denn wenn "
    "sondern y e o pero porque que cuando si sino ya"
)
_WEEKDAYS = (
    r"mon(?:day)?s?|tue(?:s(?:day)?)?s?|wed(?:nesday)?s?|thu(?:r(?:s(?:day)?)?)?s?|fri(?:day)?s?"
    r"|sat(?:urday)?s?|sun(?:day)?s?"
    r"|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonnabends?|sonntags?"
    r"|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bados?|domingos?"
)
_MONTHS = (
    r"jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|m[aä]rz|apr(?:il)?|may|mai|june?|juni|july?"
    r"|juli|aug(?:ust)?|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|j[aä]nner"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre"
)
_AFTER_DAY = (
    r"(?:(?<=\b(?:mon|tue|wed|thu|fri|sat|sun) )|(?<=day )|(?<=days )|(?<=tag )|(?<=woch ))"
)
_UNITS = r"h|hrs?|min|kg|g|km|cm|mm|m|l|ml|mg|gb|mb|tb|kw|m2|qm"
_VALUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(form, re.IGNORECASE))
    for kind, form in (
        ("id", r"\b\d{1,3}(?:\.\d{1,3}){2,}\b|\b\+?\d[\d /-]{6,}\d\b|\bv?\d+\.\d+\.\d+\b"),
        ("date", r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)?(?!\d)"),
        (
            "date",
            rf"\b\d{{1,2}}(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+)?(?:{_MONTHS})\b\.?(?:\s+\d{{4}}\b)?",
        ),
        ("date", rf"\b(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+\d{{4}}\b)?"),
        ("date", r"\b(?:the\s+)?\d{1,2}(?:st|nd|rd|th)\b"),
        (
            "time",
            (
                r"\b\d{1,2}(?::|h)\d\d(?:\s?[ap]m)?\b|\b\d{1,2}\s?[ap]m\b|\b\d{1,2}(?:[.:]\d\d)?\s?uhr\b"
                r"|\b\d{1,2}\s?h\b|(?<=\bat )\d{1,2}\b(?!\s?%)|(?<=\bum )\d{1,2}\b|(?<=\ba las )\d{1,2}\b"
                rf"|{_AFTER_DAY}\d{{1,2}}(?:[.:]\d\d)?\b(?!\s*(?:[a-z%]|[./-]\s?\d|\.))"
                r"|\bnoon\b|\bmidnight\b|\bmediod[ií]a\b|\bhalb (?:\w+)\b"
            ),
        ),
        ("code", r"\b[a-z]{1,2}-?\d{1,4}\b"),
        (
            "money",
            (
                r"[€$£]\s?\d[\d.,]*\s?[km]?\b(?:/\w+)?|\b\d[\d.,]*\s?(?:[km]\b\s?)?(?:€|\$|£|eur\b|euros?\b"
                r"|usd\b|dollars?\b|pounds?\b|chf\b|franken\b|pesos?\b)(?:/\w+)?"
            ),
        ),
        ("percent", r"\b\d+(?:[.,]\d+)?\s?%|\b\d+\s(?:percent|prozent|por ciento)\b"),
        ("weekday", rf"\b(?:{_WEEKDAYS})\b"),
        ("month", rf"\b(?:{_MONTHS})\b"),
        (
            "day",
            (
                r"\b(?:today|tomorrow|tonight|tmrw|next (?:week|month|year|spring|summer|autumn|fall|winter)"
                r"|heute|morgen|[uü]bermorgen|n[aä]chste[nsr]? (?:woche|monat|jahr)"
                r"|hoy|mañana|la pr[oó]xima semana|el pr[oó]ximo (?:mes|año))\b"
            ),
        ),
        ("number", rf"[#~]?\b\d+(?:[.,]\d+)*(?:\s?(?:k|{_UNITS}))?\b"),
        (
            "number",
            (
                r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|zwei|drei"
                r"|vier|f[uü]nf|sechs|sieben|acht|neun|zehn|elf|zw[oö]lf|dos|tres|cuatro|cinco|seis|siete"
                r"|ocho|nueve|diez|once|doce)\b"
            ),
        ),
    )
)
_AMBIGUOUS = frozenset({"may", "mar", "sat", "sun", "once", "morgen", "wed", "mon"})
_CONCEPTS = tuple(
    word_set(line)
    for line in """
    price pricing cost costs charge charges fee fees rent paid pays pay rate preis stundensatz satz kosten kostet zahl zahle zahlst zahlt zahlen bezahle bezahlt gebuhr miete precio cuesta cuestan cobra cobramos cobro pagamos pagar pago paga tarifa alquiler cuota €
    keep keeps kept retention retain retained aufbewahren aufbewahrt aufbewahrung conservar conservamos conservacion
    music band dj song songs playlist musik kapelle musica grupo banda
    guest guests people persons attendees gaste gasten personen leute invitados personas
    phone number ext extension telephone mobile cell telefon nummer handy durchwahl telefono movil numero
    birthday born turns geburtstag geboren cumpleanos nacio cumple
    owner owns own responsible leads lead charge runs manages zustandig leitet verantwortlich gehort encargado encargada responsable dirige lleva
    doctor dr physician gp arzt arztin medico medica doctora
    mum mother mom mutter mama madre
    dad father vater papa padre
    wife husband partner spouse frau mann esposa marido mujer pareja
    kids children kid child son daughter kinder kind sohn tochter hijos hijo hija ninos
    park parking lot garage parken parkplatz aparcar aparcamiento aparco parking
    live lives living address moved wohnt wohne wohnung adresse umgezogen vive vivo direccion mudado mudo
    meeting standup sync besprechung sitzung termin reunion
    host hosts hosting hosted server servers cloud provider aws azure gcp hetzner heroku ovh digitalocean netlify vercel hosten gehostet alojar alojamos
    deploy deployment ship release ausrollen desplegar despliegue
    car auto wagen coche carro
    eat eats diet food vegetarian vegan allergic allergy essen isst come comida dieta
    flight plane flug vuelo
    start starts begin begins beginnt anfangen fangt empieza comienza
    end ends finish endet fertig termina acaba
    job works work profession arbeitet arbeit beruf trabaja trabajo
    why reason because grund weil porque razon motivo
    deadline due by frist fallig abgabe plazo entrega vence fertig ready delivery deliver delivered liefern liefere lieferung listo lista entregar
    christmas xmas weihnachten heiligabend navidad navidades december dezember diciembre dec
    easter ostern pascua
    text txt texts message messages sms whatsapp mensaje nachricht
    ring call calls anrufen anrufe anruf rufe llamar llamo
    room raum zimmer saal aula sala
    cheap cheaper expensive billig gunstig gunstiger barato barata
    decide decided choose chose pick picked choice decision entschieden gewahlt beschlossen elegimos decidimos elegido
    database db postgres postgresql mysql mariadb sqlite mongodb oracle datenbank
    like likes prefer prefers preference favourite favorite love mag lieber bevorzugt lieblings prefiere gusta favorito favorita
    buy bought purchased gekauft compramos comprado
    dog puppy hund perro
    min minimum mindest minimo
    max maximum hochst maximo
    appt appointment termin cita
    dept department abteilung
    acct account konto cuenta
    qty quantity menge cantidad
    bday birthday geburtstag cumple
    hour hourly hr hrs h stunde stundlich hora
    cat katze gato
    boss manager supervisor chief chef chefin jefe jefa
    """.strip().splitlines()
)
_WORD = re.compile(r"[^\W_]+(?:['’´][^\W_]+)*")
_ENDINGS = tuple(
    sorted(
        """ings ing ungen ung ed es er ern en em s e n a o os as y ie ies ic ar ir isch ico ica ado ada
        idos ido ida amos emos imos aron ieron aba aban ando iendo ista istas ist istin isten""".split(),  # noqa: SIM905
        key=len,
        reverse=True,
    )
)
_PERSON_ENDINGS = frozenset({"t", "st", "te", "ten"})
_LEAST_STEM = 3
_COMPOUND = 8
_PART_OF_COMPOUND = 5
_SAME_BEGINNING = 5


@dataclass(frozen=True, slots=True)
class Value:
    """Something exact in a text: its kind (date, time, money ...), where it stands, and it."""

    kind: str
    start: int
    end: int
    text: str


def words(text: str) -> list[str]:
    """The words of a text, folded; an apostrophe's ending is cut off."""
    return [
        fold(word.replace("\u2019", "'").replace("\u00b4", "'")) for word in _WORD.findall(text)
    ]


@lru_cache(8192)
def stem(word: str) -> str:
    """A folded word without its ending, for comparing; numbers stay whole."""
    word = word.partition("'")[0] if len(word.partition("'")[0]) > 1 else word.replace("'", "")
    if any(char.isdigit() for char in word):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            word = word[: -len(ending)]
            return word[:-1] if len(word) > _LEAST_STEM and word[-1] == word[-2] else word
    return word


def content(text: str) -> list[str]:
    """The words of a text that say something, folded, in order."""
    return [word for word in words(text) if is_content(word)]


def is_content(word: str) -> bool:
    """Whether a folded word says something by itself."""
    plain = word.replace("'", "")
    if plain in FUNCTION or word.partition("'")[0] in FUNCTION:
        return False
    return len(plain) > 1 or plain.isdigit()


@lru_cache(16384)
def alike(one: str, other: str) -> bool:
    """Whether two folded words are forms of one, or one is the end of a compound of the other."""
    a, b = stem(one), stem(other)
    if a == b:
        return True
    if any(char.isdigit() for char in a + b):
        return False
    if len(a) > len(b):
        a, b = b, a
    if len(a) > _LEAST_STEM and b.startswith(a) and b[len(a) :] in _PERSON_ENDINGS:
        return True
    if len(_skeleton(a)) >= _SAME_BEGINNING and _skeleton(a) == _skeleton(b):
        return True
    if len(a) >= _SAME_BEGINNING and b.startswith(a[: max(_SAME_BEGINNING, len(a) - 1)]):
        return len(b) - len(a) <= _LEAST_STEM
    return _is_compound(a, b) or _is_compound(*sorted((one, other), key=len))


def _is_compound(part: str, whole: str) -> bool:
    long = len(whole) >= _COMPOUND and len(part) >= _PART_OF_COMPOUND
    return long and (whole.endswith(part) or whole.startswith(part))


@lru_cache(8192)
def _skeleton(word: str) -> str:
    """The consonants of a word, each run once: *vertritt* and *Vertretung* share them."""
    return re.sub(r"(.)\1+", r"\1", word[:1] + re.sub(r"[aeiouy]", "", word[1:]))


@lru_cache(4096)
def concepts(word: str) -> frozenset[int]:
    """The groups of words of one meaning that a folded word belongs to."""
    return frozenset(
        number
        for number, group in enumerate(_CONCEPTS)
        if word in group or any(stem(word) == stem(other) for other in group if len(other) > 4)  # noqa: PLR2004
    )


def synonyms(word: str) -> list[str]:
    """Other words of the meanings of a folded word."""
    return sorted(other for number in concepts(word) for other in _CONCEPTS[number])


def values(text: str) -> list[Value]:
    """The exact values of a text, in order, without overlaps; the more telling kind wins."""
    found: list[Value] = []
    for kind, form in _VALUES:
        for match in form.finditer(text):
            start, end = match.span()
            if fold(match[0]) in _AMBIGUOUS and not match[0][:1].isupper():
                continue
            if all(end <= other.start or start >= other.end for other in found):
                found.append(Value(kind, start, end, match[0]))
    return sorted(found, key=lambda value: value.start)


def weekday(text: str) -> int:
    """The number of a day of the week, from 0 for Monday; -1 for another word."""
    return next((n for n, begins in enumerate(_DAYS) if fold(text).startswith(begins)), -1)


def weekdays(text: str) -> set[int]:
    """The days of the week that a text names, with those between: *tue-thu*, *Mo bis Fr*."""
    found = {weekday(value.text) for value in values(text) if value.kind == "weekday"}
    for match in _SPAN_OF_DAYS.finditer(text):
        first, last = weekday(match["first"]), weekday(match["last"])
        found |= {day % 7 for day in range(first, last + 1 + 7 * (last < first))}
    return found


def names(text: str) -> Iterator[str]:
    """Words written with a capital within a sentence: names, mostly."""
    for match in _WORD.finditer(text):
        before = text[: match.start()].rstrip(" \"'([„“«")
        at_start = not before or before[-1] in ".!?\n:-*•"
        if match[0][0].isupper() and not at_start and fold(match[0]) not in FUNCTION:
            yield match[0]


def language(text: str) -> str:
    """``en``, ``de`` or ``es``, by the function words of a text."""
    told = words(text)
    marks = {code: sum(word in marked for word in told) for code, marked in _MARKS.items()}
    best = max(marks, key=lambda code: (marks[code], code == "en"))
    if best == "en" and re.search("[äöüß]", text.lower()):
        return "de"
    if best == "en" and re.search("[ñ¿¡áíóú]", text.lower()):
        return "es"
    return best


_MARKS = {
    "en": word_set(
        "the a an is are was and of to in on for with my our i we you it that this at from not who "
        "what when where how why does do did has have"
    ),
    "de": word_set(
        "der die das den dem ein eine einen ist sind war und von zu im in am fur mit mein meine ich "
        "wir sie nicht wer was wann wo wie warum hat haben auf aus bei nach wird unser unsere kein"
    ),
    "es": word_set(
        "el la los las un una es son era y de del en para con mi mis yo nosotros que no quien como "
        "cuando donde por tiene tengo se lo al su nuestra nuestro esta hay"
    ),
}
_DAYS = (
    ("mo", "lun"),
    ("tu", "di", "mar"),
    ("we", "mit", "mie"),
    ("th", "do", "jue"),
    ("fr", "vie"),
    ("sa", "sonna"),
    ("su", "so", "dom"),
)
_SPAN_OF_DAYS = re.compile(
    rf"\b(?P<first>{_WEEKDAYS}|mo|di|mi|do|fr|sa)\s?(?:-|–|to|till|until|through|thru|bis|a)\s?(?P<last>{_WEEKDAYS}|di|mi|do|fr|sa|so)\b",
    re.IGNORECASE,
)
EMOTIVE = _EMOTIVE
SINGULAR = word_set(
    "i im ive id ill my me mine ich mir mich mein meine meinen meinem meiner meines yo mi mis me "
    "estoy soy tengo vivo trabajo prefiero odio"
)
