P = TypeVar("P")


class Client:
    """A client of a contract. `timeout_ms` is for each call and put, `provider` is called in place of the owner."""

    CONTRACT = ""

    def __init__(self, connection: Connection, *, timeout_ms: int = 0, provider: str = "") -> None:
        self._connection, self._timeout_ms, self._provider = connection, timeout_ms, provider

    def _call(self, operation: str, arguments: object) -> Any:
        return _read(self._call_bytes(operation, _written(arguments)))

    def _call_bytes(self, operation: str, payload: bytes) -> bytes:
        peer = self._connection.peer()
        return peer.call(self.CONTRACT, operation, payload, self._timeout_ms, self._provider)

    def _events(self, pattern: str, read: Any) -> Iterator[Any]:
        return self._connection.events(pattern, read)

    def _put(self, queue: str, payload: bytes, until_done: bool) -> None:
        self._connection.peer().put(queue, payload, until_done, self._timeout_ms)

    def _take(self, queue: str, read: Any) -> Job[Any]:
        job = self._connection.peer().take(queue)
        try:
            return Job(read(job.payload), job)
        except ValueError:
            job.give_back()
            raise


@dataclass(frozen=True)
class Event(Generic[P]):
    """An event, with the envelope that Main stamped on it."""

    topic: str
    sender: str
    sequence: int
    """Rises with each event of the topic. 0 for an event published to this program alone."""
    lost: int
    """Events of this subscription that were lost just before this one."""
    retained: bool
    """Whether it is the last value of a topic that Main retains, from before the subscription."""
    payload: P


@dataclass(frozen=True)
class Job(Generic[P]):
    """A job in hand. `with` marks it done at the end, and gives it back after an exception."""

    payload: P
    envelope: weir_peer.Job

    def done(self) -> None:
        self.envelope.done()

    def give_back(self) -> None:
        self.envelope.give_back()

    def __enter__(self) -> Job[P]:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self.give_back() if error else self.done()


def _event(event: weir_peer.Event, read: Any) -> Event[Any]:
    return Event(event.topic, event.sender, event.sequence, event.lost, event.retained, read(event.payload))


def _written(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def _read(payload: bytes) -> Any:
    return json.loads(payload or b"null")
