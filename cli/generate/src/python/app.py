WAITS = (0.25, 15.0)
"""Seconds before a subscription is tried again: the first wait, and the longest one."""


class Connection:
    """A connection with Main that begins a new session when one has ended.

    It never repeats a call: one under way at a break raises `Ended`, and may have been carried out. Subscriptions are made
    again, and tell of the gap. Without a connection everything else raises `OSError`, `EOFError` or `Ended`.
    """

    def __init__(self, path: str, name: str, token: str = "") -> None:
        self._path, self._name, self._token = path, name, token
        self._lock = threading.Lock()
        self._peer: Peer | None = None

    def peer(self) -> Peer:
        """The session, or a new one if there is none."""
        with self._lock:
            if self._peer is None or self._peer.ended:
                self._peer = Peer(self._path, self._name, self._token)
            return self._peer

    def events(self, pattern: str, read: Any) -> Iterator[Event[Any] | Gap]:
        peer = self.peer()
        return self._events(peer, peer.subscribe(pattern), pattern, read)

    def _events(
        self, peer: Peer, events: Iterator[weir_peer.Event], pattern: str, read: Any
    ) -> Iterator[Event[Any] | Gap]:
        while True:
            for event in events:
                yield _event(event, read)
            if not peer.ended:
                return  # The operator took the grant back.
            peer, events = self._again(pattern)
            yield Gap()

    def _again(self, pattern: str) -> tuple[Peer, Iterator[weir_peer.Event]]:
        wait, longest = WAITS
        while True:
            try:
                peer = self.peer()
                return peer, peer.subscribe(pattern)
            except (OSError, EOFError, Ended):
                time.sleep(wait)
            wait = min(longest, 2 * wait)


@dataclass(frozen=True)
class Gap:
    """The connection was gone, and is there again. Events may be missing: read the state anew."""
