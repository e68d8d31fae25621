//! Hosts of requests: properties of what any authority is read as.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use wire::host::parse;

proptest! {
    #[test]
    fn a_name_is_its_own_name(authority in "[A-Za-z0-9._~:@\\[\\]-]{0,12}") {
        let Ok(host) = parse(authority.as_bytes()) else { return Ok(()) };
        let again = parse(host.name.as_bytes());
        prop_assert_eq!(again.map(|again| (again.name, again.port)), Ok((host.name.clone(), None)));
        prop_assert!(!host.name.bytes().any(|byte| byte.is_ascii_uppercase()));
        prop_assert!(!host.name.ends_with('.'));
    }

    #[test]
    fn every_port_is_read_and_case_is_not(name in "[A-Za-z][A-Za-z0-9-]{0,9}(\\.[a-z]{1,5})?", port: u32) {
        let port = port % 100_000;
        let authority = format!("{name}:{port}");
        let parsed = parse(authority.as_bytes());
        match u16::try_from(port) {
            Ok(port) => {
                let host = parsed.expect("a valid port");
                prop_assert_eq!((&*host.name, host.port), (&*name.to_lowercase(), Some(port)));
            }
            Err(_) => prop_assert!(parsed.is_err()),
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_printable(authority: Vec<u8>) {
        if let Ok(host) = parse(&authority) {
            prop_assert!(host.name.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
