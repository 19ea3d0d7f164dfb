"""An extension: its handlers, and what it needs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

from . import _names as names
from ._contract import Contract, Empty, Event, Operation, Queue, Topic
from ._errors import DeclarationError
from ._types import hints

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
Hook = TypeVar("Hook", bound=Callable[[], Awaitable[None]])


@dataclass
class Served:
    """A handler of requests."""

    operation: Operation[Any, Any]
    handler: Callable[..., Awaitable[Any]]
    takes_arguments: bool
    errors: Mapping[str, str]


@dataclass
class Subscribed:
    """A handler of events."""

    topic: Topic[Any]
    handler: Callable[[Event[Any]], Awaitable[None]]


@dataclass
class Worked:
    """A handler of jobs."""

    queue: Queue[Any]
    at_once: int
    handler: Callable[[Any], Awaitable[None]]


class Extension:
    """An extension: what it is, its handlers, and what it needs.

    Contracts that it serves, topics that it subscribes to and queues that it takes from follow from its handlers. All
    else that it reaches is named here, for the operator to grant: `requires` and `wants` are contracts that it calls,
    `publishes` are topics or patterns, `puts` queues. `subscribes` and `takes` are for what it does without a handler.
    `dirs` has directories and their mode: `{"/data": "rw"}`. `data_since` is the oldest version of the extension that can
    read what this one writes into its stores, as in `"1.2.0"`: by default all can.

        ext = weir.Extension("greeter", version="0.1.0", publishes=["greeter.greeted"])

        @ext.serves("greeter@1")
        async def greet(name: str) -> str:
            return f"hello {name}"
    """

    def __init__(
        self,
        id: str,
        *,
        version: str = "0.0.0",
        data_since: str | None = None,
        requires: Iterable[str | Contract] = (),
        wants: Iterable[str | Contract] = (),
        publishes: Iterable[str | Topic[Any]] = (),
        subscribes: Iterable[str | Topic[Any]] = (),
        puts: Iterable[str | Queue[Any]] = (),
        takes: Iterable[str | Queue[Any]] = (),
        dirs: Mapping[str, str] | None = None,
        env: Iterable[str] = (),
        net: Iterable[str] = (),
    ) -> None:
        if not names.is_extension_id(id):
            raise DeclarationError(
                f"`{id}` is no id of an extension: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter, not `main`"
            )
        requires, wants = list(requires), list(wants)
        self.id, self.version, self.data_since = id, version, data_since
        self.calls = [_as_contract(contract) for contract in [*requires, *wants]]
        self.requires, self.wants = _texts(requires), _texts(wants)
        self.publishes = _texts(map(_as_topic, publishes))
        self._subscribes = _texts(map(_as_topic, subscribes))
        self.puts = _texts(map(_as_queue, puts))
        self._takes = _texts(map(_as_queue, takes))
        self.dirs, self.env, self.net = dict(dirs or {}), list(env), list(net)
        for guest, mode in self.dirs.items():
            if not guest.startswith("/") or mode not in ("ro", "rw"):
                raise DeclarationError(f"`dirs`: `{guest}` with `{mode}` is no absolute path with `ro` or `rw`")
        self.contracts: list[Contract] = []
        self.operations: list[Served] = []
        self.subscriptions: list[Subscribed] = []
        self.jobs: list[Worked] = []
        self.hooks: dict[str, Callable[[], Awaitable[None]]] = {}
        self.tasks: list[Callable[[], Awaitable[None]]] = []

    def serves(
        self,
        target: str | Contract | Operation[Any, Any],
        name: str | None = None,
        *,
        errors: Mapping[str, str] | None = None,
    ) -> Callable[[F], F]:
        """Serves an operation with the decorated async function, which takes the arguments or nothing.

        The operation has the name of the function with `-` for `_`, or the given one. Its annotations and docstring
        describe it; `errors` are its own codes with their meanings. With an `Operation`, name and types are those.
        """

        def declare(handler: F) -> F:
            parameter, result = _signature(handler, "a request", 0)
            if isinstance(target, Operation):
                operation = target
                _refuse_other_types(handler, operation, parameter, result)
                operation.doc = operation.doc or inspect.getdoc(handler) or ""
            else:
                word = name or handler.__name__.strip("_").replace("_", "-")
                arguments = Empty if parameter is inspect.Parameter.empty else parameter
                doc = inspect.getdoc(handler) or ""
                try:
                    operation = Operation(target, word, arguments, result, doc)
                except DeclarationError as error:
                    raise _at(handler, error) from error
            if any(str(served.operation) == str(operation) for served in self.operations):
                raise _at(handler, f"`{operation}` has two handlers")
            self._add_contract(target)
            has_parameter = parameter is not inspect.Parameter.empty
            self.operations.append(Served(operation, handler, has_parameter, errors or {}))
            return handler

        return declare

    def on_event(self, pattern: str | Topic[Any]) -> Callable[[F], F]:
        """Subscribes at start. The decorated async function takes a `weir.Event[T]`, one after the other.

        An event that is no `T` is logged, and so is an exception. While the handler waits, up to 256 events wait for it
        here, and beyond that the oldest are lost: `Event.lost` counts them.
        """

        def declare(handler: F) -> F:
            topic = event_topic(pattern, handler)
            if any(other.topic.name == topic.name for other in self.subscriptions):
                raise _at(handler, f"`{topic}` has two handlers")
            self.subscriptions.append(Subscribed(topic, handler))
            return handler

        return declare

    def on_job(self, queue: str | Queue[Any], *, at_once: int = 1) -> Callable[[F], F]:
        """Takes jobs of a queue, from one to `in-flight` of them `at_once`. The decorated async function takes one job.

        A job is done when the function returns. If it raises, or the job is not of its type, that is logged, and the
        job is given back. A job can come twice.
        """

        def declare(handler: F) -> F:
            parameter, _ = _signature(handler, "a job", 1)
            found = _as_queue(queue)
            if at_once < 1:
                raise _at(handler, f"jobs of `{found}` must be at least one `at_once`")
            if any(other.queue.name == found.name for other in self.jobs):
                raise _at(handler, f"jobs of `{found}` have two handlers")
            if found.payload.type is Any:
                found = _declared(handler, Queue, found.name, parameter, found.doc)
            elif parameter != found.payload.type:
                raise _at(handler, f"a job of `{found}` is a `{_shown(found.payload.type)}`")
            self.jobs.append(Worked(found, at_once, handler))
            return handler

        return declare

    def on_start(self, hook: Hook) -> Hook:
        """Runs before the extension declares itself ready. An exception ends the extension."""
        return self._hook("on_start", hook)

    def on_stop(self, hook: Hook) -> Hook:
        """Runs on stop, when everything in hand is answered."""
        return self._hook("on_stop", hook)

    def background(self, task: Hook) -> Hook:
        """Runs beside the handlers, from ready until stop, when it is cancelled. An exception ends the extension."""
        _check_async(task)
        self.tasks.append(task)
        return task

    @property
    def fulfills(self) -> list[str]:
        """Contracts that it serves."""
        return [contract.name for contract in self.contracts]

    @property
    def subscribes(self) -> list[str]:
        """Patterns of the topics that it subscribes to."""
        return _texts([*(subscribed.topic for subscribed in self.subscriptions), *self._subscribes])

    @property
    def takes(self) -> list[str]:
        """Queues that it takes jobs from."""
        return _texts([*(worked.queue for worked in self.jobs), *self._takes])

    def served(self, contract: str) -> list[Operation[Any, Any]]:
        """The operations of a contract that it serves."""
        return [served.operation for served in self.operations if served.operation.contract == contract]

    def errors(self, operation: Operation[Any, Any]) -> Mapping[str, str]:
        """The codes of an operation's own errors, with their meanings."""
        return next(served.errors for served in self.operations if served.operation is operation)

    def check(self) -> None:
        """Raises `DeclarationError` if a contract declares an operation without a handler."""
        for contract in self.contracts:
            served = [operation.name for operation in self.served(contract.name)]
            for operation in contract.operations:
                if operation.name not in served:
                    raise DeclarationError(f"`{contract}` declares `{operation.name}`, which has no handler")
        if not (self.operations or self.subscriptions or self.jobs or self.hooks or self.tasks):
            raise DeclarationError(f"the extension `{self.id}` has no handlers")

    def _add_contract(self, target: str | Contract | Operation[Any, Any]) -> None:
        contract = target.of if isinstance(target, Operation) else _as_contract(target)
        for place, known in enumerate(self.contracts):
            if known.name == contract.name:
                if isinstance(target, Contract):
                    self.contracts[place] = contract
                return
        self.contracts.append(contract)

    def _hook(self, name: str, hook: Hook) -> Hook:
        _check_async(hook)
        if name in self.hooks:
            raise _at(hook, f"`{name}` is there twice")
        self.hooks[name] = hook
        return hook


def event_topic(pattern: str | Topic[Any], handler: Callable[..., Any]) -> Topic[Any]:
    """The topic of a handler of events, with the type that the handler says."""
    parameter, _ = _signature(handler, "an event", 1)
    if parameter is not Event and get_origin(parameter) is not Event:
        raise _at(handler, "a handler of events takes a `weir.Event[T]`")
    (carried,) = get_args(parameter) or (Any,)
    topic = _as_topic(pattern)
    if topic.payload.type is Any:
        own: Topic[Any] = _declared(handler, Topic, topic.name, carried, topic.doc)
        return own
    if carried not in (topic.payload.type, Any):
        raise _at(handler, f"an event of `{topic}` is a `{_shown(topic.payload.type)}`")
    return topic


def _signature(handler: Callable[..., Any], of: str, least: int) -> tuple[Any, Any]:
    """The annotations of the only parameter, or `Parameter.empty`, and of the result."""
    _check_async(handler)
    types = hints(handler)
    parameters = list(inspect.signature(handler).parameters.values())
    if not least <= len(parameters) <= 1:
        expected = "one parameter" if least else "at most one parameter"
        raise _at(handler, f"a handler of {of} takes {expected}: make several fields a dataclass")
    for parameter in parameters:
        if parameter.name not in types:
            raise _at(handler, f"its parameter `{parameter.name}` has no type")
        return types[parameter.name], _result(handler, types, of)
    return inspect.Parameter.empty, _result(handler, types, of)


def _result(handler: Callable[..., Any], types: dict[str, Any], of: str) -> Any:
    if "return" not in types and of == "a request":
        raise _at(handler, "its result has no type: `-> None` if there is none")
    return types.get("return")


def _refuse_other_types(
    handler: Callable[..., Any], operation: Operation[Any, Any], parameter: Any, result: Any
) -> None:
    parameter = Empty if parameter is inspect.Parameter.empty else parameter
    for of, own, declared in (("takes", parameter, operation.arguments), ("answers", result, operation.result)):
        if own not in (declared.type, Any) and declared.type is not Any:
            raise _at(handler, f"`{operation}` {of} `{_shown(declared.type)}`, not `{_shown(own)}`")


def _check_async(handler: Callable[..., Any]) -> None:
    if not inspect.iscoroutinefunction(handler):
        raise _at(handler, "a handler must be an `async def`")


def _declared(handler: Callable[..., Any], kind: Callable[..., Any], *of: Any) -> Any:
    try:
        return kind(*of)
    except DeclarationError as error:
        raise _at(handler, error) from error


def _at(handler: Callable[..., Any], reason: object) -> DeclarationError:
    code = getattr(handler, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return DeclarationError(f"`{getattr(handler, '__qualname__', handler)}`{place}: {reason}")


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _texts(items: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(map(str, items)))


def _as_contract(contract: str | Contract) -> Contract:
    return contract if isinstance(contract, Contract) else Contract(contract)


def _as_topic(topic: str | Topic[Any]) -> Topic[Any]:
    return topic if isinstance(topic, Topic) else Topic(topic)


def _as_queue(queue: str | Queue[Any]) -> Queue[Any]:
    return queue if isinstance(queue, Queue) else Queue(queue)
