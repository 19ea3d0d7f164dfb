//! A section of another crate is read, checked, reported and listed like any other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use weir_config::{
    Config, ConfigError, ConfigErrors, DirGrant, Effect, ExtensionConfig, Loader, MainConfig, Shape,
    extend::{
        ConfigSection, Contradiction, Facts, Judged, MemoryUse, Places, ProtectedDir, Section, Settling,
        Table, facts, faults,
        kind::{number, path},
    },
    keys,
};

const CONNECTIONS: RangeInclusive<u32> = 1..=1000;
const BUFFER: Shape = Shape::Size(1024..=1 << 30);

/// The configuration that a gateway crate might have.
#[derive(Clone, Debug, Default, PartialEq)]
struct GatewayConfig {
    connections: u32,
    buffer: u64,
    least_buffer: Option<u64>,
    store: Option<PathBuf>,
}

impl Table for GatewayConfig {
    keys! {
        GatewayConfig;
        /// Devices that are connected at once.
        "connections" connections = number(Shape::counts(CONNECTIONS));
        /// Bytes that may wait for one of them.
        "buffer" buffer = number(BUFFER);
        /// The fewest of them.
        "least-buffer" least_buffer = number(BUFFER);
        /// Where devices are kept.
        "store" store = path("the path of a directory").optional();
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let message = "`buffer` is less than `least-buffer`".to_owned();
        let contradiction = Contradiction { keys: ["buffer", "least-buffer"], message };
        let is_less = self.least_buffer.is_some_and(|least| self.buffer < least);
        is_less.then_some(contradiction).into_iter().collect()
    }
}

impl ConfigSection for GatewayConfig {
    const TABLE: &'static str = "gateway";
    const IN_BUDGET: &'static str = "the gateway";
    const NEEDS_RESTART: bool = true;
    type Draft = Vec<(Self, Places)>;
    type Locations = Places;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.optional_table(Self::TABLE, |gateway| {
            gateway.refuse("password", "belongs in a file of its own");
            let mut config = Self::default();
            let places = gateway.keys(&mut config);
            (config, places)
        }));
    }

    fn check_values(&self) -> Vec<ConfigError> {
        if self.is_empty() { Vec::new() } else { faults(self, Self::TABLE) }
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        if self.is_empty() {
            BTreeMap::new()
        } else {
            BTreeMap::from([(Self::TABLE.to_owned(), facts(self))])
        }
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        settling.only_one(Self::TABLE, draft).unwrap_or_default()
    }

    fn check(&self, judged: &Judged<'_>, at: &Places, errors: &mut Vec<ConfigError>) {
        let extensions = judged.config().extensions.len();
        if self.connections > 0 && extensions == 0 {
            let message = "`gateway` lets devices in, and no extension would hear of them";
            errors.push(ConfigError::new("gateway.connections", message, at.of("connections")));
        }
    }

    fn memory(&self, at: &Places) -> Vec<MemoryUse> {
        let bytes = self.buffer * u64::from(self.connections);
        let part = MemoryUse {
            what: "the gateway comes".to_owned(),
            location: at.of("connections"),
            bytes,
            factors: "`connections` × `buffer`".to_owned(),
        };
        if bytes > 0 { vec![part] } else { Vec::new() }
    }

    fn protected(&self, at: &Places) -> Vec<ProtectedDir> {
        let dir = |dir: &PathBuf| ProtectedDir {
            key: "gateway.store".to_owned(),
            dir: dir.clone(),
            location: at.of("store"),
            why: "a guest that writes there gets in",
            note: "the store is set here",
        };
        self.store.iter().map(dir).collect()
    }

    fn lets_peers_in(&self) -> bool {
        self.connections > 0
    }

    fn serves() -> Vec<weir_names::ContractName> {
        "gateway@1".parse().into_iter().collect()
    }
}

const EXTENSION: &str = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nlimits.memory = '1 MiB'\n";

fn loader() -> Loader {
    Loader::new().section::<GatewayConfig>()
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    loader().parse(text, "weir.toml", Path::new("/etc/weir"))
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_crate_gets_back_what_the_file_says() {
    let config = parse(&format!("{EXTENSION}[gateway]\nconnections = 7\nbuffer = '4 KiB'")).unwrap();
    let gateway = GatewayConfig { connections: 7, buffer: 4096, ..GatewayConfig::default() };
    assert_eq!(config.section::<GatewayConfig>(), Some(&gateway));
    assert_eq!(config.clone(), config);
    assert_ne!(parse(EXTENSION).unwrap(), config);
    assert!(format!("{config:?}").contains("gateway: GatewayConfig { connections: 7"), "{config:?}");

    let nothing = parse("").unwrap();
    assert_eq!(nothing.section(), Some(&GatewayConfig::default()));
    assert_eq!(nothing.contracts_of_sections(), ["gateway@1".parse().unwrap()]);
    assert_eq!(Loader::new().parse("", "weir.toml", Path::new("/etc/weir")).unwrap(), nothing);
}

#[test]
fn what_is_wrong_is_said_with_file_line_and_column() {
    for (entry, message) in [
        (
            "connections = 1001",
            "weir.toml:6:15: `gateway.connections` must be a whole number from 1 to 1000, not `1001`\n \
             6 | connections = 1001\n   |               ^^^^",
        ),
        (
            "conections = 1",
            "weir.toml:6:1: unknown key `conections` in `gateway`: did you mean `connections`?\n \
             6 | conections = 1\n   | ^^^^^^^^^^",
        ),
        (
            "store = ''",
            "weir.toml:6:9: in `gateway.store`: `` is not a path: it is empty or contains a NUL\n 6 | store = ''\n   \
             |         ^^",
        ),
        (
            "password = 'x'",
            "weir.toml:6:1: `gateway.password` belongs in a file of its own\n 6 | password = 'x'\n   | ^^^^^^^^",
        ),
        (
            "buffer = '1 KiB'\nleast-buffer = '2 KiB'",
            "weir.toml:6:10: in `gateway`: `buffer` is less than `least-buffer`\n 6 | buffer = '1 KiB'\n   \
             |          ^^^^^^^\n  weir.toml:7:16: the other is here",
        ),
    ] {
        assert_eq!(refused(&format!("{EXTENSION}[gateway]\n{entry}")), message);
    }
    let misspelt = refused("[gatewy]");
    assert!(
        misspelt.contains("unknown key `gatewy` at the top level: did you mean `gateway`?"),
        "{misspelt}"
    );
}

#[test]
fn its_own_check_sees_the_rest_of_the_configuration() {
    assert_eq!(
        refused("[gateway]\nconnections = 1"),
        "weir.toml:2:15: `gateway` lets devices in, and no extension would hear of them\n \
         2 | connections = 1\n   |               ^"
    );
    let mut config = Config::new(MainConfig::default(), Vec::new());
    config.set_section(GatewayConfig { connections: 1, buffer: 1024, ..GatewayConfig::default() });
    assert!(config.check().is_err(), "one that is made in Rust is checked, too");
    config.extensions.push(ExtensionConfig::new("a".parse().unwrap(), "a.wasm"));
    config.check().unwrap();
}

#[test]
fn it_counts_against_the_memory_budget() {
    let text = format!(
        "main.memory-budget = '8 MiB'\n{EXTENSION}[gateway]\nconnections = 1000\nbuffer = '64 KiB'\n"
    );
    let refused = refused(&text);
    assert!(refused.contains("the limits of all extensions and the gateway come to 66.5 MiB"), "{refused}");
    assert!(refused.contains("weir.toml:7:15: the gateway comes to 62.5 MiB: `connections` × `buffer`"));
    let fits = parse(&text.replace("1000", "10")).unwrap();
    assert_eq!(fits.memory_beside_extensions(), 640 << 10);
}

#[test]
fn nobody_is_granted_to_write_where_it_says() {
    let text = "[gateway]\nstore = '/var/gateway'\n[[extension]]\nid = 'a'\npath = 'a.wasm'\n\
                grants.dirs = [{ host = '/var', guest = '/var', mode = 'rw' }]";
    let refused = refused(text);
    assert!(
        refused.contains(
            "in `extension[a].grants.dirs.host`: `/var` is granted for writing and overlaps with \
             `gateway.store`, `/var/gateway`: a guest that writes there gets in"
        ) && refused.contains("weir.toml:2:9: the store is set here"),
        "{refused}"
    );
    let mut made = Config::new(MainConfig::default(), Vec::new());
    let mut extension = ExtensionConfig::new("a".parse().unwrap(), "a.wasm");
    extension.grants.dirs = vec![DirGrant::read_write("/var", "/var".parse().unwrap())];
    made.extensions.push(extension);
    made.set_section(GatewayConfig { store: Some("/var/gateway".into()), ..GatewayConfig::default() });
    assert!(made.check().is_err());
}

#[test]
fn a_change_that_needs_a_new_start_is_named_until_then() {
    let [running, after] = ["", "[queue.a]\n"].map(|rest| {
        let connections = rest.len() + 1;
        parse(&format!("{EXTENSION}{rest}[gateway]\nconnections = {connections}")).unwrap()
    });
    let differences = |before: &Config, after: &Config| -> Vec<(String, Effect)> {
        let all = before.table_differences(after).into_iter();
        all.map(|it| (it.table, it.takes_effect)).collect()
    };
    let gateway = ("gateway".to_owned(), Effect::Restart);
    assert_eq!(differences(&running, &after), [("queue.a".to_owned(), Effect::AtOnce), gateway.clone()]);
    assert_eq!(differences(&running, &parse(EXTENSION).unwrap()), std::slice::from_ref(&gateway));
    let mut kept = after.beside_extensions();
    kept.keep_until_restart(&running);
    assert_eq!(kept.section::<GatewayConfig>(), running.section());
    assert_eq!(differences(&kept, &after), [gateway]);
}

#[test]
fn peers_that_it_lets_in_are_no_reason_for_a_warning() {
    let peer = format!("{EXTENSION}[peer.'app:a']\nuid = 1\n");
    let warning =
        "`app:a` has a `uid` or `tokens`, but there is no `main.peer-socket` to connect to".to_owned();
    assert_eq!(parse(&peer).unwrap().warnings(), [warning]);
    assert!(parse(&format!("{peer}[gateway]\nconnections = 1")).unwrap().warnings().is_empty());
}

#[test]
fn an_extension_may_require_what_main_serves_because_of_it() {
    let calls = format!("{EXTENSION}requires = ['gateway@1']");
    parse(&calls).unwrap();
    let alone = Loader::new().parse(&calls, "weir.toml", Path::new("/etc/weir")).unwrap_err().to_string();
    assert!(alone.contains("requires `gateway@1`, but no extension or peer fulfills it"), "{alone}");
}

#[test]
fn its_keys_are_listed_with_what_they_must_be() {
    let keys = loader().keys();
    let listed = |path: &str| keys.iter().find(|key| key.path == path).map(|key| key.shape.to_string());
    assert_eq!(listed("gateway.connections").as_deref(), Some("a whole number from 1 to 1000"));
    assert_eq!(listed("gateway.buffer"), Some(BUFFER.to_string()));
    assert!(listed("gateway").is_some() && listed("main.memory-budget").is_some());
    assert!(Loader::new().keys().iter().all(|key| !key.path.starts_with("gateway")));
}
