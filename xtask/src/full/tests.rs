use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const GROUP: Group = Group {
    name: "slow",
    about: "what takes long",
    inputs: &["folder", "file"],
    tools: &[],
    run: || Ok(Vec::new()),
};

fn repository() -> TempDir {
    let dir = TempDir::new().unwrap();
    git(dir.path(), &["init", "--quiet"]);
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::write(dir.path().join(".gitignore"), "ignored\n").unwrap();
    fs::write(dir.path().join("folder/one"), "1").unwrap();
    fs::write(dir.path().join("file"), "2").unwrap();
    commit_all(dir.path());
    dir
}

fn git(dir: &Path, arguments: &[&str]) {
    output(Command::new("git").args(arguments).current_dir(dir)).unwrap();
}

fn commit_all(dir: &Path) {
    git(dir, &["add", "--all"]);
    git(
        dir,
        &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "all"],
    );
}

/// A record of a pass with the repository as it is.
fn passed(dir: &Path) -> Record {
    let mut record = Record::default();
    record.put(pass(dir, 7));
    record
}

fn pass(dir: &Path, seconds: u64) -> Pass {
    Pass {
        group: GROUP.name.to_owned(),
        commit: "0123456789ab with changes".to_owned(),
        inputs: Inputs::of(dir, GROUP.inputs).unwrap(),
        tools: vec!["rustc 1.95.0 (abc 2026-04-14)".to_owned(), "go 1.22".to_owned()],
        seconds,
        skipped: vec!["one, that needs a | more".to_owned()],
    }
}

fn why_void(dir: &Path, record: &Record) -> String {
    holds(&GROUP, record, dir).unwrap_err().to_string()
}

const RUN: &str = "run `cargo xtask test --full slow` and commit `docs/tested.md`";

#[test]
fn a_pass_holds_until_an_input_changes_in_a_commit() {
    let dir = repository();
    let record = passed(dir.path());
    fs::write(dir.path().join("other"), "3").unwrap();
    commit_all(dir.path());
    assert_eq!(holds(&GROUP, &record, dir.path()).unwrap().seconds, 7);

    fs::write(dir.path().join("folder/one"), "4").unwrap();
    commit_all(dir.path());
    assert_eq!(
        why_void(dir.path(), &record),
        format!("group `slow` has not passed since `folder` changed: {RUN}")
    );
}

#[test]
fn changes_count_that_are_not_committed() {
    type Change = fn(PathBuf);
    let changes: [(&str, Change, &str); 4] = [
        ("written", |dir| fs::write(dir.join("file"), "4").unwrap(), "`file`"),
        ("new", |dir| fs::write(dir.join("folder/two"), "").unwrap(), "`folder`"),
        ("renamed", |dir| fs::rename(dir.join("folder/one"), dir.join("folder/two")).unwrap(), "`folder`"),
        (
            "both",
            |dir| {
                fs::write(dir.join("file"), "4").unwrap();
                fs::write(dir.join("folder/one"), "4").unwrap();
            },
            "`file`, `folder`",
        ),
    ];
    for (what, change, changed) in changes {
        let dir = repository();
        let record = passed(dir.path());
        fs::write(dir.path().join("folder/ignored"), "").unwrap();
        holds(&GROUP, &record, dir.path()).unwrap();
        change(dir.path().to_owned());
        let why = why_void(dir.path(), &record);
        assert!(
            why.starts_with(&format!("group `slow` has not passed since {changed} changed")),
            "{what}: {why}"
        );
    }
}

#[test]
fn a_group_that_never_passed_names_the_command() {
    let dir = repository();
    assert_eq!(why_void(dir.path(), &Record::default()), format!("group `slow` has no kept pass: {RUN}"));
}

#[test]
fn an_input_that_moved_away_is_an_error_of_the_group() {
    let dir = repository();
    let record = passed(dir.path());
    fs::remove_file(dir.path().join("file")).unwrap();
    let why = why_void(dir.path(), &record);
    assert!(why.starts_with("`file`, an input of a group, holds no file"), "{why}");
}

#[test]
fn an_input_that_a_group_gains_or_loses_voids_its_pass() {
    let dir = repository();
    let record = passed(dir.path());
    let group = Group { inputs: &["folder", ".gitignore"], ..GROUP };
    let why = holds(&group, &record, dir.path()).unwrap_err().to_string();
    assert!(why.contains("since `.gitignore`, `file` changed"), "{why}");
}

#[test]
fn a_pass_takes_the_place_of_the_one_before() {
    let dir = repository();
    let mut record = passed(dir.path());
    record.put(Pass { group: "another".to_owned(), ..pass(dir.path(), 5) });
    record.put(pass(dir.path(), 8));
    let read: Record = record.to_string().parse().unwrap();
    assert_eq!(record.to_string().matches("\n| slow |").count(), 1);
    assert_eq!((read.of("slow").unwrap().seconds, read.of("another").unwrap().seconds), (8, 5));
    assert_eq!(read.of("slow").unwrap().skipped, ["one; that needs a / more"]);
    assert_eq!(read.of("slow").unwrap().inputs, pass(dir.path(), 0).inputs);
}

#[test]
fn a_record_that_is_written_otherwise_is_refused() {
    let dir = repository();
    let page = passed(dir.path()).to_string();
    let why = |page: &str| format!("{:#}", page.parse::<Record>().unwrap_err());
    let line = page.lines().last().unwrap();
    assert_eq!(why(&page.replace("# Tested", "# Checked")), "what stands above the passes is another text");
    assert_eq!(
        why(&page.replace("| 7 |", "| seven |")),
        "line 9: `seven` is no number of seconds: invalid digit found in string"
    );
    assert_eq!(why(&page.replace("| 7 | ", "| ")), "line 9: 5 cells and not 6");
    assert_eq!(why(&format!("{page}{line}\n")), "group `slow` has two lines");
    assert_eq!(why(&format!("{page}and more\n")), "line 10: a line that is none of a table");
}

#[test]
fn the_page_is_as_it_would_be_written() {
    let page = fs::read_to_string(root().unwrap().join(RECORD)).unwrap();
    assert_eq!(page.parse::<Record>().unwrap().to_string(), page);
}

#[test]
fn the_inputs_of_every_group_exist() {
    for group in &GROUPS {
        Inputs::of(root().unwrap(), group.inputs).unwrap();
    }
}
