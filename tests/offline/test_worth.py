"""Which statements are worth keeping, on people that the weights weren't fitted on."""

from __future__ import annotations

from pathlib import Path

from kbtui.offline.understand import understand

HELD = [
    (line[7:], line[5] == "+")
    for line in Path(__file__).with_name("statements.txt").read_text("utf-8").splitlines()
    if line.startswith("held ")
]


def test_nine_of_ten_statements_of_strangers_are_kept() -> None:
    kept = [bool(understand(text).facts) for text, worth in HELD if worth]
    assert sum(kept) >= 0.9 * len(kept)


def test_small_talk_of_strangers_is_left_alone() -> None:
    junk = [text for text, worth in HELD if not worth and understand(text).facts]
    assert len(junk) <= 0.05 * len(HELD)
