//! The real `weir`, with a real Main behind it.

#[cfg(test)]
mod command_line {
    mod address_space;
    mod artifacts;
    mod author;
    mod bodies;
    #[cfg(all(feature = "compiler", feature = "gateway", feature = "http", feature = "store"))]
    mod checking;
    mod compiling;
    mod completion;
    mod contracts;
    mod described;
    mod fetching;
    mod files;
    mod generating;
    mod history;
    mod hooks;
    mod http;
    mod late;
    mod lifecycle;
    mod limits;
    mod locked;
    mod messages;
    mod metrics;
    mod observing;
    mod otlp;
    #[cfg(feature = "compiler")]
    mod packages;
    #[cfg(feature = "gateway")]
    mod parts;
    mod pauses;
    mod peers;
    mod plan;
    mod progress;
    mod quotas;
    mod recovery;
    mod reload;
    #[cfg(feature = "compiler")]
    mod shipping_page;
    mod sidecars;
    mod soak;
    mod spans;
    mod stderr;
    #[cfg(feature = "store")]
    mod stores;
    mod support;
    mod systemd;
    mod top;
    mod traces;
    mod traffic;
    mod two_mains;
    mod unanswered;
    mod updates_page;
    mod usage;
    mod versions;
}
