//! The real `weir`, with a real Main behind it.

#[cfg(test)]
mod command_line {
    mod artifacts;
    mod files;
    mod hooks;
    mod http;
    mod lifecycle;
    mod limits;
    mod messages;
    mod observing;
    mod recovery;
    mod reload;
    mod support;
    mod systemd;
    mod traces;
    mod traffic;
    mod usage;
}
