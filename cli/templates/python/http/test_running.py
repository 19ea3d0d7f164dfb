"""The server in a real Main. `weir test` starts it, and says where the gateway is."""

import os
import urllib.error
import urllib.request

import pytest


@pytest.fixture
def url() -> str:
    gateway = os.environ.get("WEIR_HTTP_ADDRESS")
    if gateway is None:
        pytest.skip("`weir test` starts a Main")
    return f"http://{gateway}"


def test_the_running_server_greets(url: str) -> None:
    assert urllib.request.urlopen(f"{url}/Grace").read() == b"hello, Grace\n"


def test_a_greeting_needs_a_name(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{url}/")
