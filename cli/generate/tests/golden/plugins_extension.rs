//! Clients of several contracts.
//!
//! Written by `weir generate rust --for extension` from `device.info@1`, `echo@1`, `settings@1`,
//! `local.storage@1` and `telemetry@1`: changes here do not last.

#![allow(dead_code, reason = "a contract has more than one program uses")]

/// The device and its state.
pub mod device_info {
    use serde::{Deserialize, Serialize};

    weir_sdk::contract! {
        /// The device and its state.
        pub const CONTRACT = "device.info@1";

        /// The device's memory.
        pub const MEMORY: fn(weir_sdk::Empty) -> Memory = "memory", errors {
            "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
        };
        /// The time since the device started.
        pub const UPTIME: fn(weir_sdk::Empty) -> Uptime = "uptime", errors {
            "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
        };
        /// The load of the device.
        pub const LOAD: fn(weir_sdk::Empty) -> Load = "load", errors {
            "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
        };
        /// The operating system.
        pub const OS: fn(weir_sdk::Empty) -> Os = "os", errors {
            "unavailable": "A file of the system cannot be read. The text names it.",
        };
        /// The processor.
        pub const CPU: fn(weir_sdk::Empty) -> Cpu = "cpu", errors {
            "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
        };
    }

    /// Memory, in KiB, as in `/proc/meminfo`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Memory {
        /// All memory that the kernel manages.
        pub total_kib: u64,
        /// Unused memory.
        pub free_kib: u64,
        /// Memory that programs can get without swapping.
        pub available_kib: u64,
        /// Memory of buffers.
        pub buffers_kib: u64,
        /// Memory of the page cache.
        pub cached_kib: u64,
        /// All swap space.
        pub swap_total_kib: u64,
        /// Free swap space.
        pub swap_free_kib: u64,
    }

    /// Time since the device started, as in `/proc/uptime`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Uptime {
        /// Seconds since the start.
        pub seconds: f64,
        /// Idle seconds of its processors, added up.
        pub idle_seconds: f64,
    }

    /// Average number of tasks that ran or wanted to run, as in `/proc/loadavg`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Load {
        /// Over the last minute.
        pub one: f64,
        /// Over the last five minutes.
        pub five: f64,
        /// Over the last fifteen minutes.
        pub fifteen: f64,
    }

    /// The operating system, as in `/etc/os-release`. Missing values are empty.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Os {
        /// For programs, such as `debian`.
        pub id: String,
        /// For people, such as `Debian GNU/Linux`.
        pub name: String,
        /// Its version, such as `12 (bookworm)`, or else its version number.
        pub version: String,
        /// Name and version.
        pub pretty_name: String,
        /// The kernel's release, such as `6.1.0-18-amd64`.
        pub kernel: String,
    }

    /// The processor, as in `/proc/cpuinfo`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Cpu {
        /// The model's name.
        pub model: String,
        /// Cores that the kernel uses.
        pub cores: u32,
    }
}

/// Answers with the bytes of the request, for tests and benchmarks.
pub mod echo {
    weir_sdk::contract! {
        /// Answers with the bytes of the request, for tests and benchmarks.
        pub const CONTRACT = "echo@1";

        /// Answers with the bytes of the request.
        pub const ECHO: fn(bytes) -> bytes = "echo";
    }
}

/// The device's settings, each with a fixed type.
pub mod settings {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    weir_sdk::contract! {
        /// The device's settings, each with a fixed type.
        pub const CONTRACT = "settings@1";

        /// A setting.
        pub const GET: fn(Key) -> Setting = "get", errors {
            "not-found": "No setting has this key.",
        };
        /// Gives a setting a value. Publishes the change if the value is new.
        pub const SET: fn(Entry) -> Previous = "set", errors {
            "invalid-argument": "A key is 1 to 128 letters, digits, `-` and `_`; a text has at most 4096 bytes.",
            "wrong-type": "The setting has a value of another type.",
            "full": "There are 1024 settings, their keys and texts have 262,144 bytes, or storage is full.",
            "io": "Storage failed to write. The change is not visible, but may be there after a restart.",
        };
        /// The settings with a prefix of their keys.
        pub const LIST: fn(Prefix) -> Settings = "list";

        /// Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.
        pub const CHANGED: topic(Changed) = "settings.changed.>";
    }

    /// Arguments of `get`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(deny_unknown_fields)]
    pub struct Key {
        /// The key.
        pub key: String,
    }

    /// Arguments of `set`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(deny_unknown_fields)]
    pub struct Entry {
        /// The key.
        pub key: String,
        /// A boolean, a number or a string.
        pub value: serde_json::Value,
    }

    /// Arguments of `list`.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(deny_unknown_fields)]
    pub struct Prefix {
        /// The prefix. The default fits every key.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[shape(as = "String")]
        pub prefix: Option<String>,
    }

    /// A setting.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Setting {
        /// Its value.
        pub value: serde_json::Value,
        /// Its type.
        pub r#type: Type,
    }

    /// The types of settings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(rename_all = "lowercase")]
    pub enum Type {
        /// True or false.
        Bool,
        /// A whole number.
        Integer,
        /// Any number.
        Number,
        /// A text.
        String,
    }

    /// A setting before its change.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Previous {
        /// Its value. None, in JSON `null`, if it had none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub previous: Option<serde_json::Value>,
    }

    /// Some settings.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Settings {
        /// By key.
        pub settings: BTreeMap<String, Setting>,
    }

    /// The event of a setting's new value.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Changed {
        /// The key.
        pub key: String,
        /// The new value.
        pub value: serde_json::Value,
        /// The old value. None, in JSON `null`, if it had none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub previous: Option<serde_json::Value>,
    }
}

/// Values that survive power cuts.
pub mod local_storage {
    use serde::{Deserialize, Serialize};

    weir_sdk::contract! {
        /// Values that survive power cuts.
        pub const CONTRACT = "local.storage@1";

        /// The value of a key, as on disk.
        pub const GET: fn(Key) -> Found = "get", errors {
            "invalid-argument": "A key has 1 to 256 bytes.",
        };
        /// Gives a key a value. Answered when the value is on disk.
        pub const SET: fn(Entry) -> weir_sdk::Empty = "set", errors {
            "invalid-argument": "A key has 1 to 256 bytes.",
            "too-large": "A value has at most 1 MiB as JSON.",
            "full": "All keys and values together would have more than `max-bytes`.",
            "io": "The disk did not take the change. It is not visible, but may be there after a restart.",
        };
        /// Deletes a key. Answered when that is on disk.
        pub const DELETE: fn(Key) -> Deleted = "delete", errors {
            "invalid-argument": "A key has 1 to 256 bytes.",
            "io": "The disk did not take the change. It is not visible, but may be there after a restart.",
        };
        /// The keys that begin with a prefix.
        pub const LIST: fn(Prefix) -> Keys = "list", errors {
            "too-large": "The keys have more than 524,288 bytes together: use a longer prefix.",
        };
    }

    /// Arguments of `get`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(deny_unknown_fields)]
    pub struct Key {
        /// The key.
        pub key: String,
    }

    /// Arguments of `set`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(deny_unknown_fields)]
    pub struct Entry {
        /// The key.
        pub key: String,
        /// Any value. A `null` reads as no value.
        pub value: serde_json::Value,
    }

    /// Arguments of `list`.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    #[serde(deny_unknown_fields)]
    pub struct Prefix {
        /// The prefix. The default fits every key.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[shape(as = "String")]
        pub prefix: Option<String>,
    }

    /// The value of a key.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Found {
        /// None, in JSON `null`, if the key has no value.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub value: Option<serde_json::Value>,
    }

    /// The result of a deletion.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Deleted {
        /// Whether the key had a value.
        pub existed: bool,
    }

    /// Some keys.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Keys {
        /// In the order of their bytes.
        pub keys: Vec<String>,
    }
}

/// Counts of events.
pub mod telemetry {
    use serde::{Deserialize, Serialize};

    weir_sdk::contract! {
        /// Counts of events.
        pub const CONTRACT = "telemetry@1";

        /// The counts so far.
        pub const SNAPSHOT: fn(weir_sdk::Empty) -> Snapshot = "snapshot";
    }

    /// The counts.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Snapshot {
        /// The start of counting, in seconds of Unix time.
        pub since: u64,
        /// By topic, in the order of the topics' names.
        pub topics: Vec<TopicCount>,
        /// All further topics together.
        pub other: Count,
    }

    /// The count of one topic's events.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct TopicCount {
        /// The topic.
        pub topic: String,
        /// Events received.
        pub count: u64,
        /// Events lost before they were received. A pattern of several topics counts them with the topic of the
        /// next event.
        pub lost: u64,
        /// Events a second, on average over the last minute.
        pub per_second_1m: f64,
    }

    /// A count of events.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
    pub struct Count {
        /// Events received.
        pub count: u64,
        /// Events lost before they were received.
        pub lost: u64,
        /// Events a second, on average over the last minute.
        pub per_second_1m: f64,
    }
}
