//! Files that hang, and components that cannot run.

use std::{path::PathBuf, sync::mpsc};

use futures_util::FutureExt;
use weir_config::Traces;
use weir_names::chain;

use super::{
    load_permit::{LOOK, READ},
    *,
};
use crate::{
    fit::{Fit, OF_WASI_0_3},
    sandbox::Sandbox,
};

/// A runtime with so many blocking threads. Its clock moves only by the test, or when nothing else is to do.
fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).max_blocking_threads(threads).build().unwrap()
}

fn programs(at_once: u16) -> Programs {
    let sources =
        Sources::new(&MainConfig::default(), Arc::default(), Compilation::default(), Arc::default());
    Programs::new(Runtime::new(crate::AddressClass::Large).unwrap(), sources, at_once)
}

fn at(path: impl Into<PathBuf>) -> ComponentSource {
    ComponentSource::Path(path.into())
}

/// The plainest request for a file.
pub(super) fn wanted<'w>(component: &'w ComponentSource, limits: &'w Limits) -> LoadRequest<'w> {
    LoadRequest { plugin_dir: None, ..LoadRequest::of_hook("it", component, Path::new(""), limits) }
}

/// Hangs until released, or the test ends.
fn hanging<T>(value: T) -> (mpsc::Sender<()>, impl FnOnce() -> Result<T, LoadFault>) {
    let (release, released) = mpsc::channel::<()>();
    (release, move || {
        let _end = released.recv();
        Ok(value)
    })
}

/// Passes the time in which any file is read.
async fn pass(limits: &Limits) {
    tokio::time::advance(READ + Duration::from_secs(limits.file_size)).await;
}

#[test]
fn a_file_that_is_not_read_in_time_is_given_up_and_takes_one_thread_however_often_it_is_wanted() {
    runtime(1).block_on(async {
        let (programs, component, limits) = (programs(2), at(test_guests::path("worker")), Limits::default());
        let wanted = wanted(&component, &limits);
        // The only thread is taken, so reads on it never end.
        let (release, hang) = hanging(());
        let _holding = tokio::task::spawn_blocking(hang);

        let mut load = Box::pin(programs.load(wanted));
        assert!(load.as_mut().now_or_never().is_none());
        pass(&limits).await;
        assert!(load.await.unwrap_err().fault.hangs());
        for _ in 0..3 {
            assert!(programs.load(wanted).now_or_never().unwrap().unwrap_err().fault.hangs());
            assert_eq!(programs.permits.free.available_permits(), 1);
        }
        release.send(()).unwrap();
        while programs.load(wanted).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(programs.permits.free.available_permits(), 2);
    });
}

#[test]
fn nobody_waits_for_turns_that_all_hang_and_all_is_well_when_one_is_back() {
    runtime(3).block_on(async {
        let (programs, component, limits) = (programs(2), at(test_guests::path("worker")), Limits::default());
        let mut releases = Vec::new();
        for dead in ["/dead/1", "/dead/2"] {
            let permit = LoadPermit::take(&programs.permits, wanted(&at(dead), &limits)).await.unwrap();
            let (release, hang) = hanging(());
            // The caller has given up, so nobody sees that it is late.
            assert!(permit.read(hang).now_or_never().is_none());
            releases.push(release);
        }
        let mut waiting = Box::pin(programs.load(wanted(&component, &limits)));
        assert!(waiting.as_mut().now_or_never().is_none());
        tokio::time::advance(LOOK).await;
        assert!(waiting.as_mut().now_or_never().is_none());
        pass(&limits).await;
        assert!(waiting.await.unwrap_err().fault.hangs());
        let refused = programs.load(wanted(&component, &limits)).now_or_never().unwrap();
        assert_eq!(chain(&refused.unwrap_err().fault), "cannot be read: all reads that may run at once hang");
        let hooks = programs.in_pools::<crate::Sandbox>(1);
        let hook = LoadRequest { may_block: true, ..wanted(&component, &limits) };
        assert!(hooks.load(hook).now_or_never().unwrap().unwrap_err().fault.hangs());

        releases.pop();
        while programs.permits.free.available_permits() == 0 {
            tokio::task::yield_now().await;
        }
        programs.load(wanted(&component, &limits)).await.unwrap();
        let dead = programs.load(wanted(&at("/dead/1"), &limits)).now_or_never().unwrap();
        assert_eq!(chain(&dead.unwrap_err().fault), "cannot be read: an earlier read of it hangs");
    });
}

#[test]
fn turns_that_are_held_by_what_does_not_read_are_waited_for() {
    runtime(2).block_on(async {
        let (programs, component, limits) = (programs(1), at(test_guests::path("worker")), Limits::default());
        let permit = LoadPermit::take(&programs.permits, wanted(&at("/slow"), &limits)).await.unwrap();
        let (release, compile) = hanging(());
        let mut compiling = Box::pin(permit.blocking(compile));
        assert!(compiling.as_mut().now_or_never().is_none());
        let mut waiting = Box::pin(programs.load(wanted(&component, &limits)));
        for _ in 0..100 {
            assert!(waiting.as_mut().now_or_never().is_none());
            pass(&limits).await;
        }
        drop((release, compiling));
        drop(permit);
        waiting.await.unwrap();
    });
}

#[test]
fn a_file_that_hangs_only_when_it_is_read_again_is_given_up_too() {
    let dir = tempfile::tempdir().unwrap();
    let artifact = dir.path().join("artifact");
    std::fs::write(&artifact, [artifact::MAGIC.as_slice(), &[0; 200]].concat()).unwrap();
    let files = [at(artifact), at(test_guests::path("worker"))];
    for component in files {
        runtime(1).block_on(async {
            let (programs, limits) = (programs(1), Limits::default());
            let wanted = wanted(&component, &limits);
            let (input, _) = programs.open(wanted, Arc::default()).await.unwrap();
            let engine = wasmtime::Engine::default();
            let permit = LoadPermit::take(&programs.permits, wanted).await.unwrap();
            let (_release, hang) = hanging(());
            let _holding = tokio::task::spawn_blocking(hang);
            let mut code = Box::pin(programs.sources.code(
                input,
                wanted,
                GuestKind::Extension,
                &engine,
                programs.runtime.class(),
                permit,
            ));
            assert!(code.as_mut().now_or_never().is_none());
            pass(&limits).await;
            assert!(code.await.err().unwrap().hangs());
            assert!(programs.load(wanted).now_or_never().unwrap().unwrap_err().fault.hangs());
        });
    }
}

#[cfg(feature = "compiler")]
#[test]
fn a_compiler_that_takes_too_long_is_told_from_a_file_that_hangs_while_it_is_fed() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (programs, component, limits) = (programs(1), at(test_guests::path("worker")), Limits::default());
        let timeout = Duration::from_millis(100);
        let compile = |input, permit| {
            let task = compilation::CompileTask {
                timeout,
                ..compilation::CompileTask::new(
                    Fit::ANY,
                    &limits,
                    Traces::default(),
                    None,
                    programs.runtime.class(),
                )
            };
            async {
                child::compile(Path::new("sleep"), &["1000".into()], input, task, permit).await.err().unwrap()
            }
        };
        let wanted = wanted(&component, &limits);
        let (input, _) = programs.open(wanted, Arc::default()).await.unwrap();
        let permit = LoadPermit::take(&programs.permits, wanted).await.unwrap();
        assert!(matches!(compile(input, permit).await, LoadFault::CompileTimeout(_)));

        let (input, _) = programs.open(wanted, Arc::default()).await.unwrap();
        let permit = LoadPermit::take(&programs.permits, wanted).await.unwrap();
        let (_release, hang) = hanging(());
        let _holding = tokio::task::spawn_blocking(hang);
        assert!(compile(input, permit).await.hangs());
    });
}

#[cfg(feature = "compiler")]
#[test]
fn while_one_is_compiled_others_load_and_no_more_are_compiled_than_may_be_at_once() {
    runtime(1).block_on(async {
        let (programs, component, limits) = (programs(1), at("/slow"), Limits::default());
        let load = || LoadPermit::take(&programs.permits, wanted(&component, &limits));
        let compiling = load().await.unwrap().for_compiling().await.unwrap().meanwhile();
        let mut next = Box::pin(load().await.unwrap().for_compiling());
        assert!(next.as_mut().now_or_never().is_none());
        load().now_or_never().unwrap().unwrap();
        drop(compiling);
        let next = next.now_or_never().unwrap().unwrap();
        // It has been compiled, and loads again.
        assert!(load().now_or_never().is_none());
        drop(next);
        load().now_or_never().unwrap().unwrap();
        assert!(programs.permits.all().now_or_never().is_some());
    });
}

/// Returns the error of loading a component with these parts as a guest of this kind.
async fn refused_as<G: Guest>(parts: &str) -> String {
    let bytes = wat::parse_str(format!("(component {parts})")).unwrap();
    let (component, limits) = (ComponentSource::Bytes(bytes.into()), Limits::default());
    let error = programs(1).in_pools::<G>(1).load(wanted(&component, &limits)).await.map(drop).unwrap_err();
    chain(&error)
}

#[tokio::test]
async fn what_cannot_run_is_told_before_it_is_compiled_and_by_its_cause() {
    // The body of its function is not valid, which the compiler would say.
    let invalid = "(core module (func (result i32)))";
    let error = refused_as::<InstanceState>(invalid).await;
    assert!(error.ends_with("`weir:iec/extension`: it exports no `wasi:cli/run` of WASI 0.2"), "{error}");

    let import = |name: &str| format!("(import \"{name}\" (instance (export \"f\" (func)))) {invalid}");
    let error = refused_as::<InstanceState>(&import("shop:prices/list")).await;
    assert!(error.ends_with("name the contract that answers it in `imports`"), "{error}");
    let error = refused_as::<InstanceState>(&import("wasi:clocks/system-clock@0.3.0")).await;
    assert!(error.ends_with(OF_WASI_0_3), "{error}");
    let error = refused_as::<Sandbox>(&import("wasi:config/store@0.2.0-rc.1")).await;
    assert!(
        error.ends_with(
            "`wasi:cli/command`: it imports `wasi:config/store@0.2.0-rc.1`, which only extensions have"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn asynchronous_functions_are_told_from_other_faults_without_an_import_of_wasi_0_3() {
    let exported =
        "(instance $run (export \"run\" (func $run))) (export \"wasi:cli/run@0.2.0\" (instance $run))";
    let asynchronous = format!(
        "(core module $m
            (func (export \"run\") (result i32) (i32.const 0))
            (func (export \"back\") (param i32 i32 i32) (result i32) (i32.const 0)))
         (core instance $i (instantiate $m))
         (func $run async (result u32)
            (canon lift (core func $i \"run\") async (callback (core func $i \"back\")))) {exported}"
    );
    let error = refused_as::<Sandbox>(&asynchronous).await;
    assert!(error.ends_with(&format!("`wasi:cli/command`: {OF_WASI_0_3}")), "{error}");

    let damaged = format!(
        "(core module $m (func (export \"run\") (result i32)))
         (core instance $i (instantiate $m))
         (func $run (result u32) (canon lift (core func $i \"run\"))) {exported}"
    );
    let error = refused_as::<Sandbox>(&damaged).await;
    assert!(error.contains("does not compile: ") && error.contains("type mismatch"), "{error}");
}
