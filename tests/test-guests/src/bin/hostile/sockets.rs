//! The network beyond `std`: listening, UDP, and names.

use wasip2::sockets::{
    instance_network::instance_network,
    ip_name_lookup::resolve_addresses,
    network::{ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress},
    tcp::TcpSocket,
    tcp_create_socket::create_tcp_socket,
    udp_create_socket::create_udp_socket,
};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    Some(match command {
        "tcp" => tcp().map(|_| "created".to_owned()),
        "bind" => address(rest).and_then(bind).map(|_| "bound".to_owned()),
        "listen" => listen(rest),
        "connect" => connect(rest),
        "udp" => create_udp_socket(IpAddressFamily::Ipv4).map(|_| "created".to_owned()).map_err(code),
        "resolve" => {
            resolve_addresses(&instance_network(), rest).map(|_| "resolved".to_owned()).map_err(code)
        }
        _ => return None,
    })
}

fn listen(rest: &str) -> Result<String, String> {
    let socket = bind(address(rest)?)?;
    socket.start_listen().map_err(code)?;
    Ok("listening".to_owned())
}

fn connect(rest: &str) -> Result<String, String> {
    let socket = tcp()?;
    socket.start_connect(&instance_network(), address(rest)?).map_err(code)?;
    let connected = socket.subscribe();
    loop {
        match socket.finish_connect() {
            Err(ErrorCode::WouldBlock) => connected.block(),
            ended => {
                // Dropped before its socket.
                drop(connected);
                return ended.map(|_| "connected".to_owned()).map_err(code);
            }
        }
    }
}

fn bind(address: IpSocketAddress) -> Result<TcpSocket, String> {
    let socket = tcp()?;
    socket.start_bind(&instance_network(), address).map_err(code)?;
    let bound = socket.subscribe();
    bound.block();
    drop(bound);
    socket.finish_bind().map_err(code)?;
    Ok(socket)
}

fn tcp() -> Result<TcpSocket, String> {
    create_tcp_socket(IpAddressFamily::Ipv4).map_err(code)
}

fn address(text: &str) -> Result<IpSocketAddress, String> {
    let address: std::net::SocketAddrV4 = text.parse().map_err(|_| format!("`{text}` is not an address"))?;
    let [a, b, c, d] = address.ip().octets();
    Ok(IpSocketAddress::Ipv4(Ipv4SocketAddress { port: address.port(), address: (a, b, c, d) }))
}

fn code(error: ErrorCode) -> String {
    error.name().to_owned()
}
