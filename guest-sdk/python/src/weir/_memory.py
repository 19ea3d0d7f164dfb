"""Main in memory: one extension, fakes of the contracts that it calls, and its manifest as its grants."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from . import _names as names
from ._contract import Receipt
from ._errors import (
    Error,
    HandlerError,
    Invalid,
    NotReady,
    PeerGone,
    PermissionDenied,
    Timeout,
    TooLarge,
    UnknownContract,
    as_answer,
    utf8,
)
from ._extension import Extension
from ._host import MAIN_BATCH, Options, Receiver
from ._loop import Loop
from ._memory_queues import Queues

T = TypeVar("T")

TIMEOUT = 5.0
TEST, EXTENSION = 1, 2
"""The number of the test, and of the extension."""


@dataclass
class Request:
    id: int
    sender: int
    operation: int
    remaining_ms: int
    payload: bytes


@dataclass
class Event:
    sender: int
    subscription: int
    topic: str | None
    sequence: int
    lost: int
    retained: bool
    payload: bytes


@dataclass
class Published:
    """An event that the extension published."""

    topic: str
    payload: bytes
    to: str | None
    """The one extension that it was meant for. None: all subscribers."""

    def json(self) -> Any:
        """The payload, read as JSON."""
        return json.loads(self.payload)


@dataclass
class Asked:
    deadline: float
    answer: bytes | Error | None = None


Fake = Callable[[bytes], Awaitable[bytes]]


class Host:
    """Implements `_host.Host`. The second half is the test's side."""

    def __init__(self, extension: Extension) -> None:
        self.extension, self.queues = extension, Queues()
        self.time, self.last_id, self.is_ready = 0.0, 0, False
        self.why_interrupted: str | None = None
        self.why_failed: str | None = None
        self.message_size, self.sender = 1 << 62, "test"
        self.values: dict[str, str] = {}
        self.asked: dict[int, Asked] = {}
        self.fakes: dict[tuple[str, str], Fake] = {}
        self.under_way: dict[int, asyncio.Future[bytes]] = {}
        self.published: list[Published] = []
        self.loop: Loop
        self._must_stop, self._knows_stop = False, False
        self._answers: deque[tuple[int, bytes | Exception]] = deque()
        self._requests: deque[Request] = deque()
        self._events: deque[Event] = deque()
        self._served: list[tuple[str, str]] = []
        self._targets: list[tuple[str, str]] = []
        self._subscriptions: dict[int, str] = {}
        self._last_subscription = 0
        self._sequences: dict[str, int] = {}
        self._retained: dict[str, bytes] = {}

    def now(self) -> float:
        return self.time

    def wait(self, timeout: float | None, for_inbox: bool) -> bool:
        if for_inbox and self._is_readable():
            return True
        if timeout is None or timeout > 0:
            # All wait for the test, or for time to pass.
            self.loop.stop()
        return False

    def take(self, receiver: Receiver) -> bool:
        if self._must_stop and not self._knows_stop:
            self._knows_stop = True
            return False
        answers = _first(self._answers, MAIN_BATCH)
        room = 0 if self._knows_stop else MAIN_BATCH - len(answers)
        requests = _first(self._requests, room)
        events = _first(self._events, room - len(requests))
        jobs = self.queues.take(room - len(requests) - len(events))
        receiver.arrived(jobs)
        for answer in answers:
            receiver.response(*answer)
        for request in requests:
            receiver.request(request)
        for event in events:
            receiver.event(event)
        for job in jobs:
            receiver.job(job)
        return not self._knows_stop or bool(self._answers or self.under_way)

    def serve(self, contract: str, operations: Sequence[str]) -> int:
        first = len(self._served)
        self._served += [(contract, operation) for operation in operations]
        return first

    def respond(self, request: int, payload: bytes) -> None:
        self._check_size(payload)
        self._answer(request, payload)

    def fail(self, request: int, code: str, message: str) -> None:
        self._answer(request, HandlerError(utf8(code), utf8(message)))

    def open(self, contract: str, operation: str, _provider: str | None) -> int:
        if contract not in self.extension.requires + self.extension.wants:
            raise PermissionDenied(
                f"`{self.extension.id}` may not call `{contract}`; `requires` or `wants` would grant it"
            )
        if not any(known == contract for known, _ in self.fakes):
            raise UnknownContract(contract)
        self._targets.append((contract, operation))
        return len(self._targets) - 1

    async def call(self, target: int, payload: bytes, options: Options) -> bytes:
        return await self._ask_fake(target, payload, options)

    def send(self, target: int, payload: bytes, options: Options) -> int:
        self._check_size(payload)
        id = self._next_id()
        answer = self._ask_fake(target, payload, options)
        self.under_way[id] = answer
        answer.add_done_callback(lambda answer: self._answered(id, answer))
        return id

    def cancel(self, request: int) -> None:
        if answer := self.under_way.pop(request, None):
            answer.cancel()

    def subscribe(self, pattern: str) -> int:
        if not names.is_pattern(pattern):
            raise Invalid(f"`{pattern}` is not a topic pattern")
        self._check_topic("subscribe to", "subscribes", self.extension.subscribes, pattern)
        for number, known in self._subscriptions.items():
            if known == pattern:
                return number
        self._last_subscription += 1
        number = self._last_subscription
        self._subscriptions[number] = pattern
        for topic, payload in self._retained.items():
            if names.covers(pattern, topic):
                event = Event(TEST, 0, None, self._sequences[topic], 0, True, payload)
                self._push(number, topic, event)
        return number

    def unsubscribe(self, subscription: int) -> None:
        if self._subscriptions.pop(subscription, None) is None:
            raise Invalid(f"there is no subscription {subscription}")
        self._events = deque(event for event in self._events if event.subscription != subscription)

    def publish(self, to: str | None, topic: str, payload: bytes, _options: Options) -> Receipt:
        if not names.is_topic(topic):
            raise Invalid(f"`{topic}` is not a topic")
        self._check_topic("publish", "publishes", self.extension.publishes, topic)
        self._check_size(payload)
        self.published.append(Published(topic, payload, to))
        if to is None:
            return Receipt(self.deliver(EXTENSION, topic, payload, 0), 0, 0)
        if to == self.extension.id:
            return Receipt(self._hand_out(topic, Event(EXTENSION, 0, None, 0, 0, False, payload)), 0, 0)
        return Receipt(1, 0, 0)

    def open_queue(self, queue: str) -> int:
        if queue not in self.extension.puts:
            self._check_queue("take jobs of", "takes", self.extension.takes, queue)
        return self.queues.number(queue)

    def put(self, queue: int, payload: bytes, _options: Options) -> int:
        self._check_queue("put jobs into", "puts", self.extension.puts, self.queues.name(queue))
        self._check_size(payload)
        return self.put_as(EXTENSION, queue, payload)

    def take_jobs(self, queue: int, jobs: int) -> None:
        self._check_queue("take jobs of", "takes", self.extension.takes, self.queues.name(queue))
        self.queues.ask(queue, jobs)

    def done(self, job: int) -> None:
        self.queues.done(job)

    def give_back(self, job: int) -> None:
        self.queues.give_back(job)

    def ready(self) -> None:
        self.is_ready, self.why_interrupted = True, None

    def interrupted(self, reason: str) -> None:
        self.why_interrupted = utf8(reason)

    def error(self, reason: str) -> None:
        self.why_failed = utf8(reason)

    def own_name(self) -> str:
        return self.extension.id

    def name_of(self, peer: int) -> str | None:
        return {TEST: self.sender, EXTENSION: self.extension.id}.get(peer)

    def config(self, key: str) -> str | None:
        return self.values.get(utf8(key))

    # The test's side.

    def ask(self, contract: str, operation: str, payload: bytes, timeout: float) -> int:
        if self.why_interrupted is not None:
            raise NotReady(self.why_interrupted)
        if not any(known == contract for known, _ in self._served):
            raise UnknownContract(contract)
        if (contract, operation) not in self._served:
            raise Invalid(f"`{contract}` has no operation `{operation}`")
        id = self._next_id()
        self.asked[id] = Asked(self.time + timeout)
        number = self._served.index((contract, operation))
        self._requests.append(Request(id, TEST, number, int(timeout * 1000), payload))
        return id

    def deliver(self, sender: int, topic: str, payload: bytes, lost: int) -> int:
        """Publishes to every matching subscription. Returns their number."""
        self._sequences[topic] = self._sequences.get(topic, 0) + lost + 1
        if topic in self._retained:
            self._retained[topic] = payload
        return self._hand_out(topic, Event(sender, 0, None, self._sequences[topic], lost, False, payload))

    def retain(self, topic: str, payload: bytes) -> None:
        self._sequences[topic] = self._sequences.get(topic, 0) + 1
        self._retained[topic] = payload

    def put_as(self, sender: int, queue: int, payload: bytes) -> int:
        id = self._next_id()
        self.queues.put(id, queue, sender, payload)
        return id

    def stop(self) -> None:
        self._must_stop = True

    def gone(self) -> None:
        """Tells the waiting callers that the extension is gone."""
        self.queues.give_all_back()
        for asked in self.asked.values():
            asked.answer = asked.answer or PeerGone()

    def _is_readable(self) -> bool:
        if self._must_stop and not self._knows_stop or self._answers:
            return True
        if self._knows_stop:
            return not self.under_way
        return bool(self._requests or self._events or self.queues.is_readable())

    def _answer(self, request: int, answer: bytes | Error) -> None:
        asked = self.asked.get(request)
        if asked is None:
            # The caller has given up.
            return
        if asked.answer is not None:
            raise Invalid(f"request {request} is answered already")
        asked.answer = answer

    def _ask_fake(self, target: int, payload: bytes, options: Options) -> asyncio.Future[bytes]:
        async def ask() -> bytes:
            contract, operation = self._targets[target]
            fake = self.fakes.get((contract, operation))
            if fake is None:
                raise Invalid(f"`{contract}` has no operation `{operation}`")
            timeout = TIMEOUT if options.timeout_ms is None else options.timeout_ms / 1000
            if options.parent in self.asked:
                timeout = min(timeout, self.asked[options.parent].deadline - self.time)
            try:
                async with asyncio.timeout(timeout):
                    return await fake(payload)
            except Exception as error:
                answer = as_answer(error)
                if isinstance(error, Error) and not isinstance(error, HandlerError):
                    raise
                if isinstance(error, TimeoutError):
                    raise Timeout() from error
                if answer is None:
                    raise
                raise HandlerError(*answer) from error

        return self.loop.create_task(ask(), context=Context())

    def _answered(self, id: int, answer: asyncio.Future[bytes]) -> None:
        if self.under_way.pop(id, None) is None or answer.cancelled():
            return
        error = answer.exception()
        if error and not isinstance(error, Error):
            # The fake is wrong: the test must see it.
            self.loop.call_exception_handler({"message": "a fake failed", "exception": error})
            error = HandlerError("unexpected", f"the fake failed: {error!r}")
        self._answers.append((id, error if isinstance(error, Exception) else answer.result()))

    def _hand_out(self, topic: str, event: Event) -> int:
        matching = [number for number, pattern in self._subscriptions.items() if names.covers(pattern, topic)]
        for number in matching:
            self._push(number, topic, event)
        return len(matching)

    def _push(self, number: int, topic: str, event: Event) -> None:
        shown = None if self._subscriptions[number] == topic else topic
        self._events.append(replace(event, subscription=number, topic=shown))

    def _check_topic(self, verb: str, key: str, grants: list[str], pattern: str) -> None:
        if not any(names.covers(grant, pattern) for grant in grants):
            raise self._denied(verb, key, pattern)

    def _check_queue(self, verb: str, key: str, grants: list[str], queue: str) -> None:
        if queue not in grants:
            raise self._denied(verb, key, queue)

    def _denied(self, verb: str, key: str, what: str) -> PermissionDenied:
        return PermissionDenied(f"`{self.extension.id}` may not {verb} `{what}`; `{key}` would grant it")

    def _check_size(self, payload: bytes) -> None:
        if len(payload) > self.message_size:
            raise TooLarge(len(payload), self.message_size)

    def _next_id(self) -> int:
        self.last_id += 1
        return self.last_id


def _first(waiting: deque[T], most: int) -> list[T]:
    return [waiting.popleft() for _ in range(min(most, len(waiting)))]


def fake_of(answer: Callable[[Any], Any], decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Fake:
    """A fake from a function, async or not, of the decoded arguments."""

    async def fake(payload: bytes) -> bytes:
        result = answer(decode(payload))
        return encode(await result if inspect.isawaitable(result) else result)

    return fake
