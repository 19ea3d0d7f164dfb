//! When the control interface ends: after the extensions, and before the worker thread.

use std::time::Duration;

use tokio::sync::watch;

/// Time for answers and streams to reach clients that do not read.
const GRACE: Duration = Duration::from_secs(1);

/// Tells all that serves a client that Main has stopped everything else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing(watch::Sender<bool>);

/// Held by all that serves a client, for as long as it does.
#[derive(Clone, Debug)]
pub(crate) struct Closed(watch::Receiver<bool>);

impl Closing {
    pub(crate) fn closed(&self) -> Closed {
        Closed(self.0.subscribe())
    }

    /// Ends when no client is served any more, or after a grace time.
    pub(crate) async fn close(self) {
        self.0.send_replace(true);
        if tokio::time::timeout(GRACE, self.0.closed()).await.is_err() {
            tracing::warn!("cut off clients of the control socket that did not read their answers");
        }
    }
}

impl Closed {
    /// Ends when Main has stopped everything else.
    pub(crate) async fn wait(&mut self) {
        // Nobody left to say so is the same.
        let _gone = self.0.wait_for(|closing| *closing).await;
    }
}
