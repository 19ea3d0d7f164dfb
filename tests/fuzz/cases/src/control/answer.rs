//! Answers in HTTP/1.1 (RFC 9112).

use httparse::{EMPTY_HEADER, Header, Response, Status, parse_chunk_size};

/// Bytes of the first answer in `bytes`, if it is complete. An answer to `HEAD` has no body, despite its
/// headers.
///
/// Panics if it is not an answer.
pub(super) fn whole_answer(bytes: &[u8], has_body: bool) -> Option<usize> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = Response::new(&mut headers);
    let head = match response.parse(bytes) {
        Ok(Status::Complete(head)) => head,
        Ok(Status::Partial) => return None,
        Err(error) => panic!("{error} in the answer {}", bytes.escape_ascii()),
    };
    let rest = &bytes[head..];
    match response.code.unwrap() {
        // Another follows.
        100..200 => Some(head + whole_answer(rest, has_body)?),
        204 | 304 => Some(head),
        _ if !has_body => Some(head),
        _ => Some(head + body(response.headers, rest)?).filter(|whole| *whole <= bytes.len()),
    }
}

/// Bytes of a body. None if it is incomplete, or ends with the connection.
fn body(headers: &[Header<'_>], bytes: &[u8]) -> Option<usize> {
    let header = |name: &str| {
        let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(std::str::from_utf8(found.value).unwrap())
    };
    match (header("content-length"), header("transfer-encoding")) {
        (Some(length), None) => Some(length.parse().unwrap()),
        (None, Some("chunked")) => chunks(bytes),
        (None, None) => None,
        (length, coding) => panic!("a body of the length {length:?} in the coding {coding:?}"),
    }
}

fn chunks(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let Status::Complete((head, size)) = parse_chunk_size(&bytes[at..]).unwrap() else { return None };
        let end = at + head + usize::try_from(size).unwrap();
        let line_end = bytes.get(end..end + 2)?;
        assert_eq!(line_end, b"\r\n", "a chunk without an end");
        at = end + 2;
        if size == 0 {
            return Some(at);
        }
    }
}
