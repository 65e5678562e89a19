"""What kbtui works around in click."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pytest

_ROOT = "of kbtui/cli/root.py can go"


def test_commands_are_listed_by_name_and_not_as_they_were_added() -> None:
    group = click.Group(commands=[click.Command("b"), click.Command("a")])
    assert group.list_commands(click.Context(group)) == ["a", "b"], f"`list_commands` {_ROOT}"


def test_a_path_that_need_not_exist_is_looked_for_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    plain = os.stat

    def stat(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        asked.append(path)
        return plain(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        click.Path(file_okay=False).convert("/nowhere", None, None)
    assert "/nowhere" in asked, f"`_Folder` {_ROOT}"
