//! Waits for its inbox, a TCP connection and a far timer in one `wasi:io/poll`, and publishes the one that
//! woke it.

#[cfg(target_family = "wasm")]
fn main() -> std::process::ExitCode {
    test_guests::ended(wasm::run())
}

#[cfg(not(target_family = "wasm"))]
fn main() {}

#[cfg(target_family = "wasm")]
mod wasm {
    use std::{net::Ipv4Addr, net::SocketAddrV4};

    use test_guests::words::{setting, text};
    use wasip2::{
        clocks::monotonic_clock::subscribe_duration,
        io::{poll::poll, streams::InputStream},
        sockets::{
            instance_network::instance_network,
            network::{ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress},
            tcp::{OutputStream, TcpSocket},
            tcp_create_socket::create_tcp_socket,
        },
    };
    use weir_sdk::raw::{
        channel::{self, Message},
        events, lifecycle,
    };

    const HOUR: u64 = 3_600_000_000_000;

    pub(crate) fn run() -> Result<(), String> {
        channel::serve("poller@1", &["ask".to_owned()]).map_err(text)?;
        let address = setting("address").ok_or("no `address`")?;
        let (_socket, input, _output) = connect(&address)?;
        lifecycle::ready();
        let (inbox, data, timer) = (channel::subscribe_inbox(), input.subscribe(), subscribe_duration(HOUR));
        loop {
            for ready in poll(&[&inbox, &data, &timer]) {
                match ready {
                    0 => match channel::receive_within(0) {
                        Ok(Some(Message::Request(request))) => {
                            channel::respond(request.id, Ok(&request.payload)).map_err(text)?;
                        }
                        Ok(Some(_)) | Err(_) => {}
                        Ok(None) => return woken("stop", b""),
                    },
                    1 => {
                        let data = input.read(64).map_err(text)?;
                        // A socket may look readable until it has been read dry.
                        if !data.is_empty() {
                            woken("socket", &data)?;
                        }
                    }
                    _ => woken("timer", b"")?,
                }
            }
        }
    }

    fn woken(by: &str, payload: &[u8]) -> Result<(), String> {
        events::publish(&format!("woken.{by}"), payload, test_guests::PATIENT).map(drop).map_err(text)
    }

    fn connect(address: &str) -> Result<(TcpSocket, InputStream, OutputStream), String> {
        let address: SocketAddrV4 = address.parse().map_err(text)?;
        let [a, b, c, d] = Ipv4Addr::octets(address.ip());
        let remote = IpSocketAddress::Ipv4(Ipv4SocketAddress { port: address.port(), address: (a, b, c, d) });
        let socket = create_tcp_socket(IpAddressFamily::Ipv4).map_err(text)?;
        socket.start_connect(&instance_network(), remote).map_err(text)?;
        let connected = socket.subscribe();
        loop {
            match socket.finish_connect() {
                Ok((input, output)) => {
                    drop(connected);
                    return Ok((socket, input, output));
                }
                Err(ErrorCode::WouldBlock) => connected.block(),
                Err(error) => return Err(text(error)),
            }
        }
    }
}
