//! Configurations made in Rust.

use std::{path::PathBuf, time::Duration};

use weir_names::TopicPattern;

use super::*;
use crate::{
    ComponentSource, DirGrant, ErrorRate, ExtensionConfig, Factor, Limits, MainConfig, NetGrant, QueueConfig,
    SubscribeGrant, TrustedKey, UpdateConfig, main_config::default_control_socket,
};

fn extension(id: &str) -> ExtensionConfig {
    ExtensionConfig::new(id.parse().unwrap(), format!("{id}.wasm"))
}

#[test]
fn what_is_made_of_defaults_is_accepted() {
    let classes = [Limits::min(), Limits::medium(), Limits::max()];
    let extensions =
        classes.map(|limits| ExtensionConfig { limits: limits.clone(), ..extension(&limits.class) });
    Config::new(MainConfig::default(), extensions.into()).check().unwrap();
}

#[test]
fn every_value_out_of_its_range_is_refused() {
    let mut config = Config::default();
    config.main.blocking_threads = 0;
    config.main.request_timeout = Duration::ZERO;
    config.main.memory_budget = Some(0);
    config.main.cache_size = Some(u64::MAX);
    let mut a = extension("a");
    a.limits.memory = 0;
    a.limits.stack = 0;
    a.limits.fuel_per_message = 0;
    a.limits.fuel_to_start = u64::MAX;
    a.limits.message_size = u64::MAX;
    a.limits.inbox_messages = 0;
    a.limits.inbox_bytes = 0;
    a.limits.in_flight = 0;
    a.limits.log_rate = u32::MAX;
    a.limits.ready_timeout = Duration::ZERO;
    a.limits.request_timeout = Some(Duration::MAX);
    a.limits.stop_timeout = Duration::ZERO;
    a.limits.file_size = 0;
    a.limits.code_size = 0;
    a.limits.compile_memory = 0;
    a.limits.compile_timeout = Duration::ZERO;
    config.extensions.push(a);
    let mut a = extension("a");
    a.restart.backoff = Duration::ZERO;
    a.restart.max_backoff = Duration::MAX;
    a.restart.failures = 0;
    a.restart.window = Duration::ZERO;
    a.grants.env.insert("A=B".to_owned(), String::new());
    a.instances = 65;
    a.update = Some(UpdateConfig {
        prove_for: Duration::ZERO,
        max_failures: 1001,
        max_error_rate: ErrorRate::from_basis_points(10_001),
        max_latency: Factor::from_hundredths(99),
        max_memory: Factor::from_hundredths(100_001),
        min_requests: 0,
        data_too: false,
    });
    let topic: TopicPattern = "t".parse().unwrap();
    a.subscribes = vec![SubscribeGrant { messages: Some(0), bytes: Some(0), ..topic.into() }];
    let mut other = Config::new(MainConfig::default(), vec![a]);
    other.main.state_size = 0;
    let none = QueueConfig { messages: 0, bytes: 0, max_deliveries: 0, ..QueueConfig::default() };
    other.queues.insert("q".parse().unwrap(), none);
    // Two configurations, because more than twenty errors are not shown.
    let (limits, rest) = (config.check().unwrap_err(), other.check().unwrap_err());
    assert_golden("rust-out-of-range", &format!("{limits}\n{rest}"));
}

#[test]
fn parts_that_contradict_each_other_are_refused_as_in_a_file() {
    let mut a = extension("a");
    a.limits.message_size = 4 << 20;
    a.restart.backoff = Duration::from_secs(90);
    a.fulfills = vec!["a@1".parse().unwrap()];
    a.requires = vec!["b@1".parse().unwrap()];
    a.grants.dirs = vec![
        DirGrant::read_only("/x", "/data".parse().unwrap()),
        DirGrant::read_write("/y", "/data".parse().unwrap()),
    ];
    let mut b = extension("b");
    b.component = ComponentSource::Path(PathBuf::from("plugins/../../b.wasm"));
    b.fulfills = vec!["b@1".parse().unwrap(), "a@1".parse().unwrap()];
    b.requires = vec!["a@1".parse().unwrap(), "c@1".parse().unwrap()];
    b.puts = vec!["q".parse().unwrap(); 2];
    b.takes = vec!["r".parse().unwrap()];
    let mut d = extension("d");
    d.component = ComponentSource::Path(PathBuf::from("cache/d.wasm"));
    let mut config = Config::new(MainConfig::default(), vec![a, b, extension("b"), d]);
    config.main.cache_dir = Some("cache".into());
    config.main.trusted_keys = vec![TrustedKey::from_bytes([7; 32]); 2];
    let dead_letter = Some("q".parse().unwrap());
    config.queues.insert("q".parse().unwrap(), QueueConfig { dead_letter, ..QueueConfig::default() });
    assert_golden("rust-contradictions", &config.check().unwrap_err().to_string());
}

#[test]
fn a_subscription_of_more_than_the_inbox_is_refused_as_in_a_file() {
    let mut a = extension("a");
    let grants = [(Some(256), Some(1 << 20)), (Some(257), None), (None, Some((1 << 20) + 1))];
    let topic: TopicPattern = "t".parse().unwrap();
    a.subscribes =
        grants.map(|(messages, bytes)| SubscribeGrant { messages, bytes, ..topic.clone().into() }).into();
    let config = Config::new(MainConfig::default(), vec![a]);
    assert_golden("rust-subscriptions", &config.check().unwrap_err().to_string());
}

#[test]
fn a_network_address_is_written_as_it_is_read() {
    for text in ["metrics.example.com:443", "10.0.0.1:80", "[::1]:8080"] {
        assert_eq!(text.parse::<NetGrant>().unwrap().to_string(), text);
    }
}

#[test]
fn the_control_socket_is_in_the_runtime_directory_if_there_is_one() {
    let socket = |dir: &str| default_control_socket((!dir.is_empty()).then(|| PathBuf::from(dir)));
    assert_eq!(socket("/run/user/7"), Path::new("/run/user/7/weir/weir.sock"));
    assert_eq!(socket("relative"), Path::new("/run/weir/weir.sock"));
    assert_eq!(socket(""), Path::new("/run/weir/weir.sock"));
}
