"""A sidecar in Python: one session, with calls by the generated clients. It ends when Main is killed."""

import os

from clients_sidecar import Connection, DeviceInfoClient, SettingsClient
from weir_peer import Ended, Peer

peer = Peer(os.environ["WEIR_PEERS"], os.environ["WEIR_NAME"], os.environ["WEIR_TOKEN"])
settings = SettingsClient(Connection(peer), timeout_ms=20_000, provider="settings")
assert DeviceInfoClient(Connection(peer)).cpu()["cores"] > 0

changes = settings.subscribe_changed()
settings.set(key="sidecar", value="on")
event = next(event for event in changes if event.payload["key"] == "sidecar")
assert event.payload["value"] == "on", event

print("ready", flush=True)
for event in changes:
    pass
try:
    raise AssertionError(settings.get(key="sidecar"))
except Ended:
    pass
