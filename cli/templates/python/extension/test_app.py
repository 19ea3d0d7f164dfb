"""The extension alone, without Main."""

import pytest
from weir import HandlerError
from weir.testing import Harness

import app


@pytest.fixture
def main() -> Harness:
    app.greeted = 0
    return Harness(app.ext)


def test_greets_by_name_and_publishes_it(main: Harness) -> None:
    assert main.call(app.greet, app.Name("Ada")) == app.Greeting("hello, Ada", 1)
    assert [event.json() for event in main.published()] == ["Ada"]


def test_a_greeting_needs_a_name(main: Harness) -> None:
    with pytest.raises(HandlerError, match="there is nobody to greet"):
        main.call(app.greet, app.Name(""))
