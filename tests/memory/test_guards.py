"""When a person must decide: a line of theirs would change, or too much would be lost."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kbtui.history.change import Actor
from kbtui.memory.edits.guards import MAX_LOST, lost_share, missing_facts, review_reason
from tests.memory.plants import BLOCKS, INVENTION, LINE

SEED = """# User Preferences

- Favorite color: blue

# Skills

- Programming languages: Python, JavaScript, Go
"""


memories = st.lists(
    st.sampled_from(
        ["# A", "## Skills", "- one", "- two", "", "prose", "* three", "# Facts", "- "]
    ),
    max_size=10,
).map("\n".join)


def test_a_reworded_line_is_not_lost() -> None:
    new = SEED.replace("blue", "green")
    assert lost_share(SEED, new) == 0
    assert not review_reason(SEED, new)


def test_what_may_be_lost_is_a_quarter() -> None:
    lines = [f"- the {word} one is worth keeping" for word in ("alpha", "bravo", "kilo")]
    text = "\n".join([*lines, "- zzz 99"])
    kept = "\n".join(lines)
    assert lost_share(text, kept) == MAX_LOST
    assert not review_reason(text, kept)
    assert not review_reason(text, "\n".join(lines[:2]) + "\n- zzz 99\n")
    assert lost_share("", "anything") == 0


def test_a_line_that_the_user_wrote_is_theirs_to_change() -> None:
    authors = [Actor.YOU, Actor.YOU, Actor.CONSOLIDATOR, None, Actor.YOU, Actor.YOU, Actor.YOU]
    machine = SEED.replace("blue", "green")
    assert not review_reason(SEED, machine, authors)
    mine = SEED.replace("Go", "Rust")
    assert review_reason(SEED, mine, authors) == (
        "it would change a line that you wrote: 'Programming languages: Python, JavaScript, Go'"
    )
    moved = "# Skills\n\n- Programming languages: Python, JavaScript, Go\n\n# User Preferences\n\n"
    assert not review_reason(SEED, moved + "- Favorite color: blue\n", authors)


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_file_is_not_removed_for_what_only_it_says_in_any_kind_of_markdown(kind: str) -> None:
    text = f"# Alice\n\n{BLOCKS[kind].replace('{}', INVENTION)}\n"
    lost = missing_facts(text, [f"- {LINE}\n- It owns Alice and a database\n"])
    assert any(INVENTION in each for each in lost)
    assert missing_facts(text, [f"Notes: {text}\n- {INVENTION}, it owns Alice, and\n"]) == []


@given(memories, memories)
def test_the_share_of_lost_lines_is_a_share(old: str, new: str) -> None:
    assert 0 <= lost_share(old, new) <= 1
    assert lost_share(old, old + "\n" + new) == 0
