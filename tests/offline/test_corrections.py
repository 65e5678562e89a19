"""Which line a statement corrects, and which it leaves alone."""

from __future__ import annotations

import pytest

from kbtui.offline.corrections import find, without_cue
from kbtui.offline.lines import Line


def _entry(title: str, text: str) -> Line:
    return Line(f"knowledge/facts/{title.lower()}.md", title, text)


def test_a_new_fact_about_a_named_person_changes_no_number_of_another_subject() -> None:
    known = _entry("Lessons", "swim lessons wed 16:15 for Nora, football sat 10 for Ben")
    assert find("Ben's jacket is size 116 now, shoes 29", [known], [], "Ben") is None


def test_a_correction_with_a_time_leaves_a_line_without_one_alone() -> None:
    known = _entry("Swim club", "swim club bag is the blue one")
    assert find("oops swim is at 16:45", [known], ["swim club bag is the blue one"], "swim") is None


@pytest.mark.parametrize(
    "said",
    [
        "I misspoke: it is due on 15 October",
        "hab mich vertan, it is due on 15 October",
        "me he equivocado, it is due on 15 October",
    ],
)
def test_admitting_a_mistake_is_a_cue(said: str) -> None:
    assert without_cue(said) == ("it is due on 15 October", True)
