//! Calls of an echo, made and checked in the same way for every side.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use weir_host::client::ClientOperation;

/// Names of the payload sizes, and bytes.
pub(super) const SIZES: [(&str, u32); 3] = [("16 B", 16), ("1 KiB", 1024), ("10 KiB", 10 * 1024)];

pub(super) trait Echo: Clone + Send + 'static {
    fn call(&mut self, payload: Bytes) -> impl Future<Output = Result<Bytes>> + Send;
}

impl Echo for ClientOperation {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        Ok(Self::call(self, payload).await?)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub(super) number: u32,
    /// Bytes of a payload, at least four.
    pub(super) size: u32,
    /// Calls under way from the one task that makes them all.
    pub(super) at_once: u32,
}

impl Calls {
    pub(super) async fn make(self, echo: impl Echo) -> Result<Duration> {
        let start = Instant::now();
        if self.at_once == 1 {
            self.in_turn(echo, self.number).await?;
        } else {
            let share = self.number / self.at_once;
            try_join_all((0..self.at_once).map(|_| self.in_turn(echo.clone(), share))).await?;
        }
        Ok(start.elapsed())
    }

    /// Each call after the answer to the one before.
    async fn in_turn(self, mut echo: impl Echo, calls: u32) -> Result<()> {
        let size = usize::try_from(self.size)?;
        let mut template = vec![0x5a; size];
        for number in 0..calls {
            let number = number.to_le_bytes();
            *template.first_chunk_mut().context("a payload has no room for a number")? = number;
            let answer = echo.call(Bytes::copy_from_slice(&template)).await?;
            ensure!(
                answer.len() == size && answer.first_chunk() == Some(&number),
                "the echo answered otherwise"
            );
        }
        Ok(())
    }
}

pub(super) fn per_call(rounds: &[Duration], calls: u32) -> Vec<f64> {
    rounds.iter().map(|round| 1e9 * round.as_secs_f64() / f64::from(calls)).collect()
}
