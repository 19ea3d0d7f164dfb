//! Directories of hooks.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use weir_host::hooks::HookCall;

use crate::{
    buffer::weir_buffer,
    c::{ErrorOut, Text, given, run},
    error::weir_error,
    running::{refuse_on_mains_thread, weir_main},
};

/// The argument `call` of [`weir_hooks_run`]. Its fields are those of a call of the contract `hooks@1`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Call {
    params: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
    args: Vec<String>,
    stdin: String,
    timeout_ms: Option<u64>,
}

/// Runs the hooks of `[hooks.NAME]`, in the order of their names, on the caller's thread. Returns the report as JSON: its
/// `outcome`, and `runs` with what each hook said.
///
/// `call` is a JSON object or NULL. It may have `params`, `env`, `args`, `stdin` and `timeout-ms`, as in
/// `{"params": {"NODE": "n1"}}`. Any number of threads at once. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_HOOKS` if no hook could run, `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `call` is not such JSON.
/// A hook that fails is no error, but in the report.
#[unsafe(no_mangle)]
pub extern "C" fn weir_hooks_run(
    main: Option<&weir_main>,
    name: Text,
    call: Text,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || {
        let hooks = given(main, "main")?.hooks()?;
        refuse_on_mains_thread()?;
        let call: Call = match call.optional("call")? {
            None => Call::default(),
            Some(json) => serde_json::from_str(json).map_err(|error| {
                weir_error::argument(format!("`call` is not the JSON of a call of hooks: {error}"))
            })?,
        };
        let Call { params, env, args, stdin, timeout_ms } = call;
        let mut call = HookCall::new().stdin(stdin);
        (call.params, call.env, call.args) = (params, env, args);
        call.timeout = timeout_ms.map(Duration::from_millis);
        weir_buffer::json(&hooks.get(name.get("name")?)?.run_blocking(call)?)
    })
}
