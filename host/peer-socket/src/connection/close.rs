//! Why Main ends a session.

use std::borrow::Cow;

use bytes::BytesMut;
use weir_host::{attached::Part, peers::SessionEnd};
use weir_peer::frame::{self, FrameError, FromMain};

/// The last frame of a session.
#[derive(Debug)]
pub(crate) struct Close {
    code: &'static str,
    text: Cow<'static, str>,
}

impl Close {
    pub(crate) fn new(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn protocol(error: &FrameError) -> Self {
        Self::new(frame::close::PROTOCOL, error.to_string())
    }

    pub(super) fn of(end: SessionEnd) -> Self {
        let code = match end {
            SessionEnd::Revoked => frame::close::REVOKED,
            SessionEnd::Stopping => frame::close::STOPPING,
            _ => frame::close::ENDED,
        };
        Self::new(code, end.to_string())
    }

    /// Counts the refusal of a program that has not proved a name, and logs it. The end of Main is none.
    pub(crate) fn count(&self, part: &Part) {
        match self.code {
            frame::close::STOPPING => {}
            // The registry of names logs it.
            frame::close::DENIED => part.count_refused("proof"),
            code => part.refused(code, || self.text.to_string()),
        }
    }

    pub(crate) fn encode(&self, output: &mut BytesMut) {
        FromMain::Close { code: self.code, text: &self.text }.encode(output);
    }
}
