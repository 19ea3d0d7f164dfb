"""Events in order, with losses; jobs done, given back and taken; start, stop and background."""

import asyncio
import logging
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import weir
from weir._link import Jobs
from weir._loop import Loop
from weir._types import encode
from weir.testing import Harness, JobState

seen: list[Any] = []


@dataclass
class Numbers:
    left: int
    right: int


NUMBERS = weir.Topic("numbers", Numbers)
UPLOADS = weir.Queue("uploads", Numbers)
WORDS = weir.Queue("words", str)
UPTIME: weir.Operation[Any, Any] = weir.Operation("device.info@1", "uptime")


def extension(**needs: Any) -> weir.Extension:
    seen.clear()
    return weir.Extension("worker", **needs)


def test_events_come_in_order_with_what_was_lost_before_them() -> None:
    ext = extension()

    @ext.on_event(NUMBERS)
    async def heard(event: weir.Event[Numbers]) -> None:
        await asyncio.sleep(1)
        seen.append((event.payload.left, event.sequence, event.lost, event.retained, event.topic, weir.sender()))

    main = Harness(ext)
    main.retain(NUMBERS, Numbers(1, 1))
    main.start()
    main.lose(3)
    assert main.publish(NUMBERS, Numbers(2, 2)) == 1
    main.advance(2)
    assert seen == [(1, 1, 0, True, "numbers", "test"), (2, 5, 3, False, "numbers", "test")]


def test_events_beyond_those_that_wait_for_a_handler_are_lost_and_counted() -> None:
    ext = extension()

    @ext.on_event("lines.>")
    async def heard(event: weir.Event[int]) -> None:
        if event.payload == 0:
            await asyncio.sleep(1)
        seen.append((event.payload, event.lost))

    main = Harness(ext)
    for number in range(300):
        main.publish("lines.a", number)
    main.advance(1)
    # The first is in the handler, 256 wait: 43 of them are lost.
    assert seen[:3] == [(0, 0), (44, 43), (45, 0)] and seen[-1] == (299, 0)


def test_an_event_of_another_type_is_logged_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    ext = extension()

    @ext.on_event(NUMBERS)
    async def heard(event: weir.Event[Numbers]) -> None:
        seen.append(event.payload.left)
        assert event.payload.left != 1

    main = Harness(ext)
    main.publish(NUMBERS, "no numbers")
    main.publish(NUMBERS, Numbers(1, 1))
    main.publish(NUMBERS, Numbers(2, 2))
    assert seen == [1, 2]
    levels = [record.levelno for record in caplog.records if record.message == "an event was not handled"]
    assert levels == [logging.WARNING, logging.ERROR]


def test_a_subscription_at_run_time_has_its_own_handler_and_can_end() -> None:
    ext = extension(subscribes=["more.>"])

    async def more(event: weir.Event[bytes]) -> None:
        seen.append((event.topic, event.payload))

    async def other(event: weir.Event[bytes]) -> None: ...

    @ext.serves("worker@1")
    async def listen() -> None:
        weir.subscribe("more.>", more)
        subscription = weir.subscribe("more.>", more)
        with pytest.raises(weir.Invalid):
            weir.subscribe("more.>", other)
        await asyncio.sleep(1)
        subscription.unsubscribe()

    main = Harness(ext)
    call = main.send(listen)
    assert main.publish("more.one", b"raw") == 1
    call.wait()
    assert main.publish("more.one", b"raw") == 0
    assert seen == [("more.one", b"raw")]


def test_what_is_published_and_put_reaches_the_test() -> None:
    ext = extension(publishes=["numbers"], puts=[UPLOADS])

    @ext.serves("worker@1")
    async def tell() -> int:
        weir.put(UPLOADS, Numbers(3, 4))
        return weir.publish(NUMBERS, Numbers(1, 2)).delivered

    @ext.serves("worker@1")
    async def shout() -> None:
        weir.publish("other", 1)

    main = Harness(ext)
    assert main.call(tell) == 0
    assert [(event.topic, event.json()) for event in main.published()] == [("numbers", {"left": 1, "right": 2})]
    assert main.take_all(UPLOADS) == [Numbers(3, 4)]
    with pytest.raises(weir.HandlerError, match="permission denied: `worker` may not publish `other`"):
        main.call(shout)


def test_a_job_is_done_when_its_handler_returns_and_given_back_when_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    ext = extension()

    @ext.on_job(UPLOADS)
    async def upload(job: Numbers) -> None:
        seen.append(job.left)
        if job.left == 2:
            raise weir.HandlerError("offline", "no network")

    main = Harness(ext)
    first, second = main.put(UPLOADS, Numbers(1, 0)), main.put(UPLOADS, Numbers(2, 0))
    third = main.put(UPLOADS, "no numbers")
    assert main.job(first).state == "done"
    assert (main.job(second).state, main.job(second).deliveries) == ("dead", 3)
    assert main.job(third).state == "dead"
    assert seen == [1, 2, 2, 2]
    assert sum(record.message == "a job was not done" for record in caplog.records) == 6


def test_as_many_jobs_are_in_hand_as_the_handler_takes_at_once() -> None:
    ext = extension()

    @ext.on_job(WORDS, at_once=2)
    async def work(job: str) -> None:
        await asyncio.sleep(1)
        seen.append(job)

    main = Harness(ext)
    jobs = [main.put(WORDS, word) for word in "abc"]
    assert [main.job(job).state for job in jobs] == ["in-hand", "in-hand", "waiting"]
    main.advance(1)
    assert seen == ["a", "b"] and main.job(jobs[2]).state == "in-hand"
    main.stop()
    assert main.job(jobs[2]).state == "done"


def test_jobs_that_have_arrived_are_not_asked_for_again() -> None:
    asked: list[int] = []
    host: Any = SimpleNamespace(open_queue=lambda _: 0, take_jobs=lambda _, jobs: asked.append(jobs))
    jobs = Jobs(host, Loop(host))
    number = jobs.number_of("words")
    jobs.open()
    jobs.offer(number, 2)
    batch: list[Any] = [SimpleNamespace(id=id, queue=number) for id in (1, 2)]
    jobs.arrived(batch)
    # From Python 3.12 on, a handler that does not wait has ended before the next job is handed on.
    for job in batch:
        assert jobs.hand_on(job) is job
        jobs.offer_again(number)
    assert asked == [2, 1, 2]


def test_each_job_is_delivered_once_if_none_fails() -> None:
    ext = extension()

    @ext.on_job(WORDS, at_once=3)
    async def work(job: str) -> None:
        seen.append(job)
        if job in ("a", "c"):
            await asyncio.sleep(1)

    main = Harness(ext)
    jobs = [main._host.put_as(1, main._host.queues.number("words"), encode(word)) for word in "abcdefghi"]
    main.start()
    main.advance(2)
    assert [main.job(job) for job in jobs] == [JobState("done", 1)] * 9 and sorted(seen) == list("abcdefghi")


def test_a_refusal_of_more_jobs_does_not_end_the_extension(caplog: pytest.LogCaptureFixture) -> None:
    ext = extension(takes=["words"])
    tasks = []

    async def another() -> None:
        with await weir.take(WORDS) as job:
            seen.append(f"taken: {job.payload}")

    @ext.on_job(WORDS)
    async def work(job: str) -> None:
        if job == "first":
            tasks.append(asyncio.create_task(another()))
            await asyncio.sleep(1)
        seen.append(job)

    main = Harness(ext)
    main.in_flight(1)
    main.put(WORDS, "first")
    # The wait of `another` and that of the handler are two.
    main.advance(1)
    assert [(record.levelname, record.message) for record in caplog.records] == [("ERROR", "no more jobs can be taken")]
    # `another` has its job: the handler asks again, though none of its jobs has ended.
    main.put(WORDS, "second")
    main.put(WORDS, "third")
    assert seen == ["first", "taken: second", "third"]


def test_a_wait_for_more_jobs_than_in_flight_fails_alone() -> None:
    ext = extension(takes=["words"])

    @ext.serves("worker@1")
    async def one() -> str:
        with await weir.take(WORDS) as job:
            return job.payload

    main = Harness(ext)
    main.in_flight(1)
    first = main.send(one)
    with pytest.raises(weir.HandlerError, match="limit `in-flight` exceeded: 2 of 1"):
        main.call(one)
    main.put(WORDS, "word")
    assert first.wait() == "word"


def test_more_at_once_than_in_flight_ends_the_extension_at_its_start() -> None:
    ext = extension()

    @ext.on_job(WORDS, at_once=2)
    async def work(job: str) -> None: ...

    main = Harness(ext)
    main.in_flight(1)
    with pytest.raises(weir.LimitExceeded):
        main.start()
        main.advance(1)
    assert main.failed == "limit `in-flight` exceeded: 2 of 1"


@pytest.mark.parametrize("payload", [b'"\\ud800"', b"[" * 200_000, b"NaN"], ids=range(3))
def test_hostile_events_and_jobs_are_logged(payload: bytes, caplog: pytest.LogCaptureFixture) -> None:
    ext = extension()

    @ext.on_event("lines")
    async def heard(event: weir.Event[Any]) -> None:
        seen.append(event.payload)

    @ext.on_job(UPLOADS)
    async def work(job: Numbers) -> None:
        seen.append(job)

    main = Harness(ext)
    main.publish("lines", payload)
    main.put(UPLOADS, payload)
    assert {record.levelno for record in caplog.records} == {logging.WARNING} and not seen
    main.publish("lines", 1)
    main.put(UPLOADS, Numbers(1, 2))
    assert seen == [1, Numbers(1, 2)]


def test_a_job_that_is_taken_ends_as_its_block_does() -> None:
    ext = extension(takes=["words"])

    @ext.serves("worker@1")
    async def one(fails: bool) -> str:
        with await weir.take(WORDS, timeout=1) as job:
            if fails:
                raise ValueError("it fails")
            return f"{job.payload} {job.deliveries} {job.sender}"

    @ext.serves("worker@1")
    async def dropped() -> None:
        await weir.take(WORDS)

    main = Harness(ext)
    with pytest.raises(weir.HandlerError, match="timed out"):
        main.call(one, False)
    job = main.put(WORDS, "word")
    assert main.job(job).state == "waiting"
    with pytest.raises(weir.HandlerError, match="unexpected"):
        main.call(one, True)
    assert main.job(job).state == "waiting"
    main.call(dropped)
    assert main.job(job).state == "waiting"
    assert main.call(one, False) == "word 3 test"
    assert main.job(job).state == "done"


def test_a_job_that_comes_after_its_taker_has_gone_is_not_taken() -> None:
    ext = extension(takes=["words"])

    @ext.serves("worker@1")
    async def one() -> str:
        return (await weir.take(WORDS)).payload

    main = Harness(ext)
    with pytest.raises(weir.Timeout):
        main.call(one, timeout=1)
    assert main.job(main.put(WORDS, "word")).state == "waiting"


def test_stop_lets_handlers_finish_and_calls_under_way_be_answered() -> None:
    ext = extension(wants=["device.info@1"], publishes=["bye"])

    @ext.serves("worker@1")
    async def slow() -> int:
        await asyncio.sleep(1)
        return int(await weir.call(UPTIME)) + int(await weir.call(UPTIME))

    @ext.background
    async def tick() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            seen.append("background is cancelled")

    @ext.on_stop
    async def leave() -> None:
        weir.publish("bye", "bye")

    async def uptime(_: Any) -> int:
        await asyncio.sleep(1)
        return 21

    main = Harness(ext)
    main.fake(UPTIME, uptime)
    call = main.send(slow)
    main.stop()
    assert call.wait() == 42 and main.now == 3
    assert seen == ["background is cancelled"]
    assert [event.json() for event in main.published()] == ["bye"]
    with pytest.raises(weir.NoProvider):
        main.call(slow)


def test_a_task_that_a_handler_leaves_behind_is_cancelled_at_the_end() -> None:
    ext = extension()

    async def left_behind() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            seen.append("cancelled")

    @ext.serves("worker@1")
    async def leave() -> None:
        seen.append(asyncio.create_task(left_behind()))

    main = Harness(ext)
    main.call(leave)
    main.advance(1)
    main.stop()
    assert seen[1:] == ["cancelled"] and main.now == 1


def test_start_can_call_and_a_failure_of_it_ends_the_extension() -> None:
    ext = extension(requires=["device.info@1"])

    @ext.on_start
    async def load() -> None:
        seen.append(await weir.call(UPTIME))
        if weir.config("start") == "fail":
            raise weir.HandlerError("asked", "asked to fail")

    main = Harness(ext)
    main.fake(UPTIME, lambda _: 7)
    main.start()
    assert seen == [7]
    main = Harness(ext, config={"start": "fail"})
    main.fake(UPTIME, lambda _: 7)
    with pytest.raises(weir.HandlerError, match="asked to fail"):
        main.start()
    assert main.failed == "asked: asked to fail"


def test_a_failure_in_the_background_ends_the_extension() -> None:
    ext = extension()

    @ext.background
    async def fail() -> None:
        await asyncio.sleep(1)
        raise OSError("the socket is gone")

    main = Harness(ext)
    main.start()
    main.advance(1)
    with pytest.raises(OSError, match="the socket is gone"):
        main.start()


def test_main_is_told_of_a_failure_before_the_handlers_in_hand_have_ended(caplog: pytest.LogCaptureFixture) -> None:
    ext = extension()

    @ext.background
    async def fail() -> None:
        await asyncio.sleep(1)
        raise OSError("the socket is gone")

    @ext.on_event("lines")
    async def never(event: weir.Event[int]) -> None:
        await asyncio.Event().wait()

    main = Harness(ext)
    main.publish("lines", 1)
    assert main.failed is None
    main.advance(1)
    assert main.failed == "OSError: the socket is gone"
    assert [record.message for record in caplog.records] == ["the extension failed"]
    with pytest.raises(RuntimeError, match="waits for what never comes"):
        main.start()
        main.stop()


def test_an_interrupted_extension_is_not_called() -> None:
    ext = extension()

    @ext.serves("worker@1")
    async def pause() -> None:
        weir.interrupted("no network")

    main = Harness(ext)
    main.call(pause)
    assert main.interrupted == "no network"
    with pytest.raises(weir.NotReady, match="no network"):
        main.call(pause)
