"""Written from `device.info@1`, `echo@1`, `settings@1`, `local.storage@1` and `telemetry@1` by `weir
generate python --for sidecar`: changes here do not last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

import weir_peer
from weir_peer import Peer


Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
"""Anything that JSON can say."""


class Connection:
    """A session with Main. It ends with the session: then everything raises `Ended`, and the program makes a new one."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def peer(self) -> Peer:
        return self._peer

    def events(self, pattern: str, read: Any) -> Iterator[Event[Any]]:
        events = self._peer.subscribe(pattern)
        return (_event(event, read) for event in events)


P = TypeVar("P")


class Client:
    """A client of a contract. `timeout_ms` is for each call and put, `provider` is called in place of the owner."""

    CONTRACT = ""

    def __init__(self, connection: Connection, *, timeout_ms: int = 0, provider: str = "") -> None:
        self._connection, self._timeout_ms, self._provider = connection, timeout_ms, provider

    def _call(self, operation: str, arguments: object) -> Any:
        return _read(self._call_bytes(operation, _written(arguments)))

    def _call_bytes(self, operation: str, payload: bytes) -> bytes:
        peer = self._connection.peer()
        return peer.call(self.CONTRACT, operation, payload, self._timeout_ms, self._provider)

    def _events(self, pattern: str, read: Any) -> Iterator[Any]:
        return self._connection.events(pattern, read)

    def _put(self, queue: str, payload: bytes, until_done: bool) -> None:
        self._connection.peer().put(queue, payload, until_done, self._timeout_ms)

    def _take(self, queue: str, read: Any) -> Job[Any]:
        job = self._connection.peer().take(queue)
        try:
            return Job(read(job.payload), job)
        except ValueError:
            job.give_back()
            raise


@dataclass(frozen=True)
class Event(Generic[P]):
    """An event, with the envelope that Main stamped on it."""

    topic: str
    sender: str
    sequence: int
    """Rises with each event of the topic. 0 for an event published to this program alone."""
    lost: int
    """Events of this subscription that were lost just before this one."""
    retained: bool
    """Whether it is the last value of a topic that Main retains, from before the subscription."""
    payload: P


@dataclass(frozen=True)
class Job(Generic[P]):
    """A job in hand. `with` marks it done at the end, and gives it back after an exception."""

    payload: P
    envelope: weir_peer.Job

    def done(self) -> None:
        self.envelope.done()

    def give_back(self) -> None:
        self.envelope.give_back()

    def __enter__(self) -> Job[P]:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self.give_back() if error else self.done()


def _event(event: weir_peer.Event, read: Any) -> Event[Any]:
    return Event(event.topic, event.sender, event.sequence, event.lost, event.retained, read(event.payload))


def _written(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def _read(payload: bytes) -> Any:
    return json.loads(payload or b"null")


class DeviceInfoClient(Client):
    """The device and its state.

    A client of `device.info@1`.
    """

    CONTRACT = "device.info@1"

    def memory(self) -> Memory:
        """The device's memory.

        Codes of a `WeirError` that are the contract's own:
        - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
        """
        _answer: Memory = self._call("memory", {})
        return _answer

    def uptime(self) -> Uptime:
        """The time since the device started.

        Codes of a `WeirError` that are the contract's own:
        - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
        """
        _answer: Uptime = self._call("uptime", {})
        return _answer

    def load(self) -> Load:
        """The load of the device.

        Codes of a `WeirError` that are the contract's own:
        - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
        """
        _answer: Load = self._call("load", {})
        return _answer

    def os(self) -> Os:
        """The operating system.

        Codes of a `WeirError` that are the contract's own:
        - `unavailable`: A file of the system cannot be read. The text names it.
        """
        _answer: Os = self._call("os", {})
        return _answer

    def cpu(self) -> Cpu:
        """The processor.

        Codes of a `WeirError` that are the contract's own:
        - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
        """
        _answer: Cpu = self._call("cpu", {})
        return _answer


class Memory(TypedDict):
    """Memory, in KiB, as in `/proc/meminfo`."""

    total_kib: int
    """All memory that the kernel manages."""

    free_kib: int
    """Unused memory."""

    available_kib: int
    """Memory that programs can get without swapping."""

    buffers_kib: int
    """Memory of buffers."""

    cached_kib: int
    """Memory of the page cache."""

    swap_total_kib: int
    """All swap space."""

    swap_free_kib: int
    """Free swap space."""


class Uptime(TypedDict):
    """Time since the device started, as in `/proc/uptime`."""

    seconds: float
    """Seconds since the start."""

    idle_seconds: float
    """Idle seconds of its processors, added up."""


class Load(TypedDict):
    """Average number of tasks that ran or wanted to run, as in `/proc/loadavg`."""

    one: float
    """Over the last minute."""

    five: float
    """Over the last five minutes."""

    fifteen: float
    """Over the last fifteen minutes."""


class Os(TypedDict):
    """The operating system, as in `/etc/os-release`. Missing values are empty."""

    id: str
    """For programs, such as `debian`."""

    name: str
    """For people, such as `Debian GNU/Linux`."""

    version: str
    """Its version, such as `12 (bookworm)`, or else its version number."""

    pretty_name: str
    """Name and version."""

    kernel: str
    """The kernel's release, such as `6.1.0-18-amd64`."""


class Cpu(TypedDict):
    """The processor, as in `/proc/cpuinfo`."""

    model: str
    """The model's name."""

    cores: int
    """Cores that the kernel uses."""


class EchoClient(Client):
    """Answers with the bytes of the request, for tests and benchmarks.

    A client of `echo@1`.
    """

    CONTRACT = "echo@1"

    def echo(self, payload: bytes) -> bytes:
        """Answers with the bytes of the request."""
        return self._call_bytes("echo", payload)


class SettingsClient(Client):
    """The device's settings, each with a fixed type.

    A client of `settings@1`.
    """

    CONTRACT = "settings@1"

    def get(self, *, key: str) -> Setting:
        """A setting.

        - key: The key.

        Codes of a `WeirError` that are the contract's own:
        - `not-found`: No setting has this key.
        """
        _arguments: dict[str, object] = {"key": key}
        _answer: Setting = self._call("get", _arguments)
        return _answer

    def set(self, *, key: str, value: Json) -> Previous:
        """Gives a setting a value. Publishes the change if the value is new.

        - key: The key.
        - value: A boolean, a number or a string.

        Codes of a `WeirError` that are the contract's own:
        - `invalid-argument`: A key is 1 to 128 letters, digits, `-` and `_`; a text has at most 4096 bytes.
        - `wrong-type`: The setting has a value of another type.
        - `full`: There are 1024 settings, their keys and texts have 262,144 bytes, or storage is full.
        - `io`: Storage failed to write. The change is not visible, but may be there after a restart.
        """
        _arguments: dict[str, object] = {"key": key, "value": value}
        _answer: Previous = self._call("set", _arguments)
        return _answer

    def list(self, *, prefix: str | None = None) -> Settings:
        """The settings with a prefix of their keys.

        - prefix: The prefix. The default fits every key.
        """
        _arguments: dict[str, object] = {}
        if prefix is not None:
            _arguments["prefix"] = prefix
        _answer: Settings = self._call("list", _arguments)
        return _answer

    def subscribe_changed(self, pattern: str = "settings.changed.>") -> Iterator[Event[Changed]]:
        """Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.

        Subscribes, and gives the events as they come. `pattern` may name fewer topics.
        """
        return self._events(pattern, _read)


class Setting(TypedDict):
    """A setting."""

    value: Json
    """Its value."""

    type: Type
    """Its type."""


Type: TypeAlias = Literal["bool", "integer", "number", "string"]
"""The types of settings.

- `bool`: True or false.
- `integer`: A whole number.
- `number`: Any number.
- `string`: A text.
"""


class Previous(TypedDict):
    """A setting before its change."""

    previous: NotRequired[Json]
    """Its value. None, in JSON `null`, if it had none."""


class Settings(TypedDict):
    """Some settings."""

    settings: dict[str, Setting]
    """By key."""


class Changed(TypedDict):
    """The event of a setting's new value."""

    key: str
    """The key."""

    value: Json
    """The new value."""

    previous: NotRequired[Json]
    """The old value. None, in JSON `null`, if it had none."""


class LocalStorageClient(Client):
    """Values that survive power cuts.

    A client of `local.storage@1`.
    """

    CONTRACT = "local.storage@1"

    def get(self, *, key: str) -> Found:
        """The value of a key, as on disk.

        - key: The key.

        Codes of a `WeirError` that are the contract's own:
        - `invalid-argument`: A key has 1 to 256 bytes.
        """
        _arguments: dict[str, object] = {"key": key}
        _answer: Found = self._call("get", _arguments)
        return _answer

    def set(self, *, key: str, value: Json) -> Empty:
        """Gives a key a value. Answered when the value is on disk.

        - key: The key.
        - value: Any value. A `null` reads as no value.

        Codes of a `WeirError` that are the contract's own:
        - `invalid-argument`: A key has 1 to 256 bytes.
        - `too-large`: A value has at most 1 MiB as JSON.
        - `full`: All keys and values together would have more than `max-bytes`.
        - `io`: The disk did not take the change. It is not visible, but may be there after a restart.
        """
        _arguments: dict[str, object] = {"key": key, "value": value}
        _answer: Empty = self._call("set", _arguments)
        return _answer

    def delete(self, *, key: str) -> Deleted:
        """Deletes a key. Answered when that is on disk.

        - key: The key.

        Codes of a `WeirError` that are the contract's own:
        - `invalid-argument`: A key has 1 to 256 bytes.
        - `io`: The disk did not take the change. It is not visible, but may be there after a restart.
        """
        _arguments: dict[str, object] = {"key": key}
        _answer: Deleted = self._call("delete", _arguments)
        return _answer

    def list(self, *, prefix: str | None = None) -> Keys:
        """The keys that begin with a prefix.

        - prefix: The prefix. The default fits every key.

        Codes of a `WeirError` that are the contract's own:
        - `too-large`: The keys have more than 524,288 bytes together: use a longer prefix.
        """
        _arguments: dict[str, object] = {}
        if prefix is not None:
            _arguments["prefix"] = prefix
        _answer: Keys = self._call("list", _arguments)
        return _answer


class Found(TypedDict):
    """The value of a key."""

    value: NotRequired[Json]
    """None, in JSON `null`, if the key has no value."""


class Empty(TypedDict):
    """No arguments, or no result."""


class Deleted(TypedDict):
    """The result of a deletion."""

    existed: bool
    """Whether the key had a value."""


class Keys(TypedDict):
    """Some keys."""

    keys: list[str]
    """In the order of their bytes."""


class TelemetryClient(Client):
    """Counts of events.

    A client of `telemetry@1`.
    """

    CONTRACT = "telemetry@1"

    def snapshot(self) -> Snapshot:
        """The counts so far."""
        _answer: Snapshot = self._call("snapshot", {})
        return _answer


class Snapshot(TypedDict):
    """The counts."""

    since: int
    """The start of counting, in seconds of Unix time."""

    topics: list[TopicCount]
    """By topic, in the order of the topics' names."""

    other: Count
    """All further topics together."""


class TopicCount(TypedDict):
    """The count of one topic's events."""

    topic: str
    """The topic."""

    count: int
    """Events received."""

    lost: int
    """Events lost before they were received. A pattern of several topics counts them with the topic of the
    next event.
    """

    per_second_1m: float
    """Events a second, on average over the last minute."""


class Count(TypedDict):
    """A count of events."""

    count: int
    """Events received."""

    lost: int
    """Events lost before they were received."""

    per_second_1m: float
    """Events a second, on average over the last minute."""
