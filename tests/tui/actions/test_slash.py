"""What is typed with a slash."""

from __future__ import annotations

import pytest

from kbtui.errors import UsageError
from kbtui.tui.actions.registry import matching_commands, parse_command


def test_a_message_is_no_command() -> None:
    assert parse_command("hello /new") is None
    assert parse_command(" /etc/hosts is a file") is None


def test_a_command_has_an_argument_or_none() -> None:
    command = parse_command("/rename  weekly planning ")
    assert command is not None
    assert (command.action.id, command.argument) == ("chat.rename", "weekly planning")
    bare = parse_command("/HELP")
    assert bare is not None
    assert (bare.action.id, bare.argument) == ("global.help", "")


@pytest.mark.parametrize(
    ("typed", "near"), [("/modle", "/model"), ("/exprot x", "/export"), ("/serch", "/search")]
)
def test_an_unknown_command_suggests_the_nearest(typed: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean {near}"):
        parse_command(typed)


def test_what_is_like_no_command_points_to_help() -> None:
    with pytest.raises(UsageError, match="/help") as caught:
        parse_command("/etc/hosts\x1b[2J")
    assert "\x1b" not in str(caught.value)


def test_completion_prefers_what_begins_so() -> None:
    assert matching_commands("/re")[0].slash == "/resume"
    assert {action.slash for action in matching_commands("/re")} >= {"/resume", "/rename", "/retry"}
    assert [action.slash for action in matching_commands("/xyz")] == []
