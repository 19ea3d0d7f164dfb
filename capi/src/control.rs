//! Extensions while Main runs: start, stop, reload, and what there is to know, as JSON.

use std::mem::MaybeUninit;

use weir_host::{
    Control,
    blocking::wait,
    client::MessageId,
    control::{ControlError, Holds},
};

use crate::{
    buffer::weir_buffer,
    c::{ErrorOut, Text, given, run},
    config::weir_config,
    running::{refuse_on_mains_thread, weir_main},
};

/// Starts an extension and what it requires, and waits until it is ready or interrupted. A running extension is left as
/// it is. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_start(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.start(id).await)
}

/// Stops an extension, and waits until it has ended, at the latest at its stop deadline. Blocks: not in a callback on
/// Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_stop(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.stop(id).await)
}

/// Stops an extension if it runs, starts it anew, and waits until it is ready or interrupted. Forgets its failures:
/// only this lifts a quarantine. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_restart(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.restart(id).await)
}

/// Loads an extension's component anew while it serves, then replaces it. If the new version does not become ready, the
/// old one serves on or again. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_reload(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.reload_extension(id).await)
}

/// Loads an extension's component anew, as `weir_extension_reload` does, without probation: the version may be one
/// that was refused, and is proven as soon as it is ready. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_reload_now(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.reload_extension_now(id).await)
}

/// The versions of an extension with `update`, as a JSON object: which one runs, which one comes back, and what became
/// of each. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `no-version` if it has no `update` or has not run yet.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_versions(
    main: Option<&weir_main>,
    id: Text,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&given(main, "main")?.control()?.versions(id.get("id")?)?))
}

/// Takes an extension's version on probation for proven, and waits until that is written down. Blocks: not in a
/// callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `no-version` if none is on probation, or `not-saved` if the decision
/// could not be written down and holds until Main ends.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_accept(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.accept_version(id).await)
}

/// Refuses the version of an extension that runs, goes back to the proven version with this number, and waits until that
/// one is ready. 0 is the latest proven version but the one that runs. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `no-version` if there is no such version, it is not proven, or it
/// cannot read what is in the stores, or `not-reloaded` if it does not come up.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_roll_back(
    main: Option<&weir_main>,
    id: Text,
    version: u64,
    error: ErrorOut,
) -> bool {
    let to = (version > 0).then_some(version);
    steer(main, &id, error, async |control, id| control.roll_back(id, to).await)
}

/// Goes back as `weir_extension_roll_back` does, with the extension's data: if that version cannot read what is in the
/// stores, what was there before is restored, and what was written since is lost. Blocks: not in a callback on Main's
/// thread.
///
/// Errors: those of `weir_extension_roll_back`; `no-version` also if no data is kept that the version can read.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_roll_back_with_data(
    main: Option<&weir_main>,
    id: Text,
    version: u64,
    error: ErrorOut,
) -> bool {
    let to = (version > 0).then_some(version);
    steer(main, &id, error, async |control, id| control.roll_back_with_data(id, to).await)
}

/// Reads the configuration's file again, and applies what changed in it. Returns the report as JSON: `added`, `removed`,
/// `changed`, `failed` and more. An extension that does not come up is no error, but in `failed`. Blocks: not in a
/// callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `not-configured` if the file has a mistake or Main cannot take it,
/// `no-file` if the configuration is not from a file, or `reloading` while another reload of it is under way. Nothing
/// is applied then.
#[unsafe(no_mangle)]
pub extern "C" fn weir_reload(main: Option<&weir_main>, error: ErrorOut) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&wait(given(main, "main")?.control()?.reload())?))
}

/// Applies what differs in another configuration, and returns the report, like `weir_reload`. Takes `config`, even if
/// this function fails. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `not-configured` if the configuration has a mistake or Main cannot
/// take it, or `reloading` while another reload of it is under way. Nothing is applied then.
#[unsafe(no_mangle)]
pub extern "C" fn weir_reload_with(
    main: Option<&weir_main>,
    config: Option<Box<weir_config>>,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || {
        let weir_config(config) = *given(config, "config")?;
        weir_buffer::json(&wait(given(main, "main")?.control()?.reload_with(config))?)
    })
}

/// Reads the configuration's file again, or takes `config` if it is not NULL, even if this function fails. Applies it in
/// stages: an extension changes in a later stage than those that it requires or wants. The next stage begins once all have
/// come up and, if `until_proven`, once those with `update` are proven; that takes at most twice the longest `prove-for` of
/// a stage. Returns the report, like `weir_reload`: if a stage does not hold, it has `stopped-at` and `not-reached`, and the
/// next such reload goes on there. Blocks: not in a callback on Main's thread.
///
/// Errors: those of `weir_reload`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_reload_in_stages(
    main: Option<&weir_main>,
    config: Option<Box<weir_config>>,
    until_proven: bool,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || {
        let config = config.map(|config| config.0);
        let holds = if until_proven { Holds::Proven } else { Holds::Up };
        let control = given(main, "main")?.control()?;
        weir_buffer::json(&wait(control.reload_in_stages(config, holds))?)
    })
}

/// Adds an extension while Main runs, or replaces the one of its id, and waits until it is ready. `table` is its table
/// `[[extension]]` as the configuration has it; paths start at the plugin directory. The file of Main stays as it is: a
/// reload of it undoes this. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONFIG` if the table has a mistake. `WEIR_ERROR_KIND_CONTROL` with the code `not-configured`
/// if it does not fit the others, `not-started` if a new extension did not come up (it is configured all the same), or
/// `not-reloaded` if the version before serves on.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_put(main: Option<&weir_main>, table: Text, error: ErrorOut) -> bool {
    run(error, || {
        let control = given(main, "main")?.control()?;
        let extension = control.read_extension(table.get("table")?)?;
        wait(control.put(extension))?;
        Ok(true)
    })
}

/// Removes an extension while Main runs, and waits until it has ended. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id, or `not-configured` if
/// another one requires it.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_remove(main: Option<&weir_main>, id: Text, error: ErrorOut) -> bool {
    steer(main, &id, error, async |control, id| control.remove(id).await)
}

/// Every extension with its state, as a JSON array: what `weir ps --json` shows. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extensions(main: Option<&weir_main>, error: ErrorOut) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&given(main, "main")?.control()?.extensions()))
}

/// One extension with its state and its last failures, as a JSON object. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_status(
    main: Option<&weir_main>,
    id: Text,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&given(main, "main")?.control()?.status(id.get("id")?)?))
}

/// The last 100 events of an extension, oldest first, as a JSON array. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id.
#[unsafe(no_mangle)]
pub extern "C" fn weir_extension_history(
    main: Option<&weir_main>,
    id: Text,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&given(main, "main")?.control()?.history(id.get("id")?)?))
}

/// The limits of the extension `id`, or of all if it is NULL, each with its source and its use, as JSON. The first call
/// measures for some ten milliseconds how much fuel this machine burns. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id.
#[unsafe(no_mangle)]
pub extern "C" fn weir_limits(
    main: Option<&weir_main>,
    id: Text,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || {
        let control = given(main, "main")?.control()?;
        let report = match id.optional("id")? {
            Some(id) => wait(control.limits_of(id))?,
            None => wait(async { Ok::<_, ControlError>(control.limits().await) })?,
        };
        weir_buffer::json(&report)
    })
}

/// All known topics and all subscriptions, with rates and losses, as JSON. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_topics(main: Option<&weir_main>, error: ErrorOut) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&given(main, "main")?.control()?.topics()))
}

/// Every shared queue, with its depth, rates and losses, as a JSON array. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queues(main: Option<&weir_main>, error: ErrorOut) -> Option<Box<weir_buffer>> {
    run(error, || weir_buffer::json(&given(main, "main")?.control()?.queues()))
}

/// The first `most` jobs of a queue, as a JSON array: what `weir queue-jobs --json` shows. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if no such queue is configured.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queue_jobs(
    main: Option<&weir_main>,
    queue: Text,
    most: usize,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || {
        let control = given(main, "main")?.control()?;
        weir_buffer::json(&control.queue_jobs(queue.get("queue")?, most)?)
    })
}

/// Puts the dead letter `id` of a queue back to where it came from, or all if `id` is 0. `moved`, which may be NULL, gets
/// their number. Any thread. Does not block.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if there is no such queue or dead letter, `WEIR_ERROR_KIND_OVERLOADED` if a queue has
/// no room, `WEIR_ERROR_KIND_NO_PROVIDER` if a queue is no longer configured. What can go back has gone back then.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queue_requeue(
    main: Option<&weir_main>,
    queue: Text,
    id: u64,
    moved: Option<&mut MaybeUninit<u64>>,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let control = given(main, "main")?.control()?;
        let count = control.requeue(queue.get("queue")?, (id > 0).then_some(MessageId(id)))?;
        if let Some(moved) = moved {
            moved.write(count);
        }
        Ok(true)
    })
}

/// What extensions and peers describe of the contracts that they serve, as a JSON array: `contract`, `provider` and the
/// OpenRPC `document`. Blocks: not in a callback on Main's thread.
///
/// Errors: `WEIR_ERROR_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_contracts(main: Option<&weir_main>, error: ErrorOut) -> Option<Box<weir_buffer>> {
    run(error, || {
        refuse_on_mains_thread()?;
        weir_buffer::json(&given(main, "main")?.control()?.contracts())
    })
}

fn steer(
    main: Option<&weir_main>,
    id: &Text,
    error: ErrorOut,
    order: impl AsyncFn(&Control, &str) -> Result<(), ControlError>,
) -> bool {
    run(error, || {
        let (control, id) = (given(main, "main")?.control()?, id.get("id")?);
        wait(order(control, id))?;
        Ok(true)
    })
}
