//! Tables of hooks that are read or refused, and the messages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod keys;
#[path = "../../../config/src/tests/refused.rs"]
mod refused;
mod values;

use std::path::{Path, PathBuf};

use weir_config::{Config, ConfigErrors, Loader};
use weir_hooks::HooksConfig;

use self::refused::{Messages, assert_golden, parse_error, refused};

/// Fewer than there are broken files.
const FEWEST: usize = 8;

fn loader() -> Loader {
    Loader::new().section::<HooksConfig>()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    loader().parse(text, "weir.toml", &golden())
}

#[test]
fn a_file_and_those_that_it_includes_make_one_configuration() {
    let dir = golden().join("valid");
    let config = loader().load(&dir.join("weir.toml")).unwrap();
    let mut told = String::new();
    for table in Config::default().table_differences(&config) {
        told.push_str(&format!("[{}]\n", table.table));
        for key in table.keys {
            told.push_str(&format!("{} = {}\n", key.key, key.after.unwrap_or_default()));
        }
    }
    assert_golden("valid", &told.replace(dir.to_str().unwrap(), "DIR"));
}

#[test]
fn a_table_of_hooks_is_unknown_where_it_is_not_registered() {
    let refused = Loader::new().parse("[hooks.a]\ndir = 'hooks.d'", "weir.toml", &golden()).unwrap_err();
    let message = refused.iter().next().unwrap().message();
    assert_eq!(
        message,
        "unknown key `hooks` at the top level: the keys there are `include`, `main`, `limits`, `queue`, `topic`, \
         `peer`, `extension`"
    );
}

/// Comparing all names would take minutes.
#[test]
fn files_full_of_names_are_judged_at_once() {
    let many =
        |range: std::ops::Range<usize>, each: &dyn Fn(usize) -> String| range.map(each).collect::<String>();
    let report = refused([
        (
            "hooks that there are not",
            format!(
                "[[extension]]\nid='a'\npath='a'\nruns=[{}]\n{}",
                many(0..30_000, &|n| format!("'r{n}',")),
                many(0..25_000, &|n| format!("[hooks.h{n}]\ndir='h{n}'\n")),
            ),
        ),
        (
            "hooks that can be written",
            format!(
                "{}[[extension]]\nid='a'\npath='a'\ngrants.dirs=[{}]\n",
                many(0..12_000, &|n| format!("[hooks.h{n}]\ndir='/h/{n}/a'\n")),
                many(0..12_000, &|n| format!("{{host='/h/{n}',guest='/{n}',mode='rw'}},")),
            ),
        ),
        (
            "hooks deep inside of others",
            format!(
                "hooks.a.dir='{0}'\nhooks.b.dir='{0}/b'\n[[extension]]\nid='a'\npath='a'\n\
                 grants.dirs=[{{host='{0}/c',guest='/',mode='rw'}}]\n",
                "/a".repeat(150_000),
            ),
        ),
    ]);
    assert_golden("hostile-names", &report);
}
