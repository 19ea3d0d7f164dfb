//! Hostile files.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::TokenHash;

#[test]
fn a_file_over_one_mebibyte_is_refused_unread() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weir.toml");
    // A sparse file takes no disk space, but would take more memory than there is.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let errors = load(&path).unwrap_err().to_string();
    assert!(errors.ends_with("it is larger than 1 MiB"), "{errors}");
    assert!(parse_error(&" ".repeat(1024 * 1024 + 1)).ends_with("it is larger than 1 MiB"));
}

#[test]
fn deep_nesting_is_refused() {
    let dotted = |times: usize| "a.".repeat(times);
    let report = refused([
        ("brackets", "a = ".to_owned() + &"[".repeat(500_000)),
        ("closed brackets", format!("a = {}{}", "[".repeat(10_000), "]".repeat(10_000))),
        ("inline tables", "a = ".to_owned() + &"{ a = ".repeat(150_000)),
        ("closed inline tables", format!("a = {}{}", "{ a = ".repeat(10_000), "}".repeat(10_000))),
        ("dotted key", dotted(10_000) + "a = 1"),
        ("long dotted key", dotted(500_000) + "a = 1"),
        ("header", format!("[{}a]", dotted(10_000))),
        ("long header", format!("[{}a]", dotted(500_000))),
        ("header of a list", format!("[[{}a]]", dotted(10_000))),
        ("key in an inline table", format!("a = {{ {}a = 1 }}", dotted(10_000))),
        ("behind a mistake", format!("[main]\nserve = []\n{}a = 1", dotted(10_000))),
    ]);
    assert_golden("hostile-nesting", &report);
}

/// Brackets and dots together allow thousands of levels.
#[test]
fn the_deepest_nesting_that_is_read_fits_on_the_stack() {
    let dotted = "a.".repeat(78);
    let value = (0..78).fold("1".to_owned(), |value, _| format!("{{ {dotted}a = {value} }}"));
    assert!(
        parse_error(&format!("[{dotted}a]\n{dotted}b = {value}"))
            .contains("unknown key `a` at the top level")
    );
}

#[test]
fn lines_and_lists_that_fill_a_file_are_refused() {
    let unknown: String = (0..100_000).map(|number| format!("k{number}=1\n")).collect();
    let many: String = (0..70_000).map(|number| format!("memory{number}=1\n")).collect();
    let report = refused([
        ("100,000 unknown keys", unknown),
        ("70,000 misspelt keys", "[limits.small]\n".to_owned() + &many),
        ("extensions without anything", "[[extension]]\n".repeat(70_000)),
        ("numbers for contracts", format!("main.serves=[{}]", "1,".repeat(500_000))),
        ("numbers for extensions", format!("extension=[{}]", "1,".repeat(500_000))),
        ("one key", "a".repeat(1_000_000) + "=1"),
        ("one string", format!("main.memory-budget='{}'", "1".repeat(1_000_000))),
        ("one number", format!("main.memory-budget={}", "1".repeat(1_000_000))),
        ("quotes", "\"".repeat(1_000_000)),
        ("equals signs", "=".repeat(1_000_000)),
        ("lines of equals signs", "=\n".repeat(500_000)),
        ("one key again and again", "a=1\n".repeat(250_000)),
        ("one list again and again", "[[a]]\n".repeat(170_000)),
    ]);
    assert_golden("hostile-size", &report);
}

/// Comparing all names, or counting lines for each, would take minutes.
#[test]
fn files_full_of_names_are_judged_at_once() {
    let many =
        |range: std::ops::Range<usize>, each: &dyn Fn(usize) -> String| range.map(each).collect::<String>();
    let names = |prefix: &str| many(0..40_000, &|n| format!("'{prefix}{n}@1',"));
    let classes = many(0..20_000, &|n| format!("[limits.c{n}]\nmemory='1 GiB'\n"));
    let report = refused([
        (
            "classes that there are not",
            classes + &many(0..8_000, &|n| format!("[[extension]]\nid='e{n}'\npath='a'\nclass='x{n}'\n")),
        ),
        (
            "contracts that nobody fulfills",
            format!(
                "[[extension]]\nid='a'\npath='a'\nfulfills=[{}]\nrequires=[{}]\n",
                names("f"),
                names("r")
            ),
        ),
        (
            "two who wait for each other",
            format!(
                "main.serves=[{}]\n[[extension]]\nid='a'\npath='a'\nfulfills=['a@1']\nrequires=['b@1']\n\
                 [[extension]]\nid='b'\npath='b'\nfulfills=[{}'b@1']\nrequires=[{0}'a@1']\n",
                many(0..20_000, &|n| format!("'s{n}@1',")),
                many(0..20_000, &|n| format!("'f{n}@1',")),
            ),
        ),
        (
            "a round of classes",
            many(0..25_000, &|n| format!("[limits.c{n}]\ninherits='c{}'\n", (n + 1) % 25_000)),
        ),
        (
            "a round of extensions",
            many(0..10_000, &|n| {
                let next = (n + 1) % 10_000;
                format!("[[extension]]\nid='e{n}'\npath='a'\nfulfills=['c{n}@1']\nrequires=['c{next}@1']\n")
            }),
        ),
        (
            "a chain of extensions",
            many(0..10_000, &|n| {
                format!(
                    "[[extension]]\nid='e{n}'\npath='a'\nfulfills=['c{n}@1']\nrequires=['c{}@1']\n",
                    n + 1
                )
            }),
        ),
        (
            "queues that there are not",
            format!(
                "[[extension]]\nid='a'\npath='a'\nputs=[{}]\n{}",
                many(0..30_000, &|n| format!("'p{n}',")),
                many(0..30_000, &|n| format!("[queue.q{n}]\n")),
            ),
        ),
        (
            "stores that no peer fulfills",
            format!(
                "[peer.'a:a']\nfulfills=[{}]\n{}",
                many(0..25_000, &|n| format!("'f{n}@1',")),
                many(0..17_000, &|n| format!("[queue.q{n}]\nstore='s{n}@1'\n")),
            ),
        ),
        (
            "peers with one token",
            many(0..9_000, &|n| format!("[peer.'a:p{n}']\ntokens=['{}']\n", TokenHash::of("a"))),
        ),
        (
            "peers that fulfill one contract",
            many(0..20_000, &|n| format!("[peer.'a:p{n}']\nfulfills=['a@1']\n")),
        ),
        (
            "a round of queues",
            many(0..20_000, &|n| format!("[queue.q{n}]\ndead-letter='q{}'\n", (n + 1) % 20_000)),
        ),
        (
            "dead letters of nobody, over the budget",
            "main.memory-budget='1 GiB'\n".to_owned()
                + &many(0..20_000, &|n| format!("[queue.q{n}]\ndead-letter='d{n}'\n")),
        ),
        (
            "subscriptions of more than the inbox",
            format!(
                "[[extension]]\nid='a'\npath='a'\nsubscribes=[{}]",
                "{topic='a',messages=257},".repeat(35_000)
            ),
        ),
        ("one id", "[[extension]]\nid='e'\npath='a'\n".repeat(30_000)),
        (
            "one budget",
            "main.memory-budget='1 GiB'\n".to_owned()
                + &many(0..20_000, &|n| format!("[[extension]]\nid='e{n}'\npath='a'\n")),
        ),
    ]);
    assert_golden("hostile-names", &report);
}

#[test]
fn a_pattern_that_would_search_the_disk_is_refused() {
    let report = refused([
        ("all directories", "include = ['/**/*.toml']".to_owned()),
        ("three wildcards", "include = ['/*/*/*.toml']".to_owned()),
        ("a list of patterns", format!("include = [{}]", "'conf.d/*/*.none', ".repeat(10_000))),
    ]);
    assert_golden("hostile-patterns", &report);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        report(&text);
    }

    #[test]
    fn no_text_of_tokens_makes_it_panic(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "[", "]", "[[", "]]", "{", "}", "=", ",", "\n", ".", " ", "\"", "'", "-1", "0", "1e400", "nan",
                "99999999999999999999", "true", "1979-05-27", "main", "limits", "extension", "include", "grants",
                "dirs", "env", "net", "config", "inbox", "memory", "id", "path", "class", "inherits", "requires",
                "fulfills", "queue", "topic", "peer", "\"app:a\"", "tokens", "uid", "store", "hooks", "dir", "suffixes", "exit-codes", "ok", "runs", "subscribes", "puts", "takes", "policy", "messages", "dead-letter",
                "when-full", "instances", "\"a@1\"", "'a'", "\"1 MiB\"", "\"1s\"", "\u{7}", "\"\\u0000\"", "#", "\u{feff}", "\r",
            ]),
            0..60,
        )
    ) {
        report(&tokens.concat());
    }

    #[test]
    fn no_damage_to_a_good_file_makes_it_panic(
        at in any::<prop::sample::Index>(),
        length in 0..40_usize,
        instead in "\\PC{0,4}",
    ) {
        let text = fs::read_to_string(golden().join("valid/weir.toml")).unwrap();
        let mut chars: Vec<char> = text.chars().collect();
        let start = at.index(chars.len());
        let end = (start + length).min(chars.len());
        chars.splice(start..end, instead.chars());
        report(&chars.into_iter().collect::<String>());
    }
}

fn report(text: &str) {
    if let Err(errors) = parse_in(text, Path::new("/nonexistent")) {
        assert!(errors.iter().count() > 0);
        let report = errors.to_string();
        assert!(!report.contains(|c: char| c.is_control() && c != '\n'), "{report:?}");
    }
}
