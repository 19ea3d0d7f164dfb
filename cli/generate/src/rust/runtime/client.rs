/// A client on a connection. Clones share it.
#[must_use]
pub fn new(connection: &Connection) -> Self {
    Self { connection: connection.clone() }
}

/// The same client, with at most this much time for each call and put.
#[must_use]
pub fn within(&self, timeout: Duration) -> Self {
    Self { connection: self.connection.within(timeout) }
}

/// The same client, which calls this extension or peer in place of the owner of the contract.
#[must_use]
pub fn of(&self, provider: impl Into<String>) -> Self {
    Self { connection: self.connection.of(provider) }
}
