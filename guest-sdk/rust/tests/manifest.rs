//! Manifest and handlers must agree.

use weir_sdk::{
    Context, Contract, Empty, Error, Event, Extension, Manifest, Operation, Queue, testing::Harness,
};

const A: Contract = Contract::new("a@1");
const B: Contract = Contract::new("b@1");
const IN_A: Operation<Empty, Empty> = A.operation("in-a");
const IN_B: Operation<Empty, Empty> = B.operation("in-b");

async fn request((): &(), _: &Context, _: Empty) -> Result<Empty, Error> {
    Ok(Empty {})
}

const JOBS: Queue<Empty> = Queue::new("jobs");

async fn job((): &(), _: &Context, _: Empty) -> Result<(), Error> {
    Ok(())
}

async fn event((): &(), _: &Context, _: Event<Vec<u8>>) -> Result<(), Error> {
    Ok(())
}

fn of(fulfills: &'static [Contract], subscribes: &'static [&'static str]) -> Extension<()> {
    Extension::new(Manifest { fulfills, subscribes, ..Manifest::new("test", "0.1.0") }, ())
}

#[test]
fn handlers_that_fit_the_manifest_are_accepted() {
    drop(Harness::new(
        of(&[A, B], &["a.>"]).on(IN_A, request).on(IN_B, request).on_event_bytes("a.b", event),
    ));
    drop(Harness::new(of(&[], &["a.>"]).on_any_event(event)));
}

#[test]
#[should_panic = "`test` does not fit its handlers: `b@1` `in-b` has a handler, but `fulfills` lacks `b@1`"]
fn a_handler_of_a_contract_that_the_manifest_lacks_is_refused() {
    drop(Harness::new(of(&[A], &[]).on(IN_A, request).on(IN_B, request)));
}

#[test]
#[should_panic = "`fulfills` names `b@1`, which has no handler"]
fn a_contract_without_a_handler_is_refused() {
    drop(Harness::new(of(&[A, B], &[]).on(IN_A, request)));
}

mod described {
    use weir_sdk::Empty;

    weir_sdk::contract! {
        pub(crate) const CONTRACT = "described@1";
        pub(crate) const ONE: fn(Empty) -> Empty = "one";
        pub(crate) const TWO: fn(Empty) -> Empty = "two";
    }
}

#[test]
fn handlers_of_all_described_operations_are_accepted() {
    let extension = of(&[described::CONTRACT], &[]);
    drop(Harness::new(extension.on(described::ONE, request).on(described::TWO, request)));
}

#[test]
#[should_panic = "`test` does not fit its handlers: `described@1` describes `two`, which has no handler"]
fn a_described_operation_without_a_handler_is_refused() {
    drop(Harness::new(of(&[described::CONTRACT], &[]).on(described::ONE, request)));
}

#[test]
#[should_panic = "`a@1` `in-a` has two handlers"]
fn a_second_handler_of_an_operation_is_refused() {
    drop(Harness::new(of(&[A], &[]).on(IN_A, request).on(IN_A, request)));
}

#[test]
#[should_panic = "`a.b` has two handlers"]
fn a_second_handler_of_a_pattern_is_refused() {
    drop(Harness::new(of(&[], &["a.b"]).on_event_bytes("a.b", event).on_event_bytes("a.b", event)));
}

#[test]
#[should_panic = "`a.>` has a handler, but `subscribes` does not cover it"]
fn a_pattern_that_the_manifest_does_not_cover_is_refused() {
    drop(Harness::new(of(&[], &["a.b"]).on_event_bytes("a.b", event).on_event_bytes("a.>", event)));
}

#[test]
#[should_panic = "`subscribes` names `a.b`, which has no handler"]
fn a_pattern_without_a_handler_is_refused() {
    drop(Harness::new(of(&[], &["a.b"])));
}

fn taking(takes: &'static [&'static str]) -> Extension<()> {
    Extension::new(Manifest { takes, ..Manifest::new("test", "0.1.0") }, ())
}

#[test]
fn a_queue_may_have_a_handler_or_be_taken_from_without() {
    drop(Harness::new(taking(&["jobs", "others"]).on_job(JOBS, job)));
}

#[test]
#[should_panic = "jobs of `jobs` have a handler, but `takes` lacks `jobs`"]
fn a_handler_of_a_queue_that_the_manifest_lacks_is_refused() {
    drop(Harness::new(taking(&["others"]).on_job(JOBS, job)));
}

#[test]
#[should_panic = "jobs of `jobs` have two handlers"]
fn a_second_handler_of_a_queue_is_refused() {
    drop(Harness::new(taking(&["jobs"]).on_job(JOBS, job).on_job(JOBS, job)));
}

#[test]
#[should_panic = "jobs of `jobs` have a handler, but it is to have 0 of them at once"]
fn a_handler_that_is_to_have_no_job_is_refused() {
    drop(Harness::new(taking(&["jobs"]).on_jobs(JOBS, 0, job)));
}

#[test]
fn several_faults_are_named_at_once() {
    let fault = std::panic::catch_unwind(|| Harness::new(of(&[B], &["a"]).on(IN_A, request))).unwrap_err();
    let fault = fault.downcast_ref::<String>().unwrap();
    assert_eq!(fault.matches("; ").count(), 2, "{fault}");
}

#[test]
fn calls_and_topics_that_the_manifest_lacks_are_refused_with_the_key_that_grants_them() {
    const PUBLISH: Operation<String, Empty> = A.operation("publish");
    let extension = of(&[A], &[]).on(IN_A, async |(), ctx: &Context, _| ctx.call(IN_B, &Empty {}).await).on(
        PUBLISH,
        async |(), ctx: &Context, topic: String| {
            ctx.publish(&topic, &())?;
            Ok(Empty {})
        },
    );
    let main = Harness::new(extension);
    main.fake(IN_B, async |_| Ok(Empty {}));
    let refused = |outcome: Result<Empty, Error>| {
        let error = outcome.unwrap_err();
        (error.code().to_owned(), error.to_string())
    };
    let (code, text) = refused(main.call(IN_A, &Empty {}));
    assert_eq!(code, "permission-denied");
    assert!(text.contains("`test` may not call `b@1`; `requires` or `wants` would grant it"), "{text}");
    let (code, text) = refused(main.call(PUBLISH, &"x.y".to_owned()));
    assert_eq!(code, "permission-denied");
    assert!(text.contains("`test` may not publish `x.y`; `publishes` would grant it"), "{text}");
    assert_eq!(refused(main.call(PUBLISH, &"x..y".to_owned())).0, "invalid");
}

#[test]
fn a_contract_that_nobody_fakes_is_unknown() {
    let manifest = Manifest { fulfills: &[A], wants: &[B], ..Manifest::new("test", "0.1.0") };
    let main = Harness::new(
        Extension::new(manifest, ()).on(IN_A, async |(), ctx: &Context, _| ctx.call(IN_B, &Empty {}).await),
    );
    assert_eq!(main.call(IN_A, &Empty {}).unwrap_err().code(), "unknown-contract");
}
