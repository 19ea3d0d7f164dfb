//! Programs that know nothing of Weir: they are ready at their start, wait as they like, and listen where they may.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    time::Duration,
};

use weir_host::{
    Main,
    config::{ComponentSource, DirGrant, ExtensionConfig, NetGrant, ReloadMode, RestartPolicy},
    control::ExtensionState,
    logs::Source,
};

use super::support::{PATIENCE, builder, extension, puppet, reached, start, tell, until};

fn plain(asked: &str) -> ExtensionConfig {
    let mut plain = extension("plain", "plain");
    plain.grants.env.insert("DO".to_owned(), asked.to_owned());
    plain.restart.policy = RestartPolicy::Never;
    plain
}

fn listening(asked: &str, address: SocketAddr, udp: bool) -> ExtensionConfig {
    let mut plain = plain(&format!("{asked} {address}"));
    plain.grants.net = vec![grant(address, true, udp)];
    plain
}

fn grant(address: SocketAddr, listen: bool, udp: bool) -> NetGrant {
    let mut grant: NetGrant = address.to_string().parse().unwrap();
    (grant.listen, grant.udp) = (listen, udp);
    grant
}

/// An address of loopback that nothing listens at.
fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

fn printed(main: &Main) -> Vec<String> {
    let lines = main.control().logs().into_iter();
    lines
        .filter(|line| &*line.extension == "plain" && line.source != Source::Main)
        .map(|line| line.message.clone())
        .collect()
}

/// Waits for the end, and returns the cause if that was a failure.
async fn ended(main: &Main) -> Option<String> {
    let state = || main.control().status("plain").unwrap().state;
    let end = until(|| matches!(state(), ExtensionState::Stopped | ExtensionState::Failed));
    tokio::time::timeout(PATIENCE, end).await.unwrap();
    main.control().status("plain").unwrap().failures.pop().map(|failure| failure.cause)
}

#[tokio::test]
async fn one_that_waits_for_ever_is_ready_and_each_wait_brings_it_the_fuel_of_a_message() {
    let mut ticking = plain("tick 100000");
    // A tick takes more than half of it.
    ticking.limits.fuel_per_message = 2_000_000;
    ticking.limits.fuel_to_start = 4_000_000;
    ticking.limits.ready_timeout = Duration::from_millis(500);
    let main = start(vec![ticking]).await;
    reached(&main, "plain", ExtensionState::Ready).await;
    until(|| printed(&main).len() > 30).await;
    let status = main.control().status("plain").unwrap();
    assert_eq!((status.state, status.failures.len()), (ExtensionState::Ready, 0), "{status:#?}");
    // It hears of no stop, and is ended at once.
    main.control().stop("plain").await.unwrap();
    let status = main.control().status("plain").unwrap();
    assert_eq!((status.state, status.failures.len()), (ExtensionState::Stopped, 0), "{status:#?}");
    main.control().start("plain").await.unwrap();
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_new_version_takes_over_from_one_that_serves_once_it_waits() {
    let dir = tempfile::tempdir().unwrap();
    let (mut ticking, path) = (plain("tick 1"), dir.path().join("plain.wasm"));
    std::fs::copy(ticking.component.path().unwrap(), &path).unwrap();
    ticking.component = ComponentSource::Path(path.clone());
    ticking.reload = ReloadMode::Overlap;
    let main = start(vec![ticking]).await;
    let status = || main.control().status("plain").unwrap();
    let old = status().hash;
    // Another version is another file.
    let mut component = std::fs::read(&path).unwrap();
    component.extend_from_slice(&[0, 2, 1, b'x']);
    std::fs::write(&path, component).unwrap();
    main.control().reload_extension("plain").await.unwrap();
    assert!(status().hash != old && status().state == ExtensionState::Ready, "{:#?}", status());
    assert_eq!(status().failures, []);
}

#[tokio::test]
async fn one_that_does_not_wait_is_held_to_its_fuel() {
    let mut burning = plain("burn");
    burning.limits.fuel_to_start = 50_000_000;
    let main = start(vec![burning]).await;
    assert_eq!(ended(&main).await.as_deref(), Some("`fuel-to-start` of 50000000 used up"));
    let mut working = plain("tick 10000000");
    working.limits.fuel_per_message = 2_000_000;
    let main = start(vec![working]).await;
    assert_eq!(ended(&main).await.as_deref(), Some("`fuel-per-message` of 2000000 used up"));
}

#[tokio::test]
async fn one_that_ends_has_ended() {
    let main = start(vec![plain("end")]).await;
    assert_eq!(ended(&main).await, None);
    assert_eq!(printed(&main), ["done"]);
}

#[tokio::test]
async fn messages_for_one_are_refused_before_it_starts() {
    let mut deaf = plain("tick 1");
    deaf.fulfills = vec!["plain@1".parse().unwrap()];
    let main = builder(vec![deaf]).start().await.unwrap();
    let cause = ended(&main).await.unwrap();
    assert!(cause.contains("it imports nothing of `weir:iec`, so it gets no messages"), "{cause}");
}

#[tokio::test]
async fn a_server_listens_where_it_may_and_answers_its_clients() {
    let address = free();
    let main = start(vec![listening("tcp", address, false), puppet("neighbour")]).await;
    until(|| printed(&main).contains(&"listening".to_owned())).await;
    let asked = move || {
        for number in 0..20 {
            let mut client = TcpStream::connect(address).unwrap();
            let said = format!("client {number}");
            client.write_all(said.as_bytes()).unwrap();
            let mut answer = vec![0; said.len()];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, said.as_bytes());
        }
    };
    tokio::task::spawn_blocking(asked).await.unwrap();
    assert_eq!(main.control().status("plain").unwrap().failures, []);
    // The next instance has the address again.
    main.control().restart("plain").await.unwrap();
    until(|| printed(&main).iter().filter(|line| *line == "listening").count() == 2).await;
    tokio::task::spawn_blocking(move || TcpStream::connect(address).unwrap()).await.unwrap();
    assert_eq!(tell(&main, "neighbour", "echo on").await.unwrap(), "on");
}

#[tokio::test]
async fn only_a_granted_address_is_listened_at_and_only_by_its_protocol() {
    let (granted, other) = (free(), free());
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], granted.port()));
    let any = SocketAddr::from(([0, 0, 0, 0], granted.port()));
    for (what, udp) in [("tcp-bind", false), ("udp-bind", true)] {
        let mut plain = plain(&format!("{what} {granted} {other} {elsewhere} {any} 0.0.0.0:0"));
        plain.grants.net = vec![grant(granted, true, udp)];
        let main = start(vec![plain]).await;
        assert_eq!(ended(&main).await, None);
        let refused = "Err(PermissionDenied)";
        assert_eq!(printed(&main), ["Ok(\"bound\")", refused, refused, refused, refused], "{what}");
    }
    // All addresses of the machine are one grant.
    let mut plain = plain(&format!("tcp-bind {any} {granted}"));
    plain.grants.net = vec![grant(any, true, false)];
    let main = start(vec![plain]).await;
    assert_eq!(ended(&main).await, None);
    assert_eq!(printed(&main), ["Ok(\"bound\")", "Ok(\"bound\")"]);
}

#[tokio::test]
async fn datagrams_are_answered_and_sent_only_where_they_may() {
    let address = free();
    let main = start(vec![listening("udp", address, true)]).await;
    reached(&main, "plain", ExtensionState::Ready).await;
    let asked = move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut bytes = [0; 100];
        // The program may not listen yet.
        let answer = (0..100).find_map(|_| {
            socket.send_to(b"hello", address).unwrap();
            socket.recv(&mut bytes).ok()
        });
        assert_eq!(&bytes[..answer.unwrap()], b"hello");
    };
    tokio::task::spawn_blocking(asked).await.unwrap();
    drop(main);

    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; 100];
        let (length, from) = server.recv_from(&mut bytes).unwrap();
        server.send_to(&bytes[..length], from).unwrap();
    });
    let by_name = format!("localhost:{}", address.port());
    let mut grants: Vec<NetGrant> = vec![by_name.parse().unwrap()];
    grants[0].udp = true;
    for (grants, said) in [
        (vec![grant(address, false, false)], "Err(\"Permission denied"),
        (vec![grant(address, true, true)], "Err(\"Permission denied"),
        (grants, "Ok(\"hello\")"),
    ] {
        let mut plain = plain(&format!("udp-ask {address}"));
        plain.grants.net = grants;
        let main = start(vec![plain]).await;
        assert_eq!(ended(&main).await, None);
        assert!(printed(&main)[0].starts_with(said), "{:?}", printed(&main));
    }
    answering.join().unwrap();
}

#[tokio::test]
async fn ten_thousand_clients_of_one_that_never_reads_leave_its_neighbour_and_itself_alone() {
    let address = free();
    let main = start(vec![listening("tcp-hoard", address, false), puppet("neighbour")]).await;
    until(|| printed(&main).contains(&"listening".to_owned())).await;
    let flood = std::thread::spawn(move || {
        for _ in 0..10_000 {
            // The backlog may be full.
            let _refused = TcpStream::connect_timeout(&address, Duration::from_millis(100));
        }
    });
    until(|| printed(&main).iter().any(|line| line.contains("accepted, then"))).await;
    for number in 0..100 {
        assert_eq!(tell(&main, "neighbour", &format!("echo {number}")).await.unwrap(), number.to_string());
    }
    tokio::task::spawn_blocking(|| flood.join().unwrap()).await.unwrap();
    let status = main.control().status("plain").unwrap();
    assert_eq!((status.state, status.failures.len()), (ExtensionState::Ready, 0), "{status:#?}");
    let full = printed(&main).into_iter().find(|line| line.contains("accepted, then")).unwrap();
    // A program has a socket for eight of its 512 resources. The listener is one.
    assert!(full.starts_with("63 accepted"), "{full}");
}

#[tokio::test]
async fn a_file_for_which_there_are_no_resources_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "content").unwrap();
    for (resources, expected) in [(512, 450..512), (64, 20..64)] {
        let mut plain = plain("files");
        plain.limits.resources = resources;
        plain.grants.dirs = vec![DirGrant::read_only(dir.path(), "/data".parse().unwrap())];
        let main = start(vec![plain]).await;
        assert_eq!(ended(&main).await, None);
        let said = printed(&main);
        let opened: u64 = said[0].split(' ').next().unwrap().parse().unwrap();
        assert!(expected.contains(&opened) && said[1] == "Ok(\"again\")", "{said:?}");
    }
}
