"""`logging` into Main's log, under this extension's id."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable
from types import TracebackType

Write = Callable[[str, str, list[tuple[str, str]]], None]

_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_HERE = os.path.dirname(__file__)
_MOST = 4096


class Handler(logging.Handler):
    """Writes each record with its `extra` as fields. A traceback follows its message, a line each."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = _level(record.levelno)
            fields = [(name, str(value)) for name, value in record.__dict__.items() if name not in _OWN]
            if record.name not in ("root", "weir"):
                fields.append(("logger", record.name))
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                fields.append(("error", "".join(traceback.format_exception_only(error)).strip()))
                fields.append(("trace", _trace(error.__traceback__)))
            self._write(level, record.getMessage()[:_MOST], fields)
        except Exception:
            self.handleError(record)


def install(write: Write) -> None:
    """Sends all records to Main, from level `INFO` unless the author has set another."""
    root = logging.getLogger()
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
    root.handlers[:] = [Handler(write)]


def _level(number: int) -> str:
    for least, name in (
        (logging.ERROR, "error"),
        (logging.WARNING, "warn"),
        (logging.INFO, "info"),
        (logging.DEBUG, "debug"),
    ):
        if number >= least:
            return name
    return "trace"


def _trace(trace: TracebackType | None) -> str:
    """The innermost calls of the author's, the innermost first, in one line."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not _is_of_the_loop(frame)] or list(frames)
    return " < ".join(f"{frame.name} ({os.path.basename(frame.filename)}:{frame.lineno})" for frame in reversed(own))


def _is_of_the_loop(frame: traceback.FrameSummary) -> bool:
    return os.path.dirname(frame.filename) == _HERE or os.path.basename(frame.filename) == "base_events.py"
