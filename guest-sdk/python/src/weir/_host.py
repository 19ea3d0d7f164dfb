"""What the SDK asks of Main. `_wasm` asks Main itself; `_memory` plays it for tests."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import NamedTuple, Protocol

from ._contract import Receipt

MAIN_BATCH = 32
"""Messages that are taken at once."""


class Options(NamedTuple):
    """How long an operation may take, and for which request or job it is done."""

    timeout_ms: int | None
    parent: int | None


class Request(Protocol):
    """A request, as it comes."""

    id: int
    sender: int
    operation: int
    remaining_ms: int
    payload: bytes


class Event(Protocol):
    """An event, as it comes."""

    sender: int
    subscription: int
    topic: str | None
    sequence: int
    lost: int
    retained: bool
    payload: bytes


class Job(Protocol):
    """A job, as it comes."""

    id: int
    queue: int
    sender: int
    deliveries: int
    payload: bytes


class Receiver(Protocol):
    """What messages are handed to."""

    def request(self, request: Request) -> None: ...
    def response(self, id: int, outcome: bytes | Exception) -> None: ...
    def event(self, event: Event) -> None: ...
    def job(self, job: Job) -> None: ...
    def arrived(self, jobs: Iterable[Job]) -> None:
        """Told the jobs of a batch, before the first message of it is handed on."""
        ...


class Host(Protocol):
    """The imports of `weir:iec`, with errors as exceptions, and time."""

    def now(self) -> float: ...
    def wait(self, timeout: float | None, for_inbox: bool) -> bool:
        """Waits for the inbox, at most so long: whether a receive would not wait."""
        ...

    def take(self, receiver: Receiver) -> bool:
        """Hands on what waits in the inbox. False: no more messages will come, but answers."""
        ...

    def serve(self, contract: str, operations: Sequence[str]) -> int: ...
    def respond(self, request: int, payload: bytes) -> None: ...
    def fail(self, request: int, code: str, message: str) -> None: ...
    def open(self, contract: str, operation: str, provider: str | None) -> int: ...
    def call(self, target: int, payload: bytes, options: Options) -> Awaitable[bytes]: ...
    def send(self, target: int, payload: bytes, options: Options) -> int: ...
    def cancel(self, request: int) -> None: ...
    def subscribe(self, pattern: str) -> int: ...
    def unsubscribe(self, subscription: int) -> None: ...
    def publish(self, to: str | None, topic: str, payload: bytes, options: Options) -> Receipt: ...
    def open_queue(self, queue: str) -> int: ...
    def put(self, queue: int, payload: bytes, options: Options) -> int: ...
    def take_jobs(self, queue: int, jobs: int) -> None: ...
    def done(self, job: int) -> None: ...
    def give_back(self, job: int) -> None: ...
    def ready(self) -> None: ...
    def interrupted(self, reason: str) -> None: ...
    def error(self, reason: str) -> None: ...
    def own_name(self) -> str: ...
    def name_of(self, peer: int) -> str | None: ...
    def config(self, key: str) -> str | None: ...
