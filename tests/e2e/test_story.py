"""The main job from a script: say it, find it again, see what changed, take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import kbtui, ok

if TYPE_CHECKING:
    from pathlib import Path

SAID = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo workspace in which the decision has been told without a model."""
    workspace = tmp_path_factory.mktemp("story") / "notes"
    home = str(tmp_path_factory.mktemp("home"))
    env = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "KBTUI_MODEL": "offline"}
    ok("init", workspace, "--demo", **env)
    ok("ask", SAID, workspace=workspace, **env)
    return workspace


def _decision(workspace: Path) -> str:
    found = [
        e["path"] for e in ok("list", "--type", "decision", "--json", workspace=workspace).json
    ]
    (path,) = [path for path in found if "postgresql" in path]
    return str(path)


def test_a_decision_is_written_as_it_was_told_and_indexed(told: Path) -> None:
    path = _decision(told)
    assert SAID in (told / path).read_text()
    index = (told / "knowledge/INDEX.md").read_text()
    assert f"- {path.rsplit('/')[-1].removesuffix('.md')}:" in index
    paths = {entry["path"] for entry in ok("list", "--json", workspace=told).json}
    assert "knowledge/people/alice.md" not in paths, "a name in it makes no entry by itself"


def test_the_log_says_who_said_it_and_in_which_session(told: Path) -> None:
    path = _decision(told)
    (commit,) = ok("log", path, "--json", workspace=told).json
    assert commit["actor"] == "you"
    assert commit["session"]
    assert commit["messages"] == [1, 1]
    assert path in str(commit["paths"])


def test_a_question_is_answered_with_the_lines_that_say_so(told: Path) -> None:
    events = ok("ask", "why PostgreSQL for analytics?", "--json", workspace=told).events
    last = events[-1]
    assert last["event"] == "turn_finished"
    assert "[1]" in last["text"]
    cited = [c for c in last["citations"] if c["path"] == _decision(told)]
    assert cited
    first, end = cited[0]["lines"]
    quoted = (told / cited[0]["path"]).read_text().splitlines()[first - 1 : end]
    assert "JSON operators" in "\n".join(quoted)


def test_diff_undo_and_restore_work_on_it(told: Path) -> None:
    path = _decision(told)
    text = (told / path).read_text()
    (commit,) = ok("log", path, "--json", workspace=told).json
    shown = kbtui("diff", f"{commit['commit']}~1", commit["commit"], path, workspace=told)
    assert shown.status == 1
    assert "+++ b/" + path in shown.out
    ok("undo", commit["commit"], workspace=told)
    assert not (told / path).exists()
    ok("restore", path, "--at", commit["commit"], workspace=told)
    assert (told / path).read_text() == text


def test_search_lists_hits_as_promised(told: Path) -> None:
    found = ok("search", "JSON operators", "--json", workspace=told).json
    assert found["hits"][0]["path"] == _decision(told)
    assert set(found) >= {"query", "scope", "took_ms", "semantic", "hits"}
    assert set(found["hits"][0]) >= {"path", "heading", "lines", "score", "snippet", "explain"}
    assert kbtui("search", "zyxwvu", workspace=told).status == 1
