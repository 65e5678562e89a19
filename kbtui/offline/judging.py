"""Judges sentences: which state something that will still matter, and what the others are.

Each sentence gets a form (question, command, hypothetical, chat, wish, statement), and a
statement a worth out of what it holds: dates and numbers, names, verbs of lasting facts, labels,
against exclamations, moods and talk about here and now.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kbtui.offline import words as w
from kbtui.text import fold

Form = Literal[
    "question", "command", "hypothetical", "chat", "wish", "remember", "todo", "statement"
]
WORTH_KEEPING = 1.0
_FEW = 6

_ABBREVIATED = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|jr|sr|sra|srta|vs|etc|approx|no|nr|inc|ltd|e\.g|i\.e|ca|z|b|bzw|usw"
    r"|d|h|ing|incl|inkl|evtl|tel|str|av|c/|pp|ej|p|ud|uds|wk|min|max|dept|ext)|\b[a-z]|\b\d{1,2})\.$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[.!?])(?=[A-ZÄÖÜ¿¡][a-zäöü])|\s*;\s+")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_PICTURES = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f]|[:;]-?[()DPp/|](?!\\w)|<3|\\bxx?\\b"
)
_LEAD = re.compile(
    r"^(?:(?:so|ok|okay|well|also|and|but|then|btw|by the way|fyi|yes|yeah|hey|hi|hello|oh|ah|anyway"
    r"|just so you know|for the record|for your information|please note|good news|update|news|quick note"
    r"|oh and|one more thing|another thing|also"
    r"|also gut|und|aber|übrigens|ach ja|ach|ja|hallo|nur zur info|zur info|kurze info|außerdem|noch was"
    r"|y|pero|por cierto|oye|ah|bueno|pues|además|hola|una cosa|otra cosa|para que lo sepas)"
    r"(?:\s*[,:!.–-]\s*|\s+))+",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"^(?:(?:can|could|would) you\s+|please\s+|pls\s+|bitte\s+|kannst du (?:dir )?(?:bitte )?|por favor,?\s+"
    r"|puedes\s+)*"
    r"(?:remember|note|keep in mind|don['’]?t forget|do not forget|make a note|note to self|write down"
    r"|jot down|save|merk(?:e)? dir|merken|notier(?:e)?(?: dir)?|notiz(?: an mich)?|nicht vergessen"
    r"|vergiss (?:bitte )?nicht|denk(?:e)? (?:bitte )?(?:dran|daran)|speicher(?:e)?"
    r"|recuerda|acu[eé]rdate(?: de)?|ten en cuenta|no (?:te )?olvides|apunta|anota|guarda|nota)"
    r"(?:\s+(?:that|this|down|of|dass|das|dies|diese[sn]?|bitte|que|esto|de que|mir|for me|to self))*\s*[:,–-]?\s+(?P<what>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_NOT_TO_REMEMBER = re.compile(
    r"^(?:when|how|what|who|where|why|if|the (?:days?|summers?|times?|winters?|years?)\b"
    r"|als|wie|wann|cuando|cómo|qué|aquel)",
    re.IGNORECASE,
)
_TODO = re.compile(
    r"^(?:todo|to[- ]do|task|action item|aufgabe|zu erledigen|tarea|pendiente|reminder|erinnerung"
    r"|recordatorio)\s*[:–-]\s*(?P<what>\S.*)$"
    r"|^(?:(?:please\s+)?remind me (?:to|that|about)|erinner(?:e)? mich (?:daran,?|an)|recu[eé]rdame(?: que)?)"
    r"\s+(?P<that>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = re.compile(
    r"^(?:(?:and|but|so|wait|ok|und|aber|y|pero|e)\s+)?(?:"
    r"(?:what|wh?[oa]t|who|whom|whose|why|when|where|which|how)(?:['’]?s|['’]re|['’]d)?\b"
    r"|(?:in|at|on|for|with|from|by|to|since|until) (?:which|what|whom|when|where)\b"
    r"|(?:in|an|auf|für|mit|bei|von|um|seit|bis|zu|aus|nach) (?:welche[nrms]?|wem|wen|was|wann|wie(?: ?viele?)?)\b"
    r"|(?:do|does|did|is|are|was|were|can|could|should|shall|will|would|have|has|am|may)"
    r"(?:n['’]?t)?\s+(?:i|we|you|he|she|it|they|there|the|my|our|your|this|that|any\w*|[A-Z]\w+|\w+)\b"
    r"|any (?:idea|news|chance|thoughts)\b|remind me (?:what|who|when|where|how|why|which)\b"
    r"|(?:tell|show|give) me (?:about|what|who|when|where|how|why|which|everything|all)\b|do you know\b"
    r"|(?:wer|wen|wem|wessen|was|wann|wo|wie(?: ?viele?)?|warum|wieso|weshalb|woher|wohin|womit|welche[nrsm]?|wozu)\b"
    r"|(?:hat|habe|haben|ist|sind|kann|kannst|können|soll|sollte|darf|wird|wirst|weißt|gibt|hast|bist|war|muss"
    r"|kommt|kommst)\s+(?:ich|du|er|sie|es|wir|ihr|man|der|die|das|den|mein\w*|unser\w*|[A-ZÄÖÜ]\w+)\b"
    r"|(?:sag|sage|zeig|zeige) mir\b|erinner(?:e)? mich,? (?:was|wer|wann|wo|wie)\b"
    r"|(?:qu[eé]|qui[eé]n(?:es)?|cu[aá]l(?:es)?|cu[aá]nt[oa]s?|d[oó]nde|ad[oó]nde|cu[aá]ndo|c[oó]mo|por qu[eé]"
    r"|(?:a|de|con|en|para) (?:qu[eé]|qui[eé]n|cu[aá]l|d[oó]nde))\b|(?:sabes|dime|cu[eé]ntame)\b"
    r")",
    re.IGNORECASE,
)
# Spanish as it is typed without accents: "cuando llega el horno".
_ASKS_PLAINLY = re.compile(
    r"^(?:cuando|donde|quien(?:es)?|cual(?:es)?|cuant[oa]s?|por que|xq|pq|como (?:se|esta|es)|que (?:dia|hora)"
    r"|(?:que|q|k) \w+ (?:es|son|hay|era|tiene|tengo|toca|viene))\s[^,.;]{2,60}$",
    re.IGNORECASE,
)
# "We're" as it is typed in haste.
_WERE = r"were (?:(?:not|all|both|also|now|just|still|never|only)\s)?(?:\w{2,}ing|out of|off to|done with|back to)\b"
# "When I'm in Berlin I stay ...", "what a day", "wie schön", "cuando llueve, ...": no questions.
_NOT_ASKED = re.compile(
    r"^(?:don['’]?t (?!i\b|we\b|you\b|they\b)|what an? |what the |how (?:nice|cool|lovely|sweet|cute|funny|weird|great|annoying|typical)"
    r"|which (?:is|was|means|reminds)|who (?:cares|knew)|when(?:ever)? (?:i|we|it|you|he|she|they|the|my)\b(?! (?:do|did|does))"
    r"|where (?:i|we|the|my)\b|was (?:für ein|ein)\b|wie (?:schön|nett|blöd|lustig|süß|geil|cool|nervig)"
    r"|wo (?:ich|wir)\b|como (?!se|est|fue|es |era|puedo|puede|hago|va |vamos)|cuando\b|donde (?:vivo|trabajo)"
    r"|que (?!es |hay|tengo|tiene|hora|d[ií]a|le |me |te |se |hac|dij|quer)|qu[eé] (?:bien|mal|guay|bonito|raro|asco|rollo|fuerte|pena|d[ií]a tan|risa|calor|fr[ií]o|locura)"
    r"|is (?:what it is|ok|fine)|war (?:das ein|ein)|is being|was (?:a|an|the|so|really|great)\b|have a\b"
    r"|may (?:the|\d)|will (?:do|be)\b"
    rf"|{_WERE})",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^(?:(?:please|pls|now|kindly|ok|can you|could you|would you|bitte|kannst du|könntest du|por favor|puedes|podrías)[,\s]+)*"
    r"(?:(?:re)?write|rephrase|reword|summari[sz]e|sum up|translate|draft|compose|list|show|find|search|look up|look for|give me"
    r"|explain|describe|compare|convert|format|turn (?:it|this|that|these|those|the)|sort|order (?:it|this|that|these|them|the list|by)|make (?:it|this|that|these|those|a|an|me|the|my)"
    r"|create|generate|shorten|expand|proofread|correct (?:my|this|the)|fix (?:my|this|the)\b.*\b(?:grammar|spelling|text|code)|delete|remove|undo"
    r"|open|(?:forget|vergiss|olvida) (?!what|that|was|das|lo que|(?:the|about the) (?:bit|thing|part)|about|to\b|nicht|no\b)|tell me|help me|suggest|recommend|brainstorm|calculate|compute|plan|outline|count|print|export|read|check|go on|continue|try again|repeat|say (?:it|that|something)|put (?:it|this|that|these|them|everything)|add (?:it|this|that|these|those|them)\b|move (?:it|this|that) "
    r"|fass(?:e)? .*zusammen|fasse|übersetz(?:e)?|schreib(?:e)?|formulier(?:e)?|umformulier\w*|erstell(?:e)?|erklär(?:e)?|zeig(?:e)?|such(?:e)?|find(?:e)?|sortier(?:e)?|ordne"
    r"|mach(?:e)? (?:mir|das|die|den|daraus|eine?n?|es)|lösch(?:e)?|entfern(?:e)?|gib mir|hilf mir|lies|vergleich(?:e)?|liste|nenn(?:e)? mir|berechne|korrigier(?:e)?|kürz(?:e)?|wiederhol(?:e)?|schlag(?:e)? .* vor|füg(?:e)?|wandle|mal(?:e)?|zähl(?:e)?|entwirf"
    r"|escribe(?:me)?|reescribe|resume|resúmeme|traduce|redacta|mu[eé]stra(?:me)?|ens[eé][ñn]a(?:me)?|busca|encuentra|haz(?:me)?|crea|genera|ordena|borra|elimina|explica(?:me)?|expl[ií]ca(?:me)?|dame|compara|convierte|calcula|corrige|acorta|repite|pon(?:lo|la|los|las)?|lista|ay[uú]da(?:me)?|sugiere|continúa|sigue|pasa(?:lo|la)|organiza)\b",
    re.IGNORECASE,
)
# "make that 4pm", "move it to friday": what was said is to be put right.
_SET_RIGHT = re.compile(
    r"^(?:(?:no|ok|sorry|actually|and|nein|doch)[\s,]+)*(?:(?:make|change|set|move|push|switch|shift|bump)\s+(?:it|that|this)\b|(?:mach|setz|änder|verschieb|verleg)e?\s+(?:es|das|daraus)\b"
    r"|(?:ponlo|c[aá]mbialo|mu[eé]velo|p[aá]salo|que sean?)\b)",
    re.IGNORECASE,
)
_COMMAND_LAST = re.compile(
    r"\b(?:zusammenfassen|übersetzen|umschreiben|umformulieren|sortieren|auflisten|anzeigen|löschen|formulieren|kürzen)"
    r"(?:\s*,?\s*(?:bitte|danke))?[.!]*$|\b(?:bitte|please)[.!]*$",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"\b(?:don['’]?t\b.*\bever|always|never|from now on|in (?:the )?future|going forward|every time|whenever|by default|answers?|repl(?:y|ies)"
    r"|respond|emojis?|immer|nie|niemals|ab jetzt|ab sofort|künftig|in zukunft|antwort(?:e|en|et)?|standardmäßig"
    r"|siempre|nunca|jamás|a partir de ahora|en adelante|respuestas?|respond[ea](?:me)?|contesta(?:me)?)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^(?:(?:please|pls|plz|bitte|por favor),?\s+)*(?:"
    r"(?:always|never|from now on|in future|going forward)\b|(?:keep|use|answer|reply|respond|write|speak|call me|address me|don['’]?t|do not|stop|avoid|put|show|format|no)\b"
    r"|(?:antworte|nenn(?:e)? mich|duz(?:e)? mich|siez(?:e)? mich|sprich|benutz(?:e)?|verwend(?:e)?|nutz(?:e)?|halt(?:e)?|schreib(?:e)?|immer|nie|niemals|ab jetzt|ab sofort|künftig|kein(?:e)?)\b"
    r"|(?:responde(?:me)?|contesta(?:me)?|ll[aá]mame|tut[eé]ame|usa|no uses|escribe(?:me)?|habla(?:me)?|evita|siempre|nunca|a partir de ahora)\b)",
    re.IGNORECASE,
)
_WISH_ABOUT = re.compile(
    r"\b(?:call me|address me|nenn(?:e)? mich|duz(?:e)? mich|siez(?:e)? mich|ll[aá]mame|tut[eé]ame)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(r"\b(?:please|pls|plz|bitte|por favor)\b", re.IGNORECASE)
_ALWAYS = re.compile(r"\b(?:always|never|ever|immer|nie|stets|siempre|nunca)\b", re.IGNORECASE)
_HYPOTHETICAL = re.compile(
    r"^(?:(?:hm+|ok|so|and|but|well|tja|naja|y|pero|bueno|now)[,\s]+)*(?:what if|imagine|suppose|supposing|assuming|let['’]?s say|say we|in theory|theoretically|hypothetically|wouldn['’]?t it|it would be|would be (?:nice|cool|great|fun|so)|if only|i wish|wish (?:i|we|they)|one day|someday|some day|maybe (?:i|we|one day|someday)|perhaps (?:i|we)|what would"
    r"|was wäre,? wenn|wie wäre es|stell dir vor|angenommen|mal angenommen|nehmen wir an|wäre (?:schön|toll|cool|super|nett)|wenn ich doch|hätte ich|eines tages|irgendwann (?:mal|einmal)?|vielleicht (?:sollte|könnte|ziehe?n?|mache|kaufe)|theoretisch|man könnte|man müsste"
    r"|y si\b|imag[ií]nate|imagina|sup[oó]n|supongamos|qu[eé] pasar[ií]a|ojal[aá]|ser[ií]a (?:genial|bonito|guay|estupendo|bueno|ideal)|alg[uú]n d[ií]a|a lo mejor|quiz[aá]s?|tal vez|te imaginas|en teor[ií]a|me gustar[ií]a)\b",
    re.IGNORECASE,
)
# "no plastic bags", "kein Zucker für Mia": a rule, and no reaction ("no idea", "no worries").
_RULED_OUT = re.compile(
    r"^(?:no(?! (?:one|idea|clue|worries|problem|way|chance|thanks?|kidding|wonder|need|news|luck|reason|joke|doubt|rush|offen[cs]e|comment|biggie|prob|pressure|thing|more|matter|longer|surprise)\b)"
    r"|kein(?:e[nrsm]?)?(?! (?:ahnung|problem|sorge|stress|thema|ding|wunder|lust|zeit|chance|frage|bock|plan|eile)\b)"
    r"|nada de) (?!\w+(?:ed|ing)\b)\w{3,}",
    re.IGNORECASE,
)
# "swapped with Imogen": what the speaker did, without saying who.
_DID = re.compile(
    r"^(?:\w{3,}ed|bought|sold|paid|got|chose|quit|swapped|gave|lent|sent|told|put)\s(?:\w+\s)?(?!by\b)\w",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\bif\b.*\b(?:would(?:n['’]?t)?|could|might|were|[a-z]+['’]d|had)\b|\b(?:would|could|might)(?:n['’]?t)?\b.*\bif\b|^if\b.*\bid\b|^(?:if|wenn|falls|si)(?: \w+){1,3} (?:ever|je|jemals)\b|^si (?:alg[uú]n d[ií]a|alguna vez)\b|\bojal[aá]\b"
    r"|^if (?:i|we)\b.*\b(?:i|we)(?:['’]?(?:ll|m|re)\b| will\b| am\b)|^(?:wenn|falls) (?:ich|wir)\b.*\b\w+e?n? (?:ich|wir)\b|^si (?:yo )?\w+(?:o|amos|emos)\b.*\b(?:me voy|voy a|vamos a|\w+r(?:é|emos))\b"
    r"|^(?:ach )?(?:hätte|wäre)n? (?:ich|wir) (?:doch|nur|bloß)\b"
    r"|\b(?:wenn|falls)\b.*\b(?:würde\w*|wäre\w*|hätte\w*|könnte\w*|müsste\w*|gewänne\w*|käme\w*|bräuchte\w*)\b|\b(?:würde\w*|wäre\w*|hätte\w*|könnte\w*|müsste\w*|bräuchte\w*)\b.*\b(?:wenn|falls)\b"
    r"|\bsi\b.*\b\w+(?:iera|ieras|ieran|iéramos|ara|aras|aran|áramos|iese|ase|uera|uviera)\b|\b\w+[aei]r[ií]a(?:n|s|mos)?\b.*\bsi\b",
    re.IGNORECASE,
)
_UNCERTAIN = re.compile(
    r"\b(?:might|maybe|perhaps|thinking (?:about|of)|thought about|wondering|could be|not sure|who knows|should (?:probably|really) (?:get|start|learn)|vielleicht|eventuell|überlege|womöglich|quizás?|tal vez|a lo mejor|estoy pensando|no sé si)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^(?P<label>[^\s:=][^:=\n]{0,58}?)\s*(?P<sign>[:=]|\s[–—-]\s|→|->)\s*(?P<value>\S.*)$",
    re.DOTALL,
)
_SARCASM = re.compile(
    r"^(?:great|oh great|wonderful|fantastic|lovely|perfect|brilliant|nice|awesome|oh good|oh joy|super|na super|na toll|toll|klasse|prima|wunderbar|herrlich|genial|perfecto|estupendo|qué bien|fantástico|maravilloso)\s*[,.!]+\s+\S"
    r"|\b(?:exactly|just) what (?:i|we) (?:needed|wanted|dreamed)\b|\bgenau das,? was (?:ich|wir)\b|\bjusto lo que\b|\bas if\b|\byeah,? right\b|\blove it when\b|\bas usual\b|\bals ob\b|\bcomo si\b",
    re.IGNORECASE,
)
_HERE_AND_NOW = re.compile(
    r"\b(?:just (?:had|got|saw|hung|woke|finished|did|made|ate|came|went|spilled|dropped)|right now|rn|today was|this morning was|long day|what a|so (?:tired|bored|hungry|good|bad|much fun|annoying|cute|weird|funny|many|cold|hot)|can['’]?t believe|can you believe|i swear|(?:no|any) (?:idea|clue)|cannot believe|(?:looks?|seems?|feels?|smells?|sounds?|tastes?)(?: (?:so|very|a bit|really))? \w+[.!]*$|someone|somebody|apparently"
    r"|gerade eben|so (?:müde|kaputt|ein tag|viel)|heute war|jemand|kann nicht glauben|unfassbar|keine ahnung|schon wieder|hab ich einen hunger"
    r"|acabo de|ni idea|qué (?:día|cansancio|sueño|hambre|calor|frío)|hoy ha sido|alguien|no me lo creo|no puedo creer|otra vez|estoy (?:muerto|muerta|hecho|hecha|agotad[oa]|cansad[oa]))\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"^(?:you (?:should|could|can|must|need to|have to|might want)|one should|people should|everyone should|never trust|always trust|du (?:solltest|könntest|musst)|man sollte|deberías|tienes que|hay que)\b",
    re.IGNORECASE,
)
_ON_QUOTE = re.compile(r"^\s*[\"“„«‘']\s*[^\"”“»]{12,}[\"”“»’']", re.DOTALL)
_PASTE_LINE = re.compile(
    r"^\s*(?:Traceback |File \"|at [\w.$]+\(|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S* +\[?[A-Z]{4,5}|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL)\b|>{1,3} |\$ \w|(?:From|To|Subject|Cc|Von|An|Betreff|De|Para|Asunto|Sent|Gesendet|Date): |-{3,}|#include|import \w+$|def \w+\(|class \w+|[{}\[\]();]+$|\w+ = \w+\(|<\/?\w+[^>]*>|diff --git|@@ |Exception in |Caused by:|error\[?|npm ERR|\w+Error: )"
)
_TITLED = re.compile(r"\b(?:dr|mr|mrs|ms|prof|frau|herr|señora?|sra?|doña)\b\.? \w+", re.IGNORECASE)
_SOMEWHERE = re.compile(
    r"\b(?:is|are|ist|sind|está|están)\s+(?:in|at|on|under|behind|with|im|in|am|auf|unter|hinter|bei|beim|en|bajo|detrás)\s",
    re.IGNORECASE,
)
_PARTING = re.compile(
    r"^(?:never ?mind\b|(?:see you|talk to you|bis|nos vemos|hasta|ya te)\b(?:\W+\w+){0,3}\W*$)",
    re.IGNORECASE,
)
_EXCLAIMS = re.compile(
    r"^(?:what an? |how (?!to|ever)\w+ |was für (?:ein|eine) |wie (?:schön|nett|süß|lustig)|qué (?!hay|tengo|es)\w+ )",
    re.IGNORECASE,
)
_LAUGHS = re.compile(r"\b(?:lol|lmao|ha(?:ha)+|jaja\w*)\b", re.IGNORECASE)
_LIKES = re.compile(
    r"\b(?:does|do)(?:n['’]?t| not) (?:like|want)\b|\b(?:likes|loves)\b", re.IGNORECASE
)
_WE = frozenset(["we", "wir", "nosotros", "nosotras"])
_ANYONE = w.listed("anyone")
_BODY = w.listed("body")
_WAS = w.word_set("was were war waren fue fueron era estuvo sido")
_HAS = w.word_set("has have hat haben tiene tienen")
_OWNS = w.word_set("have habe haben tengo tenemos don dont cant can")
_IN_PLACE = re.compile(
    r"\b(?:in|at|on|under|behind|near|next to|im|am|beim|unter|hinter|neben|auf|in|en|bajo|detrás de|junto a)\s"
    r"(?:(?:the|my|our|der|dem|den|die|das|unser\w+|mein\w+|el|la|los|las|mi|nuestr\w)\s)?(?!moment|mood|bed\b|time|end|way|augenblick|ernst)[\w-]{3,}",
    re.IGNORECASE,
)
_DOES = re.compile(
    r"^(?:(?:the|my|our|der|die|das|mein\w*|unser\w*|el|la|mi|nuestr\w+)\s)?[\w'’-]+\s(?:only\s|never\s|always\s|no\s|nur\s)?(?!is\b|was\b|has\b|this\b|his\b|its\b|als\b|das\b|ist\b|hat\b|nicht\b)\w{2,}(?:[^s\W]s|[^\Ws]t|[ae])\s\w",
    re.IGNORECASE,
)
_TODAY = re.compile(
    r"\b(?:today|tonight|yesterday|this (?:morning|afternoon|evening)|last night|again|already|almost|heute|gestern|gleich|gerade|wieder|schon|endlich|hoy|ayer|anoche|esta (?:mañana|tarde|noche)|otra vez|casi|menudo)\b",
    re.IGNORECASE,
)
_WEIGHTS = w.weights("weights")  # fitted by tests/benchmarks/worth.py
_NEGATED = frozenset(
    [
        "not",
        "no",
        "don't",
        "dont",
        "can't",
        "cant",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "nunca",
        "never",
        "nie",
    ]
)
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message: as it stands there, and read without its lead.

    `said` is the part that states something, word for word; `worth` counts for statements only.
    `bullets` are the items of a list that belong to it.
    """

    text: str
    said: str
    form: Form
    worth: float = 0.0
    bullets: tuple[str, ...] = ()
    start: int = 0
    end: int = 0

    @property
    def is_kept(self) -> bool:
        """True if it will matter next month."""
        if self.form in ("remember", "todo", "wish"):
            return True
        return self.form == "statement" and self.worth >= WORTH_KEEPING


def sentences(text: str) -> list[Sentence]:
    """Take a message apart and judge each sentence; a list stays with the line above it."""
    found: list[Sentence] = []
    offset = 0
    for line in text.split("\n"):
        start = offset
        offset += len(line) + 1
        if not line.strip():
            continue
        if _BULLET.match(line):
            item = line.strip()
            if found and (found[-1].bullets or found[-1].text.rstrip().endswith(":")):
                head = found[-1]
                found[-1] = Sentence(
                    head.text,
                    head.said,
                    "statement" if head.form in ("chat", "statement") else head.form,
                    max(head.worth, 0) + _item_worth(item),
                    (*head.bullets, item),
                    head.start,
                    start + len(line),
                )
                continue
            said = _BULLET.sub("", item)
            listed = _judged(said, start + line.index(said), start + len(line))
            if listed.form == "statement" or (listed.form == "command" and _in_list(text)):
                worth = _item_worth(item)
                found.append(
                    Sentence(said, "", "statement", worth, (item,), start, start + len(line))
                )
                continue
            found.append(_judged(said, start + line.index(said), start + len(line)))
            continue
        found += [
            _judged(line[first:last], start + first, start + last) for first, last in _cut(line)
        ]
    return found


def _in_list(text: str) -> bool:
    return sum(bool(_BULLET.match(line)) for line in text.split("\n")) > 1


def is_paste(text: str) -> bool:
    """True if a message is something copied: a trace, a log, code, a mail, a quotation."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    if text.lstrip().startswith("```"):
        return True
    marked = sum(bool(_PASTE_LINE.match(line)) for line in lines)
    if len(lines) > 1 and marked * 3 >= len(lines):
        return True
    if marked and lines[0].startswith(("Traceback", "Exception in")):
        return True
    quoted = _ON_QUOTE.match(text)
    if quoted and (
        quoted.end() >= len(text.strip()) * 0.5 or len(w.content(text[quoted.end() :])) <= _FEW
    ):
        return True
    return not w.content(_URL.sub(" ", text)) and bool(_URL.search(text))


def is_question(text: str) -> bool:
    """True if a sentence asks something, with its mark or without."""
    plain = _without_pictures(text)
    if re.search(r"[?]+[\s!?.\"')]*$", plain) or plain.lstrip().startswith("¿"):
        return True
    plain = _LEAD.sub("", plain.strip())
    if _ASKS_PLAINLY.match(plain):
        return True
    if _NOT_ASKED.match(plain):
        return False
    return _ASKS.match(plain) is not None and not plain.rstrip().endswith("!")


def is_chat(text: str) -> bool:
    """True if all that is said is a greeting, thanks, or a word of reaction."""
    told = [word.partition("'")[0] for word in w.words(_without_pictures(text))]
    return all(
        word in w.CHAT | w.CONJUNCTION or re.fullmatch(r"(?:ha|he|ja|je|lo|h|m|a|o)+[lhm]*", word)
        for word in told
    )


def label_of(text: str) -> tuple[str, str] | None:
    """Label and value of ``parking = lot C``, ``On-call rota: ...``; None where it isn't one."""
    match = _LABEL.match(text)
    if match is None:
        return None
    label = match["label"].strip()
    if not label or len(label.split()) > 6 or re.search(r"https?$|\d$", label):
        return None
    if match["sign"] == ":" and text[match.end("sign") : match.end("sign") + 1] not in (" ", "\n"):
        return None
    if match["sign"].strip() in ("-", "–", "—") and w.COPULA & set(w.words(label)):
        return None
    return label, match["value"].strip()


def without_lead(text: str) -> str:
    """A sentence without *by the way* and the like, and without pictures at its ends."""
    said = text.strip()
    said = re.sub(rf"^(?:\s|{_PICTURES.pattern})+|(?:\s|{_PICTURES.pattern})+$", "", said)
    lead = _LEAD.match(said)
    rest = said[lead.end() :] if lead else said
    return rest if w.content(rest) else said


def _cut(line: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(line):
        if _ABBREVIATED.search(line[start : match.start()]) and ";" not in match[0]:
            continue
        spans.append((start, match.start()))
        start = match.end()
    spans.append((start, len(line)))
    return [(first, last) for first, last in spans if line[first:last].strip()]


def _judged(text: str, start: int, end: int) -> Sentence:
    said = without_lead(text)
    form, said, worth = _form(text, said)
    place = text.find(said)
    if place >= 0:
        start, end = start + place, start + place + len(said)
    return Sentence(text, said, form, worth, (), start, end)


def _form(text: str, said: str) -> tuple[Form, str, float]:  # noqa: PLR0911 - a form each
    if _TODO.match(said) and not is_question(text):
        return "todo", said, 2.0
    remember = _REMEMBER.match(said)
    if remember and not _NOT_TO_REMEMBER.match(remember["what"]):
        if re.search(r"\?\s*$", said) and not re.match(
            r"(?:can|could|kannst|puedes)", said, re.IGNORECASE
        ):
            return "question", said, 0.0
        return "remember", remember["what"].strip(), 2.0
    if any(_HYPOTHETICAL.match(each) for each in (said, text.strip())) or _UNREAL.search(said):
        return "hypothetical", said, 0.0
    if is_question(text):
        return "question", said, 0.0
    if is_chat(said) or _PARTING.match(said):
        return "chat", said, 0.0
    if _is_wish(said):
        return "wish", said, 2.0
    if _SET_RIGHT.match(said) and w.values(said):
        return "statement", said, worth_of(text, said)
    if _COMMAND.match(said) or (_COMMAND_LAST.search(said) and not w.values(said)):
        return "command", said, 0.0
    return "statement", said, worth_of(text, said)


def _is_wish(said: str) -> bool:
    """True if it asks for something to be so from now on: "keep answers under 5 lines"."""
    if _WISH_ABOUT.search(said) and len(said.split()) < 16:
        return True
    if _POLITE.search(said) and _ALWAYS.search(said):
        return True
    return (
        bool(_WISH.match(said) and _STANDING.search(said))
        and w.words(said)[0] not in w.FIRST_PERSON
    )


def _acts(said: str, bare: Sequence[str]) -> bool:
    """True if a Spanish sentence begins with a verb in the first person: *tomo*, *hemos*."""
    return w.language(said) == "es" and bool(re.fullmatch(r"\w{2,}(?:o|[aei]mos)", bare[0]))


def _item_worth(item: str) -> float:
    return 0.6 + 0.4 * bool(w.values(item)) + 0.4 * (label_of(_BULLET.sub("", item)) is not None)


def worth_of(text: str, said: str) -> float:
    """How likely a statement is to matter next month, by what it holds: the sum of its signs."""
    shown = [char for char in said if not char.isspace()]
    if 2 * sum(map(str.isalnum, shown)) < len(shown):
        return -1.0
    signs = signs_of(text, said)
    return round(sum(_WEIGHTS[sign] * much for sign, much in signs.items()), 2) if signs else 0.0


_BY_PATTERN = {
    "where": _IN_PLACE.search,
    "does": _DOES.match,
    "ruled out": _RULED_OUT.match,
    "standing": _STANDING.search,
    "now": _HERE_AND_NOW.search,
    "today": _TODAY.search,
    "exclaims": _EXCLAIMS.match,
    "sarcasm": _SARCASM.search,
    "uncertain": _UNCERTAIN.search,
    "advice": _ADVICE.match,
}


def signs_of(text: str, said: str) -> dict[str, float]:
    """What of a statement speaks for keeping it, or against, and how much of it there is."""
    told = w.words(said)
    if not told:
        return {}
    plain = _without_pictures(said)
    kinds = {value.kind for value in w.values(plain)}
    telling = [word for word in told if w.is_content(word)]
    bare = [word.partition("'")[0] for word in told]
    here = set(bare)
    code = w.language(said)
    durable = bool(here & w.DURABLE) or _LIKES.search(said) is not None
    mine = bool(w.FIRST_PERSON & set(bare[:2]) or _acts(said, bare)) and len(telling) > 1
    pronouns = w.pronouns(said)
    typed = re.match(_WERE, said, re.IGNORECASE) is not None
    copula = bool(w.COPULA & set(bare[1:])) and bare[0] not in pronouns | {"there", "es", "hay"}
    names = min(2, len(list(w.names(plain))))
    laughs = _PICTURES.search(text) or _LAUGHS.search(text)
    signs: dict[str, float | bool] = {
        "any": True,
        **{sign: bool(finds(said)) for sign, finds in _BY_PATTERN.items()},
        "exact": bool(kinds & {"date", "weekday", "time", "money", "month", "percent", "id"}),
        "number": bool(kinds & {"number", "day", "code", "room"}),
        "names": names * (code != "de"),
        "nouns": names * (code == "de"),
        "named": _named_subject(plain),
        "durable": durable,
        "copula": copula,
        "placed": copula and bool(_SOMEWHERE.search(said)),
        "relation": bool(w.RELATION & here),
        "mine durable": bool(w.FIRST_PERSON & set(bare[:3]) and (durable or _OWNS & here)),
        "mine": mine,
        "mine not": mine and bool(_NEGATED & here),
        "not": bool(_NEGATED & here),
        "we": bare[0] in _WE
        or typed
        or (code == "es" and bool(re.fullmatch(r"\w+[aei]mos", bare[0]))),
        "has": bool(_HAS & set(bare[1:5])) and bare[0] not in w.FIRST_PERSON | pronouns,
        "thing": bare[0] in w.ARTICLE - w.PRONOUN and len(bare) > 2,
        "did": bool(_DID.match(said) and len(telling) > 1),
        "label": label_of(plain) is not None,
        "three": len(telling) >= 3,
        "six": len(telling) >= 6,
        "titled": bool(_TITLED.search(plain)),
        "cries": bare[0] in w.INTERJECTION or fold(text.strip()).startswith(("omg", "lol", "ugh")),
        "laughs": bool(laughs) and not kinds,
        "mood": min(2, len(w.EMOTIVE & here)) * (not durable or not kinds),
        "anyone": bool(_ANYONE & set(bare[:4])),
        "body": bool(_BODY & here) and not durable,
        "was": bool(_WAS & here) and not typed,
        "you": bare[0] in w.SECOND_PERSON or bool({"your", "you"} & set(bare[:3])),
        "pronoun": bare[0] in pronouns | {"there"} and not (durable or kinds),
        "bang": said.rstrip().endswith("!") and not kinds,
        "short": len(telling) < 2,
    }
    return {sign: float(much) for sign, much in signs.items() if much}


def _named_subject(text: str) -> bool:
    """True if it begins with a name and a verb, "&" or a comma behind it."""
    match = re.match(
        r"(?:Dr\.?|Mr\.?|Mrs\.?|Ms\.?|Prof\.?|Frau|Herr|Señora?|Sra?\.|Doña|Don)?\s*(?P<name>[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+)(?:\s+[A-ZÄÖÜ][\w'’-]+)*\s+(?P<next>\w+|[&+=,])",
        text,
    )
    if match is None or fold(match["name"]) in w.FUNCTION | w.CHAT | w.EMOTIVE:
        return False
    following = fold(match["next"])
    return following in w.DURABLE | w.COPULA | {
        "has",
        "hat",
        "tiene",
        "&",
        "+",
        "=",
        "and",
        "und",
        "y",
        "said",
        "wants",
        "can",
        "cannot",
        "got",
        "will",
        "does",
        "doesn",
        "isn",
    }


def _without_pictures(text: str) -> str:
    return _PICTURES.sub(" ", text).strip()


def joined(parts: Sequence[str]) -> str:
    """Parts of a message as one line."""
    return " ".join(" ".join(part.split()) for part in parts)
