//! The keys of a table of hooks.

use weir_names::HookDirName;

use super::{CLASS, HOST_DIR, grants::grants, named, plain_path, split};
use crate::{
    ExitCodes, HookDirConfig,
    changes::Changes,
    check::HookDirLocations,
    classes::class_name,
    hooks::{AT_ONCE, EXIT_CODES, OUTPUT, SUFFIX, exit_codes_in, suffix},
    limits::{InHooks, LIMIT_KEYS, TIMEOUT},
    section::{Located, Section},
};

/// A directory of hooks whose class is not looked up yet.
#[derive(Debug)]
pub(crate) struct HookDirDraft {
    pub(crate) config: HookDirConfig,
    pub(crate) class: Option<Located<String>>,
    pub(crate) changes: Changes,
    pub(crate) locations: HookDirLocations,
}

/// None if it has no directory or cannot have that name, which is reported.
pub(super) fn hooks(
    section: &mut Section<'_, '_>,
    name: &Located<&str>,
) -> Option<(Located<HookDirName>, HookDirDraft)> {
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
        timeout: timeout.map_or(new.timeout, Located::into_value),
        total_timeout: total_timeout.map_or(new.total_timeout, Located::into_value),
        output: output.map_or(new.output, Located::into_value),
        at_once: at_once.map_or(new.at_once, Located::into_value),
        exit_codes,
        ..new
    };
    let locations = HookDirLocations {
        name: name.location.clone(),
        dir: dir.location,
        suffixes: suffixes_at,
        grants: grants_at,
    };
    Some((name, HookDirDraft { config, class, changes, locations }))
}

/// Those limits that mean something for a hook.
fn limits(section: &mut Section<'_, '_>) -> Changes {
    let mut changes = Changes::default();
    for key in LIMIT_KEYS.iter().filter(|key| !key.name.contains('.')) {
        match key.in_hooks {
            InHooks::Allowed => changes.add(key, section.number(key.name, &key.shape)),
            InHooks::Refused(why) => section.refuse(key.name, why),
        }
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
    let location = |key| {
        let set = [("ok", &ok), ("error", &error), ("warning", &warning)];
        set.into_iter().find(|(name, _)| *name == key)?.1.as_ref().map(|at| at.location.clone())
    };
    let codes = ExitCodes {
        ok: ok.as_ref().map_or(new.ok, |at| at.value.clone()),
        error: error.as_ref().map_or(new.error, |at| at.value.clone()),
        warning: warning.as_ref().map_or(new.warning, |at| at.value.clone()),
    };
    if section.error_count() == errors {
        for ([first, second], message) in codes.overlaps() {
            section.contradiction([(second, location(second)), (first, location(first))], &message);
        }
    }
    codes
}
