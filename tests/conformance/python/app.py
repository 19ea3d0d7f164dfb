"""The conformance guest in Python. `tests/conformance/README.md` specifies it."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import weir

CONFORMANCE = weir.Contract("conformance@1", "What Weir can do from a language.")
TESTER = weir.Contract("tester@1", "What the test serves.")

TRACE = 5
LEVELS = {"trace": TRACE, "debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
logging.getLogger().setLevel(TRACE)


@dataclass
class Numbers:
    """Two numbers."""

    left: Annotated[int, "The first."]
    right: Annotated[int, "The second."]


@dataclass
class Sum:
    """Their sum."""

    sum: Annotated[int, "`left + right`."]


NUMBERS = CONFORMANCE.topic("conformance.numbers", Numbers, "Numbers to add.")
SUMS = CONFORMANCE.topic("conformance.out.sum", Sum, "Sums.")
JOBS = CONFORMANCE.queue("conformance-jobs", bytes, "Jobs, by what the handler is to do.")
TESTER_ADD = TESTER.operation("add", Numbers, Sum)

ext = weir.Extension(
    "conformance",
    version="0.1.0",
    requires=[TESTER],
    wants=["other@1", "nobody@1"],
    publishes=["conformance.out.>"],
    subscribes=["conformance.in.>", NUMBERS, "conformance.more.>"],
    puts=["conformance-out"],
    takes=[JOBS, "conformance-more"],
    dirs={"/data": "rw"},
    env=["CONFORMANCE"],
)
subscriptions: dict[str, weir.Subscription] = {}
sending: set[asyncio.Task[None]] = set()


@ext.on_start
async def start() -> None:
    if weir.config("start") == "fail":
        raise weir.HandlerError("failed", "asked to fail")
    logging.info("conformance is ready", extra={"language": "Python"})


@ext.on_stop
async def stop() -> None:
    weir.publish("conformance.out.stopped", b"bye")


@ext.serves(CONFORMANCE)
async def echo(payload: bytes) -> bytes:
    """The same bytes."""
    return payload


@ext.serves(CONFORMANCE)
async def large(payload: bytes) -> bytes:
    """`N` bytes."""
    return b"x" * number(payload.decode())


@ext.serves(CONFORMANCE, errors={"overflow": "`left` is over 1,000,000."})
async def add(numbers: Numbers) -> Sum:
    """Adds, and publishes the sum."""
    if numbers.left > 1_000_000:
        raise weir.HandlerError("overflow", "`left` is over 1,000,000")
    result = Sum(numbers.left + numbers.right)
    weir.publish(SUMS, result)
    return result


@ext.serves(CONFORMANCE)
async def relay(payload: bytes) -> bytes:
    """Adds by `tester@1`: `LEFT RIGHT`."""
    left, right = words(payload, 2)

    async def relayed() -> str:
        return str((await weir.call(TESTER_ADD, Numbers(number(left), number(right)))).sum)

    return await outcome(relayed)


@ext.serves(CONFORMANCE)
async def fail(payload: bytes) -> bytes:
    """Fails: `CODE MESSAGE`."""
    raise weir.HandlerError(*words(payload, 2))


@ext.serves(CONFORMANCE, "break")
async def break_(payload: bytes) -> bytes:
    """Raises an exception."""
    return fail_unexpectedly()


def fail_unexpectedly() -> bytes:
    raise RuntimeError("out of cheese")


@ext.serves(CONFORMANCE)
async def spin(payload: bytes) -> bytes:
    """Never waits."""
    while True:
        pass


TABLE = bytes([7]) * 4096


@ext.serves(CONFORMANCE)
async def recurse(payload: bytes) -> bytes:
    """Calls itself: `LEVELS`."""
    down(number(payload.decode()))
    return b"ok" if set(TABLE) == {7} else b"overwritten"


def down(levels: int) -> int:
    return down(levels - 1) + levels if levels else 0


@ext.serves(CONFORMANCE)
async def call(payload: bytes) -> bytes:
    """Calls: `CONTRACT OPERATION PROVIDER MS PAYLOAD`."""
    return await outcome(lambda: called(payload))


@ext.serves(CONFORMANCE)
async def send(payload: bytes) -> bytes:
    """Calls, and publishes the outcome."""

    async def told() -> None:
        weir.publish("conformance.out.response", await outcome(lambda: called(payload)))

    task = asyncio.create_task(told())
    sending.add(task)
    task.add_done_callback(sending.discard)
    return b"ok"


@ext.serves(CONFORMANCE)
async def cancel(payload: bytes) -> bytes:
    """Calls, and gives up."""

    async def given_up() -> str:
        try:
            return await asyncio.wait_for(called(payload), 0.05)
        except weir.Timeout:
            raise
        except TimeoutError:
            return ""

    return await outcome(given_up)


@ext.serves(CONFORMANCE)
async def publish(payload: bytes) -> bytes:
    """Publishes: `TOPIC PAYLOAD`."""
    topic, event = words(payload, 2)
    return await outcome(lambda: published(weir.publish(topic, event.encode())))


@ext.serves(CONFORMANCE)
async def publish_to(payload: bytes) -> bytes:
    """Publishes to one extension: `EXTENSION TOPIC PAYLOAD`."""
    extension, topic, event = words(payload, 3)
    return await outcome(lambda: published(weir.publish(topic, event.encode(), to=extension)))


@ext.serves(CONFORMANCE)
async def subscribe(payload: bytes) -> bytes:
    """Subscribes to a pattern."""

    async def subscribed() -> str:
        subscriptions[payload.decode()] = weir.subscribe(payload.decode(), hear)
        return ""

    return await outcome(subscribed)


@ext.serves(CONFORMANCE)
async def unsubscribe(payload: bytes) -> bytes:
    """Ends a subscription."""

    async def unsubscribed() -> str:
        subscription = subscriptions.pop(payload.decode(), None)
        if subscription is None:
            raise weir.Invalid(f"there is no subscription to `{payload.decode()}`")
        subscription.unsubscribe()
        return ""

    return await outcome(unsubscribed)


@ext.serves(CONFORMANCE)
async def put(payload: bytes) -> bytes:
    """Puts a job: `QUEUE MS PAYLOAD`."""
    queue, ms, job = words(payload, 3)

    async def is_put() -> str:
        weir.put(queue, job.encode(), timeout=seconds(ms))
        return ""

    return await outcome(is_put)


@ext.serves(CONFORMANCE)
async def take(payload: bytes) -> bytes:
    """Takes a job: `QUEUE MS`."""
    queue, ms = words(payload, 2)

    async def taken() -> str:
        with await weir.take(weir.Queue(queue, bytes), timeout=seconds(ms)) as job:
            return job.payload.decode()

    return await outcome(taken)


@ext.serves(CONFORMANCE)
async def sleep(payload: bytes) -> bytes:
    """Waits, and publishes that it did: `MS`."""
    await asyncio.sleep(number(payload.decode()) / 1000)
    weir.publish("conformance.out.slept", payload)
    return b""


@ext.serves(CONFORMANCE)
async def context(payload: bytes) -> bytes:
    """`OWN-NAME SENDER REMAINING`."""
    return f"{weir.own_name()} {weir.sender()} {int((weir.remaining() or 0) * 1000)}".encode()


@ext.serves(CONFORMANCE)
async def interrupt(payload: bytes) -> bytes:
    """Declares itself interrupted: `REASON`."""
    weir.interrupted(payload.decode())
    return b"ok"


@ext.serves(CONFORMANCE)
async def log(payload: bytes) -> bytes:
    """Logs: `LEVEL TEXT`."""
    level, text = words(payload, 2)
    logging.log(LEVELS[level], text, extra={"from": "conformance"})
    return b"ok"


@ext.serves(CONFORMANCE)
async def config(payload: bytes) -> bytes:
    """A value of the configuration."""
    return value(weir.config(payload.decode()))


@ext.serves(CONFORMANCE)
async def env(payload: bytes) -> bytes:
    """A variable of the environment."""
    return value(os.environ.get(payload.decode()))


@ext.serves(CONFORMANCE)
async def read(payload: bytes) -> bytes:
    """Reads a file."""

    async def content() -> str:
        return Path(payload.decode()).read_text()

    return await outcome(content)


@ext.serves(CONFORMANCE)
async def write(payload: bytes) -> bytes:
    """Writes a file: `PATH CONTENT`."""
    path, content = words(payload, 2)

    async def written() -> str:
        Path(path).write_text(content)
        return ""

    return await outcome(written)


@ext.on_event("conformance.in.>")
async def hear(event: weir.Event[bytes]) -> None:
    kind = "retained" if event.retained else "new"
    line = f"{event.topic} {event.sequence} {event.lost} {kind} {weir.sender()} {event.payload.decode()}"
    weir.publish("conformance.out.heard", line.encode())


@ext.on_event(NUMBERS)
async def sum_up(event: weir.Event[Numbers]) -> None:
    await add(event.payload)


@ext.on_job(JOBS)
async def work(job: bytes) -> None:
    match job:
        case b"fail":
            raise weir.HandlerError("failed", "asked to fail")
        case b"die":
            raise SystemExit(1)
        case b"ready":
            weir.ready()
        case _:
            weir.publish("conformance.out.worked", job)


async def called(payload: bytes) -> str:
    contract, name, provider, ms, arguments = words(payload, 5)
    operation = weir.Operation(contract, name, bytes, bytes)
    to = None if provider == "-" else provider
    return (await weir.call(operation, arguments.encode(), timeout=seconds(ms), provider=to)).decode()


async def published(receipt: weir.Receipt) -> str:
    return f"{receipt.delivered} {receipt.shed} {receipt.refused}"


async def outcome(does: Callable[[], Awaitable[str]]) -> bytes:
    """The outcome of what it does, as a text."""
    try:
        found = await does()
        return f"ok {found}".encode() if found else b"ok"
    except weir.Error as error:
        return " ".join(["error", error.case, *fields(error)]).encode()
    except OSError as error:
        return f"error {error}".encode()


def fields(error: weir.Error) -> list[str]:
    match error:
        case weir.LimitExceeded():
            return [error.name, str(error.used), str(error.allowed)]
        case weir.WouldDeadlock():
            return error.peers
        case weir.TooLarge():
            return [str(error.bytes), str(error.allowed)]
        case weir.HandlerError():
            return [error.code, error.message]
        case weir.Timeout() | weir.PeerGone() | weir.Trapped():
            return []
    return list(map(str, error.args))


def value(found: str | None) -> bytes:
    return b"none" if found is None else f"ok {found}".encode()


def words(payload: bytes, count: int) -> list[str]:
    found = payload.decode().split(" ", count - 1)
    if len(found) != count:
        raise weir.HandlerError.invalid_argument(f"{count} words are expected")
    return found


def seconds(ms: str) -> float | None:
    return number(ms) / 1000 or None


def number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise weir.HandlerError.invalid_argument(f"`{word}` is no number") from None
