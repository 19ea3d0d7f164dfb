"""Write an extension of Weir in Python, and test it without Weir.

    import weir

    ext = weir.Extension("greeter", version="0.1.0")

    @ext.serves("greeter@1")
    async def greet(name: str) -> str:
        return f"hello {name}"

`weir-py build` makes a component of it. `weir.testing` has a Main in memory for tests.
"""

from pathlib import Path

from ._calls import (
    Job,
    Subscription,
    call,
    config,
    interrupted,
    own_name,
    publish,
    put,
    ready,
    remaining,
    send,
    sender,
    subscribe,
    take,
)
from ._contract import Contract, Empty, Event, Operation, Queue, Receipt, Topic
from ._errors import (
    DeclarationError,
    Error,
    HandlerError,
    Invalid,
    LimitExceeded,
    NoProvider,
    NotReady,
    Overloaded,
    PeerGone,
    PermissionDenied,
    Timeout,
    TooLarge,
    Trapped,
    UnknownContract,
    WouldDeadlock,
)
from ._extension import Extension
from ._types import strict

WIT = Path(__file__).parent / "wit"
"""The directory with `iec.wit`, for bindings of your own."""

__all__ = [
    "WIT",
    "Contract",
    "DeclarationError",
    "Empty",
    "Error",
    "Event",
    "Extension",
    "HandlerError",
    "Invalid",
    "Job",
    "LimitExceeded",
    "NoProvider",
    "NotReady",
    "Operation",
    "Overloaded",
    "PeerGone",
    "PermissionDenied",
    "Queue",
    "Receipt",
    "Subscription",
    "Timeout",
    "TooLarge",
    "Topic",
    "Trapped",
    "UnknownContract",
    "WouldDeadlock",
    "call",
    "config",
    "interrupted",
    "own_name",
    "publish",
    "put",
    "ready",
    "remaining",
    "send",
    "sender",
    "strict",
    "subscribe",
    "take",
]
