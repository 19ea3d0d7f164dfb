//! Tables of the gateway that are read or refused, and the messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod keys;
#[path = "../../../../host/config/src/tests/refused.rs"]
mod refused;
mod values;

use std::path::{Path, PathBuf};

use weir_gateway::GatewayConfig;
use weir_host::config::{Config, ConfigErrors, Loader};

use self::refused::{Messages, assert_golden, refused};

/// Fewer than there are broken files.
const FEWEST: usize = 7;

fn loader() -> Loader {
    weir_host::loader().section::<GatewayConfig>()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    loader().parse(text, "weir.toml", Path::new("/etc/weir"))
}

#[test]
fn an_included_file_may_have_the_table_and_two_files_may_not() {
    let dir = golden().join("included");
    let config = loader().load(&dir.join("one.toml")).unwrap();
    let gateway = config.section::<GatewayConfig>().unwrap();
    assert_eq!(gateway.listen[0].to_string(), format!("unix:{}/conf.d/apps.sock", dir.display()));

    let refused = loader().load(&dir.join("two.toml")).unwrap_err().to_string();
    assert_golden("two-files", &refused.replace(dir.to_str().unwrap(), "DIR"));
}

/// Comparing all names would take minutes.
#[test]
fn files_full_of_names_are_judged_at_once() {
    let many = |each: &dyn Fn(usize) -> String| (0..20_000).map(each).collect::<String>();
    let report = refused([
        ("addresses", format!("[gateway]\nlisten = [{}]", many(&|n| format!("'127.0.0.1:{n}',")))),
        (
            "peers that there are not",
            format!(
                "gateway.listen = ['unix:a']\n[gateway.origins]\n{}{}",
                many(&|n| format!("'a:p{n}'=['http://a']\n")),
                many(&|n| format!("[peer.'a:q{n}']\n")),
            ),
        ),
        (
            "aliases",
            format!(
                "gateway.listen = ['unix:a']\n[gateway.alias]\n{}",
                many(&|n| format!("'rpc.a{n}'='a@1/b'\n"))
            ),
        ),
    ]);
    assert_golden("hostile-names", &report);
}
