"""What all handlers share: Main, the targets looked up, requests under way, and jobs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from ._errors import Error, NotReady, PeerGone
from ._host import Host, Job, Options
from ._loop import Loop

log = logging.getLogger("weir")


class Origin:
    """The message that a handler runs for. `id` is its request or job, until that is answered or done."""

    __slots__ = ("sender", "id", "deadline", "is_overdue")

    def __init__(self, sender: int | None, id: int | None = None, deadline: float | None = None) -> None:
        self.sender, self.id, self.deadline, self.is_overdue = sender, id, deadline, False


class Link:
    """One run of an extension."""

    def __init__(self, host: Host, loop: Loop) -> None:
        self.host, self.loop = host, loop
        self.jobs = Jobs(host, loop)
        self.server: Any = None
        self.is_receiving = False
        self.is_stopping = False
        self._targets: dict[tuple[str, str, str | None], int] = {}
        self._under_way: dict[int, asyncio.Future[bytes]] = {}

    def listens(self) -> bool:
        """Whether messages may come: on stop, only answers."""
        return self.is_receiving and (not self.is_stopping or bool(self._under_way))

    def stop_receiving(self) -> None:
        """No answer comes any more: waiting callers fail."""
        self.is_receiving = False
        for future in self._under_way.values():
            if not future.done():
                future.set_exception(PeerGone())
        self._under_way.clear()

    def send(self, target: tuple[str, str, str | None], payload: bytes, options: Options) -> asyncio.Future[bytes]:
        """Sends a request. Cancelling the future gives up the request."""
        number = self._targets.get(target)
        if number is None:
            number = self._targets[target] = self.host.open(*target)
        if not self.is_receiving:
            # An answer cannot come through the inbox.
            return asyncio.ensure_future(self.host.call(number, payload, options), loop=self.loop)
        id = self.host.send(number, payload, options)
        future: asyncio.Future[bytes] = self.loop.create_future()
        self._under_way[id] = future
        future.add_done_callback(lambda done: self._given_up(id) if done.cancelled() else None)
        return future

    def response(self, id: int, outcome: bytes | Exception) -> None:
        # None: the caller gave up while the answer was in the inbox.
        future = self._under_way.pop(id, None)
        if future is None or future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def _given_up(self, id: int) -> None:
        if self._under_way.pop(id, None):
            self.host.cancel(id)


class _Queue:
    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.takers: deque[asyncio.Future[Job]] = deque()
        """Waits for one job each, oldest first."""
        self.free = 0
        """Jobs that the handler could take now."""
        self.arrived = 0
        """Delivered jobs that are not handed on yet. Main counts them as taken."""
        self.is_refused = False
        """Whether Main has refused the number last asked for."""


class Jobs:
    """Waits for jobs, by queue, and the number of jobs to ask Main for."""

    def __init__(self, host: Host, loop: Loop) -> None:
        self._host, self._loop = host, loop
        self._by_name: dict[str, _Queue] = {}
        self._by_number: dict[int, _Queue] = {}
        self._is_open = False

    def open(self) -> None:
        """Jobs come from now on."""
        self._is_open = True

    def close(self) -> None:
        """No more jobs come: waits for one fail."""
        self._is_open = False
        for queue in self._by_name.values():
            for taker in queue.takers:
                if not taker.done():
                    taker.set_exception(_no_more(queue.name))
            queue.takers.clear()
            try:
                # Main may not have said stop.
                self._host.take_jobs(queue.number, 0)
            except Error:
                pass

    def number_of(self, name: str) -> int:
        return self._queue(name).number

    def name_of(self, number: int) -> str:
        return self._by_number[number].name

    async def take(self, name: str) -> Job:
        """Waits for one job. Cancelled, it asks for one less; a job that still comes goes back."""
        if not self._is_open:
            raise _no_more(name)
        queue = self._queue(name)
        taker: asyncio.Future[Job] = self._loop.create_future()
        queue.takers.append(taker)
        try:
            self._ask(queue)
            return await taker
        except BaseException:
            if taker in queue.takers:
                queue.takers.remove(taker)
                self._ask_again(queue)
            elif taker.done() and not taker.cancelled() and taker.exception() is None:
                self.give_back(taker.result().id)
            raise

    def offer(self, number: int, at_once: int) -> None:
        """Lets the queue's handler take this many jobs."""
        queue = self._by_number[number]
        queue.free += at_once
        self._ask(queue)

    def offer_again(self, number: int) -> None:
        """Lets the queue's handler take one more job: it has ended with one."""
        queue = self._by_number[number]
        queue.free += 1
        self._ask_again(queue)

    def arrived(self, jobs: Iterable[Job]) -> None:
        """Counts the jobs of a batch, before the first message of it is handed on."""
        for job in jobs:
            self._by_number[job.queue].arrived += 1

    def hand_on(self, job: Job) -> Job | None:
        """Hands a job to the longest wait for one. Returns it if it is for the queue's handler."""
        queue = self._by_number[job.queue]
        queue.arrived -= 1
        while queue.takers:
            taker = queue.takers.popleft()
            if not taker.done():
                taker.set_result(job)
                if queue.is_refused:
                    # The handler may have no job whose end would ask.
                    self._ask_again(queue)
                return None
        if queue.free and self._is_open:
            queue.free -= 1
            return job
        self.give_back(job.id)
        return None

    def give_back(self, id: int) -> None:
        try:
            self._host.give_back(id)
        except Error as error:
            log.warning("a job was not given back", extra={"job": id, "error": error})

    def _queue(self, name: str) -> _Queue:
        queue = self._by_name.get(name)
        if queue is None:
            number = self._host.open_queue(name)
            queue = self._by_name[name] = self._by_number[number] = _Queue(name, number)
        return queue

    def _ask(self, queue: _Queue) -> None:
        if self._is_open:
            queue.is_refused = True
            self._host.take_jobs(queue.number, max(0, len(queue.takers) + queue.free - queue.arrived))
            queue.is_refused = False

    def _ask_again(self, queue: _Queue) -> None:
        """Asks without failing. What is refused is asked for again when a wait, or the handler, has had its job."""
        try:
            self._ask(queue)
        except Error as error:
            log.error("no more jobs can be taken", extra={"queue": queue.name, "error": error})


def _no_more(queue: str) -> NotReady:
    return NotReady(f"jobs of `{queue}` come from when `on_start` is over until the extension is told to stop")


current: ContextVar[Link] = ContextVar("weir.link")
origin: ContextVar[Origin] = ContextVar("weir.origin")
