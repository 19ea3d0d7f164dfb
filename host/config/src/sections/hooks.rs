//! The keys of a table of hooks.

use weir_names::HookDirName;

use super::{CLASS, HOST_DIR, grants::grants, named, plain_path, split};
use crate::{
    ExitCodes, HookDirConfig,
    changes::Changes,
    check::HookDirPlaces,
    classes::class_name,
    hooks::{AT_ONCE, EXIT_CODES, LIMITS, OUTPUT, SUFFIX, exit_codes_in, suffix},
    limits::{KEYS, TIMEOUT},
    section::{At, Section},
};

/// A directory of hooks whose class is not looked up yet.
#[derive(Debug)]
pub(crate) struct HookDirDraft {
    pub(crate) config: HookDirConfig,
    pub(crate) class: Option<At<String>>,
    pub(crate) changes: Changes,
    pub(crate) places: HookDirPlaces,
}

/// None if it has no directory or cannot have that name, which is reported.
pub(super) fn hooks(
    section: &mut Section<'_, '_>,
    name: &At<&str>,
) -> Option<(At<HookDirName>, HookDirDraft)> {
    section.require("dir", HOST_DIR);
    let dir = plain_path(section, "dir", HOST_DIR);
    let suffixes = section.some_texts("suffixes", SUFFIX, suffix).map(split);
    let class = section.text("class", CLASS, class_name);
    let changes = section.table("limits", limits);
    let (grants, grants_at) = section.table("grants", grants);
    let timeout = section.time("timeout", TIMEOUT);
    let total_timeout = section.time("total-timeout", TIMEOUT);
    let output = section.number("output", &OUTPUT);
    let at_once = section.count("at-once", AT_ONCE);
    let exit_codes = section.table("exit-codes", exit_codes);

    let name = named(section, "hooks", name, str::parse::<HookDirName>)?;
    let dir = dir?;
    let new = HookDirConfig::new(dir.value);
    let (suffixes, suffixes_at) = suffixes.unwrap_or_else(|| (new.suffixes.clone(), Vec::new()));
    let config = HookDirConfig {
        suffixes,
        grants,
        timeout: timeout.map_or(new.timeout, At::into_value),
        total_timeout: total_timeout.map_or(new.total_timeout, At::into_value),
        output: output.map_or(new.output, At::into_value),
        at_once: at_once.map_or(new.at_once, At::into_value),
        exit_codes,
        ..new
    };
    let places =
        HookDirPlaces { name: name.place.clone(), dir: dir.place, suffixes: suffixes_at, grants: grants_at };
    Some((name, HookDirDraft { config, class, changes, places }))
}

/// Those limits that mean something for a hook.
fn limits(section: &mut Section<'_, '_>) -> Changes {
    let mut changes = Changes::default();
    for key in KEYS.iter().filter(|key| !key.name.contains('.')) {
        if LIMITS.contains(&key.name) {
            changes.add(key, section.number(key.name, &key.shape));
            continue;
        }
        let why = match key.name {
            "fuel-per-message" => {
                "is for messages: a run of a hook has `fuel-to-start`, from its start to its end"
            }
            "ready-timeout" | "request-timeout" | "stop-timeout" => {
                "is for extensions: `timeout` of the hooks says how long each may take"
            }
            "log-rate" => "is for extensions: `output` of the hooks says how much each may write",
            _ => "is for extensions: hooks have no messages",
        };
        section.refuse(key.name, why);
    }
    section.refuse("inbox", "is for extensions: hooks have no messages");
    changes
}

fn exit_codes(section: &mut Section<'_, '_>) -> ExitCodes {
    let errors = section.error_count();
    let new = ExitCodes::default();
    let ok = section.text("ok", EXIT_CODES, exit_codes_in);
    let error = section.text("error", EXIT_CODES, exit_codes_in);
    let warning = section.text("warning", EXIT_CODES, exit_codes_in);
    let place = |key| {
        let set = [("ok", &ok), ("error", &error), ("warning", &warning)];
        set.into_iter().find(|(name, _)| *name == key)?.1.as_ref().map(|at| at.place.clone())
    };
    let codes = ExitCodes {
        ok: ok.as_ref().map_or(new.ok, |at| at.value.clone()),
        error: error.as_ref().map_or(new.error, |at| at.value.clone()),
        warning: warning.as_ref().map_or(new.warning, |at| at.value.clone()),
    };
    if section.error_count() == errors {
        for ([first, second], message) in codes.overlaps() {
            section.contradiction([(second, place(second)), (first, place(first))], &message);
        }
    }
    codes
}
