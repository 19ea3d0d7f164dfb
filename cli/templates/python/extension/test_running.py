"""The extension in a real Main. `weir test` starts it."""

import json

import pytest
from weir.testing import CallError, RunningMain

import app


@pytest.fixture
def main() -> RunningMain:
    found = RunningMain.from_env()
    if found is None:
        pytest.skip("`weir test` starts a Main")
    return found


def test_the_running_extension_greets_by_name(main: RunningMain) -> None:
    answer = main.call("{{name}}@1", "greet", app.Name("Grace"))
    assert json.loads(answer)["text"] == "hello, Grace"


def test_a_greeting_needs_a_name(main: RunningMain) -> None:
    with pytest.raises(CallError, match="there is nobody to greet"):
        main.call("{{name}}@1", "greet", app.Name(""))
