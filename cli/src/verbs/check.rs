//! `weir check`: a configuration and its components, without running them.

mod contracts;
pub(super) mod needs;
mod paths;

use std::path::PathBuf;

use clap::ValueHint;
use serde_json::json;
use weir_host::{
    Config, ExtensionConfig,
    component::{LoadFault, cache_is_ours, refused_version},
    config::{ConfigError, ConfigErrors},
    host::{TooFewMappings, check_mappings},
};

use self::contracts::Inspected;
use crate::{
    exit::{Said, chain},
    features::{self, compilation},
    output::{self, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Compiles every component and resolves its imports. Exit code 1: something is wrong.

Examples:
  weir check weir.toml
  weir check --json weir.toml | jq .errors")]
pub(crate) struct Args {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let config = match features::load(&args.file) {
        Ok(config) => config,
        Err(errors) if args.json => return report_errors(&errors),
        Err(errors) => return Err(errors.into()),
    };
    let mut warnings = warnings(&config, check_mappings(&config));
    let mut inspected = Inspected::default();
    let components = checked(&config, &mut inspected);
    warnings.extend(features::confinement_warning());
    warnings.extend(contracts::warnings(&config, &mut inspected));
    for extension in &config.extensions {
        let found = inspected.of(extension);
        warnings.extend(found.iter().flat_map(|found| needs::warnings(extension, found)));
        let refused = refused_version(&config.main, extension);
        warnings.extend(refused.map(|why| format!("`{}`: {why}", extension.id)));
    }
    #[cfg(feature = "gateway")]
    warnings.extend(contracts::of_aliases(&config, &mut inspected));
    let mut errors = Vec::new();
    for (faults, more) in [paths::dirs(&config), paths::hooks(&config)] {
        errors.extend(faults);
        warnings.extend(more);
    }
    #[cfg(feature = "http")]
    errors.extend(paths::certificates(&config));
    let is_ok = errors.is_empty() && components.iter().all(|(_, error)| error.is_none());
    if args.json {
        report_components(&config, &components, &errors, &warnings, is_ok)?;
    } else {
        print_components(&config, &components, &errors, &warnings)?;
    }
    if is_ok { Ok(()) } else { Err(Said.into()) }
}

/// Returns the warnings. Too few memory mappings are only a warning, since the file may be for another machine.
fn warnings(config: &Config, mappings: Result<(), TooFewMappings>) -> Vec<String> {
    let mut warnings = config.warnings();
    if !config.main.serves.is_empty() {
        warnings.push(
            "`main.serves` is for programs that embed Weir: `weir run` serves nothing itself".to_owned(),
        );
    }
    if let (Some(dir), Some(false)) = (config.main.cache(), cache_is_ours(&config.main)) {
        warnings.push(format!(
            "what is compiled here is not kept for `weir run`: the cache `{}` is not this user's alone",
            dir.display()
        ));
    }
    warnings.extend(mappings.err().map(|error| format!("on this machine `weir run` would fail: {error}")));
    warnings
}

/// An extension, and the fault in its component with the fault's place in the file.
type Checked<'c> = (&'c ExtensionConfig, Option<ConfigError>);

/// Checks each component once per set of compile limits, and then what each extension cannot do without.
fn checked<'c>(config: &'c Config, inspected: &mut Inspected<'c>) -> Vec<Checked<'c>> {
    let mut faults: Vec<Option<(bool, String)>> = Vec::new();
    let compilation = compilation();
    let is_same = |a: &ExtensionConfig, b: &ExtensionConfig| {
        (&a.component, a.sha256, &a.limits, a.traces) == (&b.component, b.sha256, &b.limits, b.traces)
            && a.serves_http.is_some() == b.serves_http.is_some()
            && (&a.exports, &a.imports) == (&b.exports, &b.imports)
    };
    for extension in &config.extensions {
        let before = config.extensions.iter().zip(&faults).find(|(other, _)| is_same(other, extension));
        let fault = before.map(|(_, fault)| fault.clone()).unwrap_or_else(|| {
            // What shows at once needs no compiler.
            let found = inspected.of(extension);
            let found = found.filter(|found| extension.sha256.is_none_or(|pinned| pinned == found.sha256));
            if let Some(misfit) = found.and_then(|found| found.misfit(extension)) {
                return Some((false, misfit));
            }
            let what = format!("checking `{}`", extension.id);
            let check = || weir_host::component::check(&config.main, extension, &compilation);
            let error = output::during(&what, check).err()?;
            Some((matches!(error.fault, LoadFault::Pinned(_)), chain(&error.into())))
        });
        faults.push(fault);
    }
    for (extension, fault) in config.extensions.iter().zip(&mut faults) {
        if fault.is_none() {
            let found = inspected.of(extension);
            *fault = found.and_then(|found| needs::fault(extension, &found)).map(|text| (false, text));
        }
    }
    let faults = config.extensions.iter().zip(faults).enumerate();
    let placed = faults.map(|(index, (extension, fault))| {
        let error = fault.map(|(pinned, message)| {
            config.component_error(index, pinned, format!("`{}`: {message}", extension.id))
        });
        (extension, error)
    });
    placed.collect()
}

fn print_components(
    config: &Config,
    components: &[Checked<'_>],
    errors: &[ConfigError],
    warnings: &[String],
) -> anyhow::Result<()> {
    for warning in warnings {
        output::complain(&format!("warning: {}", printable(warning)));
    }
    for absent in config.absent_paths() {
        output::complain(&format!("warning: {absent}"));
    }
    for (extension, error) in components {
        match error {
            None => output::line(&format!("`{}` is ok", extension.id))?,
            Some(error) => output::complain(&format!("error: {error}")),
        }
    }
    for error in errors {
        output::complain(&format!("error: {}", printable(&error.to_string())));
    }
    if config.extensions.is_empty() && errors.is_empty() {
        output::line("ok, and without extensions")?;
    }
    Ok(())
}

fn report_components(
    config: &Config,
    components: &[Checked<'_>],
    errors: &[ConfigError],
    warnings: &[String],
    is_ok: bool,
) -> anyhow::Result<()> {
    let extensions: Vec<_> = components
        .iter()
        .map(|(extension, error)| {
            let error = error.as_ref().map(error_json);
            json!({ "id": extension.id, "path": extension.component.path(), "ok": error.is_none(), "error": error })
        })
        .collect();
    let absent: Vec<_> = config.absent_paths().iter().map(error_json).collect();
    let warnings: Vec<_> =
        warnings.iter().map(|warning| json!({ "message": warning })).chain(absent).collect();
    let errors: Vec<_> = errors.iter().map(error_json).collect();
    output::json(&json!({ "ok": is_ok, "errors": errors, "warnings": warnings, "extensions": extensions }))
}

fn report_errors(errors: &ConfigErrors) -> anyhow::Result<()> {
    let errors: Vec<_> = errors.iter().map(error_json).collect();
    output::json(&json!({ "ok": false, "errors": errors, "warnings": [], "extensions": [] }))?;
    Err(Said.into())
}

fn error_json(error: &ConfigError) -> serde_json::Value {
    let (line, column) = error.line_and_column().unzip();
    json!({
        "key": error.key(), "message": error.message(),
        "file": error.file(), "line": line, "column": column,
        "notes": error.notes().collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_that_do_not_fit_on_this_machine_are_a_warning() {
        let refused = TooFewMappings { extensions: 10_000, fit: 9_075, allowed: 65_530, needed: 72_003 };
        let warnings = warnings(&Config::default(), Err(refused));
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        let expected =
            "on this machine `weir run` would fail: 10000 extensions are configured, and only 9075 fit";
        assert!(warning.starts_with(expected), "{warning}");
    }
}
