"""What is asked of kbtui besides its commands: the one file that knows names within it.

It runs in the process of either build, so it uses only what both have.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LEFT_OUT = {"kbtui.tui", "kbtui.__main__"}


def run_command(argv: list[str]) -> int:
    """Run one command, as the program's entry point does."""
    from kbtui.__main__ import main

    sys.argv[1:] = argv
    return int(main() or 0)


class _ForGood:
    """Sets attributes, as a test's fixture does, and never back."""

    def setattr(self, target: Any, name: Any, *value: Any) -> None:
        """Set an attribute of an object, or one that is named in full."""
        if not value:
            module, _, attribute = target.rpartition(".")
            target, name, value = importlib.import_module(module), attribute, (name,)
        setattr(target, name, *value)


def load(code: Path, *, models: bool = True) -> None:
    """Import everything but the app, and what `models` need, once for all commands to come.

    The build then waits as long as its own tests do for what a busy machine may be slow with. A
    server doesn't index beside its answers: each search brings the index up to date by itself, as
    it does in a command, so that it finds the same every time.
    """
    import kbtui
    from kbtui.search.search_index import SearchIndex

    _load_package(kbtui)
    if models:
        import litellm  # noqa: F401

    found = importlib.util.spec_from_file_location("patience", code / "tests" / "patience.py")
    patience = importlib.util.module_from_spec(found)
    found.loader.exec_module(patience)
    patience.be_patient(_ForGood())
    SearchIndex.start = lambda *_, **__: None


def _load_package(package: Any) -> None:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name not in _LEFT_OUT:
            loaded = importlib.import_module(module.name)
            if module.ispkg:
                _load_package(loaded)


def why_of_every_line(root: str, paths: list[str]) -> int:
    """Write where each line of some recorded text files comes from, as JSON.

    Of lines of one commit that came of no conversation, which all have the same answer, the first
    one is asked for, and who wrote the others: a vault has thousands of those.
    """
    from kbtui.errors import KbtuiError
    from kbtui.knowledge_base import KnowledgeBase

    told: dict[str, list[str]] = {}
    with KnowledgeBase.open(Path(root)) as kb:
        for path in paths:
            try:
                text = kb.workspace.place(path).read_bytes().decode()
            except (OSError, UnicodeDecodeError):
                continue
            try:
                told[path] = list(_told_of_lines(kb, path, text))
            except KbtuiError as error:
                told[path] = [f"({error})"]
    print(json.dumps(told, ensure_ascii=False))
    return 0


def _told_of_lines(kb: Any, path: str, text: str) -> Iterator[str]:
    lines = text.removesuffix("\n").split("\n")
    origins = zip(lines, kb.history.blame(path, text=text), strict=False)
    asked = set()
    for number, (line, origin) in enumerate(origins, 1):
        tells_more = origin.origin.session is not None or origin.actor.value == "dream"
        if tells_more or origin.commit not in asked:
            asked.add(origin.commit)
            why = kb.provenance.why(path, number)
            yield _told(
                path,
                why.text,
                why.origin,
                session=why.session,
                messages=[each.id for each in why.messages],
                telling=sorted(why.telling),
                archive=[each.cursor for each in why.archives],
                note=why.note,
            )
        else:
            yield _told(path, line, origin)


def _told(path: str, text: str, origin: Any, **more: Any) -> str:
    parts = {
        "by": origin.origin.author or origin.actor.value,
        "in": origin.commit,
        "first in": f"{origin.path}:{origin.line}" if origin.path not in {"", path} else None,
        **more,
    }
    told = ", ".join(f"{key} {value}" for key, value in parts.items() if value)
    return f"{text} ({told})"
