//! `os-release`, as os-release(5) describes it: assignments that a shell would understand.

use weir_contracts::device_info::Os;

/// The operating system that a file names. Missing values are empty.
pub(crate) fn os(text: &str, kernel: &str) -> Os {
    let value = |key| value(text, key).unwrap_or_default();
    let version = value("VERSION");
    Os {
        id: value("ID"),
        name: value("NAME"),
        version: if version.is_empty() { value("VERSION_ID") } else { version },
        pretty_name: value("PRETTY_NAME"),
        kernel: kernel.to_owned(),
    }
}

/// The value of a key: that of the last assignment, as in a shell. Assignments that a shell would refuse do not count.
fn value(text: &str, key: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))
        .filter_map(|value| shlex::split(value).map(|words| words.into_iter().next().unwrap_or_default()))
        .next_back()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_unquoted_as_a_shell_would() {
        let text = "# ID=no\nID=debian\nNAME='Debian GNU/Linux'\r\nVERSION=\"12 \\\"bookworm\\\" \\$5\"\nVERSION_ID=9\n";
        assert_eq!(
            os(text, "6.1"),
            Os {
                id: "debian".into(),
                name: "Debian GNU/Linux".into(),
                version: "12 \"bookworm\" $5".into(),
                pretty_name: String::new(),
                kernel: "6.1".into(),
            }
        );
    }

    #[test]
    fn a_release_without_a_version_has_its_number_or_nothing() {
        assert_eq!(os("ID=alpine\nVERSION_ID=3.22.0", "").version, "3.22.0");
        assert_eq!(os("ID=arch\nID=arch2\n", "").id, "arch2");
        assert_eq!(os("ID=arch", "").version, "");
    }

    #[test]
    fn a_line_that_is_no_assignment_counts_for_nothing() {
        for text in ["", "ID", "ID =x", "XID=x", "ID=\"open", "=ID", "ID=", "ID=\\", "\u{feff}ID=x"] {
            assert_eq!(os(text, "").id, "", "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(ID=|NAME=|['\"\\\\\n$#]|\\PC){0,40}") {
            let _os = os(&text, "");
        }
    }
}
