"""Takes messages, runs their handlers, sends their answers."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Coroutine, Iterable
from contextvars import Context
from typing import Any

from . import _host as host
from ._contract import Event
from ._errors import Error, HandlerError, Invalid, TooLarge, as_answer
from ._extension import Extension, Served, Subscribed, Worked
from ._link import Link, Origin, current, log, origin
from ._types import Misfit, encode

_WAITING = 256
"""Events that may wait for one waiting handler: Main's default for an extension. Beyond that the oldest are lost.

They cannot stay in the inbox. It yields all subscriptions or none, and the handler may be waiting for an event of
another.
"""


_EAGER: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
"""Runs a handler at once, as far as it does not wait: most need no turn of the loop, and no timer."""


class Server:
    """One run of an extension: the `Receiver` of its messages."""

    def __init__(self, extension: Extension, link: Link) -> None:
        self._extension, self._link, self._host, self._loop = extension, link, link.host, link.loop
        self._operations: dict[int, Served] = {}
        self._workers: dict[int, Worked] = {}
        self._handlers: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Future[None] = link.loop.create_future()
        self._has_failed = False
        self.lanes: dict[int, Lane] = {}
        link.server = self

    async def run(self) -> None:
        """Serves until stop, then finishes what is in hand. Tells Main why it fails, before it raises that."""
        current.set(self._link)
        try:
            await self._serve()
        except Exception as error:
            self._fail(error)
            raise

    async def _serve(self) -> None:
        self._extension.check()
        self._declare()
        if hook := self._extension.hooks.get("on_start"):
            await hook()
        self._host.ready()
        self._link.is_receiving = True
        self._link.jobs.open()
        for number, worked in self._workers.items():
            self._link.jobs.offer(number, worked.at_once)
        background = [self._loop.create_task(self._background(task())) for task in self._extension.tasks]
        self._loop.on_readable, self._loop.listens = self._take, self._link.listens
        try:
            await self._stop
        except BaseException as error:
            # Without a stop from Main, the inbox may hold new requests.
            self._link.stop_receiving()
            if isinstance(error, Exception):
                # Now: a handler in hand may never return.
                self._fail(error)
            raise
        finally:
            self._link.is_stopping = True
            for task in background:
                task.cancel()
            self._link.jobs.close()
            while waiting := self._handlers | {task for task in background if not task.done()}:
                await asyncio.wait(waiting)
            self._link.stop_receiving()
        if hook := self._extension.hooks.get("on_stop"):
            await hook()
        await self._cancel_the_rest()

    def _fail(self, error: Exception) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        if isinstance(error, Error):
            self._host.error(str(error))
        else:
            log.error("the extension failed", exc_info=error)
            self._host.error(f"{type(error).__name__}: {error}")

    def _declare(self) -> None:
        for contract in self._extension.fulfills:
            served = [one for one in self._extension.operations if one.operation.contract == contract]
            first = self._host.serve(contract, [one.operation.name for one in served])
            self._operations |= dict(enumerate(served, first))
        for subscribed in self._extension.subscriptions:
            self.add_lane(self._host.subscribe(subscribed.topic.name), subscribed)
        for worked in self._extension.jobs:
            self._workers[self._link.jobs.number_of(worked.queue.name)] = worked

    def add_lane(self, number: int, subscribed: Subscribed) -> None:
        """Events of a subscription go to this handler."""
        self.lanes[number] = Lane(subscribed)

    def request(self, request: host.Request) -> None:
        served = self._operations.get(request.operation)
        if served is None:
            code, message = as_answer(Invalid(f"operation number {request.operation} was never given out")) or ("", "")
            return self._host.fail(request.id, code, message)
        deadline = self._loop.time() + request.remaining_ms / 1000
        found = Origin(request.sender, request.id, deadline)
        task = self._start(self._answer(served, request, found), found)
        if not task.done():
            timer = self._loop.call_at(deadline, _expire, task, found)
            task.add_done_callback(lambda _: timer.cancel())

    def response(self, id: int, outcome: bytes | Exception) -> None:
        self._link.response(id, outcome)

    def event(self, event: host.Event) -> None:
        # None: it has been unsubscribed since.
        if (lane := self.lanes.get(event.subscription)) and lane.push(event):
            self._start(lane.handle_all(), None)

    def arrived(self, jobs: Iterable[host.Job]) -> None:
        self._link.jobs.arrived(jobs)

    def job(self, job: host.Job) -> None:
        if taken := self._link.jobs.hand_on(job):
            found = Origin(taken.sender, taken.id)
            self._start(self._work(self._workers[taken.queue], taken, found), found)

    def _take(self) -> None:
        if self._host.take(self):
            return
        if not self._stop.done():
            self._stop.set_result(None)
        else:
            # No more answers will come.
            self._link.stop_receiving()

    async def _cancel_the_rest(self) -> None:
        """Tasks that handlers have made and not awaited."""
        rest = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _start(self, handler: Coroutine[Any, Any, None], found: Origin | None) -> asyncio.Task[None]:
        context = Context()
        context.run(current.set, self._link)
        if found:
            context.run(origin.set, found)
        task = asyncio.Task(handler, loop=self._loop, context=context, **_EAGER)
        if task.done():
            self._ended(task)
        else:
            self._handlers.add(task)
            task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._handlers.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self._stop.done():
            # Not of a handler: those are answered.
            self._stop.set_exception(error)

    async def _background(self, task: Any) -> None:
        try:
            await task
        except Exception as error:
            if not self._stop.done():
                self._stop.set_exception(error)

    async def _answer(self, served: Served, request: host.Request, found: Origin) -> None:
        operation = served.operation
        try:
            if served.takes_arguments:
                result = await served.handler(operation.arguments.decode_arguments(request.payload))
            else:
                result = await served.handler()
            payload = encode(result)
        except (Exception, asyncio.CancelledError) as error:
            if found.is_overdue:
                # The caller has been told `timeout`.
                return
            answer = as_answer(error)
            if answer is None:
                log.error("a handler failed", exc_info=error, extra={"operation": str(operation)})
                answer = "unexpected", f"the handler of `{operation}` failed; the log says why"
            found.id = None
            return self._respond(self._host.fail, request.id, *answer)
        found.id = None
        try:
            self._respond(self._host.respond, request.id, payload)
        except TooLarge as error:
            self._refused(error)
            self._respond(self._host.fail, request.id, *(as_answer(error) or ("", "")))

    def _respond(self, respond: Any, *answer: Any) -> None:
        try:
            respond(*answer)
        except TooLarge:
            raise
        except Error as error:
            self._refused(error)

    def _refused(self, error: Error) -> None:
        log.warning("an answer was refused", extra={"error": error})

    async def _work(self, worked: Worked, job: host.Job, found: Origin) -> None:
        try:
            await worked.handler(worked.queue.payload.decode(job.payload))
            found.id = None
            self._host.done(job.id)
        except (Exception, asyncio.CancelledError) as error:
            found.id = None
            _report("a job was not done", error, {"queue": worked.queue, "job": job.id, "deliveries": job.deliveries})
            self._link.jobs.give_back(job.id)
        self._link.jobs.offer_again(job.queue)


class Lane:
    """The events of a subscription, handed to its handler one after the other, in the order in which they came."""

    def __init__(self, subscribed: Subscribed) -> None:
        self._topic, self.handler = subscribed.topic, subscribed.handler
        self._waiting: deque[host.Event] = deque()
        self._lost = 0
        self._is_busy = False

    def push(self, event: host.Event) -> bool:
        """Whether somebody must handle it: the handler is not busy."""
        if len(self._waiting) == _WAITING:
            self._lost += self._waiting.popleft().lost + 1
        self._waiting.append(event)
        was_busy, self._is_busy = self._is_busy, True
        return not was_busy

    async def handle_all(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            lost, self._lost = event.lost + self._lost, 0
            origin.set(Origin(event.sender))
            topic = event.topic or self._topic.name
            try:
                payload = self._topic.payload.decode(event.payload)
                await self.handler(Event(topic, payload, event.sequence, lost, event.retained))
            except (Exception, asyncio.CancelledError) as error:
                _report("an event was not handled", error, {"topic": topic})
        self._is_busy = False


def _expire(task: asyncio.Task[None], found: Origin) -> None:
    found.is_overdue = True
    task.cancel()


def _report(message: str, error: BaseException, fields: dict[str, Any]) -> None:
    if isinstance(error, Misfit):
        error = HandlerError.invalid_argument(error)
    if as_answer(error):
        log.warning(message, extra=fields | {"error": error})
    else:
        log.error(message, exc_info=error, extra=fields)
