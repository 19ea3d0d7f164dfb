//! What is tested: one function for each point. Its name, with hyphens, is the name of the point.

mod calls;
mod errors;
mod events;
mod life;
pub(crate) mod memory;
mod queues;
mod sections;
mod serving;
mod surroundings;

use std::{future::Future, pin::Pin};

use crate::language::Language;

type Run = for<'a> fn(&'a Language) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Something that Weir can do, and that a language can or cannot use.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    /// With underscores.
    function: &'static str,
    pub(crate) run: Run,
}

impl Point {
    pub(crate) fn name(self) -> String {
        self.function.replace('_', "-")
    }
}

macro_rules! points {
    ($($module:ident: $($function:ident)*;)*) => {
        /// All points, in the order of the table.
        pub(crate) const POINTS: &[Point] = &[
            $($(Point {
                function: stringify!($function),
                run: |language| Box::pin($module::$function(language)),
            },)*)*
        ];
    };
}

points! {
    serving: echo_at_every_size request_over_message_size answer_over_message_size typed_arguments wrong_arguments
        own_error;
    errors: error_permission_denied error_unknown_contract error_no_provider error_not_ready error_timeout
        error_overloaded error_peer_gone error_trapped error_limit_exceeded error_would_deadlock error_too_large
        error_invalid error_handler;
    calls: call typed_call named_provider call_deadline parent_time_is_inherited send_and_response cancel
        two_requests_overlap handler_ends_at_its_deadline context;
    events: publish publish_to event lost_events retained_event typed_event subscribe_at_run_time;
    queues: put job_done job_given_back job_died_with take_one_job;
    life: start_and_log failed_start stop_with_a_request_in_hand interrupted_and_ready unhandled_exception
        endless_handler deep_recursion idle_costs_nothing;
    memory: memory_stays_level;
    surroundings: configuration environment directory timer;
    sections: manifest description;
}
