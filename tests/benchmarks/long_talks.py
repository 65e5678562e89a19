"""One long conversation in the form of each program, for what an import keeps of it."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from tests.benchmarks.exports import ENDS, TIME, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BEGUN = 1_772_000_000
_A_DAY = 2_000  # messages
_TRIED = 100  # messages, by which the size of one is told
_LAST = "LAST"  # stands for the id of the last message
_Write: TypeAlias = "Callable[[Path, Iterator[str]], None]"


def write_talk(program: str, place: Path, megabytes: float, characters: int) -> Path:
    """Write one conversation of so many megabytes, with messages of so many characters.

    Returns the export, which is in the folder `place`: a file or a folder.
    """
    export = place / f"{characters}" / (program.replace(" ", "-") + SUFFIXES.get(program, ".json"))
    export.parent.mkdir(parents=True, exist_ok=True)
    write = TALKS[program]
    write(export, _texts(_TRIED, characters))
    size = sum(each.stat().st_size for each in (export, *export.rglob("*")) if each.is_file())
    if export.is_dir():
        shutil.rmtree(export)
    else:
        export.unlink()
    write(export, _texts(round(megabytes * 1_000_000 * _TRIED / size), characters))
    return export


def _texts(many: int, characters: int) -> Iterator[str]:
    """Yield texts, each its own and with an emoji, which widens what Python keeps."""
    chance = random.Random(3)
    words = [" ".join(chance.choices(WORDS, k=characters // 5)) for _ in range(500)]
    for number in range(many):
        yield f"{number} {chance.choice(words)}"[: characters - 2] + ENDS[-1]


def _id(number: int) -> str:
    return f"00000000-{number:06x}00-4000-8000-00000000000a"


def _role(number: int) -> str:
    return "user" if number % 2 else "assistant"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(head: str, made: Callable[[int, str], object], tail: str, *, ids: bool = False) -> _Write:
    """Return what writes messages between two parts of a file, with commas, or by their `ids`."""

    def write(place: Path, said: Iterator[str]) -> None:
        with place.open("w", encoding="utf-8") as out:
            out.write(head)
            number = 0
            for number, text in enumerate(said, 1):
                name = f"{_line(_id(number))}:" if ids else ""
                out.write(f"{',' if number > 1 else ''}{name}{_line(made(number, text))}")
            out.write(tail.replace(_LAST, _id(number)))

    return write


def _text(head: str, made: Callable[[int, str], str]) -> _Write:
    """Return what writes a text of messages."""

    def write(place: Path, said: Iterator[str]) -> None:
        with place.open("w", encoding="utf-8") as out:
            out.write(head)
            out.writelines(made(number, text) for number, text in enumerate(said, 1))

    return write


def _log(first: object, made: Callable[[int, str], object]) -> _Write:
    head = f"{_line(first)}\n" if first else ""
    return _text(head, lambda number, text: f"{_line(made(number, text))}\n")


def _claude(number: int, text: str) -> object:
    return {
        "uuid": _id(number),
        "text": text,
        "content": [],
        "sender": "human" if number % 2 else "assistant",
        "created_at": TIME,
        "updated_at": TIME,
        "attachments": [],
        "files": [],
        "parent_message_uuid": _id(number - 1),
    }


def _chatgpt(number: int, text: str) -> object:
    message = {
        "id": _id(number),
        "author": {"role": _role(number), "name": None, "metadata": {}},
        "create_time": _BEGUN + number,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "metadata": {"parent_id": _id(number - 1), "model_slug": "gpt"},
        "recipient": "all",
    }
    beside = {"parent": _id(number - 1), "children": [_id(number + 1)]}
    return {"id": _id(number), "message": message, **beside}


def _deepseek(number: int, text: str) -> object:
    kind = "REQUEST" if number % 2 else "RESPONSE"
    said = {"inserted_at": TIME, "files": [], "fragments": [{"type": kind, "content": text}]}
    above = _id(number - 1) if number > 1 else None
    return {"id": _id(number), "parent": above, "children": [_id(number + 1)], "message": said}


def _open_webui(number: int, text: str) -> object:
    return {
        "id": _id(number),
        "parentId": _id(number - 1) if number > 1 else None,
        "childrenIds": [_id(number + 1)],
        "role": _role(number),
        "content": text,
        "timestamp": _BEGUN + number,
    }


def _librechat(number: int, text: str) -> object:
    return {
        "messageId": _id(number),
        "parentMessageId": _id(number - 1) if number > 1 else _id(0),
        "text": text,
        "isCreatedByUser": number % 2 == 1,
        "sender": "User" if number % 2 else "GPT",
        "createdAt": TIME,
    }


def _grok(number: int, text: str) -> object:
    said = {"_id": _id(number), "sender": "human" if number % 2 else "ASSISTANT", "message": text}
    above = {"parent_response_id": _id(number - 1)} if number > 1 else {}
    return {"response": {**said, "create_time": TIME, **above}}


def _claude_code(number: int, text: str) -> object:
    content = text if number % 2 else [{"type": "text", "text": text}]
    named = {} if number % 2 else {"id": f"msg_{number}"}
    return {
        "type": _role(number),
        "uuid": _id(number),
        "parentUuid": _id(number - 1) if number > 1 else None,
        "sessionId": _id(0),
        "timestamp": TIME,
        "isSidechain": False,
        "version": "2.0",
        "message": {"role": _role(number), "content": content, **named},
    }


def _codex(number: int, text: str) -> object:
    part = {"type": "input_text" if number % 2 else "output_text", "text": text}
    payload = {"type": "message", "role": _role(number), "content": [part]}
    return {"timestamp": TIME, "type": "response_item", "payload": payload}


def _cursor_agent(number: int, text: str) -> object:
    return {"role": _role(number), "message": {"content": [{"type": "text", "text": text}]}}


def _gemini_cli(number: int, text: str) -> object:
    kind = "user" if number % 2 else "gemini"
    return {"id": _id(number), "timestamp": TIME, "type": kind, "content": text}


def _continue(number: int, text: str) -> object:
    return {"message": {"role": _role(number), "content": text}, "contextItems": []}


def _gemini(number: int, text: str) -> object:
    return {
        "header": "Gemini Apps",
        "title": f"Prompted question {number}",
        "time": f"2026-03-05T09:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "products": ["Gemini Apps"],
        "safeHtmlItem": [{"html": f"<p>{text}</p>"}],
    }


def _telegram(number: int, text: str) -> object:
    return {
        "id": number,
        "type": "message",
        "date": "2026-03-05T09:00:00",
        "date_unixtime": str(_BEGUN + number),
        "from": "Ann" if number % 2 else "Bob",
        "from_id": f"user{number % 2}",
        "text": text,
        "text_entities": [],
    }


def _whatsapp(number: int, text: str) -> str:
    when = f"05/03/2026, 09:{number // 60 % 60:02d}:{number % 60:02d}"
    return f"[{when}] {'Ann' if number % 2 else 'Bob'}: {text}\n"


def _slack(number: int, text: str) -> object:
    stamp = f"{_BEGUN + number * 5}.{number % 1000:03d}00"
    return {"type": "message", "user": f"U{1 + number % 2}", "ts": stamp, "text": text}


def _write_slack(place: Path, said: Iterator[str]) -> None:
    """Write a folder with a channel, all of a month."""
    (place / "general").mkdir(parents=True)
    people = [{"id": f"U{n}", "name": name} for n, name in enumerate(("ann", "bob"), 1)]
    (place / "users.json").write_text(_line(people), "utf-8")
    (place / "channels.json").write_text(_line([{"id": "C1", "name": "general"}]), "utf-8")
    messages = (_slack(number, text) for number, text in enumerate(said, 1))
    day = 0
    while some := [*islice(messages, _A_DAY)]:
        name = f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}.json"
        (place / "general" / name).write_text(_line(some), "utf-8")
        day += 1


def _write_transcript(place: Path, said: Iterator[str]) -> None:
    folder = place / "agent-transcripts"
    folder.mkdir(parents=True)
    made = _text("", lambda number, text: f"{_role(number)}:\n{text}\n")
    made(folder / "a.txt", said)


def _kbtui(number: int, text: str) -> object:
    return {"id": number, "time": TIME, "role": _role(number), "text": text}


def _sharegpt(number: int, text: str) -> object:
    return {"from": "human" if number % 2 else "gpt", "value": text}


def _nanobot(number: int, text: str) -> object:
    return {"role": _role(number), "content": text, "timestamp": "2026-03-05T09:00:00"}


def _write_cursor(place: Path, said: Iterator[str]) -> None:
    """Write a database with a conversation whose messages have a row each."""
    with closing(sqlite3.connect(place)) as database, database:
        database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        headers = []
        for number, text in enumerate(said, 1):
            kind = 1 if number % 2 else 2
            bubble = _line({"bubbleId": _id(number), "type": kind, "text": text})
            database.execute(
                "INSERT INTO cursorDiskKV VALUES (?, ?)", (f"bubbleId:c1:{_id(number)}", bubble)
            )
            headers.append({"bubbleId": _id(number), "type": kind})
        talk = {"composerId": "c1", "name": "Long", "fullConversationHeadersOnly": headers}
        database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", ("composerData:c1", _line(talk)))


def _write_gemini_page(place: Path, said: Iterator[str]) -> None:
    with place.open("w", encoding="utf-8") as out:
        out.write('<html><body><div class="mdl-grid">')
        for number, text in enumerate(said, 1):
            when = f"Mar 5, 2026, 9:{number // 60 % 60:02d}:{number % 60:02d} AM UTC"
            out.write(
                '<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell">'
                '<p class="mdl-typography--title">Gemini Apps<br></p></div><div class="content-cell '
                f'mdl-typography--body-1">Prompted question {number}<br>{when}<br><p>{text}</p>'
                '</div><div class="content-cell mdl-typography--caption"></div></div></div>'
            )
        out.write("</div></body></html>")


def _aider(number: int, text: str) -> str:
    return f"#### {text}\n\n" if number % 2 else f"{text}\n\n"


_ABOUT = '"id":"c1","title":"Long","created_at":1772000000,"updated_at":1772000000'
TALKS: dict[str, _Write] = {
    "Claude.ai": _json(
        f'[{{"uuid":"c1","name":"Long","created_at":"{TIME}","chat_messages":[', _claude, "]}]"
    ),
    "ChatGPT": _json(
        '[{"title":"Long","create_time":1772000000,"mapping":{',
        _chatgpt,
        f'}},"current_node":"{_LAST}"}}]',
        ids=True,
    ),
    "Open WebUI": _json(
        f'[{{{_ABOUT},"user_id":"u","chat":{{"history":{{"messages":{{',
        _open_webui,
        f'}},"currentId":"{_LAST}"}}}}}}]',
        ids=True,
    ),
    "LibreChat": _json(
        '{"conversationId":"c1","title":"Long","endpoint":"openAI","messages":[', _librechat, "]}"
    ),
    "DeepSeek": _json(
        f'[{{"id":"c1","title":"Long","inserted_at":"{TIME}","mapping":{{',
        _deepseek,
        "}}]",
        ids=True,
    ),
    "Grok": _json(
        '{"conversations":[{"conversation":{"id":"c1","title":"Long"},"responses":[', _grok, "]}]}"
    ),
    "Claude Code": _log(None, _claude_code),
    "Codex": _log({"timestamp": TIME, "type": "session_meta", "payload": {"id": _id(0)}}, _codex),
    "Cursor": _write_cursor,
    "Cursor, transcript": _log(None, _cursor_agent),
    "Cursor, old transcript": _write_transcript,
    "Gemini CLI": _json('{"sessionId":"s1","projectHash":"p","messages":[', _gemini_cli, "]}"),
    "Gemini CLI, lines": _log({"sessionId": "s1", "projectHash": "p"}, _gemini_cli),
    "Continue": _json(
        '{"sessionId":"s1","title":"Long","workspaceDirectory":"x","history":[', _continue, "]}"
    ),
    "aider": _text("# aider chat started at 2026-03-05 09:00:00\n\n", _aider),
    "Gemini": _json("[", _gemini, "]"),
    "Gemini, page": _write_gemini_page,
    "Telegram": _json('{"name":"Bob","type":"personal_chat","id":5,"messages":[', _telegram, "]}"),
    "Slack": _write_slack,
    "WhatsApp": _text("", _whatsapp),
    "kbtui": _json(
        '{"format":1,"id":"s1","channel":"chat","title":"Long","messages":[', _kbtui, "]}"
    ),
    "nanobot": _log({"_type": "metadata", "created_at": "2026-03-05T09:00:00"}, _nanobot),
    "ShareGPT": _json('[{"id":"c1","conversations":[', _sharegpt, "]}]"),
}
"""What writes one conversation, by the name of the program."""
SUFFIXES = {
    "Slack": "",
    "Cursor, old transcript": "",
    "Cursor": ".vscdb",
    "aider": ".md",
    "WhatsApp": ".txt",
    "Gemini, page": ".html",
    "Claude Code": ".jsonl",
    "Codex": ".jsonl",
    "Cursor, transcript": ".jsonl",
    "Gemini CLI, lines": ".jsonl",
    "nanobot": ".jsonl",
}
"""Of the files that aren't ``.json``."""
