"""Queues in memory: their waiting jobs, the jobs in hand, and the state of each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ._errors import Invalid, LimitExceeded

_MAX_DELIVERIES = 3
"""Deliveries before a job goes to the dead letters: Main's default."""


@dataclass
class Job:
    id: int
    queue: int
    sender: int
    deliveries: int
    payload: bytes


@dataclass
class JobState:
    """The state of a job."""

    state: str
    """`waiting`, `in-hand`, `done`, or `dead`: delivered three times, Main's default, and given back each time."""
    deliveries: int
    """Deliveries so far."""


@dataclass
class _Queue:
    waiting: deque[Job] = field(default_factory=deque)
    asked: int = 0

    def is_readable(self) -> bool:
        return bool(self.asked and self.waiting)


class Queues:
    """All queues, by number."""

    def __init__(self) -> None:
        self.states: dict[int, JobState] = {}
        self.in_flight = 1 << 62
        self._names: list[str] = []
        self._queues: list[_Queue] = []
        self._in_hand: dict[int, Job] = {}

    def number(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
            self._queues.append(_Queue())
        return self._names.index(name)

    def name(self, number: int) -> str:
        return self._names[number]

    def put(self, id: int, queue: int, sender: int, payload: bytes) -> None:
        self._queues[queue].waiting.append(Job(id, queue, sender, 0, payload))
        self.states[id] = JobState("waiting", 0)

    def ask(self, queue: int, jobs: int) -> None:
        if jobs > self.in_flight:
            raise LimitExceeded("in-flight", jobs, self.in_flight)
        self._queues[queue].asked = jobs

    def is_readable(self) -> bool:
        return len(self._in_hand) < self.in_flight and any(queue.is_readable() for queue in self._queues)

    def take(self, most: int) -> list[Job]:
        jobs: list[Job] = []
        for queue in self._queues:
            while len(jobs) < most and len(self._in_hand) < self.in_flight and queue.is_readable():
                queue.asked -= 1
                job = queue.waiting.popleft()
                job.deliveries += 1
                self.states[job.id] = JobState("in-hand", job.deliveries)
                self._in_hand[job.id] = job
                jobs.append(job)
        return jobs

    def done(self, id: int) -> None:
        job = self._end(id)
        self.states[id] = JobState("done", job.deliveries)

    def give_back(self, id: int) -> None:
        job = self._end(id)
        is_dead = job.deliveries >= _MAX_DELIVERIES
        self.states[id] = JobState("dead" if is_dead else "waiting", job.deliveries)
        if not is_dead:
            self._queues[job.queue].waiting.appendleft(job)

    def give_all_back(self) -> None:
        """What an ended extension had in hand."""
        for id in list(self._in_hand):
            self.give_back(id)

    def drain(self, name: str) -> list[bytes]:
        """Takes all that wait, as another reader would."""
        queue = self._queues[self.number(name)]
        jobs = list(queue.waiting)
        queue.waiting.clear()
        for job in jobs:
            self.states[job.id] = JobState("done", job.deliveries + 1)
        return [job.payload for job in jobs]

    def _end(self, id: int) -> Job:
        job = self._in_hand.pop(id, None)
        if job is None:
            raise Invalid(f"job {id} is not in hand")
        return job
