//! Which functions the program of a device uses, for the linker: it puts them side by side.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    bench,
    run::{output, root, run},
};

const HEAD: &str = "\
/* The functions that Main uses with seven extensions and many, by the shortest beginnings of their names that no other
   function of the program has. `cargo xtask used` writes this file. */
SECTIONS {
  .text.used : {
";
const TAIL: &str = "  }\n}\nINSERT BEFORE .text;\n";

/// Runs it under valgrind's `callgrind`, and writes what it used.
pub(crate) fn used() -> Result<()> {
    output(Command::new("valgrind").arg("--version"))
        .context("`valgrind` is needed: apt-get install valgrind")?;
    let (mut measure, device) = (bench::program()?, bench::device()?);
    let dir = tempfile::tempdir()?;
    let (profiles, script) = (dir.path().join("profiles"), dir.path().join("device"));
    fs::create_dir(&profiles)?;
    let (program, out) = (device.display(), profiles.display());
    let valgrind = format!("valgrind -q --tool=callgrind --demangle=no '--callgrind-out-file={out}/%p'");
    let lines = format!(
        "#!/bin/sh\n[ \"$1\" = weir ] || exec '{program}' \"$@\"\nexec {valgrind} '{program}' \"$@\"\n"
    );
    fs::write(&script, lines)?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    run(measure.args(["--scale", "smoke", "--only", "footprint", "--device"]).arg(script))?;
    let used = used_in(&profiles)?;
    ensure!(!used.is_empty(), "nothing was used");
    let all: BTreeSet<String> = output(Command::new("nm").arg(device))?
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .map(without_crate_ids)
        .collect();
    let unused: BTreeSet<&str> = all.difference(&used).map(String::as_str).collect();
    let patterns: BTreeSet<String> =
        used.iter().filter(|name| all.contains(*name)).map(|name| beginning(name, &unused)).collect();
    // Before the name stands one word more where compilers take a function for unlikely.
    let lines: String = patterns.iter().map(|pattern| format!("    *(.text.*{pattern})\n")).collect();
    fs::write(root()?.join("packaging/used.ld"), [HEAD, &lines, TAIL].concat())?;
    println!("{} functions were used: {} patterns", used.len(), patterns.len());
    Ok(())
}

/// The functions of Rust's in these profiles.
fn used_in(profiles: &Path) -> Result<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for profile in fs::read_dir(profiles)? {
        let path = profile?.path();
        let profile = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        // A function has its name where it is mentioned first, as `fn=(7) NAME`; with `'2` if it was called by
        // itself.
        let lines = String::from_utf8_lossy(&profile);
        let names = lines.lines().filter_map(|line| line.split_once("fn=(")?.1.split_once(") _R"));
        used.extend(
            names.map(|(_, name)| {
                without_crate_ids(&format!("_R{}", name.split('\'').next().unwrap_or(name)))
            }),
        );
    }
    Ok(used)
}

/// `?` for each letter of what stands for the version of a crate (`Cs…_`): it changes with each version of the
/// compiler, and nearly always has eleven.
fn without_crate_ids(name: &str) -> String {
    let mut parts = name.split("Cs");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let id = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        match part.split_at(id) {
            (id, rest) if rest.starts_with('_') => format!("{done}Cs{}{rest}", "?".repeat(id.len())),
            _ => done + "Cs" + part,
        }
    })
}

/// What no other name begins with.
fn beginning(name: &str, others: &BTreeSet<&str>) -> String {
    let shared = |other: &&str| name.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let (before, after) = (others.range(..name).next_back(), others.range(name..).next());
    let shared = before.into_iter().chain(after).map(shared).max().unwrap_or(0);
    name.get(..=shared)
        .filter(|beginning| beginning.len() < name.len())
        .map_or(name.to_owned(), |it| it.to_owned() + "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_crates_are_left_open() {
        assert_eq!(
            without_crate_ids("_RNvNtCsjrHSEGnQ3l9_3std3fmtCs1_5alloc"),
            "_RNvNtCs???????????_3std3fmtCs?_5alloc"
        );
    }

    #[test]
    fn a_beginning_is_as_short_as_can_be() {
        let others = BTreeSet::from(["abc", "abx", "b"]);
        assert_eq!(beginning("abde", &others), "abd*");
        assert_eq!(beginning("ab", &others), "ab");
        assert_eq!(beginning("c", &others), "c");
        assert_eq!(beginning("cd", &others), "c*");
        assert_eq!(beginning("abcd", &others), "abcd");
    }
}
