//! Cases as JUnit XML, as CI systems read it.

use super::cases::{Cases, Outcome};

/// Writes the report. `suite` is the name of the project.
pub(super) fn report(suite: &str, cases: &Cases) -> String {
    let (failed, skipped) = (cases.of(Outcome::Failed), cases.of(Outcome::Skipped));
    let (suite, all, time) = (escaped(suite), cases.cases.len(), cases.time.as_secs_f64());
    let counts = format!("tests=\"{all}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{time:.3}\"");
    let cases: String = cases
        .cases
        .iter()
        .map(|case| {
            let name = escaped(&case.name);
            let head = format!("    <testcase classname=\"{suite}\" name=\"{name}\"");
            match case.outcome {
                Outcome::Passed => format!("{head}/>\n"),
                Outcome::Skipped => format!("{head}><skipped/></testcase>\n"),
                Outcome::Failed => {
                    let message = escaped(case.explanation.lines().next().unwrap_or_default());
                    let text = escaped(&case.explanation);
                    format!("{head}><failure message=\"{message}\">{text}</failure></testcase>\n")
                }
            }
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
         <testsuite name=\"{suite}\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// Escapes text for an element or an attribute. XML 1.0 has no way to write most control characters, so they are
/// replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_report_counts_cases_and_escapes_what_programs_say() {
        let mut cases = Cases::default();
        cases.read("test a<b> ... ok");
        cases.read("not ok 2 - says \"&\u{1b}[2J\"");
        cases.read("  ]]> done");
        cases.read("ok 3 - later # SKIP");
        cases.end("tests", Err("exit status: 1".into()), Duration::from_millis(1234));
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites tests=\"3\" failures=\"1\" skipped=\"1\" time=\"1.234\">
  <testsuite name=\"greeter\" tests=\"3\" failures=\"1\" skipped=\"1\" time=\"1.234\">
    <testcase classname=\"greeter\" name=\"a&lt;b&gt;\"/>
    <testcase classname=\"greeter\" name=\"says &quot;&amp;\u{fffd}[2J&quot;\"><failure message=\"  ]]&gt; done\">  ]]&gt; done&#10;</failure></testcase>
    <testcase classname=\"greeter\" name=\"later\"><skipped/></testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(report("greeter", &cases), expected);
    }
}
