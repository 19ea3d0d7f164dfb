//! Programs built from the standard's WIT alone run to their end, as an extension and as a hook.

use weir_host::{
    Main,
    config::DirMode,
    hooks::{HookOutcome, HooksConfig},
};

use super::support::*;

const ALL: &str = "set s a 1; get s a; exists s a; exists s b; get s b; increment s n 5; increment s n 2; \
                   many s; list s; delete s a; delete s a; list s; get denied a";

const SAID: [&str; 13] = [
    "done",
    "1",
    "true",
    "false",
    "none",
    "5",
    "7",
    "[Some((\"b\", [2])), None, Some((\"a\", [1]))], then [\"n\"]",
    "[\"n\"]",
    "done",
    "done",
    "[\"n\"]",
    "error: access-denied",
];

#[tokio::test]
async fn a_program_of_the_standard_alone_runs_as_an_extension_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(dir.path(), vec![once("a", "keyvalue", ALL, &["s"])], &[("s", store())]).await;
    assert_eq!(printed(&main, "a").await, SAID);
    main.shutdown().await.unwrap();

    // What it has left is there for its next run, and for nobody else.
    let again = once("a", "keyvalue", "list s; get s n", &["s"]);
    let other = once("b", "keyvalue", "list s; get s n", &["s"]);
    let main = start(dir.path(), vec![again, other], &[("s", store())]).await;
    assert_eq!(printed(&main, "a").await, ["[\"n\"]", "7"]);
    assert_eq!(printed(&main, "b").await, ["[]", "none"]);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_same_program_runs_as_a_hook() {
    let dir = tempfile::tempdir().unwrap();
    let hooks = hook_dir(&dir.path().join("hooks"), "keyvalue", &["s"]);
    let mut config = config(dir.path(), vec![once("a", "keyvalue", "list s", &["s"])], &[("s", store())]);
    config.set_section(HooksConfig([("boot".parse().unwrap(), hooks)].into()));
    let main = Main::builder(config).start().await.unwrap();
    let report = hook(&main, "boot", ALL).await;
    assert_eq!(report.outcome(), &HookOutcome::Ok);
    let said = String::from_utf8(report.runs[0].stdout.to_vec()).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), SAID);
    // Its keys are its own.
    assert_eq!(printed(&main, "a").await, ["[]"]);
    let store = main.control().store("s").unwrap();
    let rows = store.rows(None, None, String::new(), 10, false).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| (&*row.owner, &*row.key)).collect::<Vec<_>>(), [("hooks/boot", "n")]);
    // On a thread of the embedding program, too.
    let blocking = main.hooks().get("boot").unwrap();
    let call = weir_host::hooks::HookCall::new().param("DO", "get s n");
    let report = tokio::task::spawn_blocking(move || blocking.run_blocking(call)).await.unwrap().unwrap();
    assert_eq!(&*report.runs[0].stdout, b"7\n");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn programs_of_the_second_draft_run_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(dir.path(), vec![once("a", "keyvalue-draft2", "", &["s"])], &[("s", store())]).await;
    let said = [
        "-5",
        "2",
        "1000 Some(\"k0999\") 6 None",
        "None",
        "true",
        "true",
        "Some([50])",
        "true",
        "Some([51])",
    ];
    assert_eq!(printed(&main, "a").await, said);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_empty_name_is_the_store_default_for_those_who_may_use_it() {
    let dir = tempfile::tempdir().unwrap();
    let granted = once("a", "keyvalue", "set  k 1; get default k; get  k", &["default"]);
    let other = once("b", "keyvalue", "get  k", &["s"]);
    let stores = [("default", store()), ("s", store())];
    let main = start(dir.path(), vec![granted, other], &stores).await;
    assert_eq!(printed(&main, "a").await, ["done", "1", "1"]);
    assert_eq!(printed(&main, "b").await, ["error: access-denied"]);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_shared_store_is_one_for_all_and_a_grant_to_read_does_not_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = once("b", "keyvalue", "set s a 2; increment s n 1; delete s a; get s a", &["s"]);
    reader.grants.stores[0].mode = DirMode::Ro;
    let main = start(dir.path(), vec![once("a", "keyvalue", "set s a 1", &["s"])], &[("s", shared())]).await;
    assert_eq!(printed(&main, "a").await, ["done"]);
    main.shutdown().await.unwrap();
    let main = start(dir.path(), vec![reader], &[("s", shared())]).await;
    let denied = "error: access-denied";
    assert_eq!(printed(&main, "b").await, [denied, denied, denied, "1"]);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn copies_of_an_extension_have_the_same_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut both = once("a", "keyvalue", "increment s n 1", &["s"]);
    both.instances = 2;
    let main = start(dir.path(), vec![both], &[("s", store())]).await;
    let mut sums = [printed(&main, "a").await, printed(&main, "a.2").await].concat();
    sums.sort();
    assert_eq!(sums, ["1", "2"]);
    main.shutdown().await.unwrap();
}
