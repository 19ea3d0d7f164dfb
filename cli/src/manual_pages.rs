//! The manual pages and the completions of packages, `packaging/man` and `packaging/completions`, are made of the
//! command line: a difference fails. `WEIR_MANUAL=write` writes them.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::{args::Args, complete};

/// Where shells look for the completions of `weir`, by the name that each expects.
const COMPLETIONS: [(Shell, &str); 3] =
    [(Shell::Bash, "weir.bash"), (Shell::Zsh, "_weir"), (Shell::Fish, "weir.fish")];

/// Zsh takes the file as the body of a function, which it calls at the first completion.
const FIRST_IN_ZSH: &str = "_clap_dynamic_completer_weir \"$@\"\n";

#[test]
fn the_manual_pages_are_made_of_the_command_line() {
    let mut pages = BTreeMap::new();
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    add_pages(&command, &mut pages);
    assert!(pages.len() > 40, "only {} commands were found", pages.len());
    assert_kept("man", &pages);
}

#[test]
fn the_completions_of_packages_are_what_weir_prints() {
    let script = |(shell, name): (Shell, &str)| {
        let mut script = String::from_utf8(complete::script(shell).unwrap()).unwrap();
        if shell == Shell::Zsh {
            script.push_str(FIRST_IN_ZSH);
        }
        (name.to_owned(), script)
    };
    assert_kept("completions", &COMPLETIONS.map(script).into());
}

/// The pages of a command and of all below it, by their file names.
fn add_pages(command: &Command, pages: &mut BTreeMap<String, String>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below, pages);
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    pages.insert(format!("{name}.1"), page(command.clone(), &name));
}

fn page(command: Command, name: &str) -> String {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.has_subcommands();
    let version = concat!("weir ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).title(name.to_uppercase()).source(version).manual("Weir");
    let mut page = Vec::new();
    man.render_title(&mut page).unwrap();
    man.render_name_section(&mut page).unwrap();
    man.render_synopsis_section(&mut page).unwrap();
    man.render_description_section(&mut page).unwrap();
    man.render_options_section(&mut page).unwrap();
    if has_commands {
        man.render_subcommands_section(&mut page).unwrap();
    }
    details(&after).to_writer(&mut page).unwrap();
    // Roff has no space at the end of a line.
    let lines: Vec<_> = std::str::from_utf8(&page).unwrap().lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// What the help has below the options: paragraphs, and blocks with a heading and indented lines.
fn details(text: &str) -> Roff {
    let mut roff = Roff::default();
    let mut heading = "DETAILS";
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        match paragraph.split_once(":\n  ") {
            Some((title, block)) if !title.contains('\n') => {
                roff.control("SH", [title.to_uppercase().as_str()]).control("nf", []);
                let lines = block.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
                roff.text(lines.map(|line| roman(format!("{line}\n"))).collect::<Vec<_>>());
                roff.control("fi", []);
            }
            _ => {
                roff.control(
                    if heading.is_empty() { "PP" } else { "SH" },
                    Some(heading).filter(|heading| !heading.is_empty()),
                );
                roff.text([roman(paragraph)]);
                heading = "";
            }
        }
    }
    roff
}

/// Asserts that a folder of `packaging` has these files and no other, or writes them.
fn assert_kept(folder: &str, made: &BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(folder);
    let files =
        || -> Vec<PathBuf> { fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect() };
    if env::var_os("WEIR_MANUAL").is_some_and(|value| value == "write") {
        files().iter().for_each(|file| fs::remove_file(file).unwrap());
        made.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }
    let name = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
    let kept: BTreeMap<_, _> =
        files().iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect();
    let differing: Vec<_> =
        kept.keys().chain(made.keys()).filter(|name| kept.get(*name) != made.get(*name)).collect();
    assert!(
        differing.is_empty(),
        "{differing:?} in `packaging` are not of this command line: run `WEIR_MANUAL=write cargo test --workspace --bin \
         weir manual_pages`"
    );
}
