"""An extension without Weir: `Harness` plays Main in memory, for plain `pytest`.

`RunningMain` is the other kind of test: with a real Main, which `weir test` starts.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Self, TypeVar, overload

from . import _memory as memory
from ._contract import Operation, Queue, Topic
from ._errors import HandlerError, NoProvider, PeerGone, Timeout
from ._extension import Extension
from ._link import Link
from ._loop import Loop
from ._memory import Published
from ._memory_queues import JobState
from ._server import Server
from ._types import Misfit, encode

A = TypeVar("A")
R = TypeVar("R")

__all__ = ["CallError", "Harness", "JobState", "Pending", "Published", "RunningMain"]

Handler = Callable[[A], Awaitable[R]]
"""A handler of the extension, or its name: `greeter@1/greet`."""


class Harness:
    """Runs an extension in memory and plays everything around it.

    The manifest is the grants: a contract or topic that it lacks is refused as Main would refuse it. Time passes only
    when everything waits for it, so a test of a timeout takes no time.

        main = Harness(app.ext)
        assert main.call(app.greet, "Ada") == "hello Ada"

    The extension starts at the first call, event or wait. Set its fakes before that.
    """

    def __init__(self, extension: Extension, config: Mapping[str, str] | None = None) -> None:
        extension.check()
        self._extension, self._lost = extension, 0
        self._host = memory.Host(extension)
        self._host.values.update(config or {})
        self._loop = self._host.loop = Loop(self._host)
        self._loop.set_exception_handler(_report)
        self._link = Link(self._host, self._loop)
        self._main: asyncio.Task[None] | None = None

    def fake(self, operation: Operation[A, R], answer: Callable[[A], R | Awaitable[R]]) -> None:
        """Answers an operation in place of its owner, with a function, async or not.

        It may wait with `asyncio.sleep`, and may raise any `weir.Error`, as Main or the owner would.
        """
        fake = memory.fake_of(answer, operation.arguments.decode_arguments, encode)
        self._host.fakes[operation.contract, operation.name] = fake

    def message_size(self, bytes: int) -> None:
        """Sets the extension's `message-size`: larger answers, arguments and events are refused."""
        self._host.message_size = bytes

    def in_flight(self, most: int) -> None:
        """Sets the extension's `in-flight`: it cannot ask a queue for more jobs than this, nor have more in hand."""
        self._host.queues.in_flight = most

    def sender(self, name: str) -> None:
        """The name under which the test calls and publishes from now on. The first is `test`."""
        self._host.sender = name

    def start(self) -> None:
        """Starts the extension, and waits until it is ready. Raises what ends it."""
        if self._main is None:
            self._main = self._loop.create_task(Server(self._extension, self._link).run())
        self._run_until(lambda: self._host.is_ready)

    @overload
    def call(self, operation: Handler[A, R], arguments: A, *, timeout: float = ...) -> R: ...
    @overload
    def call(self, operation: Callable[[], Awaitable[R]], *, timeout: float = ...) -> R: ...
    @overload
    def call(self, operation: str, arguments: Any = ..., *, timeout: float = ...) -> Any: ...
    def call(self, operation: Any, arguments: Any = None, *, timeout: float = memory.TIMEOUT) -> Any:
        """Calls a handler, or an operation such as `greeter@1/greet`, and waits for its result.

        Raises the handler's own error, `Timeout`, and the others that Main gives a caller.
        """
        return self.send(operation, arguments, timeout=timeout).wait()

    def send(self, operation: Any, arguments: Any = None, *, timeout: float = memory.TIMEOUT) -> Pending[Any]:
        """Calls without waiting. `bytes` as arguments are sent as they are."""
        self.start()
        if self._is_over():
            raise NoProvider(self._extension.id)
        found = self._operation(operation)
        empty = b"" if isinstance(found, str) or found.arguments.is_bytes or found.arguments.record else b"null"
        payload = empty if arguments is None else encode(arguments)
        contract, _, name = found.partition("/") if isinstance(found, str) else (found.contract, "", found.name)
        id = self._host.ask(contract, name, payload, timeout)
        self._run_until_idle()
        return Pending(self, id, None if isinstance(found, str) else found)

    def publish(self, topic: str | Topic[Any], value: Any) -> int:
        """Publishes an event. Returns the number of the extension's subscriptions that it reached."""
        self.start()
        lost, self._lost = self._lost, 0
        delivered = self._host.deliver(memory.TEST, str(topic), encode(value), lost)
        self._run_until_idle()
        return delivered

    def retain(self, topic: str | Topic[Any], value: Any) -> None:
        """Has Main retain a topic, with this as its last value."""
        self._host.retain(str(topic), encode(value))

    def lose(self, events: int) -> None:
        """Makes the next event arrive as if this many before it had been lost."""
        self._lost = events

    def published(self) -> list[Published]:
        """The events that the extension has published since the last call of this."""
        self._run_until_idle()
        found, self._host.published = self._host.published, []
        return found

    def put(self, queue: str | Queue[Any], job: Any) -> int:
        """Puts a job into a queue. Returns its id. The extension gets it when it takes."""
        self.start()
        id = self._host.put_as(memory.TEST, self._host.queues.number(str(queue)), encode(job))
        self._run_until_idle()
        return id

    def job(self, id: int) -> JobState:
        """The state of a job."""
        self._run_until_idle()
        return self._host.queues.states[id]

    def take_all(self, queue: str | Queue[Any]) -> list[Any]:
        """Takes all waiting jobs of a queue, as another reader would. For a `Queue` with a type, as values of it."""
        self._run_until_idle()
        payloads = self._host.queues.drain(str(queue))
        return [queue.payload.decode(job) if isinstance(queue, Queue) else job for job in payloads]

    @property
    def interrupted(self) -> str | None:
        """Why the extension has declared itself interrupted."""
        self._run_until_idle()
        return self._host.why_interrupted

    @property
    def failed(self) -> str | None:
        """Why the extension has told Main that it fails."""
        self._run_until_idle()
        return self._host.why_failed

    @property
    def calls_under_way(self) -> int:
        """The number of calls to fakes without an answer."""
        self._run_until_idle()
        return len(self._host.under_way)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self._host.time

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._run_until_idle()
        end = self._host.time + seconds
        while (next := self._next_timer()) is not None and next <= end:
            self._advance_to(next)
        self._advance_to(end)

    def stop(self) -> None:
        """Tells the extension to stop, and waits until it has stopped. Raises what ended it."""
        self.start()
        self._host.stop()
        self._run_until(lambda: False)

    def close(self) -> None:
        """Ends the extension where it is."""
        if self._loop.is_closed():
            return
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._run_until_idle()
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            # Collected while another one runs, which this must not end.
            return
        try:
            self.close()
        except Exception:
            pass

    def _operation(self, operation: Any) -> Operation[Any, Any] | str:
        for served in self._extension.operations:
            found = served.operation
            if operation in (served.handler, found) or operation == f"{found.contract}/{found.name}":
                return found
        if isinstance(operation, str):
            return operation
        raise LookupError(f"`{operation}` is no handler of `{self._extension.id}`")

    def _is_over(self) -> bool:
        return self._main is not None and self._main.done()

    def _run_until(self, is_so: Callable[[], bool]) -> None:
        while True:
            self._run_until_idle()
            if self._main and self._main.done():
                # Only a failure of the extension is raised, and only once.
                ended, self._main = self._main, self._loop.create_future()  # type: ignore[assignment]
                self._main.set_result(None)  # type: ignore[union-attr]
                ended.result()
                return
            if is_so():
                return
            next = self._next_timer()
            if next is None:
                raise RuntimeError("the extension waits for what never comes")
            self._advance_to(next)

    def _run_until_idle(self) -> None:
        self._loop.run_forever()
        if self._is_over():
            self._host.gone()

    def _advance_to(self, time: float) -> None:
        self._host.time = max(time, self._host.time)
        self._run_until_idle()

    def _next_timer(self) -> float | None:
        timers = [timer.when() for timer in self._loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        return min(timers, default=None)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # A test may end before its extension does.
    if "was destroyed" not in context.get("message", ""):
        loop.default_exception_handler(context)


class Pending(Generic[R]):
    """A request under way."""

    def __init__(self, main: Harness, id: int, operation: Operation[Any, R] | None) -> None:
        self._main, self._id, self._operation = main, id, operation

    @property
    def is_answered(self) -> bool:
        """Whether the answer is there already."""
        self._main._run_until_idle()
        asked = self._main._host.asked.get(self._id)
        return asked is None or asked.answer is not None

    def wait(self) -> R:
        """Lets time pass until the extension has answered, or its time is over."""
        main = self._main
        while True:
            main._run_until_idle()
            asked = main._host.asked.get(self._id)
            if asked is None:
                raise PeerGone()
            if asked.answer is not None:
                break
            if asked.deadline <= main.now:
                del main._host.asked[self._id]
                raise Timeout()
            main._advance_to(min(asked.deadline, main._next_timer() or asked.deadline))
        del main._host.asked[self._id]
        if isinstance(asked.answer, Exception):
            raise asked.answer
        if self._operation is None:
            return asked.answer  # type: ignore[return-value]
        try:
            result: R = self._operation.result.decode(asked.answer)
            return result
        except Misfit as misfit:
            raise HandlerError("invalid-answer", misfit) from misfit


class CallError(Exception):
    """A call of a running extension that gave no result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        """The exit code of `weir call`: 7 for an error of the handler, 8 for a provider that cannot answer."""


class RunningMain:
    """The Main that `weir test` has started for this test, with the project's own `weir.toml`."""

    def __init__(self, weir: str, socket: str) -> None:
        self._weir, self._socket = weir, socket

    @classmethod
    def from_env(cls) -> RunningMain | None:
        """The Main of this test. None outside `weir test`."""
        weir, socket = os.environ.get("WEIR"), os.environ.get("WEIR_SOCKET")
        return cls(weir, socket) if weir and socket else None

    def call(self, contract: str, operation: str, arguments: Any = None) -> bytes:
        """Calls an operation, as `weir call` does. Returns the payload of the answer."""
        done = self.run("call", "--raw", contract, operation, "-", input=encode(arguments))
        if done.returncode != 0:
            raise CallError(done.returncode, done.stderr.decode().strip().removeprefix("error: "))
        return done.stdout

    def run(self, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Runs the `weir` command for this Main."""
        environment = os.environ | {"WEIR_SOCKET": self._socket}
        command = [self._weir, *arguments]
        return subprocess.run(command, check=False, input=input, capture_output=True, env=environment)
