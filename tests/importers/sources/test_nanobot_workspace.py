"""A workspace of nanobot, of each of its generations, opens and works, and nothing of it is lost."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from pathlib import Path

OVERRIDES = {"search": {"semantic": False}}
SAID = ["The kestrel nests in the tower.", "Noted.", "Its name is Amelia."]

pytestmark = pytest.mark.usefixtures("all_settled")


def _messages() -> list[dict[str, Any]]:
    return [
        {"role": role, "content": said, "timestamp": f"2026-03-06T10:00:0{n}"}
        for n, (role, said) in enumerate(zip(("user", "assistant", "user"), SAID, strict=True))
    ]


def _as_json() -> str:
    about = {"last_consolidated": 2, "created_at": "2026-03-06T10:00:00"}
    return json.dumps({"key": "telegram:1", "messages": _messages(), **about})


def _as_lines() -> str:
    first = {"_type": "metadata", "key": "telegram:1", "last_consolidated": 2}
    return "".join(f"{json.dumps(line)}\n" for line in (first, *_messages()))


SOUL = {"SOUL.md": "Be brief.\n", "USER.md": "Likes birds.\n", "HEARTBEAT.md": "- [ ] feed it\n"}
FIRST = {
    **SOUL,
    "memory/MEMORY.md": "# Memory\n\n- The tower is old.\n",
    "memory/2026-03-05.md": "# 2026-03-05\n\nA heron came.\n",
    "../config.json": "{}",
    "../sessions/telegram_1.jsonl": _as_lines(),
    "skills/birds/SKILL.md": "---\nname: birds\ndescription: Tell birds apart\n---\nLook.\n",
}
SECOND = {
    **SOUL,
    "memory/MEMORY.md": "# Memory\n\n- The tower is old.\n",
    "memory/HISTORY.md": "[2026-03-01 09:00] They spoke about a heron.\n",
    "sessions/telegram_1.json": _as_json(),
}
THIRD = {
    **SOUL,
    "MEMORY.md": "# Memory\n\n- The tower is old.\n",
    "memory/2026-03-05-heron.md": "# Session: heron\n\nA heron came.\n",
    "docs/birds/heron.md": "# Herons\n\nThey fish.\n",
    "sessions/telegram_1.jsonl": _as_lines(),
}
FOURTH = {
    **SOUL,
    "memory/MEMORY.md": "# Memory\n\n- The tower is old.\n",
    "memory/history.jsonl": json.dumps(
        {"cursor": 1, "timestamp": "2026-03-01 09:00", "content": "They spoke about a heron."}
    )
    + "\n",
    "memory/.cursor": "1",
    "memory/.dream_cursor": "1",
    "sessions/telegram_1.jsonl": _as_lines(),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home/.nanobot/workspace"


def _lay(root: Path, generation: dict[str, str]) -> dict[Path, bytes]:
    for path, text in generation.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return {(root / path).resolve(): text.encode() for path, text in generation.items()}


@pytest.mark.parametrize(
    ("generation", "phrases"),
    [
        (FIRST, ["1 dated note", "1 how-to"]),
        (SECOND, ["1 archived summary"]),
        (THIRD, ["1 dated note", "1 document", "MEMORY.md at the top is memory/MEMORY.md as well"]),
        (FOURTH, ["archived summar", "Dream goes on behind summary 1"]),
    ],
    ids=["notes", "history", "dated", "archive"],
)
def test_every_generation_opens_and_nothing_of_it_is_lost(
    root: Path, generation: dict[str, str], phrases: list[str]
) -> None:
    before = _lay(root, generation)
    with KnowledgeBase.open(root, overrides=OVERRIDES) as kb:
        (session,) = kb.sessions.list()
        assert [each.content for each in kb.sessions.read(session.id)] == SAID
        _ = kb.memory
        kb.search.sync()
        for words, path in (("tower old", "memory/MEMORY.md"), ("kestrel tower", "sessions/")):
            hits = kb.search.search(words, "all").hits
            assert any(hit.path.startswith(path) for hit in hits), words
        (notice,) = [each for each in kb.notices if each.startswith("Taken over from nanobot")]
        assert "SOUL.md, USER.md, MEMORY.md" in notice
        assert "1 conversation" in notice
        report = (root / ".kbtui/taken-over.md").read_text()
        for phrase in (*phrases, "HEARTBEAT.md"):
            assert phrase in report
        assert "heron" in " ".join(
            [
                *(entry.content for entry in kb.archive.entries()),
                *(file.read_text() for file in kb.workspace.memory.glob("*.md")),
            ]
        )
    for file, data in before.items():
        backup = file.with_name(f"{file.name}.bak")
        assert data in [each.read_bytes() for each in (file, backup) if each.is_file()], file
    with KnowledgeBase.open(root, overrides=OVERRIDES) as kb:
        assert kb.notices == []
        assert len(kb.sessions.list()) == 1


def test_versions_that_nanobot_kept_are_counted_and_stay(root: Path) -> None:
    _lay(root, FOURTH)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=d", "-c", "user.email=d@x", "commit", "-qm", "dream"),
    ):
        subprocess.run(["git", *arguments], cwd=root / "memory", env=env, check=True)
    with KnowledgeBase.open(root, overrides=OVERRIDES):
        report = (root / ".kbtui/taken-over.md").read_text()
    assert "memory/.git: 1 earlier version" in report
    assert (root / "memory/.git/HEAD").is_file()


def test_what_was_cut_off_is_taken_over_the_next_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lay(root, FIRST)
    with monkeypatch.context() as patch:
        patch.setattr("kbtui.importers.sources.nanobot_workspace._logs_beside", _fail_late())
        with pytest.raises(KeyboardInterrupt):
            KnowledgeBase.open(root, overrides=OVERRIDES)
    with KnowledgeBase.open(root, overrides=OVERRIDES) as kb:
        assert len(kb.sessions.list()) == 1
        assert any(each.startswith("Taken over") for each in kb.notices)


def _fail_late() -> Any:
    def logs(_workspace: object) -> Any:
        raise KeyboardInterrupt

    return logs


def test_a_new_workspace_of_ours_has_nothing_to_report(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=OVERRIDES) as kb:
        assert kb.notices == []
    assert not (tmp_path / "notes/.kbtui/taken-over.md").exists()
