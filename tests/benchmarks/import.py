# ruff: noqa: N999 - it is called as the command is
"""Imports: a large export read and brought in, beside ijson alone on the same file.

``--size`` is the export's in MB, ``--bring`` that of the one which is really brought in, which takes
longer: every message is searched for secrets; ``--notes`` is how many notes of a folder are, ``--html``
the size of what is read of Gemini and of web pages. Each is measured in a process of its own, by its
processor time too, without that of its helpers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.report import Table

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
BAR_SHARE, BAR_MB = 0.3, 300


def generate(file: Path, megabytes: int) -> None:
    """Write an export of Claude.ai of conversations of all lengths, an emoji and an umlaut in it."""
    chance = random.Random(11)
    asked, told = (
        [" ".join(chance.choices(WORDS, k=chance.randrange(*span))) + end for end in ENDS * 500]
        for span in ((4, 60), (30, 350))
    )
    with file.open("w", encoding="utf-8") as out:
        out.write("[")
        number = 0
        while out.tell() < megabytes * 1_000_000:
            count = chance.choice((2, 4, 10, 60))
            texts = [chance.choice(told if n % 2 else asked) for n in range(count)]
            id_ = _id(number, 0)
            talk = {
                "uuid": id_,
                "name": " ".join(chance.choices(WORDS, k=4)),
                "summary": "",
                "created_at": TIME,
                "updated_at": TIME,
                "account": {"uuid": id_},
                "chat_messages": [_message(number, n, text) for n, text in enumerate(texts, 1)],
            }
            out.write(("," if number else "") + json.dumps(talk, ensure_ascii=False))
            number += 1
        out.write("]")


def generate_notes(folder: Path, count: int) -> None:
    """Write a folder of Markdown notes of some 3 kB, each linked with the one before."""
    chance = random.Random(5)
    folder.mkdir()
    for number in range(count):
        parts = (" ".join(chance.choices(WORDS, k=many)) for many in (150, 30, 250))
        text = f"\n\n- [[Note {number - 1}]]\n\n".join(parts)
        (folder / f"Note {number}.md").write_text(f"# Note {number}\n\n{text}\n", "utf-8")


def generate_gemini(file: Path, megabytes: int) -> None:
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


def generate_pages(folder: Path, megabytes: int) -> None:
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

    def words(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

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
    return f"{number:08x}-{message:04x}-4000-8000-000000000000"


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
        "parent_message_uuid": _id(number, message - 1),
    }


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, and print how it stands to the bars."""
    parser = argparse.ArgumentParser(prog="import")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--bring", type=int, default=20)
    parser.add_argument("--notes", type=int, default=1500)
    parser.add_argument("--html", type=int, default=20)
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args(argv)
    if options.child:
        return _child(options.child[0], Path(options.child[1]))
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large"), Path(folder, "small")
        generate(large, options.size)
        generate(small, options.bring)
        generate_notes(Path(folder, "notes"), options.notes)
        generate_gemini(Path(folder, "gemini"), options.html)
        generate_pages(Path(folder, "pages"), options.html)
        figures = {
            "ijson": _measured("ijson", large),
            "reading": _measured("reading", large),
            "reading Gemini": _measured("reading", Path(folder, "gemini")),
            "reading web pages": _measured("reading", Path(folder, "pages")),
            "bringing": _measured("bringing", small),
            "bringing notes": _measured("bringing", Path(folder, "notes")),
        }
    share = figures["reading"]["mb_s"] / figures["ijson"]["mb_s"]
    peak = max(figures[name]["peak_mb"] for name in ("reading", "bringing"))
    shown = Table("Imports", ["", "MB/s", "MB/s of processor time", "peak MB"])
    shown.rows += [
        (name, each["mb_s"], each["cpu_mb_s"], each["peak_mb"]) for name, each in figures.items()
    ]
    bars = f"reading / ijson: {share:.2f} (bar {BAR_SHARE}); peak: {peak:.0f} MB (bar {BAR_MB})"
    return {
        "tables": [shown, bars],
        "figures": {**figures, "share": share, "within": share >= BAR_SHARE and peak <= BAR_MB},
    }


def _measured(what: str, file: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks", "import", "--child", what, str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def _child(what: str, file: Path) -> dict[str, Any]:
    begun, before = time.perf_counter(), sum(os.times()[:4])
    if what == "ijson":
        import ijson

        with file.open("rb") as stream:
            count = sum(1 for _ in ijson.items(stream, "item"))
    else:
        count = _bring(file, only_look=what == "reading")
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = sum(os.times()[:4]) - before
    size = sum(each.stat().st_size for each in (file, *file.glob("*"))) / 1_000_000
    return {
        "mb_s": size / seconds,
        "cpu_mb_s": size / used,
        "seconds": seconds,
        "conversations": count,
        "peak_mb": peak,
    }


def _bring(file: Path, *, only_look: bool) -> int:
    from kbtui.importers import engine
    from kbtui.importers.export_files import OpenedExport
    from kbtui.knowledge_base import KnowledgeBase

    quick = {"search": {"semantic": False}}
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase.open(Path(folder, "notes"), create=True, overrides=quick) as kb,
        OpenedExport(file) as opened,
    ):
        source = engine.find_source(opened)
        if source is None:
            raise ValueError("the export isn't recognised")
        if only_look:
            return engine.preview(kb.services, opened, source).conversations
        return len(engine.run(kb.services, opened, source).sessions)
