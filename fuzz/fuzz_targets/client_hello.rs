//! A ClientHello in any pieces is read or refused, and the name in it is a host that can be routed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustls::server::Acceptor;

fn server_name(bytes: &[u8], step: usize) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    for mut piece in bytes.chunks(step.max(1)) {
        while !piece.is_empty() {
            acceptor.read_tls(&mut piece).ok().filter(|read| *read > 0)?;
        }
        if let Some(accepted) = acceptor.accept().ok()? {
            return Some(accepted.client_hello().server_name().map(str::to_owned));
        }
    }
    None
}

fuzz_target!(|bytes: &[u8]| {
    let [step, hello @ ..] = bytes else { return };
    let found = server_name(hello, hello.len());
    if let Some(Some(name)) = &found {
        let host = wire::host::parse(name.as_bytes()).expect("a name of TLS is a host");
        assert_eq!(host.port, None);
        assert_eq!(host.name, name.trim_end_matches('.').to_ascii_lowercase());
        assert_eq!(server_name(hello, usize::from(*step)), found);
    }
});
