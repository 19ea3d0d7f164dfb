"""Types of `weir_peer.py`, for `mypy --strict`."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

class WeirError(Exception):
    case: str
    code: str
    text: str
    a: int
    b: int
    def __init__(self, case: str, code: str = "", text: str = "", a: int = 0, b: int = 0) -> None: ...

class Ended(WeirError): ...

class Failure(Exception):
    code: str
    text: str
    def __init__(self, code: str, text: str = "") -> None: ...

@dataclass
class Request:
    sender: str
    operation: str
    remaining_ms: int
    payload: bytes
    trace: str = ""

@dataclass
class Event:
    sender: str
    topic: str
    sequence: int
    lost: int
    retained: bool
    payload: bytes

@dataclass
class Job:
    peer: Peer
    number: int
    message: int
    deliveries: int
    sender: str
    payload: bytes
    trace: str = ""
    def done(self) -> None: ...
    def give_back(self) -> None: ...
    def __enter__(self) -> Job: ...
    def __exit__(self, error: object, *_: object) -> None: ...

class Peer:
    ended: Ended | None
    version: int
    session: int
    message_size: int
    in_flight: int
    def __init__(self, path: str, name: str, token: str = "", requests: int = 8, events: int = 64) -> None: ...
    def call(
        self,
        contract: str,
        operation: str,
        payload: bytes = b"",
        timeout_ms: int = 0,
        provider: str = "",
        trace: str = "",
    ) -> bytes: ...
    def publish(self, topic: str, payload: bytes = b"", to: str = "", trace: str = "") -> tuple[int, int, int]: ...
    def subscribe(self, pattern: str) -> Iterator[Event]: ...
    def put(
        self, name: str, payload: bytes, until_done: bool = False, timeout_ms: int = 0, trace: str = ""
    ) -> bytes: ...
    def put_later(
        self, name: str, payload: bytes, until_done: bool = False, timeout_ms: int = 0, trace: str = ""
    ) -> Future[bytes]: ...
    def take(self, name: str) -> Job: ...
    def serve(self, contract: str, handlers: Mapping[str, Callable[[Request], bytes]]) -> None: ...
    def describe(self, documents: bytes) -> None: ...
    def close(self) -> None: ...
    def wait(self) -> Ended: ...
