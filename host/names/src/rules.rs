//! Rules for names. They are `const`, so that a wrong name in an extension's source does not compile.

use std::str;

/// Whether the text is an [`ExtensionId`](crate::ExtensionId).
#[must_use]
pub const fn is_extension_id(text: &str) -> bool {
    is_queue_name(text) && !matches!(text.as_bytes(), b"main")
}

/// Whether the text is a [`QueueName`](crate::QueueName), a [`HookDirName`](crate::HookDirName) or a
/// [`StoreName`](crate::StoreName).
#[must_use]
pub const fn is_queue_name(text: &str) -> bool {
    match text.as_bytes() {
        [b'a'..=b'z', rest @ ..] => text.len() <= 64 && all_lower(rest),
        _ => false,
    }
}

/// Whether the text is a [`PeerName`](crate::PeerName).
#[must_use]
pub fn is_peer_name(text: &str) -> bool {
    text.len() <= 64
        && text.split_once(':').is_some_and(|(kind, name)| is_queue_name(kind) && is_queue_name(name))
}

/// Whether the text is a [`ContractName`](crate::ContractName).
#[must_use]
pub const fn is_contract_name(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let mut in_segment = false;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'@' => return in_segment && text.len() <= 128 && is_version(rest),
            b'.' if in_segment => in_segment = false,
            byte if is_lower(*byte) => in_segment = true,
            _ => return false,
        }
    }
    false
}

/// Whether the text is a [semantic version](https://semver.org) of at most 64 bytes.
#[must_use]
pub const fn is_semantic_version(text: &str) -> bool {
    // The core has three numbers. Identifiers follow a `-`, where numbers begin with no 0, and others a `+`.
    let (mut rest, mut dots, mut length, mut part) = (text.as_bytes(), 0, 0, b' ');
    let (mut is_number, mut begins_with_zero) = (true, false);
    while let [byte, tail @ ..] = rest {
        let ends = *byte == b'+' && part != b'+' || *byte == b'-' && part == b' ' || *byte == b'.';
        if ends {
            let is_padded = is_number && begins_with_zero && length > 1 && part != b'+';
            if length == 0 || is_padded || (part == b' ' && *byte != b'.' && dots != 2) {
                return false;
            }
            if *byte == b'.' {
                dots += 1;
            } else {
                part = *byte;
            }
            (length, is_number, begins_with_zero) = (0, true, false);
        } else {
            let is_digit = byte.is_ascii_digit();
            if part == b' ' && !is_digit || !(byte.is_ascii_alphanumeric() || *byte == b'-') {
                return false;
            }
            is_number = is_number && is_digit;
            begins_with_zero = begins_with_zero || (length == 0 && *byte == b'0');
            length += 1;
        }
        rest = tail;
    }
    let is_padded = is_number && begins_with_zero && length > 1 && part != b'+';
    length > 0 && !is_padded && (part != b' ' || dots == 2) && text.len() <= 64
}

/// Whether the text is an [`InterfaceName`](crate::InterfaceName).
#[must_use]
pub fn is_interface_name(text: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b":/@.+-".contains(&byte);
    text == "*" || (1..=256).contains(&text.len()) && text.bytes().all(is_right)
}

/// Whether the text is an [`OperationName`](crate::OperationName).
#[must_use]
pub const fn is_operation_name(text: &str) -> bool {
    each!(byte in text.as_bytes() => {
        if !byte.is_ascii_graphic() || *byte == b'/' {
            return false;
        }
    });
    !text.is_empty() && text.len() <= 128
}

/// Whether the text is a [`Topic`](crate::Topic).
#[must_use]
pub const fn is_topic(text: &str) -> bool {
    is_dotted(text, false)
}

/// Whether the text is a [`TopicPattern`](crate::TopicPattern).
#[must_use]
pub const fn is_topic_pattern(text: &str) -> bool {
    is_dotted(text, true)
}

/// Whether the pattern `wide` matches all that the topic or pattern `narrow` matches.
#[must_use]
pub fn covers(wide: &str, narrow: &str) -> bool {
    let mut narrow = narrow.split('.');
    for segment in wide.split('.') {
        match (segment, narrow.next()) {
            (_, None) => return false,
            (">", Some(_)) => return true,
            ("*", Some(other)) if other != ">" => {}
            (segment, Some(other)) if segment == other => {}
            _ => return false,
        }
    }
    narrow.next().is_none()
}

/// Whether the text is a topic, or with `pattern` a topic pattern.
const fn is_dotted(text: &str, pattern: bool) -> bool {
    let mut rest = text.as_bytes();
    let mut segment: Option<u8> = None;
    let mut segments = 1;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        segment = match (segment, byte) {
            (Some(b'>'), _) | (None, b'.') => return false,
            (Some(_), b'.') => {
                segments += 1;
                None
            }
            (Some(b'*'), _) => return false,
            (None, b'*' | b'>') if pattern => Some(*byte),
            (_, byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') => Some(b'a'),
            _ => return false,
        };
    }
    segment.is_some() && segments <= 16 && text.len() <= 256
}

const fn is_version(digits: &[u8]) -> bool {
    match (digits, str::from_utf8(digits)) {
        ([b'0'], _) => true,
        ([b'1'..=b'9', ..], Ok(text)) => u16::from_str_radix(text, 10).is_ok(),
        _ => false,
    }
}

const fn all_lower(bytes: &[u8]) -> bool {
    each!(byte in bytes => {
        if !is_lower(*byte) {
            return false;
        }
    });
    true
}

/// Whether the byte is a lowercase letter, a digit or `-`.
const fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_well_formed_are_refused() {
        for bad in ["", "main", "A", "1a", "a_b", "a b", &"a".repeat(65)] {
            assert!(!is_extension_id(bad), "{bad}");
            assert!(bad == "main" || !is_queue_name(bad), "{bad}");
        }
        for bad in ["", "a", "a@", "a@01", "a@x", "a@+1", "a..b@1", "a.@1", "a@1@2", "a@65536", ".@1", "A@1"]
        {
            assert!(!is_contract_name(bad), "{bad}");
        }
        for bad in ["", " ", "a b", "**", "a:b/*", "ä", "a\n", &"a".repeat(257)] {
            assert!(!is_interface_name(bad), "{bad}");
        }
        for bad in ["", "a b", "a/b", "ä", &"a".repeat(129)] {
            assert!(!is_operation_name(bad), "{bad}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "a.>.b", "a>", ">a", "**", "*a", "a\0", "a b"] {
            assert!(!is_topic_pattern(bad), "{bad}");
        }
        for bad in ["*", "a.>", ""] {
            assert!(!is_topic(bad), "{bad}");
        }
    }

    #[test]
    fn well_formed_names_are_accepted() {
        assert!(is_extension_id("device-info2"));
        assert!(is_queue_name("main") && is_queue_name(&"a".repeat(64)));
        for good in ["a@0", "device.info@1", "x-1.y@65535"] {
            assert!(is_contract_name(good), "{good}");
        }
        for good in ["acme:greeter/api@1.0.0", "api", "a:b/c", "a:b/c@0.2.0-rc.1+x", "*"] {
            assert!(is_interface_name(good), "{good}");
        }
        assert!(is_operation_name("get_All-2.x"));
        for good in ["*", ">", "a.*.b", "settings.changed.>", "A_b-1"] {
            assert!(is_topic_pattern(good), "{good}");
        }
        assert!(is_topic("settings.changed.volume"));
    }

    #[test]
    fn a_grant_covers_only_what_it_contains() {
        assert!(covers("a.>", "a.*.c"));
        assert!(covers("a.*", "a.b"));
        assert!(!covers("a.*", "a.>"));
        assert!(!covers("a.b", "a.*"));
        assert!(!covers("a.>", "a"));
    }
}
