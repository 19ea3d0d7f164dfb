//! Hooks after the end of Main.

use weir_config::MainConfig;
use weir_guest::{AT_ONCE, Compilation, Runtime, Sources};

use super::*;

/// A program may start many Mains, so engines, pools, compiled code and runtime handles must go.
#[tokio::test]
async fn nothing_is_left_of_configured_hooks_once_main_has_ended_and_nobody_has_them() {
    let sources = Sources::new(&MainConfig::default(), Compilation::default(), Arc::default());
    let programs =
        Programs::new(Runtime::new(weir_guest::AddressClass::Large).unwrap(), sources, 1).in_pools(AT_ONCE);
    let (hooks, closing) = Hooks::new(programs, Handle::current(), SharedResources::default(), 1);
    hooks.configure([("a".parse().unwrap(), HookDirConfig::new("/nowhere"))].into());
    let shared = Arc::downgrade(&hooks.0);
    closing.close().await;
    drop(hooks);
    assert!(shared.upgrade().is_none());
}
