//! The sockets of a Main in C.

use weir_host::{Builder, MainConfig};

use crate::error::weir_error;

/// Opened sockets, which Main serves from its start.
#[cfg(feature = "sockets")]
#[derive(Debug)]
pub(crate) struct Sockets {
    control: weir_control::ControlSocket,
    peers: Option<weir_peer_socket::PeerSocket>,
}

#[cfg(feature = "sockets")]
impl Sockets {
    pub(crate) fn open(config: &MainConfig) -> Result<Self, weir_error> {
        let control = weir_control::ControlSocket::bind(&config.control_socket)?;
        let peers = config.peer_socket.as_deref().map(weir_peer_socket::PeerSocket::bind).transpose()?;
        Ok(Self { control, peers })
    }

    pub(crate) fn attach(self, builder: Builder) -> Builder {
        let Self { control, peers } = self;
        let builder = builder.attach(|attached| control.serve(attached));
        match peers {
            Some(peers) => builder.attach(|attached| peers.serve(attached)),
            None => builder,
        }
    }
}

#[cfg(feature = "sockets")]
impl From<weir_control::SocketError> for weir_error {
    fn from(error: weir_control::SocketError) -> Self {
        Self::cannot_start(&error)
    }
}

/// Sockets of a build that has none: no value of this type can be made.
#[cfg(not(feature = "sockets"))]
#[derive(Debug)]
pub(crate) enum Sockets {}

#[cfg(not(feature = "sockets"))]
impl Sockets {
    pub(crate) fn open(_config: &MainConfig) -> Result<Self, weir_error> {
        let why = weir_host::config::not_in_this_build("sockets");
        Err(weir_error::argument(format!("the control socket {why}")))
    }

    pub(crate) fn attach(self, _builder: Builder) -> Builder {
        match self {}
    }
}
