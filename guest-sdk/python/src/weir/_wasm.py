"""Main behind the imports of `weir:iec`, and time behind WASI. Only a component can import this."""

# mypy: disable-error-code="import-not-found, import-untyped"
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from componentize_py_types import Err, Ok
from wit_world.imports import (
    channel,
    environment,
    events,
    lifecycle,
    monotonic_clock,
    peers,
    poll,
    queues,
    requests,
    store,
)
from wit_world.imports import log as wit_log
from wit_world.imports import weir_iec_types as wit

from . import _generators, _log
from ._contract import Receipt
from ._errors import Error, HandlerError, by_case, utf8
from ._extension import Extension
from ._host import MAIN_BATCH, Options, Receiver
from ._link import Link
from ._loop import Loop
from ._server import Server

_FAR_NS = 3_600_000_000_000
_LEVELS = {level.name.lower(): level for level in wit_log.Level}
_CASES = {
    wit.Error_PermissionDenied: "permission-denied",
    wit.Error_UnknownContract: "unknown-contract",
    wit.Error_NoProvider: "no-provider",
    wit.Error_NotReady: "not-ready",
    wit.Error_Timeout: "timeout",
    wit.Error_Overloaded: "overloaded",
    wit.Error_PeerGone: "peer-gone",
    wit.Error_Trapped: "trapped",
    wit.Error_LimitExceeded: "limit-exceeded",
    wit.Error_WouldDeadlock: "would-deadlock",
    wit.Error_TooLarge: "too-large",
    wit.Error_Invalid: "invalid",
    wit.Error_Handler: "handler",
}


def main(extension: Extension) -> None:
    """The whole of `run`. Raises `Err` if the extension fails."""
    _wake()
    _log.install(_write)
    try:
        host = Host()
        loop = Loop(host)
        loop.run_until_complete(Server(extension, Link(host, loop)).run())
    except SystemExit as end:
        if end.code not in (None, 0):
            raise Err(None) from end
    except Exception as error:
        raise Err(None) from error
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _wake() -> None:
    """Replaces what the interpreter has kept from the machine that built it."""
    os.environ.clear()
    os.environ.update(environment.get_environment())
    _generators.reseed()


class Host:
    """Implements `_host.Host`."""

    def __init__(self) -> None:
        self._inbox: Any = None

    def now(self) -> float:
        return float(monotonic_clock.now()) / 1e9

    def wait(self, timeout: float | None, for_inbox: bool) -> bool:
        if for_inbox and self._inbox is None:
            self._inbox = channel.subscribe_inbox()
        if timeout is not None and timeout <= 0:
            return for_inbox and bool(self._inbox.ready())
        if for_inbox and timeout is None:
            self._inbox.block()
            return True
        # Without anything to wait for, the handlers in hand never go on: Main ends them.
        nanoseconds = _FAR_NS if timeout is None else int(timeout * 1e9) + 1
        with monotonic_clock.subscribe_duration(nanoseconds) as timer:
            waited = [timer, self._inbox] if for_inbox else [timer]
            return 1 in poll.poll(waited)

    def take(self, receiver: Receiver) -> bool:
        try:
            messages = channel.receive_batch(MAIN_BATCH, channel.BatchOrder.ANY_ORDER, 0)
        except Err:
            # The message was withdrawn.
            return True
        receiver.arrived(message.value for message in messages if isinstance(message, channel.Message_Job))
        for message in messages:
            match message:
                case channel.Message_Request(request):
                    receiver.request(request)
                case channel.Message_Response(response):
                    outcome = response.outcome
                    ok = isinstance(outcome, Ok)
                    receiver.response(response.id, outcome.value if ok else _error(outcome.value))
                case channel.Message_Event(event):
                    receiver.event(event)
                case channel.Message_Job(job):
                    receiver.job(job)
        return bool(messages)

    def serve(self, contract: str, operations: Sequence[str]) -> int:
        return int(_try(channel.serve, contract, list(operations)))

    def respond(self, request: int, payload: bytes) -> None:
        _try(channel.respond, request, Ok(payload))

    def fail(self, request: int, code: str, message: str) -> None:
        _try(channel.respond, request, Err(wit.HandlerError(utf8(code), utf8(message))))

    def open(self, contract: str, operation: str, provider: str | None) -> int:
        return int(_try(requests.open, contract, operation, provider))

    async def call(self, target: int, payload: bytes, options: Options) -> bytes:
        return bytes(_try(requests.call, target, payload, _options(options)))

    def send(self, target: int, payload: bytes, options: Options) -> int:
        return int(_try(requests.send, target, payload, _options(options)))

    def cancel(self, request: int) -> None:
        requests.cancel(request)

    def subscribe(self, pattern: str) -> int:
        return int(_try(events.subscribe, pattern))

    def unsubscribe(self, subscription: int) -> None:
        _try(events.unsubscribe, subscription)

    def publish(self, to: str | None, topic: str, payload: bytes, options: Options) -> Receipt:
        if to is None:
            receipt = _try(events.publish, topic, payload, _options(options))
        else:
            receipt = _try(events.publish_to, to, topic, payload, _options(options))
        return Receipt(receipt.delivered, receipt.shed, receipt.refused)

    def open_queue(self, queue: str) -> int:
        return int(_try(queues.open, queue))

    def put(self, queue: int, payload: bytes, options: Options) -> int:
        return int(_try(queues.put, queue, payload, _options(options)))

    def take_jobs(self, queue: int, jobs: int) -> None:
        _try(queues.take, queue, queues.Taking_Next(jobs))

    def done(self, job: int) -> None:
        _try(queues.done, job)

    def give_back(self, job: int) -> None:
        _try(queues.give_back, job)

    def ready(self) -> None:
        lifecycle.ready()

    def interrupted(self, reason: str) -> None:
        _call(lifecycle.interrupted, reason)

    def error(self, reason: str) -> None:
        _call(lifecycle.error, reason)

    def own_name(self) -> str:
        return str(peers.own_name())

    def name_of(self, peer: int) -> str | None:
        name: str | None = peers.name_of(peer)
        return name

    def config(self, key: str) -> str | None:
        try:
            value: str | None = _call(store.get, key)
        except Err as error:
            raise HandlerError("config", error.value.value) from None
        return value


def _write(level: str, message: str, fields: list[tuple[str, str]]) -> None:
    shown = [wit_log.Field(utf8(name), utf8(value)) for name, value in fields]
    _call(wit_log.write, _LEVELS[level], message, shown)


def _try(function: Any, *arguments: Any) -> Any:
    try:
        return _call(function, *arguments)
    except Err as error:
        raise _error(error.value) from None


def _call(function: Any, *arguments: Any) -> Any:
    """Calls an import. The bindings would trap on a text that is no UTF-8."""
    try:
        return function(*(utf8(argument) if isinstance(argument, str) else argument for argument in arguments))
    except Err as error:
        # The bindings' frame holds the error, whose traceback holds the frame, and that the arguments: without it, none
        # of them waits for the garbage collector.
        raise error.with_traceback(None)


def _options(options: Options) -> Any:
    return wit.Options(options.timeout_ms, options.parent)


def _error(error: Any) -> Error:
    case = _CASES[type(error)]
    match error:
        case wit.Error_Timeout() | wit.Error_PeerGone() | wit.Error_Trapped():
            return by_case(case)
        case wit.Error_LimitExceeded(limit):
            return by_case(case, limit.name, limit.used, limit.allowed)
        case wit.Error_TooLarge(size):
            return by_case(case, size.bytes, size.allowed)
        case wit.Error_Handler(own):
            return by_case(case, own.code, own.message)
    return by_case(case, error.value)
