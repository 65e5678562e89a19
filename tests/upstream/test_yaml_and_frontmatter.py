"""What kbtui works around in PyYAML and python-frontmatter."""

from __future__ import annotations

from typing import Any

import frontmatter
import pytest
import yaml
from frontmatter.default_handlers import YAMLHandler

_EDIT = "kbtui/knowledge/format/yaml_edit.py"
_HANDLER = "of kbtui/knowledge/format/frontmatter.py can go"


def test_of_a_key_that_stands_twice_the_last_value_is_kept_silently() -> None:
    assert yaml.safe_load("a: 1\na: 2\n") == {"a": 2}, (
        f"`_close` of {_EDIT} may leave doubles to PyYAML"
    )


def test_a_list_ends_behind_the_empty_lines_and_comments_after_it() -> None:
    text = "a:\n  - b\n\n# c\nd: 1\n"
    events = list(yaml.parse(text, Loader=yaml.CBaseLoader))
    (end,) = (e.end_mark.index for e in events if isinstance(e, yaml.SequenceEndEvent))
    assert text[end:] == "d: 1\n", f"`Node.content_end` of {_EDIT} can be `end`"


def test_half_a_character_is_no_error_of_yamls() -> None:
    # When it is a YAMLError, `UnicodeError` needn't be caught by `read_tree`.
    with pytest.raises(UnicodeEncodeError):
        list(yaml.parse("a: \ud800", Loader=yaml.CBaseLoader))


def test_words_and_dates_become_other_values() -> None:
    assert yaml.safe_load("a: no")["a"] is False, f"{_EDIT} may build on the safe loader"


def test_anchors_are_followed_without_a_limit() -> None:
    text = "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    assert yaml.safe_load(text)["c"] == [[["x"], ["x"]]] * 2, (
        f"`_MAX_VALUES` of {_EDIT} may be left to PyYAML"
    )


class Noted(YAMLHandler):
    """Notes what is to be loaded."""

    head = ""

    def load(self, fm: str, **options: Any) -> Any:
        self.head = fm
        return super().load(fm, **options)


def test_carriage_returns_are_lost_before_frontmatter_is_loaded() -> None:
    handler = Noted()
    frontmatter.parse("---\r\na: 1\r\n---\r\n", handler=handler)
    assert handler.head == "\na: 1\n", f"`head` of `_Handler` {_HANDLER}"


def test_three_dots_end_no_frontmatter() -> None:
    with pytest.raises(yaml.YAMLError):  # when it is read, `_Handler.split` can go
        frontmatter.parse("---\na: 1\n...\nbody\n---\n")


def test_the_space_around_a_body_is_lost() -> None:
    _, body = frontmatter.parse("---\na: 1\n---\n\n body \n")
    assert body == "body", (
        f"`split` of kbtui/knowledge/format/body.py may be frontmatter's; {_HANDLER}"
    )
