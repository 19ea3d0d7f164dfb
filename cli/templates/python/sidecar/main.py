"""A sidecar that serves `{{name}}@1`: the load of this machine. `contracts.json` describes it. Python 3.11."""

import json
import os
import pathlib

from weir_peer import Failure, Peer, Request


def parsed(text: str) -> dict[str, float]:
    """The load in a text as that of `/proc/loadavg`."""
    one, five, fifteen = (float(word) for word in text.split(" ")[:3])
    return {"one": one, "five": five, "fifteen": fifteen}


def load(_request: Request) -> bytes:
    try:
        return json.dumps(parsed(pathlib.Path("/proc/loadavg").read_text())).encode()
    except (OSError, ValueError) as error:
        raise Failure("unreadable", str(error)) from error


def main() -> None:
    peer = Peer(os.environ.get("WEIR_PEER_SOCKET", "/run/weir/peers.sock"), "sidecar:{{name}}")
    peer.serve("{{name}}@1", {"load": load})
    peer.describe(pathlib.Path(__file__).with_name("contracts.json").read_bytes())
    # The service manager starts the sidecar again.
    raise peer.wait()


if __name__ == "__main__":
    main()
