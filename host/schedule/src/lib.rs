//! Which task runs next on the worker thread, and for how long.
//!
//! Knows nothing of messages, nor of what a task does. Each extension's task is a [`Handoff`] around an [`InTurn`]
//! around its guest. The first decides *which task is polled next*, the second *whether its guest may run*.
//! `docs/internals/worker-thread.md` says what must stay true of both.
//!
//! # What runs next
//!
//! ```text
//!            a message wakes extension B            a timer, a socket or another thread wakes B,
//!                       │                           or B's own slice has ended
//!                       ▼                                              │
//!        what is polled on the worker thread?                          │
//!      ┌────────────────┴───────────────┐                              │
//!  a guest or a task of Main's      a guest that sends                 │
//!  that waits for B's answer        and goes on                        │
//!  (`switch`)                           │                              │
//!      │                                │                              │
//!      ▼                                ▼                              ▼
//!  B is polled at once,             B is polled next, when the     B is polled when it comes up in
//!  within the call                  guest that woke it stops       the runtime's queue
//!      └────────────────┬───────────────┴──────────────────────────────┘
//!                       ▼
//!            may B's guest run now?
//!              over its share? ─────── yes ─► waits for a timer, then for a turn     (`share`)
//!                       │ no
//!              used up its slice? ──── yes ─► waits for its turn: one busy guest
//!                       │ no                  runs at a time                         (`turns`)
//!              100 µs since a look? ── yes ─► waits for the look, in one queue
//!                       │ no                  with all others that do                (`look`)
//!                       ▼
//!            B's guest runs until it waits, or its slice ends
//!                       │
//!                       ▼
//!            next: 1. the task that B woke last          (`chain`)
//!                  2. the first that waits for the look, if time is left before the next one
//!                  3. whatever the runtime has in its queue
//! ```
//!
//! Tasks that run one after the other like this are a *chain*. A chain ends after 64 tasks, or when the runtime's
//! budget for one task is used up; then the runtime polls other tasks. A wake-up hands over the thread only while a
//! chain runs there. Timers and sockets never do: the runtime looks at them between its tasks.
//!
//! A task woken later takes the place of the one that was to run next, which goes into the runtime's queue.
//!
//! # Calls within calls
//!
//! ```text
//!   Main's task ─ switch ─► A runs ─ switch ─► B runs ─ sends to C ─► C runs when B stops
//!   └──── its stack ───────────── and A's ─────────── and B's ┘        on the same stack as B, after it
//! ```
//!
//! At most two guests are on one stack: guests called by a guest that runs within another's call run after it. Else a
//! long chain of calls would overflow the stack.
//!
//! # When the worker looks at timers and sockets
//!
//! The runtime looks at them between tasks, and a chain is one task. So [`InTurn`] counts how long guests have run
//! since the last look. After 100 µs every further guest waits for the look. The look calls the first of them. When a
//! guest stops without handing over the thread, it calls the next, until 100 µs have passed and another look is due.
//!
//! # A thread of the embedding program
//!
//! [`drive()`] polls one future on the calling thread and parks it in between. It has no part in the above: what it
//! waits for runs on the worker, which wakes it. [`mark_worker_thread`] marks the worker, so that a blocking call
//! there, which would wait for itself, is refused.

mod activity;
mod blocking;
mod chain;
mod drive;
mod handoff;
mod in_turn;
mod look;
mod share;
mod time_limit;
mod turns;

pub use self::{
    activity::Activity,
    blocking::{BlockingError, is_worker_thread, mark_worker_thread, refuse_in_async, wait, wait_for},
    chain::{note_wait, switch},
    drive::{Alarm, drive},
    handoff::Handoff,
    in_turn::{InTurn, end_slice},
    share::SharedShare,
    time_limit::TimeLimit,
    turns::Turns,
};
