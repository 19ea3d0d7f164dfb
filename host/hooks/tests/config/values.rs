//! Defaults, limits, grants, permission to run hooks, and configurations made in Rust.

use std::time::Duration;

use weir_config::{DirGrant, ExtensionConfig, MainConfig};
use weir_hooks::HookDirConfig;

use super::*;

fn dir_of(config: &Config) -> HookDirConfig {
    config.section::<HooksConfig>().unwrap().0.get("a").cloned().unwrap()
}

fn hooks(entries: &str) -> HookDirConfig {
    dir_of(&parse(&format!("[hooks.a]\ndir = 'hooks.d'\n{entries}")).unwrap())
}

#[test]
fn what_is_left_out_has_its_default() {
    let written = "suffixes = ['.wasm', '.cwasm']\nclass = 'medium'\ntimeout = '30s'\ntotal-timeout = '5m'\n\
                   output = '64 KiB'\nat-once = 4\nexit-codes = { ok = '0', error = '1-31', warning = '32-63' }";
    assert_eq!(hooks(""), hooks(written));
    assert_eq!(hooks(""), HookDirConfig::new(golden().join("hooks.d")));
}

#[test]
fn hooks_have_the_limits_of_their_class_and_their_own() {
    let text = "
        [limits.small]
        inherits = 'min'
        memory = '2 MiB'
        [hooks.a]
        dir = 'hooks.d'
        class = 'small'
        limits.stack = '128 KiB'
    ";
    let limits = dir_of(&parse(text).unwrap()).limits;
    assert_eq!((limits.memory, limits.stack), (2 << 20, 128 << 10));
    assert_eq!((limits.fuel_to_start, limits.cpu_share), (500_000_000, "10%".parse().unwrap()));
}

/// In an extension, `message-size` would contradict both.
#[test]
fn limits_of_messages_are_no_reason_to_refuse_hooks() {
    let limits = hooks("class = 'max'\nlimits.memory = '4 MiB'").limits;
    assert_eq!((limits.memory, limits.message_size), (4 << 20, 8 << 20));
    let mut made = HookDirConfig::new("/hooks");
    made.limits.memory = 64 << 10;
    made.limits.inbox_messages = 0;
    made.check().unwrap();
}

#[test]
fn main_serves_the_contract_of_hooks_unless_somebody_else_is_configured_to() {
    let calls = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nrequires = ['hooks@1']\nwants = ['hooks@1']\n";
    assert_eq!(parse(calls).unwrap().warnings(), [""; 0]);
    let owner = "[[extension]]\nid = 'b'\npath = 'b.wasm'\nfulfills = ['hooks@1']\nruns = ['a']\n\
                 [hooks.a]\ndir = 'hooks.d'\n";
    assert_eq!(parse(&format!("{calls}{owner}")).unwrap().warnings(), [""; 0]);
    let round = format!("{calls}fulfills = ['b@1']\n{owner}").replace("runs", "requires = ['b@1']\nruns");
    assert!(parse_error(&round).contains("`requires` forms a cycle"), "an owner is waited for");
}

#[test]
fn all_runs_that_there_may_be_at_once_count_against_the_budget() {
    // 4 MiB of memory, half a MiB of stack, and 256 KiB each of standard output and standard error.
    let hooks = "class = 'min'\noutput = '256 KiB'\nat-once = 3";
    let text = format!("main.memory-budget = '15 MiB'\n[hooks.a]\ndir = 'a'\n{hooks}\n");
    assert_eq!(parse(&text).unwrap().memory_beside_extensions(), 15 << 20);
    parse(&text.replace("'15 MiB'", "15728639")).unwrap_err();
}

#[test]
fn a_directory_of_hooks_beside_one_that_is_granted_is_no_reason_to_refuse_it() {
    let granted = |dirs: [&str; 2], host: &str| {
        let mut a = ExtensionConfig::new("a".parse().unwrap(), "a.wasm");
        a.grants.dirs = vec![DirGrant::read_write(host, "/data".parse().unwrap())];
        let mut config = Config::new(MainConfig::default(), vec![a]);
        let hooks = ["h", "i"].iter().zip(dirs);
        let hooks = hooks.map(|(name, dir)| (name.parse().unwrap(), HookDirConfig::new(dir)));
        config.set_section(hooks.collect::<HooksConfig>());
        config.check().is_err()
    };
    for host in ["/a/hook", "/a/hooks!", "/a/hooks-", "/a/hooks.d", "/a/hooks0", "/b", "/", "/a/../a"] {
        for dirs in [["/a/hooks", "/a/hooks/inside"], ["/a/hooks/inside/deeper", "/a/hooks"]] {
            let overlaps = matches!(host, "/" | "/a/../a");
            assert_eq!(granted(dirs, host), overlaps, "{host} beside {dirs:?}");
        }
    }
    for host in
        ["/a/hooks", "/a/hooks/x", "/a/hooks/inside", "/a/hooks/inside/x", "/a/hooks/inside/deeper/.", "/a"]
    {
        assert!(granted(["/a/hooks", "/a/hooks/inside"], host), "{host}");
        assert!(granted(["/a/hooks/inside", "/a/hooks"], host), "{host}");
    }
}

fn broken() -> HookDirConfig {
    let mut hooks = HookDirConfig::new("hooks.d");
    hooks.suffixes = vec![".wasm".to_owned(), "a/b".to_owned(), ".wasm".to_owned()];
    hooks.limits.memory = 0;
    hooks.limits.fuel_to_start = 0;
    hooks.limits.log_rate = 0;
    hooks.grants.dirs = vec![
        DirGrant::read_only("/x", "/data".parse().unwrap()),
        DirGrant::read_write("hooks.d/x", "/data".parse().unwrap()),
    ];
    hooks.grants.env.insert("A=B".to_owned(), String::new());
    hooks.timeout = Duration::ZERO;
    hooks.total_timeout = Duration::MAX;
    hooks.output = 0;
    hooks.at_once = 0;
    hooks.exit_codes.ok = 0..=40;
    hooks
}

#[test]
fn what_is_wrong_with_hooks_made_in_rust_is_refused_with_or_without_a_configuration() {
    let mut config = Config::default();
    config.set_section(HooksConfig::from_iter([("h".parse().unwrap(), broken())]));
    let refused = config.check().unwrap_err().to_string();
    let alone = broken().check().unwrap_err().to_string();
    let mut empty = HookDirConfig::new("");
    empty.suffixes = Vec::new();
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let codes = (1..=0, 2..=1, 3..=2);
    (empty.exit_codes.ok, empty.exit_codes.error, empty.exit_codes.warning) = codes;
    let empty = empty.check().unwrap_err().to_string();
    assert_golden("rust-hooks", &format!("{refused}\n\n{alone}\n\n{empty}"));
    HookDirConfig::new("hooks.d").check().unwrap();
}
