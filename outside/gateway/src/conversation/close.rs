//! Why the gateway ends a WebSocket.

use tokio_tungstenite::tungstenite::{self, error::ProtocolError, protocol::CloseFrame};
use weir_host::peers::SessionEnd;

use crate::{methods::Methods, shared::Ending};

/// The code and the word of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Close {
    code: u16,
    word: &'static str,
}

impl Close {
    pub(super) const SLOW: Self = Self { code: 4000, word: "slow" };
    pub(super) const STALLED: Self = Self { code: 4003, word: "stalled" };
    pub(super) const SILENT: Self = Self { code: 4004, word: "silent" };
    pub(super) const BINARY: Self = Self { code: 1003, word: "binary" };

    /// Waits until the session ends, or the gateway.
    pub(super) fn coming(methods: &Methods) -> impl Future<Output = Self> + use<> {
        let (ended, ending) = (methods.session().ended(), methods.shared().ending());
        async move {
            tokio::select! {
                biased;
                end = ended => Self::of(end),
                why = ending => Self::of_gateway(why),
            }
        }
    }

    fn of(end: SessionEnd) -> Self {
        let (code, word) = match end {
            SessionEnd::Stopping => return Self::of_gateway(Ending::Main),
            SessionEnd::Revoked => (4001, "revoked"),
            _ => (4002, "ended"),
        };
        Self { code, word }
    }

    fn of_gateway(why: Ending) -> Self {
        let code = match why {
            Ending::Main => 1001,
            Ending::Restart => 1012,
        };
        Self { code, word: why.said().0 }
    }

    /// None: the app has gone.
    pub(super) fn of_error(error: &tungstenite::Error) -> Option<Self> {
        let (code, word) = match error {
            tungstenite::Error::Capacity(_) => (1009, "too-large"),
            tungstenite::Error::Utf8(_) => (1007, "utf-8"),
            tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return None;
            }
            tungstenite::Error::Protocol(_) => (1002, "protocol"),
            _ => return None,
        };
        Some(Self { code, word })
    }

    pub(super) fn frame(self) -> CloseFrame {
        CloseFrame { code: self.code.into(), reason: self.word.into() }
    }
}
