//! Tests what Weir can do from a language: `tests/conformance/README.md`.
//!
//! `WEIR_CONFORMANCE` names the languages, with commas; without it, Rust is tested. With `WEIR_CONFORMANCE_RECORD`, a
//! full pass is kept, and `docs/languages.md` is written.
//!
//! Its own main function, because the tests are made from the languages, and some are to fail.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod language;
mod measure;
mod points;
mod record;
mod stage;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Duration,
};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    language::Language,
    measure::measure,
    points::{POINTS, Point, memory},
    record::Record,
};

/// For one point. A guest that hangs takes it.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(stage::HELPER) {
        return weir_host::component::compile_helper();
    }
    let mut arguments = Arguments::from_args();
    // A point looks at the thread of its Main, which must be the only one.
    arguments.test_threads = Some(1);
    let languages = if arguments.list { Vec::new() } else { language::wanted() };
    for language in &languages {
        // Compiles it, which can take longer than a point may.
        drop(runtime().block_on(stage::Stage::new(language)));
    }
    let mut trials: Vec<_> = languages.iter().flat_map(trials).collect();
    let records = std::env::var_os("WEIR_CONFORMANCE_RECORD").is_some();
    if !records {
        trials.push(Trial::test("the_page_is_made_of_what_is_kept", page_is_as_kept));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let is_full = !conclusion.has_failed() && conclusion.num_filtered_out == 0;
    if is_full && records {
        for language in &languages {
            let figures = runtime().block_on(measure(language));
            Record::new(language, figures).keep(&language.name);
        }
        fs::write(record::page_path(), record::page()).unwrap();
    }
    conclusion.exit_code()
}

fn trials(language: &Language) -> impl Iterator<Item = Trial> {
    let unknown: Vec<_> =
        language.gaps.keys().filter(|gap| !POINTS.iter().any(|point| point.name() == **gap)).collect();
    assert!(unknown.is_empty(), "`{}` has gaps that are no points: {unknown:?}", language.name);
    POINTS.iter().map(|point| {
        let (language, point) = (language.clone(), *point);
        Trial::test(format!("{}::{}", language.name, point.name()), move || outcome(&language, point))
    })
}

/// A point passes, or it is a known gap.
fn outcome(language: &Language, point: Point) -> Result<(), Failed> {
    let passed = catch_unwind(AssertUnwindSafe(|| {
        runtime().block_on(async {
            let run = (point.run)(language);
            let patience = if point.name() == "memory-stays-level" { memory::patience() } else { PATIENCE };
            tokio::time::timeout(patience, run).await.expect("it takes too long");
        });
    }));
    match (passed, language.gaps.get(&point.name())) {
        (Ok(()), None) => Ok(()),
        (Err(panic), None) => Err(said(&*panic).into()),
        (Err(_), Some(why)) => {
            eprintln!("known gap: {why}");
            Ok(())
        }
        (Ok(()), Some(_)) => Err("it passes: remove it from the gaps in `conformance.toml`".into()),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

fn page_is_as_kept() -> Result<(), Failed> {
    match fs::read_to_string(record::page_path()) {
        Ok(page) if page == record::page() => Ok(()),
        _ => Err("`docs/languages.md` is not what the kept runs give".into()),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
