//! What a device does, from signed artifacts: messages, hooks, traps, limits, reloads and deaths of Main.
//!
//! The same tests run on each target. By default the device is this machine, with the `weir` of this workspace. These
//! variables name another:
//!
//! | variable | meaning |
//! | --- | --- |
//! | `WEIR_DEVICE_BIN` | the device's `weir` |
//! | `WEIR_DEVICE_RUNNER` | a command that runs it here, such as `qemu-arm -L /usr/arm-linux-gnueabihf` |
//! | `WEIR_DEVICE_TARGET` | what to compile for, as in `weir compile --target` |
//! | `WEIR_DEVICE_ADDRESS_SPACE` | `large` or `small`: that of the artifacts and of Main |
//!
//! No test asks for a time: a target may be emulated.

#[cfg(test)]
mod device {
    mod artifacts;
    mod faults;
    mod limits;
    mod messages;
    mod support;
}
