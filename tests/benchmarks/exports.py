"""Made exports and notes of any size, for what brings them in."""

from __future__ import annotations

import json
import random
from io import TextIOWrapper
from itertools import count
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WORDS = (
    "garden",
    "kitchen",
    "invoice",
    "meeting",
    "berlin",
    "recipe",
    "python",
    "database",
    "solar",
    "panel",
    "train",
    "holiday",
    "budget",
    "doctor",
    "guitar",
    "lesson",
    "window",
    "paint",
    "winter",
    "summer",
    "coffee",
    "roast",
    "bicycle",
    "repair",
    "answer",
)
ENDS = ("", " ü", ", as it is.", " 🙂")
TIME = "2026-03-05T09:00:00.000000Z"
_ROOT = "00000000-0000-4000-8000-000000000000"


def write_claude(file: Path, megabytes: float) -> None:
    """Write an export of Claude.ai of conversations of all lengths."""
    with file.open("w", encoding="utf-8") as out:
        _write_list(out, megabytes, _claude)


def write_emoji(file: Path, megabytes: float, words: int, *, twice: bool) -> None:
    """Write three conversations of Claude.ai of so many megabytes, with an emoji in each message.

    Its `words` are in one notation, or `twice`: in two.
    """
    chance = random.Random(3)
    with file.open("w", encoding="utf-8") as out:
        for number in range(3):
            talk = {**_claude(number, ["Emoji"]), "chat_messages": []}
            size = out.write(("," if number else "[") + json.dumps(talk)[:-2])
            for n in count(1):
                text = f"{number}.{n} {' '.join(chance.choices(WORDS, k=words))}{ENDS[-1]}"
                message = _message(number, n, text) | ({} if twice else {"text": ""})
                line = json.dumps(message, ensure_ascii=False)
                size += out.write(line if n == 1 else f",{line}")
                if size >= megabytes * 1_000_000:
                    break
            out.write("]}")
        out.write("]")


def write_chatgpt(file: Path, megabytes: float) -> None:
    """Write an export of ChatGPT: a zip whose only member has as many megabytes."""
    with (
        ZipFile(file, "w", ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("conversations.json", "w", force_zip64=True) as member,
    ):
        _write_list(TextIOWrapper(member, "utf-8"), megabytes, _chatgpt)


def _write_list(
    out: IO[str], megabytes: float, made: Callable[[int, list[str]], dict[str, Any]]
) -> None:
    size = out.write("[")
    for number, texts in enumerate(_talks()):
        if size >= megabytes * 1_000_000:
            break
        line = json.dumps(made(number, texts), ensure_ascii=False)
        size += out.write(f",{line}" if number else line)
    out.write("]")
    out.flush()


def _talks() -> Iterator[list[str]]:
    """Texts of conversations, for ever, with an emoji or an umlaut in some; none comes twice."""
    chance = random.Random(11)
    asked, told = (
        [" ".join(chance.choices(WORDS, k=chance.randrange(*span))) + end for end in ENDS * 500]
        for span in ((4, 60), (30, 350))
    )
    for number in count():
        many = range(chance.choice((2, 4, 10, 60)))
        yield [f"{number}.{n} {chance.choice(told if n % 2 else asked)}" for n in many]


def _claude(number: int, texts: list[str]) -> dict[str, Any]:
    id_ = _id(number, 0)
    return {
        "uuid": id_,
        "name": texts[0][:40],
        "summary": "",
        "created_at": TIME,
        "updated_at": TIME,
        "account": {"uuid": id_},
        "chat_messages": [_message(number, n, text) for n, text in enumerate(texts, 1)],
    }


def _chatgpt(number: int, texts: list[str]) -> dict[str, Any]:
    ids = [_id(number, n) for n in range(len(texts) + 1)]
    nodes: dict[str, Any] = {ids[0]: {"id": ids[0], "message": None, "children": ids[1:2]}}
    for n, text in enumerate(texts, 1):
        message = {
            "id": ids[n],
            "author": {"role": "user" if n % 2 else "assistant", "name": None, "metadata": {}},
            "create_time": 1_772_000_000 + number * 100 + n,
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "weight": 1.0,
            "metadata": {"parent_id": ids[n - 1], "model_slug": "gpt"},
            "recipient": "all",
        }
        above = {"parent": ids[n - 1], "children": ids[n + 1 : n + 2]}
        nodes[ids[n]] = {"id": ids[n], "message": message, **above}
    return {
        "title": texts[0][:40],
        "create_time": 1_772_000_000 + number * 100,
        "update_time": 1_772_000_000 + number * 100 + len(texts),
        "mapping": nodes,
        "current_node": ids[-1],
        "conversation_id": ids[0],
    }


def write_notes(folder: Path, notes: int, times: int = 1) -> None:
    """Write a folder of Markdown notes of some 3 kB times `times`, each linked with the last."""
    chance = random.Random(5)
    folder.mkdir()
    for number in range(notes):
        sizes = (150 * times, 30 * times, 250 * times)
        parts = (" ".join(chance.choices(WORDS, k=many)) for many in sizes)
        text = f"\n\n- [[Note {number - 1}]]\n\n".join(parts)
        (folder / f"Note {number}.md").write_text(f"# Note {number}\n\n{text}\n", "utf-8")


def write_gemini(file: Path, megabytes: float) -> None:
    """Write a list of Gemini's activities, each answer HTML of a model's usual marks."""
    pages = _pages(random.Random(9))
    with file.open("w", encoding="utf-8") as out:
        out.write("[")
        number = 0
        while out.tell() < megabytes * 1_000_000:
            html, said = next(pages), " ".join(WORDS[number % 9 : number % 9 + 9])
            act = {
                "header": "Gemini Apps",
                "title": f"Prompted {said}",
                "time": f"2026-03-{1 + number % 28:02d}T09:{number % 60:02d}:00.000Z",
                "products": ["Gemini Apps"],
                "safeHtmlItem": [{"html": html}],
            }
            out.write(("," if number else "") + json.dumps(act, ensure_ascii=False))
            number += 1
        out.write("]")


def write_pages(folder: Path, megabytes: float) -> None:
    """Write a folder of web pages, as a program for notes exports them."""
    folder.mkdir()
    size = 0
    for number, html in enumerate(_pages(random.Random(10))):
        page = f"<html><head><title>Page {number}</title></head><body>{html}</body></html>"
        size += (folder / f"Page {number}.html").write_text(page, "utf-8")
        if size >= megabytes * 1_000_000:
            return


def _pages(chance: random.Random) -> Iterator[str]:
    """HTML of headings, paragraphs, lists, tables and code, for ever."""

    def words(many: int) -> str:
        return " ".join(chance.choices(WORDS, k=many))

    while True:
        items = "".join(f"<li><p>{words(9)} <b>{words(2)}</b></p></li>" for _ in range(6))
        rows = "".join(f"<tr><td>{words(2)}</td><td>{words(3)}</td></tr>" for _ in range(4))
        yield (
            f"<h2>{words(4)}</h2><p>{words(60)} <a href='https://example.org/{words(1)}'>"
            f"{words(3)}</a>, {words(40)} &amp; <em>{words(2)}</em>.</p><ul>{items}</ul>"
            f"<table>{rows}</table><pre><code class='language-py'>x = 1\n</code></pre>"
            f"<p>{words(80)}</p>"
        )


def _id(number: int, message: int) -> str:
    return f"{number:08x}-{message:04x}-4000-8000-00000000000a"


def _message(number: int, message: int, text: str) -> dict[str, Any]:
    """A message with all the keys that an export of 2026 has."""
    part = {"start_timestamp": TIME, "stop_timestamp": TIME, "flags": None, "type": "text"}
    return {
        "uuid": _id(number, message),
        "text": text,
        "content": [{**part, "text": text, "citations": []}],
        "sender": "human" if message % 2 else "assistant",
        "created_at": TIME,
        "updated_at": TIME,
        "attachments": [],
        "files": [],
        "parent_message_uuid": _id(number, message - 1) if message > 1 else _ROOT,
    }
