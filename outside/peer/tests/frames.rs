//! The codec: frames as values and as bytes are the same, and no bytes do harm.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use weir_names::{Error, HandlerError, TraceContext};
use weir_peer::frame::{
    FrameError, FromMain, FromPeer, HELLO_MAX, Hello, OVERHEAD, ROOM_MIN, SHARED_MIN, VERSION, frame_max,
    next_frame,
};

/// Texts and numbers of which a frame is made.
#[derive(Clone, Debug)]
struct Parts {
    texts: [String; 3],
    many: Vec<String>,
    id: u32,
    numbers: [u64; 2],
    small: [u32; 4],
    flag: bool,
    payload: Bytes,
}

fn parts() -> impl Strategy<Value = Parts> {
    let payload = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..200),
        1 => prop::collection::vec(any::<u8>(), SHARED_MIN - 1..SHARED_MIN + 2),
    ];
    let texts = ["[a-zé:.@]{0,60}", "[a-zé:.@]{0,60}", "[a-zé:.@]{0,60}"];
    let many = prop::collection::vec("[a-z]{1,20}", 0..20);
    (texts, many, 1..u32::MAX, any::<[u64; 2]>(), any::<[u32; 4]>(), any::<bool>(), payload).prop_map(
        |(texts, many, id, numbers, small, flag, payload)| Parts {
            texts,
            many,
            id,
            numbers,
            small,
            flag,
            payload: payload.into(),
        },
    )
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn span(id: u32, is_sampled: bool) -> TraceContext {
    let text = format!("00-0af7651916cd43dd8448eb211c80319c-{id:016x}-{:02x}", u8::from(is_sampled));
    text.parse().unwrap()
}

/// One of each frame that a peer sends.
fn from_peer(parts: &Parts) -> Vec<FromPeer<'_>> {
    let Parts { texts, many, id, small, flag, payload, .. } = parts;
    let [a, b, c] = texts.each_ref().map(String::as_str);
    let (id, payload, [timeout_ms, x, y, z]) = (*id, payload.clone(), *small);
    let (oldest, newest) = (1, VERSION);
    vec![
        FromPeer::Hello(Hello { oldest, newest, requests: x, events: y, name: a, token: some(b) }),
        FromPeer::Call {
            id,
            timeout_ms,
            contract: a,
            operation: b,
            provider: some(c),
            payload: payload.clone(),
        },
        FromPeer::Cancel { id },
        FromPeer::Publish { id: z, timeout_ms, to: some(a), topic: b, payload: payload.clone() },
        FromPeer::Subscribe { id, pattern: a },
        FromPeer::Unsubscribe { id: y, subscription: x },
        FromPeer::Put { id, timeout_ms, until_done: *flag, queue: a, payload: payload.clone() },
        FromPeer::Take { id: z, jobs: x, queue: a },
        FromPeer::Done { job: id },
        FromPeer::Return { job: id },
        FromPeer::Serve { id, contract: a, operations: many.iter().map(String::as_str).collect() },
        FromPeer::Reply { request: id, payload },
        FromPeer::Fail { request: id, error: HandlerError::new(a, b) },
        FromPeer::Credit { events: x },
        FromPeer::Trace { span: span(id, *flag) },
        FromPeer::Describe { id, documents: parts.payload.clone() },
        FromPeer::Counted { count: parts.numbers[0] },
        FromPeer::Refuse { request: id, error: Error::handler(a, b) },
    ]
}

/// One of each frame that Main sends.
fn from_main(parts: &Parts) -> Vec<FromMain<'_>> {
    let Parts { texts, id, numbers, small, flag, payload, .. } = parts;
    let [a, b, c] = texts.each_ref().map(String::as_str);
    let (id, payload, [x, y, z, _], [sequence, lost]) = (*id, payload.clone(), *small, *numbers);
    vec![
        FromMain::Welcome {
            version: VERSION,
            session: lost,
            message_size: x,
            in_flight: y,
            subscriptions: z,
        },
        FromMain::Close { code: a, text: b },
        FromMain::Answer { id, payload: payload.clone() },
        FromMain::Error { id, error: Error::handler(a, b) },
        FromMain::Request {
            request: id,
            remaining_ms: x,
            message: lost,
            sender: a,
            contract: b,
            operation: c,
            payload: payload.clone(),
        },
        FromMain::GivenUp { request: id },
        FromMain::Event {
            subscription: x,
            sequence,
            lost,
            retained: *flag,
            sender: a,
            topic: b,
            payload: payload.clone(),
        },
        FromMain::Job { job: id, message: lost, deliveries: y, sender: a, queue: b, payload },
        FromMain::Dropped { subscription: x },
        FromMain::NoJobs { queue: a },
        FromMain::Trace { span: span(id, *flag) },
    ]
}

/// The only frame of the buffer.
fn cut(mut buffer: BytesMut) -> Bytes {
    let frame = next_frame(&mut buffer, usize::MAX).unwrap().unwrap();
    assert!(buffer.is_empty(), "more than one frame");
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_that_is_written_and_read_is_the_same(parts in parts()) {
        for frame in from_peer(&parts) {
            let mut buffer = BytesMut::new();
            frame.encode(&mut buffer);
            let whole = cut(buffer);
            prop_assert_eq!(FromPeer::decode(&whole), Ok(frame));
        }
        for frame in from_main(&parts) {
            let mut buffer = BytesMut::new();
            frame.encode(&mut buffer);
            let whole = cut(buffer);
            prop_assert_eq!(FromMain::decode(&whole), Ok(frame));
        }
    }

    #[test]
    fn a_frame_that_is_cut_short_is_refused(parts in parts()) {
        for frame in from_peer(&parts) {
            let mut buffer = BytesMut::new();
            frame.encode(&mut buffer);
            let whole = cut(buffer);
            for end in 0..whole.len().min(150) {
                if let Ok(shorter) = FromPeer::decode(&whole.slice(..end)) {
                    prop_assert_ne!(shorter, frame.clone());
                }
            }
        }
    }

    #[test]
    fn a_frame_with_bytes_after_its_end_is_refused_unless_they_are_payload(parts in parts()) {
        use FromPeer::{Call, Describe, Hello, Publish, Put, Reply};

        for frame in from_peer(&parts) {
            let mut buffer = BytesMut::new();
            frame.encode(&mut buffer);
            let mut longer = BytesMut::from(&cut(buffer)[..]);
            longer.extend_from_slice(b"x");
            let longer = longer.freeze();
            let is_open = matches!(
                frame,
                Call { .. } | Describe { .. } | Hello { .. } | Publish { .. } | Put { .. } | Reply { .. }
            );
            prop_assert_eq!(FromPeer::decode(&longer).is_ok(), is_open, "{:?}", frame);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        kind in prop::sample::select((0..=0xff).collect::<Vec<u8>>()),
    ) {
        let mut frame = vec![kind];
        frame.extend_from_slice(&bytes);
        let frame = Bytes::from(frame);
        let _any = (FromPeer::decode(&frame), FromMain::decode(&frame));
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = next_frame(&mut buffer, HELLO_MAX) {}
    }

    #[test]
    fn every_split_of_a_stream_gives_the_same_frames(
        parts in parts(),
        cuts in prop::collection::vec(1..300_usize, 1..100),
    ) {
        let (mut stream, frames) = (BytesMut::new(), from_main(&parts));
        frames.iter().for_each(|frame| frame.encode(&mut stream));
        let (mut buffer, mut found, mut cuts) = (BytesMut::new(), 0, cuts.into_iter().cycle());
        while !stream.is_empty() {
            let piece = stream.split_to(cuts.next().unwrap().min(stream.len()));
            buffer.extend_from_slice(&piece);
            while let Some(frame) = next_frame(&mut buffer, 100_000).unwrap() {
                let decoded = FromMain::decode(&frame);
                prop_assert_eq!(decoded.as_ref(), Ok(&frames[found]));
                found += 1;
            }
        }
        prop_assert_eq!((found, buffer.len()), (frames.len(), 0));
    }
}

#[test]
fn a_frame_that_is_too_long_is_refused_before_it_comes() {
    let mut buffer = BytesMut::from(&(1_u32 << 30).to_le_bytes()[..]);
    let max = frame_max(1 << 20);
    assert_eq!(next_frame(&mut buffer, max), Err(FrameError::TooLong { length: 1 << 30, max }));
    let mut buffer = BytesMut::from(&[0; 4][..]);
    assert_eq!(next_frame(&mut buffer, max), Err(FrameError::Empty));
}

#[test]
fn a_length_alone_reserves_little() {
    let mut buffer = BytesMut::from(&(60_u32 << 20).to_le_bytes()[..]);
    assert_eq!(next_frame(&mut buffer, 64 << 20), Ok(None));
    assert!(buffer.capacity() <= 80 * 1024, "{} bytes", buffer.capacity());
}

#[test]
fn a_large_payload_shares_the_memory_that_it_was_read_into_and_a_small_one_does_not() {
    for (size, shared) in [(SHARED_MIN - 1, false), (SHARED_MIN, true)] {
        let mut buffer = BytesMut::new();
        FromMain::Answer { id: 1, payload: vec![7; size].into() }.encode(&mut buffer);
        let frame = cut(buffer);
        let FromMain::Answer { payload, .. } = FromMain::decode(&frame).unwrap() else { panic!() };
        assert_eq!(frame.as_ptr_range().contains(&payload.as_ptr()), shared);
    }
}

#[test]
fn what_comes_after_a_large_frame_does_not_keep_its_memory() {
    let payload = Bytes::from(vec![7; 200_000]);
    let mut buffer = BytesMut::new();
    FromPeer::Reply { request: 1, payload }.encode(&mut buffer);
    FromPeer::Reply { request: 2, payload: Bytes::from(vec![8; SHARED_MIN]) }.encode(&mut buffer);
    let large = next_frame(&mut buffer, usize::MAX).unwrap().unwrap();
    let small = next_frame(&mut buffer, usize::MAX).unwrap().unwrap();
    assert!(large.is_unique(), "the next frame is elsewhere");
    assert!(matches!(FromPeer::decode(&small), Ok(FromPeer::Reply { request: 2, .. })));
    // Nor does what has not come yet.
    assert!(buffer.capacity() < large.len() / 2);
}

#[test]
fn all_frames_without_a_payload_fit_the_smallest_room() {
    let operations = vec!["o".repeat(128); 256];
    let operations = operations.iter().map(String::as_str).collect();
    let mut buffer = BytesMut::new();
    FromPeer::Serve { id: 1, contract: &"c".repeat(128), operations }.encode(&mut buffer);
    assert!(buffer.len() <= frame_max(0) && frame_max(0) == ROOM_MIN + OVERHEAD);

    let mut buffer = BytesMut::new();
    FromMain::Close { code: "protocol", text: &"é".repeat(1000) }.encode(&mut buffer);
    assert!(buffer.len() <= HELLO_MAX);

    let (name, token) = ("n".repeat(64), "t".repeat(255));
    let hello = Hello { oldest: 1, newest: 1, requests: 1, events: 1, name: &name, token: Some(&token) };
    let mut buffer = BytesMut::new();
    FromPeer::Hello(hello).encode(&mut buffer);
    assert!(buffer.len() <= HELLO_MAX);
}

#[test]
fn names_that_are_longer_than_a_field_are_cut_at_a_character() {
    let queue = "é".repeat(200);
    let mut buffer = BytesMut::new();
    FromPeer::Take { id: 1, jobs: 1, queue: &queue }.encode(&mut buffer);
    let frame = cut(buffer);
    assert_eq!(FromPeer::decode(&frame), Ok(FromPeer::Take { id: 1, jobs: 1, queue: &queue[..254] }));
}

#[test]
fn a_fault_names_the_frame_and_the_field() {
    let faults = [
        (&b"\x10\0\0\0\0"[..], "CALL: `id` is 0"),
        (b"\x11\x01\0", "CANCEL: `id` is cut short"),
        (b"\x13\x01\0\0\0\x01\0\xff", "SUBSCRIBE: `pattern` is not UTF-8"),
        (b"\x17\x01\0\0\0x", "DONE: `end` is followed by more bytes"),
        (b"\x01HTTP", "HELLO: `magic` is not `WEIR`"),
        (b"\x15\x01\0\0\0\0\0\0\0\x02", "PUT: `flags` has unknown bits"),
        (b"\x7f", "a frame of the unknown kind 0x7f"),
        (b"", "an empty frame"),
    ];
    for (bytes, fault) in faults {
        assert_eq!(FromPeer::decode(&Bytes::from_static(bytes)).unwrap_err().to_string(), fault);
    }
}

#[test]
fn the_names_of_frames_are_those_of_the_specification() {
    let names = [FromPeer::Cancel { id: 1 }.name(), FromMain::GivenUp { request: 1 }.name()];
    assert_eq!(names, ["CANCEL", "GIVEN_UP"]);
}

/// The frames of the example in the specification: from the peer or not, name, bytes.
fn example() -> Vec<(bool, String, BytesMut)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/peer-protocol.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    let mut frames = Vec::new();
    for line in block.lines() {
        if let Some((side, name)) = line.split_once(' ').filter(|(side, _)| matches!(*side, ">" | "<")) {
            frames.push((side == ">", name.to_owned(), BytesMut::new()));
        } else {
            let bytes = line.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
            frames.last_mut().unwrap().2.extend(bytes);
        }
    }
    frames
}

#[test]
fn the_example_in_the_specification_is_what_both_sides_write() {
    let frames = example();
    assert_eq!(frames.len(), 8);
    for (is_peers, name, bytes) in frames {
        let (frame, mut again) = (cut(bytes.clone()), BytesMut::new());
        let found = if is_peers {
            let decoded = FromPeer::decode(&frame).unwrap();
            decoded.encode(&mut again);
            decoded.name()
        } else {
            let decoded = FromMain::decode(&frame).unwrap();
            decoded.encode(&mut again);
            decoded.name()
        };
        assert_eq!((found, again), (name.as_str(), bytes));
    }
}
