//! Requests to the guest, and its answers.

use serde_json::{Value, json};
use weir_host::{Error, HandlerError};

use crate::{
    language::Language,
    stage::{MESSAGE_SIZE, Stage},
};

pub(super) async fn echo_at_every_size(language: &Language) {
    let stage = Stage::new(language).await;
    for size in [0, 1024, MESSAGE_SIZE] {
        let bytes: Vec<u8> = (0..=255).cycle().take(usize::try_from(size).unwrap()).collect();
        let answer = stage.ask("echo", bytes.clone()).await.unwrap();
        assert!(answer == bytes, "{size} bytes came back as {}", answer.len());
    }
}

pub(super) async fn request_over_message_size(language: &Language) {
    let stage = Stage::new(language).await;
    let size = MESSAGE_SIZE + 1;
    let answer = stage.ask("echo", vec![b'x'; usize::try_from(size).unwrap()]).await;
    assert_eq!(answer, Err(Error::TooLarge { bytes: size, allowed: MESSAGE_SIZE }));
    assert_eq!(stage.told("echo", "on").await, "on");
}

pub(super) async fn answer_over_message_size(language: &Language) {
    let stage = Stage::new(language).await;
    stage.refused("large", &(MESSAGE_SIZE + 1).to_string(), "too-large").await;
    assert_eq!(stage.told("large", &MESSAGE_SIZE.to_string()).await.len() as u64, MESSAGE_SIZE);
}

pub(super) async fn typed_arguments(language: &Language) {
    let mut stage = Stage::new(language).await;
    let sum: Value = serde_json::from_str(&stage.told("add", r#"{"left":40,"right":2}"#).await).unwrap();
    assert_eq!(sum, json!({ "sum": 42 }));
    let published: Value = serde_json::from_str(&stage.heard("sum").await).unwrap();
    assert_eq!(published, sum);
    stage.refused("add", r#"{"left":1000001,"right":2}"#, "overflow").await;
}

pub(super) async fn wrong_arguments(language: &Language) {
    let stage = Stage::new(language).await;
    for arguments in [r#"{"left":"x","right":1}"#, r#"{"left":1}"#, r#"{"left":1,"#, "[]", ""] {
        let HandlerError { message, .. } = stage.refused("add", arguments, "invalid-argument").await;
        assert!(!message.is_empty(), "nothing is said of `{arguments}`");
    }
    assert_eq!(stage.told("echo", "on").await, "on");
}

pub(super) async fn own_error(language: &Language) {
    let stage = Stage::new(language).await;
    let error = stage.refused("fail", "no-cheese there is none: \u{1f9c0}", "no-cheese").await;
    assert_eq!(error.message, "there is none: \u{1f9c0}");
}
