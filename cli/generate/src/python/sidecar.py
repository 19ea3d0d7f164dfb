class Connection:
    """A session with Main. It ends with the session: then everything raises `Ended`, and the program makes a new one."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def peer(self) -> Peer:
        return self._peer

    def events(self, pattern: str, read: Any) -> Iterator[Event[Any]]:
        events = self._peer.subscribe(pattern)
        return (_event(event, read) for event in events)
