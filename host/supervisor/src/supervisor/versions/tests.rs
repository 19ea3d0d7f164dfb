//! What is chosen without a component.

use weir_config::MainConfig;
use weir_guest::{AddressClass, Compilation, Runtime, Sources};

use super::*;

#[tokio::test]
async fn a_component_that_could_not_be_chosen_is_not_loaded_later_without_a_choice() {
    let sources =
        Sources::new(&MainConfig::default(), Arc::default(), Compilation::default(), Arc::default());
    let programs = Programs::new(Runtime::new(AddressClass::Large).unwrap(), sources, 1);
    let mut config = ExtensionConfig::new("a".parse().unwrap(), "/nowhere/a.wasm");
    config.update = Some(UpdateConfig::default());
    let chosen = choose(&programs, Arc::new(Versions::open(None, 0)), config.into(), false).await;
    let error = chosen.unwrap_err();
    assert!(matches!(error.fault, LoadFault::Read(_)) && error.fault.may_pass(), "{error}");
}
