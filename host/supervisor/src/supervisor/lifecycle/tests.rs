//! The state machine against a plain model, over random lives.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// The states of the manual.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Situation {
    /// Nothing runs, and nothing starts by itself.
    Rest(ExtensionState),
    /// It starts when what it requires is there.
    Waits(ExtensionState),
    Up(ExtensionState),
    /// Starts again afterwards, or not.
    Ends {
        again: bool,
    },
    Delayed,
    Quarantined,
}

struct Model {
    situation: Situation,
    on_trial: bool,
    /// Failures since the last restart by the operator.
    failed_at: Vec<Duration>,
}

impl Model {
    fn apply(&mut self, event: LifecycleEvent, restart: &RestartConfig) -> Step {
        use Situation::*;
        match (event, self.situation) {
            (LifecycleEvent::Start, Quarantined) => return Step::Refuse,
            (
                LifecycleEvent::Start,
                Rest(ExtensionState::Failed) | Waits(ExtensionState::Failed) | Delayed,
            ) => {
                self.situation = Waits(ExtensionState::Loaded);
            }
            (LifecycleEvent::Start, Rest(state)) => self.situation = Waits(state),
            (LifecycleEvent::Start, Ends { .. }) => self.situation = Ends { again: true },
            (LifecycleEvent::Launched, Waits(_)) => self.situation = Up(ExtensionState::Starting),
            (LifecycleEvent::Blocked, Waits(_)) if self.on_trial => {
                self.on_trial = false;
                self.situation = Waits(ExtensionState::Loaded);
                return Step::FallBack;
            }
            (LifecycleEvent::Blocked, Waits(_)) => self.situation = Waits(ExtensionState::Failed),
            (LifecycleEvent::Ready, Up(_)) => {
                self.on_trial = false;
                self.situation = Up(ExtensionState::Ready);
            }
            (LifecycleEvent::Interrupted, Up(_)) => self.situation = Up(ExtensionState::Interrupted),
            (LifecycleEvent::Stop, _) => {
                self.on_trial = false;
                match self.situation {
                    Up(_) => return self.drains(false),
                    Ends { .. } => self.situation = Ends { again: false },
                    Waits(ExtensionState::Failed) | Rest(ExtensionState::Failed) | Delayed => {
                        self.situation = Rest(ExtensionState::Stopped);
                    }
                    Waits(state) => self.situation = Rest(state),
                    Rest(_) | Quarantined => {}
                }
            }
            (LifecycleEvent::Restart, _) => {
                self.failed_at.clear();
                self.on_trial = false;
                return self.again();
            }
            (LifecycleEvent::Replace { .. }, Quarantined) => {}
            (LifecycleEvent::Replace { is_kept }, _) => {
                self.on_trial = is_kept;
                return self.again();
            }
            (LifecycleEvent::TakenOver { .. }, Quarantined) => {}
            (LifecycleEvent::TakenOver { is_ready }, _) => {
                self.on_trial = !is_ready;
                self.situation = Up(if is_ready { ExtensionState::Ready } else { ExtensionState::Starting });
            }
            (LifecycleEvent::Ended { .. }, Ends { again: true }) => {
                self.situation = Waits(ExtensionState::Loaded)
            }
            (LifecycleEvent::Ended { .. }, Ends { again: false }) => {
                self.situation = Rest(ExtensionState::Stopped)
            }
            (LifecycleEvent::Ended { .. }, Up(_)) if self.on_trial => {
                self.on_trial = false;
                self.situation = Waits(ExtensionState::Loaded);
                return Step::FallBack;
            }
            (LifecycleEvent::Ended { hopeless: true, clean, .. }, Up(_)) => {
                self.situation = Rest(if clean { ExtensionState::Stopped } else { ExtensionState::Failed });
            }
            (LifecycleEvent::Ended { hindered: true, clean: false, draw, .. }, Up(_))
                if restart.policy != RestartPolicy::Never =>
            {
                self.situation = Delayed;
                return Step::Delay(restart.delay(u32::MAX, draw));
            }
            (LifecycleEvent::Ended { clean, at, draw, .. }, Up(_)) => {
                return self.fails(clean, at, draw, restart);
            }
            (LifecycleEvent::Killed, Up(state)) if state != ExtensionState::Starting || !self.on_trial => {
                self.situation = Waits(ExtensionState::Loaded);
            }
            (LifecycleEvent::Due, Delayed) => self.situation = Waits(ExtensionState::Loaded),
            _ => {}
        }
        Step::None
    }

    fn drains(&mut self, again: bool) -> Step {
        self.situation = Situation::Ends { again };
        Step::Drain
    }

    fn again(&mut self) -> Step {
        match self.situation {
            Situation::Up(_) => return self.drains(true),
            Situation::Ends { .. } => self.situation = Situation::Ends { again: true },
            _ => self.situation = Situation::Waits(ExtensionState::Loaded),
        }
        Step::None
    }

    fn fails(&mut self, clean: bool, at: Duration, draw: f64, restart: &RestartConfig) -> Step {
        let state = if clean { ExtensionState::Stopped } else { ExtensionState::Failed };
        if restart.policy == RestartPolicy::Never || (clean && restart.policy == RestartPolicy::OnFailure) {
            self.situation = Situation::Rest(state);
            return Step::None;
        }
        self.failed_at.push(at);
        let of_late = self.failed_at.iter().filter(|failed| at - **failed < restart.window).count();
        if of_late >= restart.failures as usize {
            self.situation = Situation::Quarantined;
            return Step::None;
        }
        self.situation = Situation::Delayed;
        Step::Delay(restart.delay(of_late.try_into().unwrap(), draw))
    }
}

fn event() -> impl Strategy<Value = (LifecycleEvent, Duration)> {
    let draw = || 0.0..=1.0;
    let event = prop_oneof![
        3 => Just(LifecycleEvent::Start),
        8 => Just(LifecycleEvent::Launched),
        1 => Just(LifecycleEvent::Blocked),
        4 => Just(LifecycleEvent::Ready),
        1 => Just(LifecycleEvent::Interrupted),
        2 => Just(LifecycleEvent::Stop),
        1 => Just(LifecycleEvent::Restart),
        2 => any::<bool>().prop_map(|is_kept| LifecycleEvent::Replace { is_kept }),
        1 => any::<bool>().prop_map(|is_ready| LifecycleEvent::TakenOver { is_ready }),
        8 => (any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.1), draw()).prop_map(
            |(clean, hopeless, hindered, draw)| {
                LifecycleEvent::Ended { clean, hopeless, hindered: hindered && !clean, at: Duration::ZERO, draw }
            },
        ),
        1 => Just(LifecycleEvent::Killed),
        6 => Just(LifecycleEvent::Due),
    ];
    (event, (0..40_u32).prop_map(|passed| MS * passed))
}

fn restart() -> impl Strategy<Value = RestartConfig> {
    let policy =
        prop_oneof![Just(RestartPolicy::Never), Just(RestartPolicy::OnFailure), Just(RestartPolicy::Always)];
    (policy, 1..20_u32, 0..200_u32, 1..6_u32, 1..300_u32).prop_map(
        |(policy, backoff, more, failures, window)| {
            let mut restart = RestartConfig::default();
            (restart.policy, restart.failures, restart.window) = (policy, failures, MS * window);
            (restart.backoff, restart.max_backoff) = (MS * backoff, MS * (backoff + more));
            restart
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_life_goes_as_the_model_says(
        restart in restart(),
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut machine = Lifecycle::new();
        let mut model =
            Model { situation: Situation::Rest(ExtensionState::Loaded), on_trial: false, failed_at: Vec::new() };
        let mut now = Duration::ZERO;
        for (mut event, passed) in events {
            now += passed;
            if let LifecycleEvent::Ended { at, .. } = &mut event {
                *at = now;
            }
            prop_assert_eq!(machine.apply(event, &restart), model.apply(event, &restart), "{:?}", event);
            let (state, waits, runs, comes) = match model.situation {
                Situation::Rest(state) => (state, false, false, false),
                Situation::Waits(state) => (state, true, false, state != ExtensionState::Failed),
                Situation::Up(state) => (state, false, true, state == ExtensionState::Starting),
                Situation::Ends { again } => (ExtensionState::Draining, false, true, again),
                Situation::Delayed => (ExtensionState::BackingOff, false, false, false),
                Situation::Quarantined => (ExtensionState::Quarantined, false, false, false),
            };
            let is = (machine.state(), machine.is_waiting(), machine.is_running(), machine.is_coming());
            prop_assert_eq!(is, (state, waits, runs, comes));
            prop_assert_eq!(machine.is_on_trial(), model.on_trial);
        }
    }

    #[test]
    fn a_delay_is_between_half_and_all_of_what_the_failures_double(
        restart in restart(),
        number in 1..100_u32,
        draw in 0.0..=1.0,
    ) {
        let doubled = (1..number).fold(restart.backoff, |most, _| (most * 2).min(restart.max_backoff));
        let delay = restart.delay(number, draw);
        prop_assert!((doubled / 2..=doubled).contains(&delay), "{delay:?} of {doubled:?}");
    }
}

#[test]
fn a_failure_that_is_older_than_the_window_counts_no_more() {
    let restart = RestartConfig::default();
    let mut life = Lifecycle::new();
    let mut fail = |at| {
        let end = LifecycleEvent::Ended { clean: false, hopeless: false, hindered: false, at, draw: 1.0 };
        for event in [LifecycleEvent::Start, LifecycleEvent::Launched, end] {
            life.apply(event, &restart);
        }
        life.state()
    };
    for minute in 0..20 {
        assert_eq!(fail((restart.window + MS) * minute), ExtensionState::BackingOff);
    }
    let last = (restart.window + MS) * 20;
    for number in 1..=4 {
        assert_eq!(fail(last + MS * number), ExtensionState::BackingOff);
    }
    assert_eq!(fail(last + MS * 5), ExtensionState::Quarantined);
}

#[test]
fn what_is_hindered_never_counts_and_is_delayed_for_longest() {
    let mut restart = RestartConfig::default();
    restart.failures = 1;
    let mut life = Lifecycle::new();
    life.apply(LifecycleEvent::Start, &restart);
    for number in 0..20 {
        life.apply(LifecycleEvent::Launched, &restart);
        let end = LifecycleEvent::Ended {
            clean: false,
            hopeless: false,
            hindered: true,
            at: MS * number,
            draw: 1.0,
        };
        assert_eq!(life.apply(end, &restart), Step::Delay(restart.max_backoff));
        assert_eq!((life.state(), life.failures()), (ExtensionState::BackingOff, 0));
        life.apply(LifecycleEvent::Due, &restart);
    }
}

#[test]
fn a_delay_ends_as_soon_as_the_policy_provides_for_none() {
    let with = |policy| {
        let mut restart = RestartConfig::default();
        restart.policy = policy;
        restart
    };
    let policies = [RestartPolicy::Never, RestartPolicy::OnFailure, RestartPolicy::Always];
    for (clean, then) in [
        (false, [ExtensionState::Failed, ExtensionState::BackingOff, ExtensionState::BackingOff]),
        (true, [ExtensionState::Stopped, ExtensionState::Stopped, ExtensionState::BackingOff]),
    ] {
        for (policy, then) in policies.into_iter().zip(then) {
            let (always, mut life) = (with(RestartPolicy::Always), Lifecycle::new());
            let end = LifecycleEvent::Ended { clean, hopeless: false, hindered: false, at: MS, draw: 1.0 };
            for event in [LifecycleEvent::Start, LifecycleEvent::Launched, end] {
                life.apply(event, &always);
            }
            assert_eq!(life.state(), ExtensionState::BackingOff);
            life.apply(LifecycleEvent::Retuned, &with(policy));
            assert_eq!(life.state(), then, "clean: {clean}, {policy:?}");
            assert!(!life.is_waiting());
            life.apply(LifecycleEvent::Due, &with(policy));
            assert_eq!(life.is_waiting(), then == ExtensionState::BackingOff);
        }
    }
}
