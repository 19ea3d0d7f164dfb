//! How hooks end, and what the report says.

use std::{fs, time::Duration};

use weir_host::{
    hooks::{ExitCodes, HookCall, HookOutcome, HookRun},
    limits::LimitName,
};

use super::support::*;

#[tokio::test]
async fn each_exit_code_means_what_its_range_says() {
    let (main, files) = (main().await, dir(&["10-it"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    for code in 0..=255 {
        let expected = match code {
            0 => HookOutcome::Ok,
            1..=31 => HookOutcome::ScriptError { code, is_reserved: false },
            32..=63 => HookOutcome::Warning { code },
            64.. => HookOutcome::ScriptError { code, is_reserved: true },
        };
        let report = run(&dir, &format!("exit {code}")).await;
        assert_eq!(report.runs[0].outcome, expected);
        assert_eq!(text(&report.runs[0].stdout), format!("exits with {code}"));
    }
}

#[tokio::test]
async fn an_operator_gives_exit_codes_other_meanings() {
    let codes = |code| {
        one(
            |config| {
                let mut codes = ExitCodes::default();
                (codes.ok, codes.warning, codes.error) = (100..=101, 0..=9, 33..=33);
                config.exit_codes = codes;
            },
            HookCall::new().param("DO", format!("exit {code}")),
        )
    };
    assert_eq!(codes(101).await.outcome, HookOutcome::Ok);
    assert_eq!(codes(0).await.outcome, HookOutcome::Warning { code: 0 });
    assert_eq!(codes(33).await.outcome, HookOutcome::ScriptError { code: 33, is_reserved: false });
    assert_eq!(codes(34).await.outcome, HookOutcome::ScriptError { code: 34, is_reserved: true });
}

#[tokio::test]
async fn a_program_that_does_not_use_the_sdk_ends_well_or_with_code_1() {
    let failed = HookOutcome::ScriptError { code: 1, is_reserved: false };
    assert_eq!(told("ok").await, HookOutcome::Ok);
    assert_eq!(told("std-exit 0").await, HookOutcome::Ok);
    assert_eq!(told("std-exit 33").await, failed);
    assert_eq!(told("fail").await, failed);
}

#[tokio::test]
async fn a_trap_is_a_system_error_with_the_functions_that_ran() {
    let HookOutcome::SystemError { reason, trace } = told("trap").await else { panic!("it did not trap") };
    assert!(reason.starts_with("trapped: "), "{reason}");
    assert!(!trace.is_empty());
}

#[tokio::test]
async fn a_hook_that_loops_uses_up_its_fuel() {
    let HookRun { outcome, fuel, .. } =
        one(|config| config.limits.fuel_to_start = 50_000_000, HookCall::new().param("DO", "loop")).await;
    let HookOutcome::LimitExceeded(limit) = outcome else { panic!("{outcome:?}") };
    assert_eq!((limit.name.as_str(), limit.allowed), ("fuel-to-start", 50_000_000));
    assert_eq!(fuel, 50_000_000);
}

#[tokio::test]
async fn a_hook_that_loops_with_fuel_enough_is_ended_at_its_deadline() {
    let run = one(
        |config| {
            config.limits.fuel_to_start = 1_000_000_000_000_000;
            config.timeout = Duration::from_millis(200);
        },
        HookCall::new().param("DO", "loop"),
    )
    .await;
    let allowed = Duration::from_millis(200);
    assert_eq!(run.outcome, HookOutcome::TimedOut { limit: LimitName::TIMEOUT, allowed });
    assert!(run.fuel > 0, "what it used is known");
}

#[tokio::test]
async fn a_hook_that_sleeps_is_ended_at_its_own_deadline_that_of_all_or_that_of_the_call() {
    let short = Duration::from_millis(200);
    let sleeps = || HookCall::new().param("DO", "sleep 3600");
    let of_its_own = one(|config| config.timeout = short, sleeps()).await;
    assert_eq!(of_its_own.outcome, HookOutcome::TimedOut { limit: LimitName::TIMEOUT, allowed: short });
    let second = Duration::from_secs(10);
    let of_all = one(|config| config.total_timeout = second, sleeps()).await;
    assert_eq!(of_all.outcome, HookOutcome::TimedOut { limit: LimitName::TOTAL_TIMEOUT, allowed: second });
    let of_the_call = one(|_| {}, sleeps().timeout(second)).await;
    assert_eq!(of_the_call.outcome, HookOutcome::TimedOut { limit: LimitName::CALL, allowed: second });
}

#[tokio::test]
async fn a_hook_that_allocates_without_end_hits_its_memory() {
    let run = one(|_| {}, HookCall::new().param("DO", "allocate")).await;
    let HookOutcome::LimitExceeded(limit) = run.outcome else { panic!("{:?}", run.outcome) };
    assert_eq!((limit.name.as_str(), limit.allowed), ("memory", 33 << 19));
    assert!(run.memory > 15 << 20 && run.memory <= 33 << 19, "{}", run.memory);
}

#[tokio::test]
async fn a_hook_that_writes_without_end_is_ended_and_what_it_may_write_is_kept() {
    for task in ["flood", "flood-stderr"] {
        let run = one(|config| config.output = 10_000, HookCall::new().param("DO", task)).await;
        let HookOutcome::LimitExceeded(limit) = run.outcome else { panic!("{:?}", run.outcome) };
        assert_eq!((limit.name.as_str(), limit.allowed), ("output", 10_000));
        assert_eq!((run.stdout.len() + run.stderr.len(), run.stdout.is_empty()), (10_000, task != "flood"));
    }
}

#[tokio::test]
async fn a_hook_that_recurses_without_end_hits_its_stack() {
    let HookOutcome::LimitExceeded(limit) = told("stack").await else { panic!("it came back") };
    assert_eq!(limit.name.as_str(), "stack");
}

#[tokio::test]
async fn hooks_run_by_name_and_none_after_one_that_fails() {
    let (main, files) = (main().await, dir(&["30-c", "10-a", "20-b", "B", "a", "5"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    let report = run(&dir, "ok").await;
    assert_eq!(names(&report), ["10-a.wasm", "20-b.wasm", "30-c.wasm", "5.wasm", "B.wasm", "a.wasm"]);
    assert!(report.is_success());
    let call = HookCall::new().param("DO_10", "exit 40").param("DO_20", "exit 41").param("DO_30", "exit 3");
    let report = dir.run(call.clone()).await.unwrap();
    assert_eq!(names(&report), ["10-a.wasm", "20-b.wasm", "30-c.wasm"]);
    assert_eq!(*report.outcome(), HookOutcome::ScriptError { code: 3, is_reserved: false });
    assert!(!report.is_success());
    let report = dir.run(call.param("DO_30", "ok")).await.unwrap();
    assert_eq!(*report.outcome(), HookOutcome::Warning { code: 41 });
    assert!(report.is_success());
}

#[tokio::test]
async fn a_hook_sees_its_parameters_the_surroundings_and_nothing_else() {
    assert!(std::env::var_os("PATH").is_some(), "there is something that could leak");
    let run = one(
        |config| {
            config.grants.env = [("A", "operator"), ("B", "operator"), ("C", "operator")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        },
        HookCall::new().env("B", "call").env("C", "call").param("C", "param").param("DO", "env"),
    )
    .await;
    assert_eq!(text(&run.stdout), "A=operator\nB=call\nC=param\nDO=env\n");
}

#[tokio::test]
async fn a_hook_gets_arguments_after_its_name_and_what_is_on_standard_input() {
    let run = one(|_| {}, HookCall::new().arg("a").arg("b c").param("DO", "args")).await;
    assert_eq!(text(&run.stdout), "10-it.wasm\na\nb c\n");
    let run = one(|_| {}, HookCall::new().stdin("hello\0\n").param("DO", "cat")).await;
    assert_eq!(text(&run.stdout), "hello\0\n");
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_refused_by_name() {
    let (main, files) = (main().await, dir(&[]));
    let dir = main.hooks().open(config(&files)).unwrap();
    for call in [
        HookCall::new().param("", "x"),
        HookCall::new().param("A=B", "x"),
        HookCall::new().env("A\0", "x"),
        HookCall::new().param("A", "x\0"),
        HookCall::new().arg("x\0"),
    ] {
        let error = dir.run(call).await.unwrap_err().to_string();
        assert!(error.contains("cannot be"), "{error}");
    }
    assert!(dir.run(HookCall::new()).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn a_fresh_instance_runs_each_time() {
    let (main, files) = (main().await, dir(&["10-a", "20-b"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    let mut random = std::collections::BTreeSet::new();
    for _ in 0..3 {
        for run in run(&dir, "count").await.runs {
            assert_eq!(text(&run.stdout), "1");
        }
        random.extend(run(&dir, "random").await.runs.into_iter().map(|run| run.stdout));
    }
    assert_eq!(random.len(), 6);
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_an_error_with_its_path() {
    let main = main().await;
    let gone = dir(&[]);
    let config = config(&gone);
    fs::remove_dir(gone.path()).unwrap();
    let error = main.hooks().open(config).unwrap().run(HookCall::new()).await.unwrap_err().to_string();
    assert_eq!(error, format!("cannot read the directory `{}`", gone.path().display()));
}

/// A refused allocation is not the failure.
#[tokio::test]
async fn a_trap_long_after_memory_was_refused_says_what_trapped() {
    let run = of_wat(
        "(memory 1)",
        "(drop (memory.grow (i32.const 60000))) (i32.div_s (i32.const 1) (i32.const 0))",
    )
    .await;
    let HookOutcome::SystemError { reason, .. } = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(reason.contains("divide by zero"), "{reason}");
}

/// As for extensions: `medium` allows 128.
#[tokio::test]
async fn a_hook_has_as_many_memories_as_its_class_allows_or_is_told_the_limit() {
    let run = of_wat(&"(memory 1)".repeat(5), "(i32.const 0)").await;
    let is_clear = match &run.outcome {
        HookOutcome::Ok => true,
        HookOutcome::LimitExceeded(limit) => limit.name.as_str() == "memories",
        _ => false,
    };
    assert!(is_clear, "{:?}", run.outcome);
}

#[tokio::test]
async fn a_program_with_two_memories_or_two_tables_runs() {
    for fields in ["(memory 1) (memory 1)", "(table 1 funcref) (table 1 funcref)"] {
        assert_eq!(of_wat(fields, "(i32.const 0)").await.outcome, HookOutcome::Ok, "{fields}");
    }
}

async fn of_wat(fields: &str, body: &str) -> HookRun {
    let component = wat::parse_str(format!(
        r#"(component
            (core module $m {fields} (func (export "run") (result i32) {body}))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $run)))"#
    ));
    let (main, files) = (main().await, dir(&[]));
    fs::write(files.path().join("10-it.wasm"), component.unwrap()).unwrap();
    let dir = main.hooks().open(config(&files)).unwrap();
    let mut report = run(&dir, "ok").await;
    main.shutdown().await.unwrap();
    report.runs.remove(0)
}

#[tokio::test]
async fn a_call_without_time_ends_the_same_from_both_entries_and_does_not_blame_the_directory() {
    let (main, files) = (main().await, dir(&["10-it"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    let call = || HookCall::new().timeout(Duration::ZERO);
    let there = dir.run(call()).await.map(|report| report.outcome().clone());
    let here = tokio::task::spawn_blocking(move || dir.run_blocking(call())).await.unwrap();
    let there = there.map_err(|error| error.to_string());
    let here = here.map(|report| report.outcome().clone()).map_err(|error| error.to_string());
    assert_eq!(there, here);
    assert!(!there.is_err_and(|error| error.contains("cannot read the directory")));
}

#[tokio::test]
async fn what_all_hooks_of_a_run_write_is_bounded_together() {
    let (main, files) = (main().await, dir(&["10-a", "20-b", "30-c"]));
    let mut config = config(&files);
    config.output = 2500;
    let dir = main.hooks().open(config).unwrap();
    let report = dir.run(HookCall::new().stdin("x".repeat(1000)).param("DO", "cat")).await.unwrap();
    let written: Vec<_> = report.runs.iter().map(|run| run.stdout.len()).collect();
    assert_eq!(written, [1000, 1000, 500]);
    let HookOutcome::LimitExceeded(limit) = report.outcome() else { panic!("{report:?}") };
    assert_eq!((limit.name.as_str(), limit.used, limit.allowed), ("output", 3000, 2500));
}
