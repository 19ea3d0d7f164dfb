//! Stanzas and the configurations that they become.

use std::path::Path;

use super::*;
use crate::{Config, tests::parse_in};

const FILE: &str = r#"
main.plugin-dir = "plugins"
[limits.small]
inherits = "smaller"
fuel-per-message = 0x1_312d00
[limits.smaller]
inherits = "min"
memory = 0x30_0000
inbox = { messages = 32, bytes = "128 KiB" }
cpu-share = "2.5%"
[limits.other]
stack = "2 MiB"
[queue.uploads]

[[extension]]
id = "a"
path = "sub/a.wasm"
sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
class = "small"
limits = { memory = "8 MiB", http.rate = 3 }
wants = ["b@1"]
fulfills = ["c@1"]
publishes = ["t.>"]
subscribes = ["x.>", { topic = "y.*", policy = "latest", messages = 3, bytes = "1 KiB" }]
puts = ["uploads"]
update = { prove-for = "1h", max-latency = "1.5x" }
reload = "overlap"
restart.policy = "always"
[extension.grants]
dirs = [{ host = "data", guest = "/data", mode = "rw", max-bytes = "1 MiB" }, { host = "/proc", guest = "/proc" }]
env = { TZ = "UTC", "A b" = "q\"\\\t\u007f\u0001é", LEVEL = 3 }
net = ["example.com:443"]
http = [{ to = "https://api.example.com", methods = ["PUT"], addresses = ["private"] }]
stores = ["s", { name = "r", mode = "ro" }]
[extension.config]
name = '''
several "lines"
'''
interval = 1_000
ratio = 1e3
hex = 0x10
verbose = true
"a.b" = ""
token = { from-file = "secrets/token" }
key = { from-credential = "key" }

[[extension]]
id = "plain"
path = "plain.wasm"
"#;

fn read(text: &str) -> Config {
    parse_in(text, Path::new("/etc/weir")).unwrap()
}

fn stanza_of(config: &Config) -> Arc<Stanza> {
    Arc::clone(config.extensions[0].stanza.as_ref().unwrap())
}

fn again(stanza: &Stanza) -> Result<ExtensionConfig, ConfigErrors> {
    stanza.config_with(&Environment::default())
}

#[test]
fn a_stanza_is_read_as_the_file_was() {
    let config = read(FILE);
    let stanza = stanza_of(&config);
    let kept = serde_json::from_str(&serde_json::to_string(&*stanza).unwrap()).unwrap();
    assert_eq!(*stanza, kept);
    let found = again(&kept).unwrap();
    assert!(found.runs_as(&config.extensions[0]), "{found:#?}\n{:#?}", config.extensions[0]);
    assert_eq!(found.differences(&config.extensions[0]), []);
    let (_, parts) = config.into_parts();
    // The sources of limits name other lines.
    assert_eq!(ExtensionConfig { limits: parts[0].limits.clone(), ..found }, parts[0]);
}

#[test]
fn only_an_extension_with_update_has_a_stanza() {
    let config = read(FILE);
    assert_eq!(config.extensions[1].stanza, None);
    assert!(config.extensions[1].update.is_none());
}

#[test]
fn a_stanza_outlives_the_file_and_an_included_file_has_its_own_directory() {
    let dir = tempfile::tempdir().unwrap();
    let included = dir.path().join("conf.d");
    std::fs::create_dir(&included).unwrap();
    let extension = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nclass = 'small'\nupdate = {}\n\
                     config.key = { from-file = 'key' }\ngrants.dirs = [{ host = 'd', guest = '/d' }]\n";
    std::fs::write(included.join("a.toml"), extension).unwrap();
    let main = |memory: &str| format!("include = ['conf.d/a.toml']\n[limits.small]\nmemory = '{memory}'\n");
    let before = parse_in(&main("8 MiB"), dir.path()).unwrap();
    std::fs::write(included.join("a.toml"), extension.replace("config.key", "config.other")).unwrap();
    let after = parse_in(&main("9 MiB"), dir.path()).unwrap();
    let [kept, new] = [&before, &after].map(|config| again(&stanza_of(config)).unwrap());
    assert!(kept.runs_as(&before.extensions[0]) && new.runs_as(&after.extensions[0]));
    assert!(!kept.runs_as(&new));
    assert_eq!(kept.grants.dirs[0].host, included.join("d"));
    assert_eq!(kept.plugin_dir.as_deref(), Some(dir.path()));
}

#[test]
fn an_instance_gets_the_stanza_of_its_extension() {
    let text = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nupdate = {}\ninstances = 2\n";
    let (_, parts) = read(text).into_parts();
    let found = again(parts[1].stanza.as_ref().unwrap()).unwrap();
    assert_eq!(found, ExtensionConfig { limits: found.limits.clone(), ..parts[0].clone() });
}

#[test]
fn a_long_stanza_is_not_kept() {
    let with = |length: usize| {
        let name = "x".repeat(length);
        let text = format!("[[extension]]\nid = 'a'\npath = 'a.wasm'\nupdate = {{}}\nconfig.a = '{name}'\n");
        read(&text).extensions.remove(0).stanza
    };
    assert!(with(60 * 1024).is_some());
    assert_eq!(with(64 * 1024), None);
    let class = format!("[limits.{}]\n", "a".repeat(64));
    let classes = (0..1000).map(|number| class.replacen("aaaa", &format!("b{number:03}"), 1));
    let text = classes.collect::<String>() + "[[extension]]\nid = 'a'\npath = 'a.wasm'\nupdate = {}\n";
    assert_eq!(read(&text).extensions[0].stanza, None);
}

#[test]
fn a_text_that_is_no_stanza_is_refused() {
    let refused = |extension: &str| {
        let extension = extension.to_owned();
        let stanza = Stanza { classes: Arc::default(), extension, dir: "/".into(), plugin_dir: None };
        again(&stanza).unwrap_err().to_string()
    };
    let valid = "[[extension]]\nid = 'a'\npath = 'a.wasm'\n";
    for text in ["", "garbage", "[[[", "\0\u{7f}", "[main]\n", valid.repeat(2).as_str(), &valid[..20]] {
        assert!(!refused(text).is_empty(), "{text}");
    }
    assert_eq!(refused(""), "a stanza has one extension");
    assert!(refused(&format!("{valid}class = 'gone'\n")).contains("stanza:4:9: in `extension[a].class`"));
    assert!(refused(&format!("{valid}gone = 5\n")).contains("unknown key `gone`"));
}

#[test]
fn one_table_is_read_with_the_classes_of_the_files() {
    let files = "[limits.tiny]\ninherits = 'min'\nlog-rate = 3\n";
    let running = Loader::new().parse(files, "weir.toml", "/etc/weir".as_ref()).unwrap();
    let table = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nclass = 'tiny'\ninstances = 2\nupdate = {}\n";
    let mut read = running.read_extension(table).unwrap();
    assert_eq!((read.limits.log_rate, read.instances), (3, 2));
    // What is not changed keeps its stanza, and what is changed in Rust does not.
    read.forget_other_stanza();
    assert!(read.stanza.is_some());
    read.limits.log_rate = 4;
    read.forget_other_stanza();
    assert!(read.stanza.is_none());
    for (more, said) in [
        ("[queue.q]\n", "`queue` belongs in the configuration's file"),
        ("[topic.t]\n", "`topic` belongs in the configuration's file"),
        ("[peer.'app:a']\n", "`peer` belongs in the configuration's file"),
        ("[main]\n", "main"),
        ("[[extension]]\nid = 'b'\npath = 'b.wasm'\n", "a stanza has one extension"),
        ("key = 1\n", "stanza:7:1"),
    ] {
        let errors = running.read_extension(&format!("{table}{more}")).unwrap_err().to_string();
        assert!(errors.contains(said), "{more}: {errors}");
    }
}
