"""A sidecar that serves `thermal@1` and tells when a temperature changes.

`read` answers with the temperatures as JSON. `thermal.changed` is published with the same when one of them has changed by
a degree. It looks every few seconds, so it is not for devices that must sleep.
"""

import argparse
import json
import pathlib
import sys
import time

from weir_peer import Ended, Failure, Peer, WeirError


def temperatures(directory):
    """Degrees Celsius by zone."""
    zones = {}
    for zone in sorted(pathlib.Path(directory).glob("thermal_zone*")):
        try:
            kind, millidegrees = (zone / "type").read_text().strip(), int((zone / "temp").read_text())
        except (OSError, ValueError):
            continue  # A sensor that is off or has gone.
        zones[zone.name] = {"type": kind, "celsius": millidegrees / 1000}
    return zones


def has_changed(before, now):
    return before.keys() != now.keys() or any(
        abs(before[zone]["celsius"] - now[zone]["celsius"]) >= 1 for zone in now
    )


def run(options, token):
    peer = Peer(options.socket, options.name, token)

    def read(_request):
        zones = temperatures(options.directory)
        if not zones:
            raise Failure("no-sensor", f"no readable thermal zone in {options.directory}")
        return json.dumps(zones).encode()

    peer.serve("thermal@1", {"read": read})
    told = {}
    while not peer.ended:
        zones = temperatures(options.directory)
        if has_changed(told, zones):
            peer.publish("thermal.changed", json.dumps(zones).encode())
            told = zones
        time.sleep(options.every)
    raise peer.ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", default="/run/weir/peers.sock")
    parser.add_argument("--name", default="sidecar:thermal")
    parser.add_argument("--token-file", help="without it, Main knows the sidecar by its user")
    parser.add_argument("--directory", default="/sys/class/thermal")
    parser.add_argument("--every", type=float, default=5, metavar="SECONDS")
    options = parser.parse_args()
    token = pathlib.Path(options.token_file).read_text().strip() if options.token_file else ""
    while True:
        try:
            run(options, token)
        except (OSError, EOFError, Ended) as error:
            print(f"thermal: {error}; connecting again", file=sys.stderr)
        except WeirError as error:
            print(f"thermal: {error}; trying again", file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    main()
