//! Components that were built once against each released version of `weir:iec` run for ever.

use std::path::Path;

use weir_host::{
    Config, ExtensionConfig, Main, MainConfig,
    component::{Compilation, inspect},
};

/// Each released version. The component is `echo-raw` of that release.
const RELEASED: [&str; 1] = ["0.1.0"];

#[tokio::test]
async fn a_component_built_against_each_released_version_of_the_interface_runs() {
    for version in RELEASED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/frozen/iec-{version}.wasm"));
        let found = inspect(&path).unwrap();
        let of_weir: Vec<_> = found.imports.iter().filter(|name| name.starts_with("weir:")).collect();
        assert!(!of_weir.is_empty() && of_weir.iter().all(|name| name.ends_with(&format!("@{version}"))));
        assert_eq!(found.notes(), [""; 0]);
        let mut echo = ExtensionConfig::new("echo".parse().unwrap(), path);
        echo.fulfills = vec!["echo@1".parse().unwrap()];
        let config = Config::new(MainConfig::default(), vec![echo]);
        let main = Main::builder(config).compilation(Compilation::default()).start().await.unwrap();
        assert_eq!(main.client().call("echo@1", "echo", "as ever").await.unwrap(), "as ever");
    }
}

/// The version that the interface has now is among those that are frozen.
#[test]
fn the_present_version_of_the_interface_is_frozen() {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/iec.wit");
    let wit = std::fs::read_to_string(wit).unwrap();
    let version = wit.lines().find_map(|line| line.strip_prefix("package weir:iec@")?.strip_suffix(';'));
    assert!(RELEASED.contains(&version.unwrap()), "{version:?}");
}
