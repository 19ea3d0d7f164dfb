//! Files that hang.

use std::sync::mpsc;

use futures_util::FutureExt;

use super::*;

#[test]
fn a_file_that_is_not_read_in_time_is_given_up_and_takes_one_thread_however_often_it_is_wanted() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let sources = Sources::new(&MainConfig::default(), Compilation::default(), Arc::default());
        let programs: Programs = Programs::new(Runtime::new().unwrap(), sources, 2);
        let (path, limits) = (test_guests::path("worker"), Limits::default());
        let (plugin_dir, sha256, may_block) = (None, None, false);
        let wanted = Wanted { name: "it", path: &path, plugin_dir, sha256, limits: &limits, may_block };
        // The only thread is taken: what it is to read comes to no end.
        let (release, released) = mpsc::channel::<()>();
        let _holding = tokio::task::spawn_blocking(move || released.recv());

        let is_late = |error: LoadError| match error.fault {
            LoadFault::Read(error) => error.kind() == io::ErrorKind::TimedOut,
            _ => false,
        };
        let mut load = Box::pin(programs.load(wanted));
        assert!(load.as_mut().now_or_never().is_none());
        tokio::time::advance(READ).await;
        assert!(is_late(load.await.unwrap_err()));
        for _ in 0..3 {
            assert!(is_late(programs.load(wanted).now_or_never().unwrap().unwrap_err()));
            assert_eq!(programs.turns.available_permits(), 1);
        }
        release.send(()).unwrap();
        while programs.load(wanted).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(programs.turns.available_permits(), 2);
    });
}
