"""Workspaces that released builds wrote: ``python -m tests.maintenance.released COMMIT FILE.zip``.

The program of that commit lives through the same few days in a home of its own: its entries, edits
by hand, turns without a model and with a scripted one, condensing, forgetting, proposals that wait
and ones that were rejected, a change undone, and settings that later builds no longer have. FILE
holds that home: ``notes/``, where the build could do it ``vault/`` (notes used in place), and
``config.toml``. Nothing derived is in it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.pages import ROOT
from tests.scripted_server import Reply, Request, ScriptedServer, call

CONFIG = """\
[models]
first_token_seconds = 300

[search]
diversity = 0.2
link_boost = 0.1
neighbour_boost = 0.1

[memory]
consolidate_messages = 40
consolidate_tokens = 3000

[memory.flush]
threshold_tokens = 2000

[dream]
max_iterations = 5
interval_hours = 6
"""
OWN = '[search]\ndiversity = 0.3\nchunk_tokens = 256\n\n[privacy]\nprivate_paths = ["knowledge/people/doctor.md"]\n'
BOILER = (
    "The boiler was built in 1998.\n\n- Serviced in May\n- The key hangs in the hall\n- Burns gas\n"
)


class Home:
    """A user's home in which one build is run."""

    def __init__(self, home: Path, program: Path, server: ScriptedServer) -> None:
        self.notes = home / "notes"
        self._home = home
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        self._env = kept | {
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(program),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KBTUI_SEARCH__SEMANTIC": "false",
            **{f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA", "STATE")},
        }  # fmt: skip
        self._model = {
            "KBTUI_MODEL": "openai/scripted",
            "KBTUI_API_BASE": server.url,
            "KBTUI_API_KEY": "not-a-real-key",
        }

    def run(self, *args: str, stdin: str = "", where: Path | None = None, **env: str) -> str:
        """Run a command, which must succeed, and return what it printed."""
        at = [] if args[0] == "init" else ["-w", str(where or self.notes)]
        done = subprocess.run(
            [sys.executable, "-m", "kbtui", *at, *args],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            cwd=self._home,
            env=self._env | env,
        )
        if done.returncode:
            raise SystemExit(f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        sys.stderr.write(f"$ kbtui {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, text: str, session: str, **env: str) -> str:
        """Say something to the scripted model."""
        return self.run("ask", "-s", session, text, **self._model, **env)

    def write(self, path: str, text: str) -> None:
        """Write a file of the user's by hand."""
        file = self._home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def append(self, path: str, text: str) -> None:
        """Add to a file by hand."""
        self.write(path, (self._home / path).read_text("utf-8") + text)


def live(home: Home, server: ScriptedServer) -> None:
    """Live through the days that every released workspace holds."""
    home.write("config/kbtui/config.toml", CONFIG)
    home.run("init", "notes")
    home.write("notes/kbtui.toml", OWN)
    home.write("notes/docs/house/manual.md", "# Manual\n\nPress the red button for ten seconds.\n")
    home.run(
        "new",
        "topic",
        "Boiler",
        "-t",
        "house",
        "--summary",
        "What we know of the boiler",
        "-b",
        BOILER,
    )
    home.run("new", "person", "Alice Meyer", "-b", "Looks after the [[boiler]].\n\nLives in Ghent.")
    home.run("new", "person", "Doctor", "-b", "Appointments on Mondays.")
    home.run(
        "new",
        "decision",
        "Keep the boiler",
        "-b",
        "## Decision\n\nWe keep it until 2030, says [[Alice Meyer]].",
    )
    home.append("notes/knowledge/topics/boiler.md", "- Added by hand\n")
    home.run("list")
    home.run("remember", "I drink tea without sugar.")
    home.run("remember", "My flat is on the third floor.")
    home.run("ask", "-m", "offline", "-s", "tea", "Remember that my sister is called Ines.")
    home.run("ask", "-m", "offline", "-s", "tea", "We decided to paint the kitchen green.")
    _with_a_model(home, server)
    home.run("rename", "alice-meyer", "Alice Novak")
    home.run("new", "topic", "Attic", "-b", "Full of boxes.")
    home.run("delete", "attic", stdin="y\n")
    home.run("new", "topic", "Cellar", "-b", "Dry since 2024.")
    (last,) = json.loads(home.run("log", "-n", "1", "--json"))
    home.run("undo", last["commit"])
    home.run("forget", "third floor", "--yes")


def _with_a_model(home: Home, server: ScriptedServer) -> None:
    """Turns, condensing and proposals; one of two places is decided, one proposal is rejected."""
    server.enqueue(
        Reply(tool_calls=[call("write_entry", "w1", type="topic", title="Garden", sections={"Facts": "The garden has four apple trees."})]),
        Reply("Kept."),
        Reply("They flower in April."),
    )  # fmt: skip
    home.ask("Please keep a note: the garden has four apple trees.", "garden")
    home.ask("The hedge is cut in June by Marta.", "garden")
    server.enqueue(_save, _save)  # tea and the garden
    home.run("consolidate", **home._model)
    for old, new, said in (
        (("- Serviced in May", "- Burns gas"), ("- Serviced in June", "- Burns oil"), "The boiler is serviced in June and burns oil."),
        (("The key hangs in the hall",), ("The key hangs in the cellar",), "The boiler key hangs in the cellar."),
    ):  # fmt: skip
        edits = [
            call("edit_entry", f"e{number}", entry="boiler", old=before, new=after)
            for number, (before, after) in enumerate(zip(old, new, strict=True))
        ]
        server.enqueue(Reply(tool_calls=edits), Reply("It waits for you."))
        home.ask(said, f"boiler {len(old)}", KBTUI_MEMORY__REVIEW="ask")
    server.enqueue(
        Reply(tool_calls=[call("write_entry", "n1", type="topic", title="Roof", sections={"Facts": "The roof was tiled in 2011."})]),
        Reply("It waits for you."),
    )  # fmt: skip
    home.ask("Keep a note: the roof was tiled in 2011.", "roof", KBTUI_MEMORY__REVIEW="ask")
    waiting = [each["id"] for each in json.loads(home.run("inbox", "list", "--json"))]
    shown = {each: home.run("inbox", "show", each) for each in waiting}
    (rejected,) = [each for each in waiting if "cellar" in shown[each]]
    home.run("inbox", "reject", rejected)
    (reworded,) = [each for each in waiting if "tiled" in shown[each]]
    home.run("inbox", "edit", reworded, VISUAL="sed -i s/2011/2012/")


def _save(request: Request) -> Reply:
    """Condense as the build asks for it, whichever form its tool has."""
    (tool,) = request.body["tools"]
    if "hedge" in json.dumps(request.messages):
        subject, summary = (
            "Garden",
            "The garden has four apple trees; Marta cuts the hedge in June.",
        )
        facts = ["The hedge is cut in June by Marta."]
    else:
        subject, summary = (
            "Kitchen",
            "The user's sister is called Ines; the kitchen is painted green.",
        )
        facts = []
    if "history_entry" in tool["function"]["parameters"]["properties"]:
        update = {"facts": facts, "corrections": []}
        values = {"history_entry": summary, "memory_update": update, "knowledge_entries": []}
    else:
        one_by_one = [
            {"text": fact, "type": "topic", "subject": subject, "message": 2} for fact in facts
        ]
        values = {
            "summary": summary,
            "title": subject,
            "notes": facts,
            "facts": one_by_one,
            "corrections": [],
        }
    return Reply(tool_calls=[call("save_memory", "s", **values)])


def live_in_place(home: Home) -> None:
    """Use a folder of notes in place, where a build can."""
    vault = home.notes.parent / "vault"
    home.write("vault/Daily/2026-11-20.md", "Bought [[Seeds]].\n")
    home.write("vault/Seeds.md", "---\ntags: [garden]\n---\n# Seeds\n\nBeans and [[Peas|peas]].\n")
    home.write("vault/Peas.md", "Sow in March.\n")
    home.run("init", "vault")
    home.run("list", where=vault)
    home.append("vault/Peas.md", "Pick in June.\n")
    home.run("remember", "The seeds are in the shed.", where=vault)
    home.run("rename", "Peas", "Sweet peas", where=vault)


def make(commit: str, into: Path) -> None:
    """Run the program of `commit`, and store what it wrote."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(strict=True) as server:
        program, place = Path(folder, "program"), Path(folder, "home")
        packed = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, capture_output=True, check=True
        )
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(program, filter="data")
        place.mkdir()
        home = Home(place, program, server)
        live(home, server)
        if "--in-place" in home.run("init", "--help"):
            live_in_place(home)
        _store(place, into)


def _store(place: Path, into: Path) -> None:
    config = place / "config" / "kbtui" / "config.toml"
    files = [file for name in ("notes", "vault") for file in (place / name).rglob("*")]
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.write(config, config.name)
        for file in sorted(files):
            if not file.is_dir() or not (file.parent.name == "objects" or any(file.iterdir())):
                archive.write(file, file.relative_to(place))


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    cli.add_argument("commit")
    cli.add_argument("file", type=Path)
    chosen = cli.parse_args()
    make(chosen.commit, chosen.file.absolute())
