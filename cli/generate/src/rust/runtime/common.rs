impl Connection {
    pub(super) fn within(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    pub(super) fn of(&self, provider: impl Into<String>) -> Self {
        Self { provider: Some(provider.into()), ..self.clone() }
    }

    pub(super) async fn call<A: Serialize + ?Sized, R: DeserializeOwned>(
        &self,
        contract: &str,
        operation: &str,
        arguments: &A,
    ) -> Result<R, Error> {
        let answer = self.call_bytes(contract, operation, encode(arguments)?).await?;
        decode(&answer, "answer")
    }

    pub(super) async fn call_bytes(
        &self,
        contract: &str,
        operation: &str,
        payload: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let peer = self.peer().await?;
        let mut call = peer.operation(contract, operation);
        if let Some(provider) = &self.provider {
            call = call.provider(provider);
        }
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        call.send(payload).await.map(Into::into)
    }

    pub(super) async fn subscribe<T: DeserializeOwned>(&self, pattern: &str) -> Result<Events<T>, Error> {
        self.events(pattern, |payload| decode(payload, "event")).await
    }

    pub(super) async fn subscribe_bytes(&self, pattern: &str) -> Result<Events<Vec<u8>>, Error> {
        self.events(pattern, |payload| Ok(payload.to_vec())).await
    }

    pub(super) async fn put<T: Serialize + ?Sized>(&self, queue: &str, job: &T) -> Result<u64, Error> {
        self.put_bytes(queue, &encode(job)?).await
    }

    pub(super) async fn put_bytes(&self, queue: &str, job: &[u8]) -> Result<u64, Error> {
        let queue = self.peer().await?.queue(queue)?;
        match self.timeout {
            Some(timeout) => queue.put_within(timeout, job.to_vec()).await,
            None => queue.put(job.to_vec()).await,
        }
    }

    pub(super) async fn take<T: DeserializeOwned>(&self, queue: &str) -> Result<Job<T>, Error> {
        let job = self.peer().await?.queue(queue)?.take().await?;
        Ok(Job { payload: decode(job.payload(), "job")?, job })
    }

    pub(super) async fn take_bytes(&self, queue: &str) -> Result<Job<Vec<u8>>, Error> {
        let job = self.peer().await?.queue(queue)?.take().await?;
        Ok(Job { payload: job.payload().to_vec(), job })
    }
}

/// No arguments.
#[derive(Debug, Serialize)]
pub struct Nothing {}

/// An event.
#[derive(Clone, Debug)]
pub struct Event<T> {
    /// The topic.
    pub topic: String,
    /// The publisher. It cannot be forged.
    pub sender: String,
    /// Rises with each event of the topic. 0 for an event published to this program alone.
    pub sequence: u64,
    /// Events of this subscription that were lost just before this one.
    pub lost: u64,
    /// Whether it is the last value of a topic that Main retains, from before the subscription.
    pub retained: bool,
    /// The published value.
    pub payload: T,
}

impl<T> Event<T> {
    fn read(event: weir_peer::Event, read: fn(&[u8]) -> Result<T, Error>) -> Result<Self, Error> {
        Ok(Self {
            payload: read(&event.payload)?,
            topic: event.topic,
            sender: event.sender,
            sequence: event.sequence,
            lost: event.lost,
            retained: event.retained,
        })
    }
}

/// A job in hand. Dropped before [`done`](Self::done), it goes back to its queue.
#[derive(Debug)]
#[must_use = "dropped, it goes back to the queue"]
pub struct Job<T> {
    /// The value that was put.
    pub payload: T,
    job: weir_peer::Job,
}

impl<T> Job<T> {
    /// Says that the job is done.
    pub fn done(self) {
        self.job.done();
    }

    /// Main's number, sender and deliveries of the job.
    pub fn envelope(&self) -> &weir_peer::Job {
        &self.job
    }
}

fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| Error::handler("json", error))
}

/// The error has the code `invalid-answer`, `invalid-event` or `invalid-job`: it does not fit the contract.
fn decode<T: DeserializeOwned>(payload: &[u8], what: &str) -> Result<T, Error> {
    let read = |text| serde_json::from_slice(text);
    match payload {
        // Nothing stands for null, or for an object without fields.
        b"" | b"null" => read(b"null").or_else(|_| read(b"{}")),
        payload => read(payload),
    }
    .map_err(|error| Error::handler(format!("invalid-{what}"), error))
}
