"""What the tests themselves work around in hypothesis."""

from __future__ import annotations

from hypothesis.internal.conjecture import providers


def test_examples_depend_on_the_modules_that_are_imported() -> None:
    constants = vars(providers.HypothesisProvider)["_local_constants"].func
    assert "_get_local_constants" in constants.__code__.co_names, (
        "what tests/conftest.py sets in `providers` has no effect, or can go"
    )
