"""A client of Weir's peer protocol, version 2: docs/peer-protocol.md. Python 3.11, standard library only.

    peer = Peer("/run/weir/peers.sock", "app:player")
    volume = peer.call("settings@1", "get", b'{"key":"volume"}')

One thread reads, and every method may be called from any thread. A session that ends stays ended: everything that waits
raises Ended, and nothing is sent again.
"""

import queue
import re
import socket
import struct
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

HELLO = 0x01
CALL, CANCEL, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PUT, TAKE, DONE, RETURN, SERVE, REPLY, FAIL, CREDIT, TRACE, DESCRIBE = range(
    0x10, 0x1F
)
WELCOME, CLOSE, ANSWER, ERROR = 0x81, 0x82, 0x90, 0x91
REQUEST, GIVEN_UP, EVENT, JOB, DROPPED, NO_JOBS, TOLD_TRACE = range(0xA0, 0xA7)


TRACEPARENT = re.compile("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class WeirError(Exception):
    """Why a message failed. `case` as in wit/iec.wit; `code`, if the provider itself failed, is its own word."""

    def __init__(self, case, code="", text="", a=0, b=0):
        super().__init__(f"{code or case}: {text}" if text else code or case)
        self.case, self.code, self.text, self.a, self.b = case, code or case, text, a, b


class Ended(WeirError):
    """The session has ended. `code` is Main's reason, or `broken`."""


class Failure(Exception):
    """For handlers: answers the request with this error."""

    def __init__(self, code, text=""):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


@dataclass
class Request:
    sender: str
    operation: str
    remaining_ms: int
    payload: bytes
    trace: str = ""  # Its `traceparent`, if Main records it: for calls and the like on its behalf.


@dataclass
class Event:
    sender: str
    topic: str
    sequence: int
    lost: int
    retained: bool
    payload: bytes


@dataclass
class Job:
    """A job in hand. `with peer.take(...) as job:` marks it done at the end, and gives it back after an exception."""

    peer: "Peer"
    number: int
    message: int
    deliveries: int
    sender: str
    payload: bytes
    trace: str = ""

    def done(self):
        self.peer._send(DONE, struct.pack("<I", self.number))

    def give_back(self):
        self.peer._send(RETURN, struct.pack("<I", self.number))

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        self.give_back() if error else self.done()


class Fields:
    """What has not been read of a frame's body."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def numbers(self, layout):
        values = struct.unpack_from("<" + layout, self.body, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def text(self, layout="B"):
        (length,) = self.numbers(layout)
        self.at += length
        return self.body[self.at - length : self.at].decode()

    def rest(self):
        return self.body[self.at :]


def text8(text):
    encoded = text.encode()
    return struct.pack("<B", len(encoded)) + encoded


def text16(text):
    encoded = text.encode()
    return struct.pack("<H", len(encoded)) + encoded


def frame(kind, body):
    return struct.pack("<IB", len(body) + 1, kind) + body


class Peer:
    """A session. `requests` handlers run at once; `events` may wait to be read."""

    def __init__(self, path, name, token="", requests=8, events=64):
        self.ended, self.requests, self.events = None, requests, events
        self._lock, self._send_lock, self._pending, self._last_id = threading.Lock(), threading.Lock(), {}, 0
        self._subscriptions, self._handlers, self._jobs, self._takers, self._read_events = {}, {}, {}, {}, 0
        self._trace = ""
        self._workers = ThreadPoolExecutor(max(requests, 1), thread_name_prefix="weir-handler")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._stream = self._socket.makefile("rb")
        self._send(HELLO, b"WEIR" + struct.pack("<HHII", 1, 2, requests, events) + text8(name) + text8(token))
        kind, fields = self._read_frame(512)
        if kind != WELCOME:
            self._socket.close()
            raise Ended("peer-gone", *((fields.text(), fields.text("H")) if kind == CLOSE else ("protocol",)))
        self.version, self.session, self.message_size, self.in_flight, _ = fields.numbers("HQIII")
        threading.Thread(target=self._read, name="weir-reader", daemon=True).start()

    def call(self, contract, operation, payload=b"", timeout_ms=0, provider="", trace=""):
        """`trace`: the `traceparent` of the span that this is part of, here and in `publish` and `put`."""
        names = text8(contract) + text8(operation) + text8(provider)
        return self._ask(CALL, struct.pack("<I", timeout_ms) + names, payload, trace=trace).result()

    def publish(self, topic, payload=b"", to="", trace=""):
        """Returns how many subscriptions have the event, how many lost one for it, and how many refused it."""
        head = struct.pack("<I", 0) + text8(to) + text16(topic)
        answer = self._ask(PUBLISH, head, payload, trace=trace).result()
        return struct.unpack("<III", answer)

    def subscribe(self, pattern):
        """An iterator over events, until the session ends or the operator takes the grant back."""
        events = queue.SimpleQueue()
        # On the reader's thread, since the first events may follow at once. A subscription is the bytes of its number.
        opened = lambda number: self._subscriptions.setdefault(number, events)
        number = self._ask(SUBSCRIBE, text16(pattern), on_answer=opened).result()
        if self._subscriptions.get(number, events) is not events:
            raise WeirError("invalid", text=f"{pattern} is subscribed to already")
        return self._iterate(number, events)

    def _iterate(self, number, events):
        try:
            while (event := events.get()) is not None:
                self._renew_credit()
                yield event
        finally:
            if self._subscriptions.pop(number, None) and not self.ended:
                self._send(UNSUBSCRIBE, struct.pack("<I", 0) + number)
                self._skip(events)

    def _skip(self, events):
        """Events that nobody reads any more give their credit back: all subscriptions share it."""
        try:
            while events.get_nowait() is not None:
                self._renew_credit()
        except queue.Empty:
            pass

    def put(self, name, payload, until_done=False, timeout_ms=0, trace=""):
        return self.put_later(name, payload, until_done, timeout_ms, trace).result()

    def put_later(self, name, payload, until_done=False, timeout_ms=0, trace=""):
        """As `put`, and returns a Future at once."""
        return self._ask(PUT, struct.pack("<IB", timeout_ms, until_done) + text8(name), payload, trace=trace)

    def take(self, name):
        jobs = self._jobs.setdefault(name, queue.SimpleQueue())
        with self._lock:
            self._takers[name] = self._takers.get(name, 0) + 1
        try:
            self._ask(TAKE, struct.pack("<I", 1) + text8(name)).result()
            job = jobs.get()
        finally:
            with self._lock:
                self._takers[name] -= 1
        if job is None:
            jobs.put(None)  # For the next thread.
            raise self.ended
        if isinstance(job, WeirError):
            raise job
        return job

    def serve(self, contract, handlers):
        """`handlers`: functions by operation, from a Request to bytes. They run on threads of their own."""
        names = b"".join(map(text8, handlers))
        self._handlers[contract] = handlers
        self._ask(SERVE, text8(contract) + struct.pack("<H", len(handlers)) + names).result()

    def describe(self, documents):
        """Describes contracts that are served, once: an OpenRPC document as JSON, or a list of them."""
        if self.version == 1:
            raise WeirError("invalid", text="this Main takes no descriptions")
        self._ask(DESCRIBE, b"", documents).result()

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)

    def wait(self):
        """Waits for the end of the session, and returns why it ended."""
        with self._lock:
            ended = self._pending.setdefault(0, Future()) if not self.ended else None
        return ended.exception() if ended else self.ended

    def _ask(self, kind, head, payload=b"", on_answer=None, trace=""):
        if trace and not TRACEPARENT.fullmatch(trace):
            raise WeirError("invalid", text="no traceparent")
        first = frame(TRACE, text8(trace)) if trace and self.version > 1 else b""
        future = Future()
        future.on_answer = on_answer
        with self._lock:
            if self.ended:
                raise self.ended
            self._last_id = self._last_id % 0xFFFFFFFF + 1
            self._pending[self._last_id] = future
            number = struct.pack("<I", self._last_id)
        self._send(kind, number + head + payload, first)
        return future

    def _send(self, kind, body, first=b""):
        with self._send_lock:
            try:
                self._socket.sendall(first + frame(kind, body))
            except OSError:
                pass  # The reader finds out why, and wakes everything that waits.

    def _read_frame(self, most):
        head = self._stream.read(5)
        if len(head) < 5:
            raise EOFError("Main closed the connection")
        length, kind = struct.unpack("<IB", head)
        if not 1 <= length <= most:
            raise ValueError(f"a frame of {length} bytes")
        return kind, Fields(self._stream.read(length - 1))

    def _read(self):
        ended = Ended("peer-gone", "broken")
        try:
            while True:
                kind, fields = self._read_frame(max(self.message_size, 65536) + 1024)
                if kind == CLOSE:
                    ended = Ended("peer-gone", fields.text(), fields.text("H"))
                    break
                self._accept(kind, fields)
        except Exception as error:  # Main has gone, or broke the protocol.
            ended = Ended("peer-gone", "broken", str(error))
        with self._lock:
            self.ended, pending = ended, list(self._pending.values())
        for future in pending:
            future.set_exception(ended)
        for waiting in [*self._subscriptions.values(), *self._jobs.values()]:
            waiting.put(None)
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._socket.close()

    def _accept(self, kind, fields):
        if kind in (ANSWER, ERROR):
            (number,) = fields.numbers("I")
            with self._lock:
                future = self._pending.pop(number, None) or Future()
            if kind == ERROR:
                case, code, (a, b) = fields.text(), fields.text(), fields.numbers("QQ")
                future.set_exception(WeirError(case, code, fields.text("H"), a, b))
            else:
                getattr(future, "on_answer", None) and future.on_answer(fields.rest())
                future.set_result(fields.rest())
        elif kind == REQUEST:
            number, remaining, _ = fields.numbers("IIQ")
            sender, contract, operation = fields.text(), fields.text(), fields.text()
            request = Request(sender, operation, remaining, fields.rest(), self._next_trace())
            self._workers.submit(self._handle, number, contract, request)
        elif kind == EVENT:
            number, sequence, lost, retained = fields.numbers("4sQQB")
            event = Event(fields.text(), fields.text("H"), sequence, lost, bool(retained), fields.rest())
            events = self._subscriptions.get(number)
            # The reader itself never waits for Main to read.
            events.put(event) if events else self._workers.submit(self._renew_credit)
            if events and number not in self._subscriptions:
                self._workers.submit(self._skip, events)  # It was closed just now.
        elif kind == JOB:
            number, message, deliveries = fields.numbers("IQI")
            sender, name = fields.text(), fields.text()
            self._jobs[name].put(Job(self, number, message, deliveries, sender, fields.rest(), self._next_trace()))
        elif kind == TOLD_TRACE:
            self._trace = fields.text()
        elif kind == NO_JOBS:
            # For each `take` that waits: its credit is gone.
            name = fields.text()
            for _ in range(self._takers.get(name, 0)):
                self._jobs[name].put(WeirError("no-provider", text=f"queue {name} gives no more jobs"))
        elif kind == DROPPED:
            events = self._subscriptions.pop(fields.rest(), None)
            events and events.put(None)
        elif kind != GIVEN_UP:
            raise ValueError(f"a frame of the unknown kind {kind:#x}")

    def _next_trace(self):
        """What came just before a request or a job."""
        trace, self._trace = self._trace, ""
        return trace

    def _renew_credit(self):
        with self._lock:
            self._read_events += 1
            read = self._read_events if self._read_events * 2 >= self.events else 0
            self._read_events -= read
        if read:
            self._send(CREDIT, struct.pack("<I", read))

    def _handle(self, number, contract, request):
        head = struct.pack("<I", number)
        try:
            answer = self._handlers[contract][request.operation](request)
            if len(answer) > self.message_size:
                raise Failure("too-large", f"{len(answer)} bytes")
            self._send(REPLY, head + answer)
        except Exception as error:
            failure = error if isinstance(error, Failure) else Failure("failed", repr(error))
            self._send(FAIL, head + text8(failure.code[:64]) + text16(failure.text[:1000]))
