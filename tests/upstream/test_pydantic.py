"""What kbtui words in another way than pydantic."""

from __future__ import annotations

import pydantic
import pytest


class Setting(pydantic.BaseModel):
    is_on: bool = True
    count: int = 1


@pytest.mark.parametrize(
    ("given", "kind"), [({"is_on": "maybe"}, "bool_parsing"), ({"count": "1.5"}, "int_parsing")]
)
def test_an_error_says_what_failed_instead_of_what_is_allowed(
    given: dict[str, str], kind: str
) -> None:
    with pytest.raises(pydantic.ValidationError) as raised:
        Setting.model_validate(given)
    (error,) = raised.value.errors()
    assert error["type"] == kind
    assert "unable to" in error["msg"], f"{kind} can leave `_EXPECTED` of kbtui/settings.py"
