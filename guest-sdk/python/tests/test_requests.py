"""Requests: served, answered, refused, overdue."""

import asyncio
import gc
import logging
from dataclasses import dataclass
from typing import Any

import pytest

import weir
from weir.testing import Harness

DEVICE = weir.Contract("device.info@1")
UPTIME = DEVICE.operation("uptime", weir.Empty, float)
STORE = DEVICE.operation("store", bytes, bytes)

ext = weir.Extension("greeter", version="1.2.3", wants=[DEVICE])
seen: list[Any] = []


@dataclass
class Name:
    name: str
    after: float = 0.0


@ext.serves("greeter@1")
async def greet(args: Name) -> str:
    if not args.name:
        raise weir.HandlerError("no-name", "there is nobody to greet")
    await asyncio.sleep(args.after)
    return f"hello {args.name}, says {weir.own_name()} to {weir.sender()}"


@ext.serves("greeter@1")
async def uptime() -> float:
    return await weir.call(UPTIME)


@ext.serves("greeter@1")
async def both() -> list[float]:
    return list(await asyncio.gather(weir.call(UPTIME), weir.call(UPTIME)))


@ext.serves("greeter@1")
async def hurried() -> float:
    return await weir.call(UPTIME, timeout=0.5)


@ext.serves("greeter@1")
async def given_up() -> bool:
    answer = weir.send(UPTIME)
    await asyncio.sleep(1)
    return answer.cancel()


@ext.serves("greeter@1")
async def left() -> float | None:
    await asyncio.sleep(1)
    return weir.remaining()


@ext.serves("greeter@1")
async def careful() -> None:
    try:
        await asyncio.sleep(100)
    finally:
        seen.append("cleaned up")


@ext.serves("greeter@1")
async def broken() -> None:
    await asyncio.sleep(0)
    fail_unexpectedly()


@ext.serves("greeter@1")
async def echo(payload: bytes) -> bytes:
    return payload


@ext.serves("greeter@1")
async def beside() -> list[str]:
    queue: asyncio.Queue[str] = asyncio.Queue()
    ready = asyncio.Event()

    async def put() -> None:
        await ready.wait()
        await queue.put("put")

    task = asyncio.create_task(put())
    ready.set()
    found = [await asyncio.wait_for(queue.get(), 1)]
    await task
    try:
        async with asyncio.timeout(0.1):
            await queue.get()
    except TimeoutError:
        found.append("timed out")
    return found


def fail_unexpectedly() -> None:
    raise KeyError("out of cheese")


@pytest.fixture
def main() -> Harness:
    seen.clear()
    return Harness(ext)


def test_a_handler_gets_its_arguments_as_its_type_and_its_result_is_answered(main: Harness) -> None:
    main.sender("player")
    assert main.call(greet, Name("Ada")) == "hello Ada, says greeter to player"
    assert main.call("greeter@1/greet", {"name": "Ada"}).startswith("hello Ada")


def test_an_error_of_a_handler_reaches_its_caller(main: Harness) -> None:
    with pytest.raises(weir.HandlerError) as caught:
        main.call(greet, Name(""))
    assert (caught.value.code, caught.value.message) == ("no-name", "there is nobody to greet")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b'{"name":1}', "`$.name` must be a string, not a number"),
        (b'{"after":1}', "`$.name` is missing"),
        (b"[]", "`$` must be an object, not a list"),
        (b"", "`$.name` is missing"),
        (b"{", "`$` is no JSON"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_place(main: Harness, payload: bytes, reason: str) -> None:
    with pytest.raises(weir.HandlerError) as caught:
        main.call("greeter@1/greet", payload)
    assert caught.value.code == "invalid-argument"
    assert caught.value.message.startswith(reason)


def test_handlers_that_wait_do_so_at_the_same_time(main: Harness) -> None:
    first = main.send(greet, Name("Ada", after=2))
    second = main.send(greet, Name("Grace", after=1))
    assert second.wait().startswith("hello Grace")
    assert main.now == 1 and not first.is_answered
    assert first.wait().startswith("hello Ada")
    assert main.now == 2


def test_a_call_reaches_a_fake_and_gives_its_result(main: Harness) -> None:
    main.fake(UPTIME, lambda _: 12.5)
    assert main.call(uptime) == 12.5
    assert main.call(both) == [12.5, 12.5]


def test_an_answer_of_another_type_is_an_error(main: Harness) -> None:
    main.fake(UPTIME, lambda _: "long")  # type: ignore[arg-type,return-value]
    with pytest.raises(weir.HandlerError) as caught:
        main.call(uptime)
    assert caught.value.code == "invalid-answer"


def test_an_error_of_a_call_is_an_answer_with_the_same_code(main: Harness) -> None:
    def refuse(_: weir.Empty) -> float:
        raise weir.PermissionDenied("no")

    main.fake(UPTIME, refuse)
    with pytest.raises(weir.HandlerError) as caught:
        main.call(uptime)
    assert (caught.value.code, caught.value.message) == ("permission-denied", "permission denied: no")


def test_a_call_takes_at_most_its_timeout(main: Harness) -> None:
    async def slow(_: weir.Empty) -> float:
        await asyncio.sleep(3)
        return 1.0

    main.fake(UPTIME, slow)
    with pytest.raises(weir.HandlerError) as caught:
        main.call(hurried)
    assert caught.value.code == "timeout" and main.now == 0.5


def test_a_call_that_is_given_up_is_cancelled(main: Harness) -> None:
    async def slow(_: weir.Empty) -> float:
        await asyncio.sleep(3)
        return 1.0

    main.fake(UPTIME, slow)
    pending = main.send(given_up)
    assert main.calls_under_way == 1
    assert pending.wait() is True
    assert main.calls_under_way == 0


def test_a_contract_that_is_not_granted_is_refused() -> None:
    other = weir.Extension("other")

    @other.serves("other@1")
    async def ask() -> float:
        return await weir.call(UPTIME)

    with pytest.raises(weir.HandlerError) as caught:
        Harness(other).call(ask)
    assert caught.value.code == "permission-denied"
    assert "`requires` or `wants` would grant it" in caught.value.message


def test_a_handler_knows_its_remaining_time(main: Harness) -> None:
    assert main.call(left, timeout=3) == pytest.approx(2)


def test_a_handler_past_its_deadline_is_cancelled_where_it_waits(main: Harness) -> None:
    with pytest.raises(weir.Timeout):
        main.call(careful, timeout=2)
    assert main.now == 2 and seen == ["cleaned up"]


def test_an_exception_is_answered_without_its_text_and_logged_with_its_function(
    main: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(weir.HandlerError) as caught:
        main.call(broken)
    assert caught.value.code == "unexpected" and "cheese" not in caught.value.message
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "fail_unexpectedly" in caplog.text and "out of cheese" in caplog.text
    assert record.operation == "greeter@1 broken"  # type: ignore[attr-defined]
    assert main.call(greet, Name("Ada")).startswith("hello")


def test_an_answer_that_is_too_large_is_replaced_by_an_error(main: Harness) -> None:
    main.message_size(10)
    assert main.call(echo, b"0123456789") == b"0123456789"
    with pytest.raises(weir.HandlerError) as caught:
        main.call(echo, b"0123456789x")
    assert caught.value.code == "too-large"


def test_what_asyncio_offers_works_beside_the_inbox(main: Harness) -> None:
    assert main.call(beside) == ["put", "timed out"]


def test_operations_that_nobody_serves_are_refused(main: Harness) -> None:
    with pytest.raises(weir.Invalid):
        main.call("greeter@1/none")
    with pytest.raises(weir.UnknownContract):
        main.call("none@1/none")


def test_a_harness_that_is_collected_while_another_runs_does_not_end_that_one() -> None:
    left = [Harness(ext)]
    left[0].call(greet, Name("Ada"))
    collector = weir.Extension("collector")

    @collector.serves("collector@1")
    async def collect() -> bool:
        left.clear()
        gc.collect()
        await asyncio.sleep(1)
        return asyncio.get_running_loop().is_running()

    assert Harness(collector).call(collect)


def test_outside_a_handler_there_is_no_main() -> None:
    with pytest.raises(RuntimeError, match="there is no Main here"):
        weir.config("key")


HOSTILE = [b'"\\ud800"', b"1" + b"0" * 400, b"1e400", b"NaN", b"[" * 200_000, b"\xff\xfe1\x00"]


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_arguments_and_answers_are_refused(payload: bytes) -> None:
    hostile = weir.Extension("hostile", wants=[DEVICE])

    @hostile.serves("hostile@1")
    async def take(args: float) -> None:
        seen.append(args)

    @hostile.serves("hostile@1")
    async def call() -> float:
        return await weir.call(UPTIME, timeout=1)

    @hostile.serves("hostile@1")
    async def send() -> float:
        return await weir.send(UPTIME)

    main = Harness(hostile)
    main.fake(UPTIME, lambda _: payload)  # type: ignore[arg-type,return-value]
    with pytest.raises(weir.HandlerError) as caught:
        main.call("hostile@1/take", payload)
    assert caught.value.code == "invalid-argument"
    for handler in (call, send):
        with pytest.raises(weir.HandlerError) as caught:
            main.call(handler)
        assert caught.value.code == "invalid-answer"


@pytest.mark.parametrize(
    "error", [KeyError("no"), StopIteration("no"), SystemError("no"), asyncio.CancelledError("no")]
)
def test_what_an_answers_own_type_raises_ends_the_wait_for_it(error: BaseException) -> None:
    @dataclass
    class Fussy:
        volume: int

        def __post_init__(self) -> None:
            raise error

    fussy, loud = weir.Extension("fussy", wants=[DEVICE]), weir.Operation("device.info@1", "volume", weir.Empty, Fussy)

    @fussy.serves("fussy@1")
    async def send() -> str:
        try:
            await weir.send(loud)
        except BaseException as raised:
            return str(raised)
        return "nothing"

    main = Harness(fussy)
    main.fake(loud, lambda _: {"volume": 1})  # type: ignore[arg-type,return-value]
    assert "no" in main.call(send)


def test_what_is_no_utf_8_is_replaced_in_texts_and_refused_in_names() -> None:
    lone = weir.Extension("lone", publishes=[">"])

    @lone.serves("lone@1")
    async def fail() -> None:
        raise weir.HandlerError("bad-\ud800", "name: \udfff")

    @lone.serves("lone@1")
    async def publish() -> None:
        weir.publish("a.\ud800", 1)

    @lone.serves("lone@1")
    async def pause() -> None:
        weir.interrupted("\ud800")

    main = Harness(lone)
    with pytest.raises(weir.HandlerError) as caught:
        main.call(fail)
    assert (caught.value.code, caught.value.message) == ("bad-?", "name: ?")
    with pytest.raises(weir.HandlerError) as caught:
        main.call(publish)
    assert caught.value.code == "invalid"
    main.call(pause)
    assert main.interrupted == "?"


def test_an_operation_without_arguments_is_served_without_a_parameter() -> None:
    device = weir.Extension("device")
    operation = weir.Operation("other@1", "uptime", weir.Empty, float)

    @device.serves(operation)
    async def uptime() -> float:
        return 1.5

    assert Harness(device).call(uptime) == 1.5
    with pytest.raises(weir.DeclarationError, match="takes `bytes`, not `Empty`"):

        @device.serves(STORE)
        async def store() -> bytes:
            return b""
