//! `stream-snippet` of the ConfigMap: more TCP and UDP services. Layer 4 is served alike whichever engine serves HTTP.

use super::{parse, said, vain};
use model::snippet::PassTarget;
use model::{Message, Severity, Transport};
use snippet::{Context, Names, StreamServer};

/// The key of the ConfigMap.
pub(crate) const STREAM: &str = "stream-snippet";

/// A port, and where it leads, as an entry of tcp-services or udp-services is written.
pub(crate) struct StreamEntry {
    pub(crate) transport: Transport,
    pub(crate) port: String,
    pub(crate) value: String,
}

/// The ports of a text, and what there is to say of it. One that is wrong has none.
pub(crate) fn ports(text: &str) -> (Vec<StreamEntry>, Vec<(Severity, Message)>) {
    let meaning =
        parse(Context::Stream, text).and_then(|snippet| snippet.understand(&Names::default()));
    match meaning {
        Ok(meaning) => {
            let notes = meaning.notes.iter().map(|note| (Severity::Notice, vain(note, note.at)));
            (meaning.streams.iter().flat_map(entries).collect(), notes.collect())
        }
        Err(mistakes) => {
            let wrong = mistakes.iter().map(|mistake| {
                let said = said(mistake);
                let text = format!("{said}; it opens no port until it is mended");
                (Severity::Error, said.within(text))
            });
            (Vec::new(), wrong.collect())
        }
    }
}

fn entries(server: &StreamServer) -> Vec<StreamEntry> {
    let PassTarget::Service { namespace, name, port } = &server.target else { return Vec::new() };
    let entry = |listen: &snippet::StreamListen| {
        let takes = if listen.takes_proxy { "PROXY" } else { "" };
        let gives = if server.gives_proxy { "PROXY" } else { "" };
        StreamEntry {
            transport: if listen.udp { Transport::Udp } else { Transport::Tcp },
            port: listen.number.to_string(),
            value: format!("{namespace}/{name}:{port}:{takes}:{gives}"),
        }
    };
    server.ports.iter().map(entry).collect()
}
