//! The cache directory from the file and the environment.

use super::*;

fn cache_dir(text: &str, variables: &[(&str, &str)]) -> PathBuf {
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let config = file::parse(
        text.to_owned(),
        "weir.toml",
        Path::new("/etc/weir"),
        &Loader::new(),
        &variables.collect(),
    );
    config.unwrap().main.cache_dir.unwrap()
}

#[test]
fn the_cache_is_where_the_file_says_from_where_the_file_is() {
    let variables = [("CACHE_DIRECTORY", "/a")];
    assert_eq!(cache_dir("main.cache-dir = 'cache'", &variables), Path::new("/etc/weir/cache"));
    assert_eq!(cache_dir("main.cache-dir = '/cache'", &variables), Path::new("/cache"));
}

#[test]
fn without_a_word_in_the_file_the_cache_is_among_those_of_the_unit_the_user_or_the_machine() {
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[("CACHE_DIRECTORY", "/unit:/other"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/u")], "/unit"),
        (&[("CACHE_DIRECTORY", "/unit")], "/unit"),
        (&[("CACHE_DIRECTORY", "relative:/other"), ("XDG_CACHE_HOME", "/xdg")], "/xdg/weir"),
        (&[("CACHE_DIRECTORY", ""), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/u")], "/xdg/weir"),
        (&[("XDG_CACHE_HOME", "relative"), ("HOME", "/home/u")], "/home/u/.cache/weir"),
        (&[("XDG_CACHE_HOME", ""), ("HOME", "/home/u")], "/home/u/.cache/weir"),
        (&[("HOME", "relative")], "/var/cache/weir"),
        (&[], "/var/cache/weir"),
    ];
    for (variables, expected) in cases {
        assert_eq!(cache_dir("", variables), Path::new(expected), "{variables:?}");
    }
}

#[test]
fn the_cache_may_be_within_the_directory_of_the_file_and_not_be_it() {
    for dir in ["cache", "a/../cache", "..a"] {
        parse(&format!("main.cache-dir = '{dir}'")).unwrap();
    }
    for dir in [".", "./", "cache/..", "..", "/"] {
        let error = parse_error(&format!("main.cache-dir = '{dir}'"));
        assert!(error.contains("where only Main writes"), "{error}");
    }
}

#[test]
fn the_default_may_be_within_the_directory_of_the_file() {
    assert_eq!(cache_dir("", &[("HOME", "/etc/weir")]), Path::new("/etc/weir/.cache/weir"));
}

#[test]
fn a_program_that_names_no_cache_has_none() {
    assert_eq!(Config::default().main.cache_dir, None);
}
