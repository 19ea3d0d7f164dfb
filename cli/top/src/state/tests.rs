use super::*;
use crate::model::tests::{look, peer};

/// Three extensions and a peer; the second burns the processor.
const THREE: &str = r#"{"id":"a","cpu-share":0.1},{"id":"b","cpu-share":0.9},{"id":"c","cpu-share":0.2}"#;

fn state() -> State {
    let options =
        Options { interval: Duration::from_secs(1), sort: SortKey::Cpu, filter: String::new(), color: true };
    let now = Instant::now();
    let mut state = State::new(options, now);
    state.page = 10;
    state.answered(Ok(with_peer(look(now, 0, THREE))), now);
    state
}

fn with_peer(look: Look) -> Look {
    Look { peers: vec![peer(&[])], ..look }
}

fn press(state: &mut State, keys: &str) -> Option<Effect> {
    let code = |key| match key {
        '\n' => KeyCode::Enter,
        '\x1b' => KeyCode::Esc,
        '\x08' => KeyCode::Backspace,
        letter => KeyCode::Char(letter),
    };
    keys.chars().fold(None, |_, key| state.key(KeyEvent::from(code(key))))
}

fn selected(state: &State) -> String {
    let shown = state.shown();
    shown[state.position(&shown)].key.name().to_owned()
}

fn notice(state: &State) -> &str {
    &state.notice.as_ref().unwrap().text
}

#[test]
fn what_burns_the_processor_is_selected_at_the_first_look() {
    assert_eq!(selected(&state()), "b");
}

#[test]
fn an_order_is_asked_for_once_and_given_once() {
    let mut state = state();
    assert_eq!(press(&mut state, "R"), None);
    assert_eq!(state.mode, Mode::Question(Order::Restart, "b".to_owned()));
    assert_eq!(press(&mut state, "y"), Some(Effect::Give(Order::Restart, "b".to_owned())));
    assert_eq!(state.mode, Mode::Browsing);
    assert_eq!(press(&mut state, "y"), None);
}

#[test]
fn an_order_goes_to_the_extension_of_the_question_though_the_rows_have_moved() {
    let mut state = state();
    press(&mut state, "S");
    let later = Instant::now() + Duration::from_secs(5);
    let moved = r#"{"id":"c","cpu-share":0.9},{"id":"a","cpu-share":0.8}"#;
    state.answered(Ok(look(later, 0, moved)), later);
    assert_eq!(selected(&state), "c");
    assert_eq!(press(&mut state, "y"), Some(Effect::Give(Order::Stop, "b".to_owned())));
}

#[test]
fn every_other_key_than_y_cancels() {
    for key in ['n', ' ', '\n', '\x1b', 'R', 'q', 'x'] {
        let mut state = state();
        press(&mut state, "L");
        assert_eq!(press(&mut state, &key.to_string()), None, "{key:?}");
        assert_eq!(notice(&state), "reload `b`: not done");
    }
    let mut state = state();
    press(&mut state, "L");
    let with_control = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL);
    assert_eq!(state.key(with_control), None);
}

#[test]
fn a_second_order_waits_until_the_first_is_carried_out() {
    let mut state = state();
    press(&mut state, "Ry");
    press(&mut state, "S");
    assert_eq!(notice(&state), "restart `b` is under way: one order at a time");
    assert_eq!(state.mode, Mode::Browsing);
    state.ordered(Order::Restart, "b", Err(Fault("it is configured no longer".to_owned())));
    assert_eq!(notice(&state), "restart `b`: it is configured no longer");
    press(&mut state, "S");
    assert_eq!(state.mode, Mode::Question(Order::Stop, "b".to_owned()));
}

#[test]
fn a_peer_takes_no_orders() {
    let mut state = state();
    press(&mut state, "GR");
    assert_eq!(notice(&state), "`app:player` is a program outside Main, which takes no orders");
}

#[test]
fn the_selection_follows_its_extension_and_not_its_line() {
    let mut state = state();
    press(&mut state, "j");
    assert_eq!(selected(&state), "c");
    press(&mut state, "n");
    assert_eq!(selected(&state), "c");
    let later = Instant::now() + Duration::from_secs(5);
    state.answered(Ok(look(later, 0, r#"{"id":"c"},{"id":"x"},{"id":"y"}"#)), later);
    assert_eq!(selected(&state), "c");
}

#[test]
fn when_the_selected_one_is_gone_the_line_stays() {
    let mut state = state();
    press(&mut state, "j");
    let later = Instant::now() + Duration::from_secs(5);
    state.answered(Ok(look(later, 0, r#"{"id":"a","cpu-share":0.1},{"id":"b","cpu-share":0.9}"#)), later);
    assert_eq!(selected(&state), "b");
}

#[test]
fn the_first_line_stays_the_first_line() {
    let mut state = state();
    press(&mut state, "jk");
    let later = Instant::now() + Duration::from_secs(5);
    state.answered(Ok(look(later, 0, r#"{"id":"b"},{"id":"new","cpu-share":0.5}"#)), later);
    assert_eq!(selected(&state), "new");
}

#[test]
fn a_filter_works_while_it_is_typed() {
    let mut state = state();
    press(&mut state, "/ab\x08");
    assert_eq!(state.shown().len(), 2);
    press(&mut state, "pp\n");
    assert_eq!((state.filter.as_str(), selected(&state).as_str()), ("app", "app:player"));
    assert_eq!(press(&mut state, "\x1b"), None);
    assert_eq!(state.filter, "");
    press(&mut state, "/q\x1b");
    assert_eq!((state.filter.as_str(), &state.mode), ("", &Mode::Browsing));
}

#[test]
fn escape_closes_then_clears_then_quits() {
    let mut state = state();
    press(&mut state, "/b\n");
    assert_eq!(press(&mut state, "\n"), Some(Effect::Watch(Some("b".to_owned()))));
    assert_eq!(press(&mut state, "\x1b"), Some(Effect::Watch(None)));
    assert_eq!(press(&mut state, "\x1b"), None);
    assert_eq!(press(&mut state, "\x1b"), Some(Effect::Quit));
}

#[test]
fn orders_in_the_pane_go_to_its_extension() {
    let mut state = state();
    press(&mut state, "j\n");
    let later = Instant::now() + Duration::from_secs(5);
    state.answered(Ok(look(later, 0, r#"{"id":"b"}"#)), later);
    press(&mut state, "R");
    assert_eq!(state.mode, Mode::Question(Order::Restart, "c".to_owned()));
}

#[test]
fn control_c_quits_from_everywhere() {
    for keys in ["", "R", "/", "?", "\n"] {
        let mut state = state();
        press(&mut state, keys);
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.key(key), Some(Effect::Quit), "{keys:?}");
    }
}

#[test]
fn without_rows_no_key_does_harm() {
    let mut state = state();
    press(&mut state, "/nobody\n");
    for key in ["j", "k", "g", "G", " ", "\n", "R", "S", "L"] {
        assert_eq!(press(&mut state, key), None);
    }
}

#[test]
fn values_are_old_from_a_fault_or_a_long_wait_until_the_next_answer() {
    let mut state = state();
    let now = Instant::now();
    assert!(state.patience(now).is_some());
    state.late();
    assert!(state.is_old() && state.patience(now).is_none());
    state.answered(Err(Fault("gone".to_owned())), now);
    assert_eq!((state.is_late, state.fault.as_deref()), (false, Some("gone")));
    assert_eq!(state.model.rows.len(), 4);
    state.answered(Ok(look(now + Duration::from_secs(9), 0, THREE)), now);
    assert!(!state.is_old());
}

#[test]
fn that_main_is_gone_is_not_hidden_by_an_older_notice() {
    let mut state = state();
    state.ordered(Order::Restart, "b", Ok("ready".to_owned()));
    assert!(state.notice.is_some());
    state.answered(Err(Fault("gone".to_owned())), Instant::now());
    assert_eq!(state.notice, None);
    // The answer to an order is news again.
    state.ordered(Order::Restart, "b", Err(Fault("gone".to_owned())));
    state.answered(Err(Fault("gone".to_owned())), Instant::now());
    assert!(state.notice.is_some());
}

#[test]
fn the_help_scrolls_and_closes_with_any_other_key() {
    let mut state = state();
    press(&mut state, "?jjk");
    assert_eq!((&state.mode, state.help_scroll), (&Mode::Help, 1));
    assert_eq!(press(&mut state, "q"), None);
    assert_eq!(state.mode, Mode::Browsing);
}
