//! The manual pages and the completions of packages, made of the command line: `WEIR_MANUAL=FOLDER` writes them into
//! its `man` and `completions`, as `cargo xtask dist` does.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::{args::Args, complete, tables::assert_golden};

/// Where shells look for the completions of `weir`, by the name that each expects, and what registers them.
const COMPLETIONS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "weir.bash", "complete -o bashdefault -o nosort -F _weir weir"),
    (Shell::Zsh, "_weir", "#compdef weir"),
    (Shell::Fish, "weir.fish", "complete --keep-order --exclusive --command weir"),
];

/// Zsh takes the file as the body of a function, which it calls at the first completion.
const FIRST_IN_ZSH: &str = "_clap_dynamic_completer_weir \"$@\"\n";

#[test]
fn each_command_has_a_manual_page() {
    let mut pages = BTreeMap::new();
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    add_pages(&command, &mut pages);
    assert!(pages.len() > 40, "only {} commands were found", pages.len());
    for (name, page) in &pages {
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "`{name}` has no {section}: {page}");
        }
    }
    assert_golden("manual-page", &pages["weir-history.1"]);
    write("man", &pages);
}

#[test]
fn the_completions_of_packages_are_what_weir_prints() {
    let script = |(shell, name, registers): (Shell, &str, &str)| {
        let mut script = String::from_utf8(complete::script(shell).unwrap()).unwrap();
        if shell == Shell::Zsh {
            script.push_str(FIRST_IN_ZSH);
        }
        assert!(script.lines().any(|line| line.starts_with(registers)), "`{name}`: {script}");
        (name.to_owned(), script)
    };
    write("completions", &COMPLETIONS.map(script).into());
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

/// Writes files into a folder of that which `WEIR_MANUAL` names, if it names one.
fn write(folder: &str, made: &BTreeMap<String, String>) {
    let Some(to) = env::var_os("WEIR_MANUAL").map(|to| PathBuf::from(to).join(folder)) else { return };
    fs::create_dir_all(&to).unwrap();
    for (name, text) in made {
        fs::write(to.join(name), text).unwrap();
    }
}
