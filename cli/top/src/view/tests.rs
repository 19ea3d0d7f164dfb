use std::time::{Duration, Instant};

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent},
    style::Color,
};

use super::*;
use crate::{
    answers::Look,
    model::{Key, tests::answer},
    run::Options,
    sort::SortKey,
    source::{Answers, Fault},
};

/// What a Main answered, and what it answered a second later.
const LOOKS: [[&str; 3]; 2] = [
    [
        include_str!("../../tests/extensions.json"),
        include_str!("../../tests/peers.json"),
        include_str!("../../tests/operations.json"),
    ],
    [
        include_str!("../../tests/extensions-later.json"),
        include_str!("../../tests/peers.json"),
        include_str!("../../tests/operations-later.json"),
    ],
];

const LOG: &str = r#"
{"time":"2026-11-20T13:33:27.837Z","extension":"uploader","level":"info","source":"log","message":"connected"}
{"time":"2026-11-20T13:33:28.001Z","extension":"uploader","level":"warn","source":"log","message":"slow","fields":[["ms","120"]]}
"#;

fn state() -> State {
    let options =
        Options { interval: Duration::from_secs(1), sort: SortKey::Cpu, filter: String::new(), color: true };
    let begun = Instant::now();
    let mut state = State::new(options, begun);
    for ([extensions, peers, operations], second) in LOOKS.into_iter().zip(0..) {
        let answers = Answers {
            at: begun + Duration::from_secs(second),
            pid: Some(1),
            peers: Some(peers.into()),
            operations: Some(operations.into()),
            log: LOG.into(),
            ..Answers::of(extensions.into())
        };
        state.answered(Look::read(&answers, Some("uploader".to_owned())), begun);
    }
    state
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        state.key(KeyEvent::from(code));
    }
}

fn drawn(state: &mut State, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal
}

fn text(state: &mut State, width: u16, height: u16) -> String {
    drawn(state, width, height).backend().to_string()
}

fn assert_golden(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../../tests/golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// What is drawn, after what it shows.
fn picture(claim: &str, state: &mut State, width: u16, height: u16) -> String {
    format!("{claim}:\n{}", text(state, width, height))
}

#[test]
fn a_terminal_shows_what_it_has_room_for() {
    let pictures = [("every column", 160), ("what counts", 80), ("who burns the processor", 40)]
        .map(|(claim, width)| picture(claim, &mut state(), width, 12));
    assert_golden("widths", &pictures.join("\n"));
}

#[test]
fn the_pane_has_figures_failures_and_the_log_but_that_of_a_peer_has_none() {
    let (mut extension, mut peer) = (state(), state());
    press(&mut extension, "j\n");
    press(&mut peer, "G\n");
    let pictures = [
        picture("an extension", &mut extension, 100, 24),
        picture("an extension, narrow", &mut extension, 40, 40),
        picture("a peer", &mut peer, 80, 12),
    ];
    assert_golden("panes", &pictures.join("\n"));
}

#[test]
fn the_last_line_says_what_is_asked_typed_or_wrong() {
    let (mut asked, mut typed, mut gone) = (state(), state(), state());
    press(&mut asked, "R");
    press(&mut typed, "/up");
    let fault = Fault("cannot reach Main at `/run/weir/weir.sock`".to_owned());
    gone.answered(Err(fault), Instant::now());
    let pictures = [
        picture("the question names the extension", &mut asked, 40, 5),
        picture("also where there is little room", &mut asked, 20, 1),
        picture("a filter is shown while it is typed", &mut typed, 80, 6),
        picture("a Main that is gone leaves old values and says so", &mut gone, 80, 6),
    ];
    assert_golden("last-lines", &pictures.join("\n"));
}

#[test]
fn the_help_names_every_key() {
    let mut state = state();
    press(&mut state, "?");
    assert_golden("help", &text(&mut state, 80, 20));
}

#[test]
fn names_of_others_cannot_play_with_the_terminal() {
    let mut state = state();
    let texts = r#"{"id":"a"},{"id":"b","reason":"a\u001b[31m","failures":[{"extension":"b",
        "time":"2026-11-20T13:30:02.120Z","cause":"\u001b[2J","then":"loaded"}]},{"id":"c"},{"id":"d"},{"id":"e"},
        {"id":"f"}"#;
    let log = r#"{"level":"\u001b","message":"\u001b[2J\u202e","fields":[["\u0007","\u001b"]]}"#;
    let answers = Answers { log: log.into(), ..Answers::of(answer(texts)) };
    let evil = "\u{202e}evil\u{200b}\u{2066}".to_owned();
    let look = Look::read(&answers, Some(evil.clone())).unwrap();
    state.answered(Ok(look), Instant::now());
    // Main's names are checked where they are read. The view does not rely on it.
    let names = [
        "a\x1b[2J\u{9b}2J\nb".to_owned(),
        evil,
        "漢字".repeat(12),
        "e\u{301}e\u{301}e\u{301}👩‍👩‍👧".to_owned(),
        String::new(),
        "x".repeat(10_000),
    ];
    for (row, name) in state.model.rows.iter_mut().zip(names) {
        row.state = if name.starts_with('a') { "\x1b]0;x\x07".to_owned() } else { String::new() };
        row.key = Key::Extension(name);
    }
    press(&mut state, "n");
    let mut all = text(&mut state, 80, 12);
    assert_golden("hostile", &all);
    for place in 0..state.model.rows.len() {
        press(&mut state, "g");
        (0..place).for_each(|_| press(&mut state, "j"));
        press(&mut state, "R");
        all += &text(&mut state, 60, 20);
        press(&mut state, "n\n");
        all += &text(&mut state, 60, 20);
        press(&mut state, "R");
        all += &text(&mut state, 10, 20);
        state.mode = Mode::Browsing;
        state.pane = None;
    }
    assert!(!all.contains(['\x1b', '\u{9b}', '\u{202e}', '\u{200b}', '\u{2066}', '\x07', '\r']), "{all}");
}

#[test]
fn no_size_of_a_terminal_is_too_small() {
    for keys in ["", "G", "\n", "R", "?", "/abc", "m", "G\n"] {
        for width in [0, 1, 2, 3, 7, 13, 14, 15, 39, 40, 41, 80, 200] {
            for height in [0, 1, 2, 3, 4, 5, 30] {
                let mut state = state();
                press(&mut state, keys);
                drawn(&mut state, width, height);
                press(&mut state, "jjjGk");
                drawn(&mut state, height, width);
            }
        }
    }
}

#[test]
fn without_colours_the_text_is_the_same() {
    let (mut with, mut without) = (state(), state());
    without.has_color = false;
    for keys in ["", "j\n", "R"] {
        press(&mut with, keys);
        press(&mut without, keys);
        let [one, other] = [&mut with, &mut without].map(|state| drawn(state, 120, 20));
        assert_eq!(one.backend().to_string(), other.backend().to_string());
        let cells = other.backend().buffer().content().iter();
        assert!(cells.into_iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    }
}

fn texts(text: &str, width: usize) -> Vec<String> {
    wrap(&Line::raw(text.to_owned()), width).iter().map(ToString::to_string).collect()
}

#[test]
fn a_line_goes_on_in_the_next_where_it_is_full() {
    assert_eq!(texts("abcdefg", 3), ["abc", "def", "g"]);
    assert_eq!(texts("漢字漢", 5), ["漢字", "漢"]);
    assert_eq!(texts("", 3), [""]);
}

#[test]
fn a_screen_too_narrow_for_one_character_still_ends() {
    assert_eq!(texts("漢字", 1), ["漢", "字"]);
    assert_eq!(texts("ab", 0), ["a", "b"]);
}
