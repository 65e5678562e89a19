"""How the offline model makes memory of a conversation: by explicit patterns, never by guessing.

What the user stated becomes facts and entries, and the first sentences of what was said become the
history entry (design 10, 23). The same conversation always gives the same answer. English only.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from kbtui.errors import ModelAnswerError
from kbtui.models.digest import digest
from kbtui.models.offline_patterns import Note, clauses, is_question, understand
from kbtui.models.transcript import CONVERSATION, Said, conversation_in
from kbtui.text import fold, shorten, slugify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kbtui.models.port import Message

FLUSH = "You are a memory extraction agent."
SILENT = "[silent]"
_MEMORY = "## Current Long-term Memory"
_IN_FILE = "## Already in the File"
_MOST_SENTENCES = 10
_SENTENCE_WIDTH = 160
# With MEMORY.md and the entries this stays below 40 % of the conversation.
_DIGEST_SHARE = 0.28
_SLUG_WIDTH = 40
_SLUG_WORDS = 5
_MY = re.compile(r"^My (?P<what>.+?) (?:is|are|was|were)$", re.IGNORECASE)
_ABOUT_ME = re.compile(r"^(?:Where|What) I \w+$")
_I = re.compile(r"^I (?:really |always |usually |generally |mostly |still )*", re.IGNORECASE)
_THIRD = {
    "don't like": "doesn't like",
    "do not like": "does not like",
    "never use": "never uses",
    "study": "studies",
    "teach": "teaches",
}
_KEYED = re.compile(r"^[-*\s]*(?P<key>[^:\n]{2,60}): +(?P<value>\S.*)$")
_LIST = re.compile(r",?\s+and\s+|,\s+")
_TODO = re.compile(
    r"^(?:i|we) (?:need to|have to|must|should|will have to) .+|^(?:todo|to do|action item)\b.+"
    r"|^remind me (?:to|about) .+",
    re.IGNORECASE,
)
_COMMON_WORDS = (
    "a an and are as at be can could did do does for from had has have hello hey hi how i if in"
    " is it its know let like make me my need of on or our please so tell thanks that the their"
    " them there these they this to us want was we what when where which who why will with"
    " would you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())


def fill_in(tool: str, messages: Sequence[Message]) -> str:
    """The arguments of a forced tool, as JSON.

    Raises:
        ModelAnswerError: a tool that takes a real model.
    """
    said = _conversation(messages)
    if tool == "save_memory":
        return _json(_extraction(said, messages[-1].content))
    if tool == "create_session_memory":
        return _json(_session_memory(said))
    raise ModelAnswerError(f"The offline model can't fill in {tool}.", "Add a model with `/model`.")


def wants_notes(messages: Sequence[Message]) -> bool:
    """Whether a prompt asks for the notes of the day."""
    return bool(messages) and messages[0].content.startswith(FLUSH)


def notes_of_the_day(messages: Sequence[Message]) -> str:
    """What is worth keeping of a conversation, as bullets that the file doesn't have yet."""
    said = _conversation(messages)
    known = fold(_section(messages[-1].content, _IN_FILE))
    lines = [_statement(note) for note in _notes(said)]
    lines += [
        clause.rstrip(".!")
        for each in said
        if each.role == "user"
        for clause in clauses(each.text)
        if _TODO.match(clause) and not is_question(clause)
    ]
    fresh = [line for line in dict.fromkeys(lines) if fold(line) not in known]
    return "\n".join(f"- {line}" for line in fresh) or SILENT


def _extraction(said: Sequence[Said], prompt: str) -> dict[str, Any]:
    notes = _notes(said)
    known = _keyed_lines(_section(prompt, _MEMORY))
    facts: list[str] = []
    corrections: list[dict[str, str]] = []
    for fact in dict.fromkeys(_fact(note) for note in notes if note.type != "person"):
        old = known.get(_key(fact))
        if old is None:
            facts.append(fact)
        elif fold(old) != fold(fact):
            corrections.append({"old": old, "new": fact})
    return {
        "history_entry": _history(said, facts + [each["new"] for each in corrections]),
        "memory_update": {"facts": facts, "corrections": corrections},
        "knowledge_entries": _entries(notes),
    }


def _session_memory(said: Sequence[Said]) -> dict[str, Any]:
    kept = [_statement(note) for note in _notes(said)]
    parts = [_history(said, [])]
    if kept:
        parts.append("\n".join(f"- {line}" for line in dict.fromkeys(kept)))
    return {"slug": _slug(said), "summary": "\n\n".join(parts)}


def _notes(said: Sequence[Said]) -> list[Note]:
    """What the user stated, each thing once; of two values for the same the later one."""
    found: dict[tuple[str, str, str], Note] = {}
    asked = ""
    for each in said:
        if each.role != "user":
            # A question of the assistant can be answered as well as one's own.
            turned = _turned(each.text)
            asked = turned or asked
            continue
        understood = understand(each.text, asked)
        for note in understood.notes:
            value_of = (note.type, fold(note.title), fold(note.key))
            statement = (note.type, fold(note.title), fold(note.line))
            key = value_of if note.key else statement
            found.pop(key, None)
            found[key] = note
        asked = understood.question
    return list(found.values())


def _turned(text: str) -> str:
    """The last question of the assistant as the user would ask it: "your" is "my"."""
    questions = [clause for clause in clauses(text) if clause.endswith("?")]
    if not questions or not re.search(r"\byour\b|\bdo you\b", questions[-1], re.IGNORECASE):
        return ""
    turned = re.sub(r"\byour\b", "my", questions[-1], flags=re.IGNORECASE)
    return re.sub(r"\bdo you\b", "do I", turned, flags=re.IGNORECASE)


def _fact(note: Note) -> str:
    """A note as a short line about the user: ``Favorite color: blue``, ``Prefers dark mode``."""
    line = note.line.strip().lstrip("- ").rstrip(".")
    if note.key and line.lower().startswith(note.key.lower()):
        value = _listed(line[len(note.key) :].strip())
        if mine := _MY.match(note.key):
            return f"{_capital(mine['what'])}: {value}"
        if not _ABOUT_ME.match(note.title):
            return f"{note.title}: {value}"
    return _third_person(line)


def _third_person(line: str) -> str:
    """``I prefer tea`` is ``Prefers tea``; what isn't about the user stays as it was said."""
    match = _I.match(line)
    if match is None:
        return line
    rest = line[match.end() :]
    for verb, other in _THIRD.items():
        if rest.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").startswith(f"{verb} "):
            return _capital(other + rest[len(verb) :])
    verb, blank, what = rest.partition(" ")
    return _capital(f"{verb}s{blank}{what}")


def _statement(note: Note) -> str:
    """A note as a line that can be read on its own."""
    if note.type == "person":
        return f"{note.title}: {note.line.strip().lstrip('- ').rstrip('.')}"
    return _fact(note)


def _entries(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """One entry for each subject, whatever number of notes are about it."""
    subjects: dict[tuple[str, str], list[Note]] = {}
    for note in notes:
        subjects.setdefault((note.type, fold(note.title)), []).append(note)
    return [_entry(about) for about in subjects.values()]


def _entry(notes: Sequence[Note]) -> dict[str, Any]:
    sections: dict[str, list[str]] = {}
    for note in notes:
        for name, text in note.sections.items():
            sections.setdefault(name, []).append(text)
    lead = sections.pop("", [])
    parts = ["\n\n".join(dict.fromkeys(lead))] if lead else []
    parts += [f"## {name}\n" + "\n".join(dict.fromkeys(told)) for name, told in sections.items()]
    return {
        "type": notes[0].type,
        "title": notes[0].title,
        "summary": notes[0].summary,
        "body": "\n\n".join(parts),
        "tags": [],
        "related": [note.about for note in notes if note.about],
    }


def _history(said: Sequence[Said], facts: Sequence[str]) -> str:
    """What was said in its own words: of little the first sentences, of much a digest."""
    speaker = "user" if any(each.role == "user" and each.text for each in said) else "assistant"
    lead = list(_leads(each.text for each in said if each.role == speaker))
    if len(lead) > _MOST_SENTENCES:
        return _digest(said, facts)
    told = f"The {speaker} said: {' '.join(lead)}"
    return f"{told} Noted: {'; '.join(facts)}." if facts else told


def _digest(said: Sequence[Said], facts: Sequence[str]) -> str:
    budget = int(sum(len(each.text) for each in said) * _DIGEST_SHARE)
    lines = [f"- {_capital(each.role)}: {text}" for each, text in digest(said, budget)]
    return "\n".join([*lines, *(f"- Noted: {fact}" for fact in facts)])


def _leads(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        first = next(iter(clauses(text)), "")
        line = shorten(first, _SENTENCE_WIDTH)
        if line:
            yield line if line[-1] in ".!?:…" else f"{line}."


def _slug(said: Sequence[Said]) -> str:
    """A file name out of the first words that tell something."""
    for each in said:
        words = [
            word for word in slugify(each.text).split("-") if len(word) > 1 and word not in _COMMON
        ]
        if each.role == "user" and len(words) > 1:
            return slugify(" ".join(words[:_SLUG_WORDS]), _SLUG_WIDTH)
    return "conversation"


def _keyed_lines(memory: str) -> Mapping[str, str]:
    """The lines of the memory that give a value to a name; what stands there twice is left out."""
    found: dict[str, list[str]] = {}
    for line in memory.splitlines():
        if _KEYED.match(line):
            found.setdefault(_key(line), []).append(line.strip().lstrip("-* "))
    return {key: lines[0] for key, lines in found.items() if len(lines) == 1}


def _key(line: str) -> str:
    match = _KEYED.match(line)
    return fold(match["key"].strip()) if match else fold(line)


def _listed(value: str) -> str:
    """``Python, JavaScript, and Go`` as a list without the *and*; anything else as it is."""
    return ", ".join(_LIST.split(value)) if "," in value else value


def _section(prompt: str, heading: str) -> str:
    """What stands below a heading of the prompt, up to the next one."""
    before, _, _ = prompt.partition(f"\n{CONVERSATION}\n")
    _, found, rest = before.partition(heading)
    return (
        re.split(r"^## ", rest.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        if found
        else ""
    )


def _conversation(messages: Sequence[Message]) -> list[Said]:
    prompt = next((each.content for each in messages if CONVERSATION in each.content), "")
    return conversation_in(prompt)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
