//! Bodies of requests and answers, within a common bound of memory.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::StatusCode,
};
use bytes::BytesMut;
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use weir_host::Error;

use super::error::Refusal;

/// The largest payload of any limits class.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Bytes free of charge for each body, so that small ones fit beside the largest.
const OWN: usize = 64 * 1024;

const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Memory for one of the largest bodies, or for several smaller ones that are as large together.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory(Arc<Semaphore>);

/// A body in memory, with its room.
#[derive(Debug)]
pub(super) struct HeldBody {
    pub(super) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BODY)))
    }

    /// Reads a request's whole body, up to `max` bytes, or refuses it with the refusal in `max`. A refused body is read
    /// and discarded, unless it is announced as larger than any may be.
    pub(super) async fn read(&self, mut body: Body, max: Result<u64, Refusal>) -> Result<HeldBody, Refusal> {
        let announced = body.size_hint().lower();
        if announced > MAX_BODY as u64 {
            return Err(too_large(announced, max.unwrap_or(u64::MAX)));
        }
        let all = async {
            let read = match max {
                Ok(max) => self.collect(&mut body, max).await,
                Err(refusal) => Err(refusal),
            };
            if read.is_err() {
                // Reads on, because the sender hears the refusal only after it has sent the body.
                let mut left = MAX_BODY;
                while let Some(Ok(frame)) = body.frame().await {
                    let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { break };
                    left = rest;
                }
            }
            read
        };
        timeout(BODY_TIMEOUT, all).await.unwrap_or_else(|_late| {
            let message = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow-body", message))
        })
    }

    async fn collect(&self, body: &mut Body, max: u64) -> Result<HeldBody, Refusal> {
        let announced = body.size_hint().lower();
        if announced > max {
            return Err(too_large(announced, max));
        }
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(MAX_BODY);
        let (mut bytes, mut room) = (BytesMut::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::invalid(format!("the body broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length > max {
                return Err(too_large(length as u64, max as u64));
            }
            self.grow(&mut room, length)?;
            bytes.extend_from_slice(&data);
        }
        Ok(HeldBody { bytes: bytes.freeze(), _room: room })
    }

    /// Makes the body of an answer, which holds its room until it is sent.
    pub(super) fn hold(&self, answer: Bytes) -> Result<Body, Refusal> {
        let mut room = None;
        self.grow(&mut room, answer.len())?;
        Ok(Body::from(Bytes::from_owner(HeldBody { bytes: answer, _room: room })))
    }

    /// Extends the room of a body to this length.
    fn grow(&self, room: &mut Option<OwnedSemaphorePermit>, length: usize) -> Result<(), Refusal> {
        let taken = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = length.saturating_sub(OWN).saturating_sub(taken);
        let more = u32::try_from(more).ok().and_then(|more| self.0.clone().try_acquire_many_owned(more).ok());
        match (more, room) {
            (Some(more), Some(room)) => room.merge(more),
            (Some(more), room) => *room = Some(more),
            (None, _) => {
                let message =
                    format!("Main is busy: other payloads take all of the {MAX_BODY} bytes for them");
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message));
            }
        }
        Ok(())
    }
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn too_large(bytes: u64, max: u64) -> Refusal {
    Error::TooLarge { bytes, allowed: max.min(MAX_BODY as u64) }.into()
}
