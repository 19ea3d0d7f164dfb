"""The component in a real Main. `weir test` starts it, and says where the command is."""

import json
import os
import subprocess

import pytest


def greet(name: str) -> "subprocess.CompletedProcess[str]":
    weir = os.environ.get("WEIR")
    if weir is None:
        pytest.skip("`weir test` starts a Main")
    call = [weir, "call", "{{name}}@1", "greet", json.dumps({"name": name})]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def test_the_running_component_greets_by_name() -> None:
    assert json.loads(greet("Grace").stdout) == "hello, Grace"


def test_a_greeting_needs_a_name() -> None:
    assert greet("").stderr == "error: nobody: nobody\n"
