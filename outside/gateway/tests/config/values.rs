//! Defaults, all keys at once, and configurations made in Rust.

use std::{collections::BTreeMap, fs, time::Duration};

use weir_gateway::{Alias, Listen, TlsConfig, WhenSlow};
use weir_host::config::Effect;

use super::*;

fn gateway(text: &str) -> GatewayConfig {
    parse(text).unwrap().section::<GatewayConfig>().cloned().unwrap()
}

fn made() -> GatewayConfig {
    let mut made = GatewayConfig::default();
    made.listen = vec!["127.0.0.1:7410".parse().unwrap()];
    made
}

fn check(gateway: GatewayConfig) -> Result<(), ConfigErrors> {
    let mut config = Config::default();
    config.main.control_socket = "/run/weir/weir.sock".into();
    config.set_section(gateway);
    config.check()
}

#[test]
fn without_the_table_it_listens_nowhere() {
    assert_eq!(gateway(""), GatewayConfig::default());
    assert!(!GatewayConfig::default().is_configured());
    check(GatewayConfig::default()).unwrap();
}

#[test]
fn what_is_left_out_has_its_default() {
    let written =
        "connections = 1024\nbuffer = '256 KiB'\nwhen-slow = 'drop-oldest'\nhosts = []\norigins = {}";
    let least = "[gateway]\nlisten = ['127.0.0.1:7410']\n";
    assert_eq!(gateway(least), gateway(&format!("{least}{written}")));
    assert_eq!(gateway(least), made());
    assert!(made().is_configured());
}

#[test]
fn every_key_is_read() {
    let text = fs::read_to_string(golden().join("valid/weir.toml")).unwrap();
    let read = gateway(&text);
    let address = |text: &str| text.parse::<Listen>().unwrap();
    let mut made = GatewayConfig::default();
    made.listen =
        ["127.0.0.1:7410", "[::1]:7410", "0.0.0.0:7410", "unix:/run/weir/gateway.sock"].map(address).to_vec();
    made.hosts = ["device.local", "192.168.0.2", "fe80::1"].map(str::to_owned).to_vec();
    made.connections = 65_536;
    made.buffer = 64 << 20;
    made.when_slow = WhenSlow::Close;
    made.ping_interval = Some(Duration::from_secs(30));
    made.tls = Some(TlsConfig { certificate: "/etc/weir/cert.pem".into(), key: "/etc/ssl/key.pem".into() });
    let origins = ["http://127.0.0.1:8080", "https://example.com"].map(|text| text.parse().unwrap());
    made.origins = BTreeMap::from([("app:page".parse().unwrap(), origins.to_vec())]);
    let (contract, operation) = ("device.info@1".parse().unwrap(), "name".parse().unwrap());
    made.aliases = BTreeMap::from([
        ("device.name".to_owned(), Alias::Call { contract, operation }),
        ("device.onNameChanged".to_owned(), Alias::Topic("device.name.changed".parse().unwrap())),
    ]);
    made.streams = ["127.0.0.1:7411", "unix:/etc/weir/streams.sock"].map(address).to_vec();
    assert_eq!(read, made);
    let mut config = parse(&text).unwrap();
    config.set_section(made);
    config.check().unwrap();
}

#[test]
fn peers_that_connect_through_it_need_no_other_socket() {
    let peer = "[peer.'app:a']\nuid = 1\n";
    assert_eq!(parse(peer).unwrap().warnings().len(), 1);
    assert!(parse(&format!("{peer}[gateway]\nlisten = ['unix:a']")).unwrap().warnings().is_empty());
}

#[test]
fn a_port_that_the_system_chooses_is_another_each_time() {
    gateway("[gateway]\nlisten = ['127.0.0.1:0', '127.0.0.1:0']\nstreams.listen = ['127.0.0.1:0']");
}

#[test]
fn a_change_takes_effect_when_main_is_started_anew() {
    let [before, after] =
        ["a", "b"].map(|path| parse(&format!("[gateway]\nlisten = ['unix:{path}']")).unwrap());
    let differences = before.table_differences(&after);
    let [gateway] = &differences[..] else { panic!("{differences:?}") };
    assert_eq!((gateway.table.as_str(), gateway.takes_effect), ("gateway", Effect::Restart));
}

#[test]
fn what_is_wrong_with_one_that_is_made_in_rust_is_refused() {
    let mut nowhere = GatewayConfig::default();
    nowhere.connections = 0;
    nowhere.buffer = 1;
    nowhere.ping_interval = Some(Duration::ZERO);
    nowhere.hosts = ["a b", "Device.Local", "x", "x"].map(str::to_owned).to_vec();
    nowhere.origins = BTreeMap::from([("app:page".parse().unwrap(), Vec::new())]);
    nowhere.aliases = ["rpc.a", "a/b", "queues.put"]
        .map(|name| (name.to_owned(), Alias::Topic("t".parse().unwrap())))
        .into();
    nowhere.tls = Some(TlsConfig { certificate: "".into(), key: "a\0".into() });
    let mut somewhere = made();
    let unix = |path: &str| Listen::Unix(path.into());
    somewhere
        .listen
        .extend([7411, 7412, 7413, 7414, 7415, 7410].map(|port| Listen::Tcp(([127, 0, 0, 1], port).into())));
    somewhere.listen.push("[::]:7416".parse().unwrap());
    somewhere.listen.push("192.168.0.2:80".parse().unwrap());
    somewhere.streams = vec![unix("/run/weir/../weir/weir.sock"), unix(""), unix(&"a".repeat(108))];
    somewhere.hosts = (0..33).map(|n| format!("h{n}")).collect();
    let report = [nowhere, somewhere].map(|gateway| check(gateway).unwrap_err().to_string()).join("\n\n");
    assert_golden("rust-gateway", &report);
}
