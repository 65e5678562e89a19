"""What kbtui works around in Whoosh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whoosh.lang import porter2

if TYPE_CHECKING:
    import pytest


def test_the_stemmer_takes_steps_that_a_word_has_no_ending_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[str] = []
    for name in ("step_0", "step_4", "step_5"):
        step = getattr(porter2, name)
        monkeypatch.setattr(
            porter2, name, lambda *given, name=name, step=step: taken.append(name) or step(*given)
        )
    assert porter2.stem("walrus") == "walrus"
    assert taken == ["step_0", "step_4", "step_5"], (
        "`_compute_stem` of kbtui/search/index/analyser.py can be `porter2.stem`"
    )
