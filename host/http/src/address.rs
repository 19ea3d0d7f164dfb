//! Which addresses a request may go to, once its name is resolved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_config::AddressGrant;

/// Whether a request may go to the address: it must be public or granted.
pub(crate) fn is_allowed(address: IpAddr, grants: &[AddressGrant]) -> bool {
    let is_named = |grant: &AddressGrant| match grant {
        AddressGrant::Range(range) => range.contains(address),
        _ => false,
    };
    // A range grants an address only in its own notation: an IPv4 address inside one of IPv6 matches no IPv4 range.
    if grants.iter().any(is_named) {
        return true;
    }
    match effective(address) {
        Effective::V4(address) => {
            is_public_v4(address) || grants.iter().any(|grant| is_of_kind_v4(*grant, address))
        }
        Effective::V6(address) => {
            is_public_v6(address) || grants.iter().any(|grant| is_of_kind_v6(*grant, address))
        }
    }
}

enum Effective {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// The address that packets reach in the end: the IPv4 address inside one of IPv6, if there is one.
fn effective(address: IpAddr) -> Effective {
    let address = match address {
        IpAddr::V4(address) => return Effective::V4(address),
        IpAddr::V6(address) => address,
    };
    let octets = address.octets();
    let embedded = |at: usize| match octets.get(at..at + 4) {
        Some(&[a, b, c, d]) => Effective::V4(Ipv4Addr::new(a, b, c, d)),
        _ => Effective::V6(address),
    };
    match address.segments() {
        // ::ffff:0:0/96, mapped (RFC 4291), and 64:ff9b::/96, translated (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(12),
        // 2002::/16, in a tunnel (RFC 3056).
        [0x2002, ..] => embedded(2),
        _ => Effective::V6(address),
    }
}

/// Whether the address is public: neither multicast nor in the registry of special purposes (RFC 6890).
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

/// Whether the address is public: global unicast (RFC 4291), but neither in 2001::/23 nor for documentation.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn is_of_kind_v4(grant: AddressGrant, address: Ipv4Addr) -> bool {
    match grant {
        AddressGrant::Loopback => address.is_loopback(),
        AddressGrant::LinkLocal => address.is_link_local(),
        AddressGrant::Private => address.is_private(),
        AddressGrant::Shared => matches!(address.octets(), [100, 64..=127, ..]),
        AddressGrant::Range(_) => false,
    }
}

fn is_of_kind_v6(grant: AddressGrant, address: Ipv6Addr) -> bool {
    match grant {
        AddressGrant::Loopback => address.is_loopback(),
        AddressGrant::LinkLocal => address.is_unicast_link_local(),
        AddressGrant::Private => address.is_unique_local(),
        AddressGrant::Shared | AddressGrant::Range(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(address: &str, grants: &[&str]) -> bool {
        let grants: Vec<_> = grants.iter().map(|grant| grant.parse().unwrap()).collect();
        is_allowed(address.parse().unwrap(), &grants)
    }

    #[test]
    fn public_addresses_need_no_grant() {
        for address in ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.0.1.1"] {
            assert!(allowed(address, &[]), "{address}");
            assert!(allowed(&format!("::ffff:{address}"), &[]), "mapped {address}");
            assert!(allowed(&format!("64:ff9b::{address}"), &[]), "translated {address}");
        }
        for address in ["2606:4700::1111", "2a00::1", "2002:101:101::1", "2001:200::1"] {
            assert!(allowed(address, &[]), "{address}");
        }
    }

    #[test]
    fn all_others_need_one_in_whatever_notation() {
        let kinds = ["loopback", "link-local", "private", "shared"];
        for (address, kind) in [
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("2002:7f00:1::", "loopback"),
            ("169.254.169.254", "link-local"),
            ("::ffff:169.254.169.254", "link-local"),
            ("fe80::1", "link-local"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.0.1", "private"),
            ("::ffff:192.168.0.1", "private"),
            ("fc00::1", "private"),
            ("fd12::1", "private"),
            ("100.64.0.1", "shared"),
            ("100.127.255.255", "shared"),
        ] {
            assert!(!allowed(address, &[]), "{address}");
            for other in kinds {
                assert_eq!(allowed(address, &[other]), other == kind, "{address} as {other}");
            }
        }
    }

    #[test]
    fn what_is_no_single_machine_is_reached_only_as_a_range() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::127.0.0.1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fec0::1",
            "100::1",
        ] {
            assert!(!allowed(address, &["loopback", "link-local", "private", "shared"]), "{address}");
            assert!(allowed(address, &[address]), "{address}");
        }
        assert!(allowed("192.168.7.9", &["192.168.7.0/24"]));
        assert!(!allowed("192.168.8.9", &["192.168.7.0/24"]));
        assert!(!allowed("::ffff:192.168.7.9", &["192.168.7.0/24"]));
    }
}
