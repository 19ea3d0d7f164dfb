"""What a handler can reach: other contracts, topics, queues, its caller, time and configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ._contract import Event, Operation, Queue, Receipt, Topic
from ._errors import HandlerError, Invalid, Timeout
from ._extension import Subscribed, event_topic
from ._host import Job as HostJob
from ._host import Options
from ._link import Link, current, log, origin
from ._types import Misfit, encode

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


class Job(Generic[T]):
    """A job in hand. `with` marks it as done at its end, and gives it back after an exception.

    Without `with`, `done()` finishes it. A job that is dropped is given back: another reader gets it, or this one
    again.
    """

    def __init__(self, link: Link, job: HostJob, payload: T) -> None:
        self.id, self.deliveries, self.payload = job.id, job.deliveries, payload
        self._link, self._sender, self._in_hand = link, job.sender, True

    @property
    def sender(self) -> str | None:
        """The name of the sender. Main vouches for it."""
        return self._link.host.name_of(self._sender)

    def done(self) -> None:
        """Finishes the job: no reader gets it again."""
        self._in_hand = False
        self._link.host.done(self.id)

    def give_back(self) -> None:
        """Gives the job back. After the operator's number of deliveries it goes to the dead letters."""
        if self._in_hand:
            self._in_hand = False
            self._link.jobs.give_back(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.give_back()
        elif self._in_hand:
            self.done()

    def __del__(self) -> None:
        if getattr(self, "_in_hand", False):
            self.give_back()


class Subscription:
    """A subscription that was made at run time."""

    def __init__(self, link: Link, number: int) -> None:
        self._link, self._number = link, number

    def unsubscribe(self) -> None:
        """Ends it, and drops its events that wait."""
        self._link.server.lanes.pop(self._number, None)
        self._link.host.unsubscribe(self._number)


async def call(
    operation: Operation[A, R], arguments: A | None = None, *, timeout: float | None = None, provider: str | None = None
) -> R:
    """Calls an operation and waits for its result. Meanwhile this extension serves other messages.

    `timeout` is in seconds. A call made for a request has at most the time left for that request. `provider` names an
    extension, or `main`, instead of the owner of the contract. Cancelling gives up the request.
    """
    payload = await _send(operation, arguments, timeout, provider)
    return _result(operation, payload)


def send(
    operation: Operation[A, R], arguments: A | None = None, *, timeout: float | None = None, provider: str | None = None
) -> asyncio.Future[R]:
    """Sends a request at once, and returns a future of its result. Cancelling the future gives up the request."""
    answer = _send(operation, arguments, timeout, provider)
    result: asyncio.Future[R] = answer.get_loop().create_future()

    def answered(answer: asyncio.Future[bytes]) -> None:
        if result.done() or answer.cancelled():
            result.cancel()
        elif error := answer.exception():
            result.set_exception(error)
        else:
            try:
                result.set_result(_result(operation, answer.result()))
            except StopIteration as error:
                # No future can hold it.
                result.set_exception(RuntimeError(f"{error!r} of `{operation}`"))
            except BaseException as error:
                result.set_exception(error)

    answer.add_done_callback(answered)
    result.add_done_callback(lambda result: answer.cancel() if result.cancelled() else None)
    return result


def publish(topic: str | Topic[T], value: T, *, to: str | None = None, timeout: float | None = None) -> Receipt:
    """Publishes an event: bytes as they are, all else as JSON. `to` names one extension that alone gets it.

    This waits for room where the operator's policy for a full subscription is `block`, at most `timeout` seconds.
    Nothing else of this extension runs meanwhile.
    """
    return _link().host.publish(to, str(topic), encode(value), _options(timeout))


def subscribe(pattern: str | Topic[T], handler: Callable[[Event[T]], Awaitable[None]]) -> Subscription:
    """Subscribes to a pattern that is known only at run time. The handler is as for `Extension.on_event`.

    A pattern has one handler: the same one may subscribe again.
    """
    link, topic = _link(), event_topic(pattern, handler)
    number = link.host.subscribe(topic.name)
    lane = link.server.lanes.get(number)
    if lane is None:
        link.server.add_lane(number, Subscribed(topic, handler))
    elif lane.handler is not handler:
        raise Invalid(f"`{topic}` has another handler already")
    return Subscription(link, number)


def put(queue: str | Queue[T], job: T, *, timeout: float | None = None) -> int:
    """Puts a job at the end of a queue, and returns its id. It stays there even if the request in hand fails.

    If the queue is full, the operator's policy decides. With `block` this waits for room, as `publish` does.
    """
    link = _link()
    return link.host.put(link.jobs.number_of(str(queue)), encode(job), _options(timeout))


async def take(queue: Queue[T], *, timeout: float | None = None) -> Job[T]:
    """Waits for one job, at most `timeout` seconds. Meanwhile this extension serves other messages.

    A job that is not of the queue's type is logged and given back.
    """
    try:
        async with asyncio.timeout(timeout):
            while True:
                link = _link()
                job = await link.jobs.take(queue.name)
                try:
                    return Job(link, job, queue.payload.decode(job.payload))
                except Misfit as misfit:
                    log.warning("a job does not fit its type", extra={"queue": queue, "job": job.id, "error": misfit})
                    link.jobs.give_back(job.id)
    except TimeoutError as error:
        raise Timeout() from error


def sender() -> str | None:
    """The name of the sender of the request, event or job in hand. Main vouches for it."""
    found = origin.get(None)
    return None if found is None or found.sender is None else _link().host.name_of(found.sender)


def remaining() -> float | None:
    """Seconds left to answer the request in hand. None if there is no request.

    When they have passed, the caller has been told `timeout`, and the handler is cancelled where it waits.
    """
    found = origin.get(None)
    if found is None or found.id is None or found.deadline is None:
        return None
    return max(0.0, found.deadline - _link().host.now())


def config(key: str) -> str | None:
    """A value of this extension's `config` table in the operator's file."""
    return _link().host.config(key)


def own_name() -> str:
    """The id under which the operator runs this extension."""
    return _link().host.own_name()


def ready() -> None:
    """Declares that this extension serves again after `interrupted`."""
    _link().host.ready()


def interrupted(reason: str) -> None:
    """Declares that this extension cannot serve for now. Requests to it fail with `not-ready` until `ready`."""
    _link().host.interrupted(reason)


def _send(
    operation: Operation[A, Any], arguments: A | None, timeout: float | None, provider: str | None
) -> asyncio.Future[bytes]:
    if arguments is None and operation.arguments.is_bytes:
        payload = b""
    elif arguments is None and operation.arguments.record:
        payload = b"{}"
    else:
        payload = encode(arguments)
    return _link().send((operation.contract, operation.name, provider), payload, _options(timeout))


def _result(operation: Operation[Any, R], payload: bytes) -> R:
    try:
        result: R = operation.result.decode(payload)
        return result
    except Misfit as misfit:
        raise HandlerError("invalid-answer", f"`{operation}`: {misfit}") from misfit


def _options(timeout: float | None) -> Options:
    found = origin.get(None)
    # Main counts from 1: with no time left, ask for the least.
    timeout_ms = None if timeout is None else min(max(int(timeout * 1000), 1), 0xFFFF_FFFF)
    return Options(timeout_ms, found.id if found else None)


def _link() -> Link:
    link = current.get(None)
    if link is None:
        raise RuntimeError("there is no Main here: this works in a handler, or in a task that a handler has made")
    return link
