"""The device's settings, each with a fixed type.

Written from `settings@1` by `weir generate python --for app`: changes here do not last.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

import weir_peer
from weir_peer import Ended, Peer


Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
"""Anything that JSON can say."""


WAITS = (0.25, 15.0)
"""Seconds before a subscription is tried again: the first wait, and the longest one."""


class Connection:
    """A connection with Main that begins a new session when one has ended.

    It never repeats a call: one under way at a break raises `Ended`, and may have been carried out. Subscriptions are made
    again, and tell of the gap. Without a connection everything else raises `OSError`, `EOFError` or `Ended`.
    """

    def __init__(self, path: str, name: str, token: str = "") -> None:
        self._path, self._name, self._token = path, name, token
        self._lock = threading.Lock()
        self._peer: Peer | None = None

    def peer(self) -> Peer:
        """The session, or a new one if there is none."""
        with self._lock:
            if self._peer is None or self._peer.ended:
                self._peer = Peer(self._path, self._name, self._token)
            return self._peer

    def events(self, pattern: str, read: Any) -> Iterator[Event[Any] | Gap]:
        peer = self.peer()
        return self._events(peer, peer.subscribe(pattern), pattern, read)

    def _events(
        self, peer: Peer, events: Iterator[weir_peer.Event], pattern: str, read: Any
    ) -> Iterator[Event[Any] | Gap]:
        while True:
            for event in events:
                yield _event(event, read)
            if not peer.ended:
                return  # The operator took the grant back.
            peer, events = self._again(pattern)
            yield Gap()

    def _again(self, pattern: str) -> tuple[Peer, Iterator[weir_peer.Event]]:
        wait, longest = WAITS
        while True:
            try:
                peer = self.peer()
                return peer, peer.subscribe(pattern)
            except (OSError, EOFError, Ended):
                time.sleep(wait)
            wait = min(longest, 2 * wait)


@dataclass(frozen=True)
class Gap:
    """The connection was gone, and is there again. Events may be missing: read the state anew."""


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

    def subscribe_changed(self, pattern: str = "settings.changed.>") -> Iterator[Event[Changed] | Gap]:
        """Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.

        Subscribes, and gives the events as they come. `pattern` may name fewer topics. A `Gap` tells that
        events may be missing.
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
