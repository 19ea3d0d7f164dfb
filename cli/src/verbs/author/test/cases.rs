//! Test cases in the output of a test program: TAP, or lines as the test harnesses of Rust and Go print them.

use std::{fmt::Write, time::Duration};

use crate::output::{counted, printable};

#[derive(Debug, Default)]
pub(super) struct Cases {
    pub(super) cases: Vec<Case>,
    pub(super) time: Duration,
    /// The number of cases that the plans of TAP announced together.
    planned: Option<usize>,
    /// The index of the case that further lines explain.
    explained: Option<usize>,
    /// What the present test of Go has printed. Its output comes before its outcome.
    heard: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    /// What the program printed about a failed case, or why the program itself has failed. Empty for other cases.
    pub(super) explanation: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

impl Cases {
    /// Takes the next line of the output.
    pub(super) fn read(&mut self, line: &str) {
        let line = line.trim_end_matches('\r');
        if let Some(mut case) = of_tap(line).or_else(|| of_rust(line)).or_else(|| of_go(line)) {
            case.explanation =
                self.heard.take().filter(|_| case.outcome == Outcome::Failed).unwrap_or_default();
            self.cases.push(case);
            self.explained = Some(self.cases.len() - 1);
        } else if line.starts_with("=== RUN ") {
            self.heard = Some(String::new());
            self.explained = None;
        } else if let Some(heard) = &mut self.heard {
            heard.push_str(line);
            heard.push('\n');
        } else if let Some(count) = line.strip_prefix("1..") {
            let count = count.split_whitespace().next().and_then(|count| count.parse::<usize>().ok());
            self.planned = count.map(|count| self.planned.unwrap_or_default() + count).or(self.planned);
        } else if let Some(reason) = line.strip_prefix("Bail out!") {
            self.fail("bail out", reason.trim());
        } else {
            self.explain(line);
        }
    }

    /// Takes the end of the program, with an error if it did not end well.
    pub(super) fn end(&mut self, program: &str, ended: Result<(), String>, time: Duration) {
        self.time = time;
        if let Some(planned) = self.planned
            && planned != self.cases.len()
        {
            self.fail("plan", &format!("{} were planned, and {} ran", planned, self.cases.len()));
        }
        match ended {
            Err(error) if self.of(Outcome::Failed) == 0 => self.fail(program, &error),
            Ok(()) if self.cases.is_empty() => {
                let name = program.to_owned();
                self.cases.push(Case { name, outcome: Outcome::Passed, explanation: String::new() });
            }
            _ => {}
        }
    }

    /// How many cases have this outcome.
    pub(super) fn of(&self, outcome: Outcome) -> usize {
        self.cases.iter().filter(|case| case.outcome == outcome).count()
    }

    pub(super) fn summary(&self) -> String {
        let (failed, skipped) = (self.of(Outcome::Failed), self.of(Outcome::Skipped));
        let all = counted(self.cases.len().try_into().unwrap_or(u64::MAX), "case");
        let passed = self.cases.len() - failed - skipped;
        let mut text = String::new();
        for case in self.cases.iter().filter(|case| case.outcome == Outcome::Failed) {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "failed: {}", printable(&case.name));
        }
        text + &format!("{all}: {passed} passed, {failed} failed, {skipped} skipped")
    }

    pub(super) fn tap(&self) -> String {
        let mut text = format!("TAP version 13\n1..{}\n", self.cases.len());
        for (index, case) in self.cases.iter().enumerate() {
            let not = if case.outcome == Outcome::Failed { "not " } else { "" };
            let skip = if case.outcome == Outcome::Skipped { " # SKIP" } else { "" };
            let name = printable(&case.name).replace('#', "\\#");
            let _infallible = writeln!(text, "{not}ok {} - {name}{skip}", index + 1);
            for line in case.explanation.lines() {
                let _infallible = writeln!(text, "# {}", printable(line));
            }
        }
        text
    }

    fn fail(&mut self, name: &str, explanation: &str) {
        self.explained = None;
        let explanation = explanation.to_owned();
        self.cases.push(Case { name: name.to_owned(), outcome: Outcome::Failed, explanation });
    }

    /// Keeps what follows a failed case in TAP, and the sections of Rust's harness about failed cases.
    fn explain(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            let failed = |case: &Case| case.name == name && case.explanation.is_empty();
            self.explained = self.cases.iter().rposition(failed);
            return;
        }
        if line == "failures:" || line.starts_with("test result: ") || line.starts_with("running ") {
            self.explained = None;
        }
        let case = self.explained.and_then(|index| self.cases.get_mut(index));
        if let Some(case) = case.filter(|case| case.outcome == Outcome::Failed)
            && !(line.trim().is_empty() && case.explanation.is_empty())
        {
            case.explanation.push_str(line);
            case.explanation.push('\n');
        }
    }
}

/// Reads a case of TAP, as in `not ok 2 - name # SKIP why`. Lines of subtests are indented, and count with their
/// parent.
fn of_tap(line: &str) -> Option<Case> {
    let (is_ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    // Go prints `ok`, two spaces and a tab for each package.
    if !rest.is_empty() && !rest.starts_with(' ') || rest.starts_with("  \t") {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches(|digit: char| digit.is_ascii_digit()).trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let directive = directive.to_ascii_uppercase();
    // A test that is marked as still to do may fail.
    let is_skipped = directive.starts_with("SKIP") || directive.starts_with("TODO");
    let outcome = match () {
        () if is_skipped => Outcome::Skipped,
        () if is_ok => Outcome::Passed,
        () => Outcome::Failed,
    };
    Some(Case { name: name.trim().to_owned(), outcome, explanation: String::new() })
}

/// Reads a case of Rust's harness, as in `test tests::greets ... FAILED`.
fn of_rust(line: &str) -> Option<Case> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match result.split([',', ' ']).next()? {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        "ignored" => Outcome::Skipped,
        _ => return None,
    };
    Some(Case { name: name.to_owned(), outcome, explanation: String::new() })
}

/// Reads a case of Go, as in `--- FAIL: TestName (0.01s)`. Lines of subtests are indented, and count with their parent.
fn of_go(line: &str) -> Option<Case> {
    let (outcome, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let outcome = match outcome {
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        "SKIP" => Outcome::Skipped,
        _ => return None,
    };
    let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
    Some(Case { name: name.to_owned(), outcome, explanation: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str, ended: Result<(), String>) -> Cases {
        let mut cases = Cases::default();
        output.lines().for_each(|line| cases.read(line));
        cases.end("tests", ended, Duration::from_millis(1500));
        cases
    }

    fn outcomes(cases: &Cases) -> Vec<(&str, Outcome)> {
        cases.cases.iter().map(|case| (case.name.as_str(), case.outcome)).collect()
    }

    #[test]
    fn cases_of_cargo_test_have_their_failure() {
        let output = "\
running 3 tests
test tests::greets ... ok
test tests::counts ... FAILED
test tests::slow ... ignored, takes long

failures:

---- tests::counts stdout ----

thread 'tests::counts' panicked at src/main.rs:3:9:
1 is not 2

failures:
    tests::counts

test result: FAILED. 1 passed; 1 failed; 1 ignored
";
        let cases = read(output, Err("exit status: 101".into()));
        let expected = [
            ("tests::greets", Outcome::Passed),
            ("tests::counts", Outcome::Failed),
            ("tests::slow", Outcome::Skipped),
        ];
        assert_eq!(outcomes(&cases), expected);
        let explanation = "thread 'tests::counts' panicked at src/main.rs:3:9:\n1 is not 2\n\n";
        assert_eq!(cases.cases[1].explanation, explanation);
        assert_eq!(cases.summary(), "failed: tests::counts\n3 cases: 1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn cases_of_go_test_have_what_they_said_before() {
        let output = "\
=== RUN   TestGreets
--- PASS: TestGreets (0.00s)
=== RUN   TestCounts
    main_test.go:12: 1 is not 2
--- FAIL: TestCounts (0.01s)
=== RUN   TestSlow
    main_test.go:20: takes long
--- SKIP: TestSlow (0.00s)
FAIL
FAIL	greeter	0.012s
ok  	greeter/names	0.004s
";
        let cases = read(output, Err("exit status: 1".into()));
        let expected = [
            ("TestGreets", Outcome::Passed),
            ("TestCounts", Outcome::Failed),
            ("TestSlow", Outcome::Skipped),
        ];
        assert_eq!(outcomes(&cases), expected);
        assert_eq!(cases.cases[1].explanation, "    main_test.go:12: 1 is not 2\n");
    }

    #[test]
    fn cases_of_tap_have_their_diagnostics() {
        let output = "\
TAP version 13
ok 1 - adds
not ok 2 - divides
  ---
  message: by zero
  ...
    ok 1 - a subtest
ok 3 - multiplies # SKIP no processor
not ok 4 - guesses # TODO
okay, that was no case
1..4
";
        let cases = read(output, Err("exit status: 1".into()));
        let expected = [
            ("adds", Outcome::Passed),
            ("divides", Outcome::Failed),
            ("multiplies", Outcome::Skipped),
            ("guesses", Outcome::Skipped),
        ];
        assert_eq!(outcomes(&cases), expected);
        assert!(cases.cases[1].explanation.contains("message: by zero"));
        let tap = "TAP version 13\n1..4\nok 1 - adds\nnot ok 2 - divides\n#   ---\n";
        assert!(cases.tap().starts_with(tap), "{}", cases.tap());
    }

    #[test]
    fn a_plan_that_was_not_carried_out_is_a_failure() {
        let cases = read("1..3\nok 1\nok 2\n", Ok(()));
        assert_eq!(outcomes(&cases).last(), Some(&("plan", Outcome::Failed)));
        assert_eq!(cases.cases[2].explanation, "3 were planned, and 2 ran");
        let cases = read("1..2\nok 1\nBail out! no device\n", Ok(()));
        assert_eq!(outcomes(&cases), [("", Outcome::Passed), ("bail out", Outcome::Failed)]);
    }

    #[test]
    fn a_program_without_cases_is_one_case() {
        assert_eq!(outcomes(&read("hello\n", Ok(()))), [("tests", Outcome::Passed)]);
        let cases = read("hello\n", Err("exit status: 3".into()));
        assert_eq!(outcomes(&cases), [("tests", Outcome::Failed)]);
        assert_eq!(cases.cases[0].explanation, "exit status: 3");
    }

    #[test]
    fn a_program_that_fails_after_good_cases_has_failed() {
        let cases = read("test a ... ok\n", Err("signal: 9 (SIGKILL)".into()));
        assert_eq!(outcomes(&cases), [("a", Outcome::Passed), ("tests", Outcome::Failed)]);
    }
}
