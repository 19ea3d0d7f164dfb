//! TLS for addresses that other machines reach.

#[cfg(feature = "tls")]
mod rustls {
    use std::{fmt, sync::Arc};

    use tokio_rustls::{
        TlsAcceptor,
        rustls::{
            ServerConfig,
            pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        },
        server::TlsStream,
    };

    use crate::{
        GatewayError, TlsConfig,
        stream::{Io, Stream},
    };

    /// The name of HTTP/2 for ALPN (RFC 9113, 3.2).
    const HTTP2: &[u8] = b"h2";

    impl Io for TlsStream<Box<dyn Io>> {}

    /// Accepts TLS with the operator's certificate.
    #[derive(Clone)]
    pub(crate) struct Tls(TlsAcceptor);

    impl fmt::Debug for Tls {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Tls").finish_non_exhaustive()
        }
    }

    impl Tls {
        pub(crate) fn new(config: &TlsConfig) -> Result<Self, GatewayError> {
            let TlsConfig { certificate, key } = config;
            let failed = |path: &std::path::Path, error: &dyn fmt::Display| GatewayError::Certificate {
                path: path.to_owned(),
                why: error.to_string(),
            };
            let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
                .and_then(Iterator::collect)
                .map_err(|error| failed(certificate, &error))?;
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, &error))?;
            // The provider is named, because a program that links several has no default.
            let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
            let mut config = ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private))
                .map_err(|error| failed(certificate, &error))?;
            config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
            Ok(Self(TlsAcceptor::from(Arc::new(config))))
        }

        pub(crate) async fn accept(&self, stream: Stream) -> std::io::Result<Stream> {
            let secured = self.0.accept(stream.io).await?;
            let is_http2 = secured.get_ref().1.alpn_protocol() == Some(HTTP2);
            Ok(Stream { io: Box::new(secured), is_http2, ..stream })
        }
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use weir_host::config::not_in_this_build;

    use crate::{GatewayError, TlsConfig, stream::Stream};

    /// TLS of a build that has none: no value of this type can be made.
    #[derive(Clone, Debug)]
    pub(crate) enum Tls {}

    impl Tls {
        pub(crate) fn new(config: &TlsConfig) -> Result<Self, GatewayError> {
            let why = format!("TLS {}", not_in_this_build("gateway-tls"));
            Err(GatewayError::Certificate { path: config.certificate.clone(), why })
        }

        #[expect(clippy::unused_async, reason = "a build with TLS awaits the handshake here")]
        pub(crate) async fn accept(&self, _stream: Stream) -> std::io::Result<Stream> {
            match *self {}
        }
    }
}

#[cfg(feature = "tls")]
pub(crate) use self::rustls::Tls;
#[cfg(not(feature = "tls"))]
pub(crate) use self::without::Tls;
