"""An app in Python: calls every extension by its generated client, and goes on after Main was killed."""

import os
from collections.abc import Iterator

from clients_app import (
    Changed, Connection, DeviceInfoClient, EchoClient, Event, Gap, LocalStorageClient, SettingsClient, TelemetryClient
)
from weir_peer import WeirError


def change(settings: SettingsClient, changes: Iterator[Event[Changed] | Gap], value: int) -> None:
    settings.set(key="python", value=value)
    event = next(changes)
    assert isinstance(event, Event), event
    assert (event.topic, event.payload["value"]) == ("settings.changed.python", value), event


connection = Connection(os.environ["WEIR_PEERS"], os.environ["WEIR_NAME"], os.environ["WEIR_TOKEN"])
device = DeviceInfoClient(connection, timeout_ms=20_000)
settings = SettingsClient(connection)
storage = LocalStorageClient(connection)

memory = device.memory()
assert memory["total_kib"] > memory["free_kib"], memory
assert device.os()["id"]

settings.set(key="python", value=1)
setting = settings.get(key="python")
assert (setting["value"], setting["type"]) == (1, "integer"), setting
assert list(settings.list(prefix="python")["settings"]) == ["python"]
assert settings.list()["settings"]["python"]["value"] == 1
try:
    raise AssertionError(settings.get(key="none"))
except WeirError as error:
    assert error.code == "not-found", error

storage.set(key="python", value={"a": [None, True]})
assert storage.get(key="python").get("value") == {"a": [None, True]}
assert storage.delete(key="python")["existed"]
assert EchoClient(connection).echo(b"\0\xff") == b"\0\xff"
assert TelemetryClient(connection).snapshot()["since"] > 0

changes = settings.subscribe_changed("settings.changed.python")
change(settings, changes, 2)

print("ready", flush=True)
assert isinstance(next(changes), Gap)
assert settings.get(key="python")["value"] == 2
change(settings, changes, 3)
