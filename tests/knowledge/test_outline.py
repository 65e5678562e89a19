from __future__ import annotations

from kbtui.knowledge.format.body import (
    heading_named,
    headings_of,
    line_named,
    part_named,
    renamed_headings,
)

TEXT = (
    "---\n# yaml: comment\n---\n# One *two* [[x|three]] #\n\n```\n# code\n```\n\n"
    "### Deep & so\r\n#tag\n####### seven\n## \n## [red] 漢字\n"
)


def test_headings_have_levels_plain_texts_and_lines():
    assert headings_of(TEXT) == [
        (1, "One two three", 4),
        (3, "Deep & so", 10),
        (2, "[red] 漢字", 14),
    ]
    assert headings_of("") == []


def test_a_heading_is_found_as_links_name_it():
    found = headings_of(TEXT)
    for name in ("Deep & so", "deep-so", "One two three#Deep%20so"):
        heading = heading_named(found, name)
        assert heading is not None
        assert heading.line == 10
    assert heading_named(found, "none") is None


def test_the_line_of_a_heading_or_a_block_that_a_link_names():
    text = "# One\n## Two & more\nSaid. ^q1\n\n- a\n\n^list\r\n"
    assert [line_named(text, name) for name in ("two-more", "^q1", "^list", "^1", "x")] == [
        2, 3, 7, None, None,
    ]  # fmt: skip


def test_the_part_that_a_link_means():
    text = "# A\n\none\ntwo ^p\n\n- x\n- y ^i\n\n## B\n\n| t |\n|---|\n\n^t\n\n### C\nc\n# D\n"
    assert part_named(text, "B") == "## B\n\n| t |\n|---|\n\n^t\n\n### C\nc"
    assert part_named(text, "D") == "# D\n"
    assert part_named(text, "^p") == "one\ntwo ^p"
    assert part_named(text, "^i") == "- y ^i"
    assert part_named(text, "^t") == "| t |\n|---|\n\n^t"
    assert part_named(text, "nobody") == part_named(text, "^x") == ""


def test_a_heading_in_the_place_of_another_of_its_level_is_that_one_renamed() -> None:
    old = "# Kestrel\n\n## Food\n\nVoles.\n\n## Nest\n\nA box.\n"
    assert renamed_headings(old, old.replace("Nest", "Where it nests")) == {
        "Nest": "Where it nests"
    }
    assert renamed_headings(old, old.replace("## Nest", "### Nests")) == {}
    assert renamed_headings(old, old.replace("## Nest\n\nA box.\n", "")) == {}
    assert renamed_headings(old, f"{old}\n## More\n") == {}
    swapped = old.replace("Food", "x").replace("Nest", "Food").replace("## x", "## Nest")
    assert renamed_headings(old, swapped) == {}
    assert renamed_headings(old, old.replace("Nest", "nest")) == {}
