//! Frames of WebSockets that are wrong, each with the close code that says so.

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    app::App,
    support::{Stage, becomes, soon},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
limits.message-size = '4 KiB'
limits.sessions = 64
";

/// The largest message: twice that, and 64 KiB.
const MESSAGE_MAX: usize = 2 * 4096 + 65536;

/// A frame of an app: its first byte, and its payload under a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | u8::try_from(short).unwrap()),
        medium @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&u16::try_from(medium).unwrap().to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// A frame with its length in so many bytes, though fewer would do.
fn long_form(first: u8, bytes: usize, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, if bytes == 2 { 0x80 | 126 } else { 0x80 | 127 }];
    frame.extend_from_slice(&(payload.len() as u64).to_be_bytes()[8 - bytes..]);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"echo@1/echo","params":["hello"]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_has_its_close_code() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    let huge = [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
    let gigabyte = [&[0x81, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat();
    let zip = frame(0xc1, &[0xaa, 0x56, 0x4a, 0x54]);
    for (what, bytes, code, word) in [
        ("binary", frame(0x82, b"x"), 1003, "binary"),
        ("binary in fragments", [frame(0x02, b"x"), frame(0x80, b"y")].concat(), 1003, "binary"),
        ("unmasked", [&[0x81, 2][..], b"{}"].concat(), 1002, "protocol"),
        ("compressed", zip, 1002, "protocol"),
        ("second reserved bit", frame(0xa1, b"{}"), 1002, "protocol"),
        ("third reserved bit", frame(0x91, b"{}"), 1002, "protocol"),
        ("reserved opcode", frame(0x83, b"{}"), 1002, "protocol"),
        ("reserved control opcode", frame(0x8b, b"{}"), 1002, "protocol"),
        ("long ping", frame(0x89, &[b'x'; 126]), 1002, "protocol"),
        ("ping in fragments", frame(0x09, b"x"), 1002, "protocol"),
        ("a ping with its length in 2 bytes", long_form(0x89, 2, b"x"), 1002, "protocol"),
        ("a ping with its length in 8 bytes", long_form(0x89, 8, b"x"), 1002, "protocol"),
        ("a pong with its length in 2 bytes", long_form(0x8a, 2, b""), 1002, "protocol"),
        ("a text with its length in 2 bytes", long_form(0x81, 2, CALL.as_bytes()), 1002, "protocol"),
        ("a text with its length in 8 bytes", long_form(0x81, 8, &[b' '; 126]), 1002, "protocol"),
        (
            "a long form after a good frame",
            [frame(0x01, b"{"), long_form(0x80, 2, b"}")].concat(),
            1002,
            "protocol",
        ),
        ("continuation of nothing", frame(0x80, b"{}"), 1002, "protocol"),
        ("text within text", [frame(0x01, b"{"), frame(0x81, b"}")].concat(), 1002, "protocol"),
        ("no UTF-8", frame(0x81, &[0xff]), 1007, "utf-8"),
        ("half a character", frame(0x81, &[0xe2, 0x82]), 1007, "utf-8"),
        ("a surrogate", frame(0x81, &[0xed, 0xa0, 0x80]), 1007, "utf-8"),
        ("no UTF-8 in a fragment", [frame(0x01, &[0xff]), frame(0x80, b"")].concat(), 1007, "utf-8"),
        ("a byte over the limit", frame(0x81, &vec![b' '; MESSAGE_MAX + 1]), 1009, "too-large"),
        (
            "fragments over the limit",
            [frame(0x01, &vec![b' '; MESSAGE_MAX]), frame(0x80, b"  ")].concat(),
            1009,
            "too-large",
        ),
        (
            "a fragment over the limit that has not come",
            [frame(0x01, &vec![b' '; MESSAGE_MAX]), vec![0x80, 0x82, 0, 0]].concat(),
            1009,
            "too-large",
        ),
        ("all the length there is", huge, 1009, "too-large"),
        ("a gigabyte that has not come", gigabyte, 1009, "too-large"),
        ("a close frame of one byte", frame(0x88, b"x"), 1002, "protocol"),
        ("a close frame without UTF-8", frame(0x88, &[3, 232, 0xff]), 1007, "utf-8"),
    ] {
        let mut app = stage.app("app:polite").await;
        app.send_bytes(&bytes).await;
        let (closed, reason) = app.closed().await;
        // Where the library answers a close frame by itself, it has no word.
        assert!(
            closed == code || (what.starts_with("a close") && closed == 1002),
            "{what}: {closed} {reason}"
        );
        assert!(reason == word || what.starts_with("a close"), "{what}: {reason}");
        assert!(matches!(soon(app.socket.next()).await, None | Some(Err(_))), "{what}");
        polite.is_served().await;
    }
    stage.sessions_become(1).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_the_largest_size_and_one_in_fragments_are_read() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    app.send(format!("{CALL}{}", " ".repeat(MESSAGE_MAX - CALL.len()))).await;
    assert!(app.answer(1).await.is_ok());
    let (first, rest) = CALL.as_bytes().split_at(9);
    let mut bytes = [frame(0x01, first), frame(0x89, b"ping")].concat();
    rest.iter().for_each(|byte| bytes.extend(frame(0x00, &[*byte])));
    bytes.extend(frame(0x80, b""));
    for byte in bytes {
        app.send_bytes(&[byte]).await;
    }
    assert!(app.answer(1).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_after_a_length_in_a_long_form_is_carried_out() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    app.is_served().await;
    let never = frame(0x81, CALL.replace("echo\"", "never\"").as_bytes());
    app.send_bytes(&[long_form(0x89, 2, b"x"), never].concat()).await;
    assert_eq!(app.closed().await, (1002, "protocol".to_owned()));
    stage.sessions_become(0).await;
    assert_eq!(stage.main.client().waiters(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_closes_hears_the_same_code() {
    let stage = Stage::new("", FILE).await;
    for code in [CloseCode::Normal, CloseCode::Away, CloseCode::Library(4999), CloseCode::Iana(3000)] {
        let mut app = stage.app("app:polite").await;
        // With something under way.
        app.ask("echo@1/never", serde_json::json!([])).await;
        app.socket.send(Message::Close(Some(CloseFrame { code, reason: "bye".into() }))).await.unwrap();
        let answer = soon(app.socket.next()).await;
        let Some(Ok(Message::Close(Some(frame)))) = answer else { panic!("{code:?} {answer:?}") };
        assert_eq!(frame.code, code);
        assert!(soon(app.socket.next()).await.is_none());
    }
    // Without a code, and with such as nobody may send.
    for payload in [
        &[][..],
        &[0, 0],
        &[3, 231],
        &1005_u16.to_be_bytes(),
        &1006_u16.to_be_bytes(),
        &2999_u16.to_be_bytes(),
        &[255, 255],
    ] {
        let mut app = stage.app("app:polite").await;
        app.send_bytes(&frame(0x88, payload)).await;
        let answer = soon(app.socket.next()).await;
        assert!(matches!(answer, Some(Ok(Message::Close(_)) | Err(_)) | None), "{payload:?} {answer:?}");
    }
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_after_a_close_frame_is_carried_out() {
    let stage = Stage::new("", FILE).await;
    let mut app: App = stage.app("app:polite").await;
    let mut bytes = frame(0x88, &1000_u16.to_be_bytes());
    bytes.extend(frame(0x81, CALL.replace("echo\"", "never\"").as_bytes()));
    app.send_bytes(&bytes).await;
    stage.sessions_become(0).await;
    assert_eq!(stage.main.client().waiters(), 0);
}
