//! Files that nobody writes by mistake.

use std::fs;

use proptest::prelude::*;

use super::*;

#[test]
fn a_file_over_one_mebibyte_is_refused_unread() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weir.toml");
    // Sparse: it takes no room on the disk, but would take more memory than there is.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let errors = Config::load(&path).unwrap_err().to_string();
    assert!(errors.ends_with("it is larger than 1 MiB"), "{errors}");
    assert!(parse_error(&" ".repeat(1024 * 1024 + 1)).ends_with("it is larger than 1 MiB"));
}

#[test]
fn deep_nesting_is_refused() {
    for deep in [
        format!("config = {}", "[".repeat(500_000)),
        format!("config = {}", "{ a = ".repeat(150_000)),
        format!("[{}a]", "a.".repeat(500_000)),
        format!("{}a = 1", "a.".repeat(500_000)),
    ] {
        let errors = parse_error(&deep);
        assert!(errors.contains("recurs"), "{errors}");
        assert!(errors.len() < 20_000);
    }
}

#[test]
fn errors_by_the_hundred_thousand_are_cut_to_twenty() {
    for many in
        ["=\n".repeat(500_000), "a=1\n".repeat(250_000), "[[a]]\n".repeat(170_000), "=".repeat(1_000_000)]
    {
        let errors = parse(&many).unwrap_err();
        assert!(errors.iter().count() <= 20);
        assert!(errors.to_string().len() < 20_000);
    }
    let unknown: String = (0..100_000).map(|number| format!("k{number}=1\n")).collect();
    let errors = parse_error(&unknown);
    assert!(errors.ends_with("and 99980 more"), "{errors}");
}

#[test]
fn a_long_chain_of_requires_is_no_burden() {
    let chain: String = (0..10_000)
        .map(|n| {
            format!("[[extension]]\nid='e{n}'\npath='a'\nfulfills=['c{n}@1']\nrequires=['c{}@1']\n", n + 1)
        })
        .collect();
    assert!(parse_error(&chain).contains("`e9999` requires `c10000@1`"));
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
                "fulfills", "\"a@1\"", "'a'", "\"1 MiB\"", "\"1s\"", "\u{7}", "\"\\u0000\"", "#", "\u{feff}", "\r",
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

/// Reads the text, and writes down all that is wrong with it, without a file to include.
fn report(text: &str) {
    if let Err(errors) = Config::parse(text, "weir.toml", Path::new("/nonexistent")) {
        assert!(errors.iter().count() > 0);
        let report = errors.to_string();
        assert!(!report.contains(|c: char| c.is_control() && c != '\n'), "{report:?}");
    }
}
