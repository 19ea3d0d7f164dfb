"""The event loop: asyncio's own, which waits for Main's inbox instead of for files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from ._host import Host


class Loop(asyncio.BaseEventLoop):
    """Callbacks and timers are those of asyncio. Only the wait, and the time, are the host's."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._selector = self
        self.listens: Callable[[], bool] = lambda: False
        """Whether messages may come."""
        self.on_readable: Callable[[], None] = lambda: None
        """Takes what waits in the inbox."""

    def time(self) -> float:
        return self._host.now()

    def select(self, timeout: float | None) -> bool:
        """Called by asyncio, between callbacks, where other loops wait for files."""
        return self._host.wait(timeout, self.listens())

    def _process_events(self, is_readable: bool) -> None:
        if is_readable:
            self.on_readable()

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]
        raise NotImplementedError("an extension has one thread: there is no other for blocking code")

    def _write_to_self(self) -> None:
        """There is no other thread that could wake this one."""
