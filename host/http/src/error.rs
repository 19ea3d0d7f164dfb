//! Why a request was not sent, or not answered.

use std::{error::Error, io};

use tokio_rustls::rustls;

/// Why a request was not sent, or not answered. Each case stands for one of the errors of `wasi:http`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No grant allows the request. The text says what was asked for.
    #[error("{0}")]
    Denied(String),
    /// The URL has no scheme or host that could be granted.
    #[error("it has a URL that cannot be granted: {0}")]
    Uri(String),
    /// The headers of the request have more bytes than `http.header-size` allows.
    #[error("its headers have {size} bytes, and `http.header-size` allows {allowed}")]
    RequestHeaders {
        /// Their bytes.
        size: u64,
        /// What the limit allows.
        allowed: u64,
    },
    /// The answer has more bytes of headers than `http.header-size` allows, or more than 128 headers.
    #[error("the headers of the answer are larger than `http.header-size` allows")]
    ResponseHeaders,
    /// As many requests are under way as `http.in-flight` allows, as many connections are open as `[http]` or the
    /// guest's part of it allows, or too many requests wait to be sent.
    #[error("too many requests or connections at once")]
    TooMany,
    /// The name was not resolved in time.
    #[error("its name was not resolved in time")]
    DnsTimeout,
    /// The name could not be resolved, or has no address.
    #[error("its name cannot be resolved: {0}")]
    Dns(String),
    /// None of the addresses of the name is public or granted, or the address is this device's own and not granted.
    #[error("{0}")]
    AddressProhibited(String),
    /// No server there accepts connections.
    #[error("the connection was refused")]
    ConnectionRefused,
    /// The network has no way to the server.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was not made in time.
    #[error("the connection was not made in time")]
    ConnectTimeout,
    /// The connection ended before the answer.
    #[error("the connection ended before the answer")]
    ConnectionTerminated,
    /// The answer did not begin, did not go on, or was not whole in time.
    #[error("the answer did not come in time")]
    ResponseTimeout,
    /// The whole of the exchange took longer than `http.total-timeout`.
    #[error("it took longer than `http.total-timeout` allows")]
    TotalTimeout,
    /// The answer was cut off.
    #[error("the answer was cut off")]
    ResponseIncomplete,
    /// The certificate of the server is not valid for it, or nobody trusted has signed it.
    #[error("the certificate of the server is not valid: {0}")]
    Certificate(String),
    /// The server ended the handshake of TLS.
    #[error("the server ended the handshake of TLS: {0}")]
    TlsAlert(String),
    /// TLS failed.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The server went over to another protocol.
    #[error("the server went over to another protocol")]
    Upgraded,
    /// The server does not speak HTTP as it should.
    #[error("the server does not speak HTTP as it should: {0}")]
    Protocol(String),
    /// The guest did not begin the body of the request in time, or did not write it to its end.
    #[error("the body of the request was not written to its end")]
    RequestBody,
    /// Nothing can be sent: no certificates are trusted, or the thread that sends cannot be started, or has ended and is
    /// not started again yet.
    #[error("nothing can be sent: {0}")]
    Configuration(String),
}

impl From<io::Error> for HttpError {
    /// The error of a connection that is being made or used.
    fn from(error: io::Error) -> Self {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return error.into();
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::TimedOut => Self::ConnectTimeout,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown => Self::Unreachable(error.to_string()),
            _ => Self::ConnectionTerminated,
        }
    }
}

impl From<&rustls::Error> for HttpError {
    fn from(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
                Self::Certificate(error.to_string())
            }
            rustls::Error::AlertReceived(alert) => Self::TlsAlert(format!("{alert:?}")),
            _ => Self::Tls(error.to_string()),
        }
    }
}

impl From<hyper::Error> for HttpError {
    fn from(error: hyper::Error) -> Self {
        Self::from_hyper(&error)
    }
}

impl HttpError {
    /// The error of an answer whose body has begun. However its connection ends, the body is incomplete.
    pub(crate) fn in_body(error: &hyper::Error) -> Self {
        match Self::from_hyper(error) {
            Self::ConnectionTerminated => Self::ResponseIncomplete,
            other => other,
        }
    }

    pub(crate) fn from_hyper(error: &hyper::Error) -> Self {
        let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        match io {
            // hyper has no method for clients that tells this error.
            _ if error.is_parse() && error.to_string().contains("too large") => Self::ResponseHeaders,
            _ if error.is_parse() => Self::Protocol(error.to_string()),
            _ if error.is_incomplete_message() => Self::ResponseIncomplete,
            _ if error.is_user() => Self::RequestBody,
            Some(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(error) => error.into(),
                // The length of a chunk is malformed.
                None if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                    Self::Protocol(error.to_string())
                }
                None => Self::ConnectionTerminated,
            },
            None if error.is_canceled() || error.is_closed() => Self::ConnectionTerminated,
            None => Self::Protocol(error.to_string()),
        }
    }
}
