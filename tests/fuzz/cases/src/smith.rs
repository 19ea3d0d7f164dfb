//! Modules from wasm-smith, as extensions.

use std::{fs, sync::LazyLock, time::Duration};

use arbitrary::{Arbitrary, Unstructured};
use wasm_smith::{Config, Module};
use weir_host::{
    MainConfig,
    control::{ControlError, ExtensionState},
    limits::LimitValue,
};
use wit_component::dummy_module;

use crate::{
    scratch,
    stage::{Stage, extension_at},
    world::{self, MANGLING},
};

/// Exports of every program. The bodies are random.
const EXPORTS: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "wasi:cli/run@0.2.12#run") (result i32) unreachable))"#;

const FILE: &str = "fuzz.wasm";

thread_local! {
    static STAGE: Stage = {
        let dir = scratch();
        let mut fuzz = extension_at("fuzz", dir.path().join(FILE));
        fuzz.limits.ready_timeout = Duration::from_millis(100);
        fuzz.limits.stop_timeout = Duration::from_millis(100);
        fuzz.wants = vec!["echo@1".parse().unwrap()];
        fuzz.autostart = false;
        Stage::new(dir, MainConfig::default(), vec![fuzz])
    };
}

/// Makes a module of the input, wraps it as a component, and runs that. The module exports `wasi:cli/run`,
/// and may import anything of WASI and `weir:iec`.
///
/// It is refused, traps, hits a limit, ends or serves, and Main says which. Main lives, its neighbour serves,
/// and the module's memory stays within its limit.
pub fn smith(data: &[u8]) {
    let Some(component) = module(data).and_then(world::component) else { return };
    STAGE.with(|stage| {
        fs::write(stage.dir.path().join(FILE), &component).unwrap();
        stage.runtime.block_on(run(stage));
    });
}

/// Most modules use only what extensions may use, the others anything that wasm-smith knows.
fn module(data: &[u8]) -> Option<Vec<u8>> {
    static IMPORTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let (resolve, world) = world::extension();
        dummy_module(resolve, world, MANGLING)
    });
    let mut data = Unstructured::new(data);
    let mut config = if data.ratio(7, 8).ok()? {
        Config {
            max_memory32_bytes: 2 << 20,
            max_table_elements: 20_000,
            custom_page_sizes_enabled: false,
            exceptions_enabled: false,
            gc_enabled: false,
            memory64_enabled: false,
            relaxed_simd_enabled: false,
            tail_call_enabled: false,
            threads_enabled: false,
            wide_arithmetic_enabled: false,
            ..Config::default()
        }
    } else {
        Config::arbitrary(&mut data).ok()?
    };
    config.compact_imports_enabled = false;
    // Instrumented code compiles slowly.
    config.max_imports = 6;
    config.max_funcs = 6;
    config.max_instructions = 60;
    config.max_data_segments = 4;
    config.max_element_segments = 4;
    config.available_imports = Some(IMPORTS.clone());
    config.exports = Some(wat::parse_str(EXPORTS).unwrap());
    Module::new(config, &mut data).ok().map(|module| module.to_bytes())
}

async fn run(stage: &Stage) {
    let control = stage.main.control();
    let started = control.restart("fuzz").await;
    let stopped = control.stop("fuzz").await;
    assert_eq!(stopped, Ok(()), "it could not be stopped");
    let status = control.status("fuzz").unwrap();
    match started {
        Ok(()) => {
            assert!(matches!(status.state, ExtensionState::Stopped | ExtensionState::Failed), "{status:?}")
        }
        Err(ControlError::NotStarted { reason, .. }) => {
            assert!(!reason.is_empty() && !reason.contains(char::is_control), "{status:?}");
        }
        Err(other) => panic!("{other}"),
    }
    assert_eq!(status.memory, 0, "what has ended has memory: {status:?}");
    let limits = control.limits_of("fuzz").await.unwrap();
    let memory = limits.extensions[0].limits.iter().find(|limit| limit.key == "memory").unwrap();
    match (memory.peak, memory.allowed) {
        (Some(LimitValue::Count(peak)), LimitValue::Count(allowed)) => assert!(peak <= allowed, "{memory:?}"),
        _ => panic!("memory is not measured: {memory:?}"),
    }
    stage.check().await;
}
