//! The table `[http]`, and what the manual says of it.

use std::{fs, path::Path, time::Duration};

use weir_config::{Config, ConfigErrors, Loader};
use weir_http::HttpConfig;

fn loader() -> Loader {
    Loader::new().section::<HttpConfig>()
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    loader().parse(text, "weir.toml", Path::new("/etc/weir"))
}

#[test]
fn a_table_sets_what_it_names() {
    let config = parse("[http]\nca-file = 'ca.pem'\nidle-timeout = '1m'").unwrap();
    let http = config.section::<HttpConfig>().unwrap();
    assert_eq!(http.ca_file.as_deref(), Some(Path::new("/etc/weir/ca.pem")));
    assert_eq!((http.connections, http.idle_timeout), (256, Duration::from_secs(60)));
    assert_eq!(
        parse("").unwrap().section::<HttpConfig>().cloned().unwrap_or_default(),
        HttpConfig::default()
    );
}

#[test]
fn faulty_values_are_refused_with_their_place() {
    let refused = [
        "[http]\nca-fil = 'x'",
        "[http]\nca-file = ''",
        "[http]\nconnections = 0",
        "[http]\nidle-timeout = '1ms'",
        "http = 5",
    ];
    let said: Vec<_> = refused.iter().map(|text| parse(text).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(said.join("\n"));
    let mut config = HttpConfig::default();
    (config.connections, config.idle_timeout) = (0, Duration::ZERO);
    let mut made = Config::default();
    made.set_section(config);
    insta::assert_snapshot!(made.check().unwrap_err().to_string());
}

#[test]
fn every_key_stands_in_the_manual_with_what_it_must_be() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let manual = fs::read_to_string(manual).unwrap();
    let keys = loader().keys().into_iter().filter(|key| key.path.starts_with("http."));
    let rows = keys.map(|key| {
        let row = manual.lines().find(|line| line.starts_with(&format!("| `{}` |", key.path)));
        let row = row.unwrap_or_else(|| panic!("`{}` has no row in docs/configuration.md", key.path));
        assert!(row.contains(&key.shape.to_string()), "`{}` must be {}: {row}", key.path, key.shape);
    });
    assert_eq!(rows.count(), 3);
}
