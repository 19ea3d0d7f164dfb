"""The functions alone, without Main."""

import pytest
from greeting import Nobody, greeting


def test_greets_by_name() -> None:
    assert greeting("Ada") == "hello, Ada"


def test_nobody_is_not_greeted() -> None:
    with pytest.raises(Nobody):
        greeting("")
