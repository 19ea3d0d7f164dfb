"""Contracts, and what belongs to them: constants that a provider shares with its callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from . import _names as names
from ._errors import DeclarationError
from ._types import Payload

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")


class Operation(Generic[A, R]):
    """An operation of a contract, with the types of its arguments and its result.

    `bytes` as a type stands for a payload that is no JSON. `Any` takes all JSON.
    """

    @overload
    def __init__(
        self, contract: str | Contract, name: str, arguments: type[A], result: type[R], doc: str = ""
    ) -> None: ...
    @overload
    def __init__(
        self, contract: str | Contract, name: str, arguments: Any = ..., result: Any = ..., doc: str = ""
    ) -> None: ...
    def __init__(
        self, contract: str | Contract, name: str, arguments: Any = Any, result: Any = Any, doc: str = ""
    ) -> None:
        self.of = contract if isinstance(contract, Contract) else Contract(contract)
        self.contract = self.of.name
        self.name, self.doc = _operation(name), doc
        self.arguments = Payload(arguments, f"the arguments of `{self}`")
        self.result = Payload(result, f"the result of `{self}`")
        if self.arguments.is_bytes != self.result.is_bytes and Any not in (arguments, result):
            raise DeclarationError(f"`{self}`: either both the arguments and the result are `bytes`, or none is")

    def __str__(self) -> str:
        return f"{self.contract} {self.name}"

    def __repr__(self) -> str:
        return f"Operation({self})"


class Topic(Generic[T]):
    """A topic, or a pattern of topics: `*` stands for one segment, `>` at the end for one or more."""

    @overload
    def __init__(self, name: str, type: type[T], doc: str = "") -> None: ...
    @overload
    def __init__(self, name: str, type: Any = ..., doc: str = "") -> None: ...
    def __init__(self, name: str, type: Any = Any, doc: str = "") -> None:
        if not names.is_pattern(name):
            raise DeclarationError(f"`{name}` is no topic, nor a pattern of topics")
        self.name, self.doc = name, doc
        self.payload = Payload(type, f"the topic `{name}`")

    def at(self, segment: str) -> Topic[T]:
        """The topic with this segment in the place of the first `*` or `>`."""
        place = min((self.name.find(wild) for wild in "*>" if wild in self.name), default=len(self.name))
        return Topic(self.name[:place] + segment + self.name[place + 1 :], self.payload.type, self.doc)

    def __str__(self) -> str:
        return self.name


class Queue(Generic[T]):
    """A shared queue with jobs of one type."""

    @overload
    def __init__(self, name: str, type: type[T], doc: str = "") -> None: ...
    @overload
    def __init__(self, name: str, type: Any = ..., doc: str = "") -> None: ...
    def __init__(self, name: str, type: Any = Any, doc: str = "") -> None:
        if not names.is_queue(name):
            raise DeclarationError(f"`{name}` is no queue: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter")
        self.name, self.doc = name, doc
        self.payload = Payload(type, f"the queue `{name}`")

    def __str__(self) -> str:
        return self.name


class Contract:
    """A contract: a name with a version, such as `greeter@1`.

    Operations, topics and queues that are made with its methods belong to its description.
    """

    def __init__(self, name: str, doc: str = "") -> None:
        self.name, self.doc = _contract(name), doc
        self.operations: list[Operation[Any, Any]] = []
        self.topics: list[Topic[Any]] = []
        self.queues: list[Queue[Any]] = []

    @overload
    def operation(self, name: str, arguments: type[A], result: type[R], doc: str = "") -> Operation[A, R]: ...
    @overload
    def operation(self, name: str, arguments: Any = ..., result: Any = ..., doc: str = "") -> Operation[Any, Any]: ...
    def operation(self, name: str, arguments: Any = Any, result: Any = Any, doc: str = "") -> Operation[Any, Any]:
        """An operation, for callers, or for a provider that shares it with them."""
        operation: Operation[Any, Any] = Operation(self, name, arguments, result, doc)
        self.operations.append(operation)
        return operation

    @overload
    def topic(self, name: str, type: type[T], doc: str = "") -> Topic[T]: ...
    @overload
    def topic(self, name: str, type: Any = ..., doc: str = "") -> Topic[Any]: ...
    def topic(self, name: str, type: Any = Any, doc: str = "") -> Topic[Any]:
        """A topic of the contract."""
        topic: Topic[Any] = Topic(name, type, doc)
        self.topics.append(topic)
        return topic

    @overload
    def queue(self, name: str, type: type[T], doc: str = "") -> Queue[T]: ...
    @overload
    def queue(self, name: str, type: Any = ..., doc: str = "") -> Queue[Any]: ...
    def queue(self, name: str, type: Any = Any, doc: str = "") -> Queue[Any]:
        """A queue of the contract."""
        queue: Queue[Any] = Queue(name, type, doc)
        self.queues.append(queue)
        return queue

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Empty:
    """No arguments."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """An event, with the envelope that Main stamped on it."""

    topic: str
    """The topic that it was published under."""
    payload: T
    """The published value."""
    sequence: int
    """Rises with each event of the topic. 0 for an event published to this extension alone."""
    lost: int
    """Events of this subscription that were lost just before this one."""
    retained: bool
    """Whether it was published before this instance subscribed: the last value of a topic that Main retains."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts of the subscriptions that an event reached or missed."""

    delivered: int
    """Subscriptions with the event in their inbox."""
    shed: int
    """Events lost because an inbox was full: this one, or older ones in its place."""
    refused: int
    """Full subscriptions that refused it, or for which the publisher waited in vain."""


def _contract(name: str) -> str:
    if not names.is_contract(name):
        raise DeclarationError(f"`{name}` is no contract: a name with a version is expected, such as `greeter@1`")
    return name


def _operation(name: str) -> str:
    if not names.is_operation(name):
        raise DeclarationError(f"`{name}` is no operation: 1 to 128 printable ASCII characters without `/`")
    return name
