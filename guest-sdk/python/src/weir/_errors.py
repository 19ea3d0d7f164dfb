"""Errors as they cross the border: one class for each case of `weir:iec/types.error`."""

from __future__ import annotations

from typing import Any, ClassVar, Self


class DeclarationError(Exception):
    """An extension, a contract or a type is declared in a way that Weir would refuse."""


class Error(Exception):
    """Why a message failed. The subclasses are exactly the cases of `error` in `wit/iec.wit`.

    If a handler raises one, its caller gets a `HandlerError` with the same `code`.
    """

    case: ClassVar[str] = ""
    """The name in `wit/iec.wit`, such as `no-provider`."""

    @property
    def code(self) -> str:
        """A word for programs: the provider's code, else the `case`."""
        return self.case


class _Named(Error):
    _shown: ClassVar[str] = "{}"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        """Which contract, peer, queue or argument it is about."""

    def __str__(self) -> str:
        return self._shown.format(self.text)


class PermissionDenied(_Named):
    """The operator did not grant this. The text names the missing grant and its key."""

    case, _shown = "permission-denied", "permission denied: {}"


class UnknownContract(_Named):
    """Nothing is configured to fulfil this contract."""

    case, _shown = "unknown-contract", "unknown contract `{}`"


class NoProvider(_Named):
    """The owner is stopped or has failed, or a targeted event has no subscriber."""

    case, _shown = "no-provider", "no provider: {}"


class NotReady(_Named):
    """The owner is starting or interrupted."""

    case, _shown = "not-ready", "not ready: {}"


class Timeout(Error, TimeoutError):
    """The deadline passed. The request may have been carried out."""

    case = "timeout"

    def __str__(self) -> str:
        return "timed out"


class Overloaded(_Named):
    """The receiver's inbox or the queue is full."""

    case, _shown = "overloaded", "`{}` is full"


class PeerGone(Error):
    """The receiver stopped before it answered, or this extension receives no more."""

    case = "peer-gone"

    def __str__(self) -> str:
        return "the receiver stopped before it answered"


class Trapped(Error):
    """The receiver trapped or was killed with the request in hand."""

    case = "trapped"

    def __str__(self) -> str:
        return "the receiver trapped with the request in hand"


class LimitExceeded(Error):
    """This extension reached one of its limits."""

    case = "limit-exceeded"

    def __init__(self, name: str, used: int, allowed: int) -> None:
        super().__init__(name, used, allowed)
        self.name, self.used, self.allowed = name, used, allowed

    def __str__(self) -> str:
        return f"limit `{self.name}` exceeded: {self.used} of {self.allowed}"


class WouldDeadlock(Error):
    """The wait would close a cycle of these peers, from the caller round to the caller."""

    case = "would-deadlock"

    def __init__(self, peers: list[str]) -> None:
        super().__init__(peers)
        self.peers = peers

    def __str__(self) -> str:
        return f"would deadlock: {' -> '.join(self.peers)}"


class TooLarge(Error):
    """The payload is too large for the sender or the receiver."""

    case = "too-large"

    def __init__(self, bytes: int, allowed: int) -> None:
        super().__init__(bytes, allowed)
        self.bytes, self.allowed = bytes, allowed

    def __str__(self) -> str:
        return f"payload of {self.bytes} bytes is over the limit of {self.allowed}"


class Invalid(_Named):
    """The arguments are invalid: a malformed name, an unknown operation or a wrong value."""

    case, _shown = "invalid", "invalid: {}"


class HandlerError(Error):
    """The provider's own error. A handler raises it to answer its caller with it.

    `code` is a short word of the contract, such as `not-found`, of at most 64 bytes; `message` is for people, cut to
    4096 bytes.
    """

    case = "handler"

    def __init__(self, code: str, message: object = "") -> None:
        super().__init__(code, message)
        self._code, self.message = _cut(code, 64), _cut(str(message), 4096)

    @property
    def code(self) -> str:
        return self._code

    def __str__(self) -> str:
        return f"{self._code}: {self.message}"

    @classmethod
    def invalid_argument(cls, message: object) -> Self:
        """Unacceptable arguments, with the code that the SDK answers malformed ones with."""
        return cls("invalid-argument", message)


def as_answer(error: BaseException) -> tuple[str, str] | None:
    """Code and message with which a caller is answered. None: the error was not expected."""
    match error:
        case HandlerError():
            return error.code, error.message
        case Error():
            return error.code, _cut(str(error), 4096)
        case TimeoutError():
            return Timeout.case, str(Timeout())
        case OSError():
            return "io", _cut(str(error), 4096)
    return None


def by_case(case: str, *fields: Any) -> Error:
    """The error of a case, with the fields that the case has."""
    error: Error = _CASES[case](*fields)
    return error


def utf8(text: str) -> str:
    """The text as it can cross the border: UTF-8 has no lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _cut(text: str, most: int) -> str:
    if len(text.encode(errors="replace")) <= most:
        return text
    return text.encode(errors="replace")[:most].decode(errors="ignore")


def _classes(base: type[Error]) -> dict[str, type[Any]]:
    found: dict[str, type[Any]] = {}
    for kind in base.__subclasses__():
        found |= _classes(kind)
        if kind.case:
            found[kind.case] = kind
    return found


_CASES = _classes(Error)
