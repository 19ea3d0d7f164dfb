"""Names and types that are hard to say.

``
panic!("*/ and \\"\\"\\" and \\u{202e}")
``
indented()
>> import os

Written from `odd.things@2` by `weir generate python --for app`: changes here do not last.
"""

from __future__ import annotations

import builtins
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Never, NotRequired, TypeAlias, TypedDict, TypeVar

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


class OddThingsClient(Client):
    """Names and types that are hard to say.

    ``
    panic!("*/ and \\"\\"\\" and \\u{202e}")
    ``
    indented()
    >> import os

    A client of `odd.things@2`.
    """

    CONTRACT = "odd.things@2"

    def type(
        self,
        *,
        type: Kind,
        class_: builtins.list[builtins.str],
        self_: builtins.str | None = None,
        gr_e: int | None = None,
        answer: Json | None = None,
        base64: Tree | None = None,
    ) -> Kind:
        """Keywords.

        - type: A keyword of Rust.
        - class_: A keyword of Python and JavaScript.

        Codes of a `WeirError` that are the contract's own:
        - `*/ "``: The code is odd.
        - `plain`
        """
        _arguments: dict[str, object] = {"type": type, "class": class_}
        if self_ is not None:
            _arguments["self"] = self_
        if gr_e is not None:
            _arguments["größe"] = gr_e
        if answer is not None:
            _arguments["_answer"] = answer
        if base64 is not None:
            _arguments["$base64"] = base64
        _answer: Kind = self._call("type", _arguments)
        return _answer

    def list(self, argument: builtins.list[Pair]) -> builtins.list[Node]:
        _answer: builtins.list[Node] = self._call("list", argument)
        return _answer

    def str(self, argument: builtins.str | None) -> dict[builtins.str, Kind]:
        _answer: dict[builtins.str, Kind] = self._call("str", argument)
        return _answer

    def constructor(self, *, inner: ConstructorInner) -> ConstructorResult:
        _arguments: dict[str, object] = {"inner": inner}
        _answer: ConstructorResult = self._call("constructor", _arguments)
        return _answer

    def _2nd_self(self, payload: bytes) -> bytes:
        return self._call_bytes("2nd.Self", payload)

    def nothing(self) -> None:
        """Takes nothing, strictly."""
        _arguments: dict[str, object] = {}
        _answer: None = self._call("nothing", _arguments)
        return _answer

    def never(self) -> None:
        _answer: None = self._call("never", {})
        return _answer

    def subscribe_moved(
        self,
        pattern: builtins.str = "odd.things.*.moved.>",
    ) -> Iterator[Event[Shape] | Gap]:
        """Moves.

        Subscribes, and gives the events as they come. `pattern` may name fewer topics. A `Gap` tells that
        events may be missing.
        """
        return self._events(pattern, _read)

    def subscribe_pictures(self, pattern: builtins.str = "pictures") -> Iterator[Event[bytes] | Gap]:
        """Subscribes, and gives the events as they come. A `Gap` tells that events may be missing."""
        return self._events(pattern, bytes)

    def subscribe_events(
        self,
        pattern: builtins.str = "odd.things.*",
    ) -> Iterator[Event[Literal["on", "off"]] | Gap]:
        """Subscribes, and gives the events as they come. `pattern` may name fewer topics. A `Gap` tells that
        events may be missing.
        """
        return self._events(pattern, _read)

    def put_jobs(self, job: Shape, until_done: bool = False) -> None:
        """Work.

        Puts a job into the queue.
        """
        self._put("jobs", _written(job), until_done)

    def take_jobs(self) -> Job[Shape]:
        """Work.

        Takes a job, and waits for it without a limit.
        """
        return self._take("jobs", _read)

    def put_raw_jobs(self, job: bytes, until_done: bool = False) -> None:
        """Puts a job into the queue."""
        self._put("raw-jobs", job, until_done)

    def take_raw_jobs(self) -> Job[bytes]:
        """Takes a job, and waits for it without a limit."""
        return self._take("raw-jobs", bytes)


class ConstructorResult(TypedDict):
    made: bool


class ConstructorInner(TypedDict):
    deep: ConstructorInnerDeep


ConstructorInnerDeep = TypedDict(
    "ConstructorInnerDeep",
    {
        "x y": "NotRequired[float]",
    },
)


Kind: TypeAlias = Literal["self", "Self", "1st", "", "a b", "None", "größer"] | str
"""Words.

- `größer`: Not Latin.
A later version of the contract may have more.
"""


class Node(TypedDict):
    """A tree with its parts inside."""

    left: NotRequired[Node | None]

    right: NotRequired[Node]

    parent: NotRequired[NodeParent]

    children: list[Node]

    value: Value


class NodeParent(TypedDict):
    node: NotRequired[Node]


Tree: TypeAlias = "list[Tree]"
"""A list of such lists."""


Pair: TypeAlias = "list[float | str]"


Seconds: TypeAlias = "int"
"""Time."""


Shape: TypeAlias = "ShapeCircle | ShapeGroupOf | ShapeNone"
"""By a field with its name.

A later version of the contract may have more.
"""


class ShapeCircle(TypedDict):
    """Round."""

    kind: Literal["circle"]

    radius: float
    """From the middle."""


ShapeGroupOf = TypedDict(
    "ShapeGroupOf",
    {
        "kind": "Literal[\"group-of\"]",
        "content": "list[Shape]",
        "for": "NotRequired[Seconds]",
    },
)


class ShapeNone(TypedDict):
    kind: Literal["none"]


Move: TypeAlias = "Literal[\"stay\", \"leave\"] | MoveBy | MoveTo | MoveThen | MoveBoth"
"""By its only field."""


class MoveBy(TypedDict):
    """By so much."""

    by: Pair


class MoveTo(TypedDict):
    to: MoveToTo


class MoveThen(TypedDict):
    then: Move


class MoveBoth(TypedDict):
    both: list[Move | bool]


class MoveToTo(TypedDict):
    x: int

    y: int


Value: TypeAlias = "int | float | Literal[\"auto\"] | Literal[7] | Literal[True] | list[Value] | Move | ValueObject | list[bool | None] | None"
"""By nothing but its JSON."""


ValueObject = TypedDict(
    "ValueObject",
    {
        "__odd": "NotRequired[str]",
        # Has a space.
        "no name": "int",
    },
)


Nobody: TypeAlias = "Never"


class Empty(TypedDict):
    pass


Anything: TypeAlias = "Json"
"""Any JSON."""


Maybe: TypeAlias = "Empty | None"


class Event2(TypedDict):
    """Has the name of something else."""

    const: Literal["only"]

    promise: NotRequired[Promise]


Promise: TypeAlias = "dict[str, Anything]"
