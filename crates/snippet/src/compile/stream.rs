//! What stands in a `stream-snippet`: ports that lead to Services.

use super::http::listen;
use super::{Compiler, inner, not_here, said};
use crate::level::Level;
use crate::read::flag;
use crate::read::upstreams::service;
use crate::syntax::Directive;
use crate::table::{Build, Fate, Row};
use crate::typed::{PassTarget, Settings};
use crate::{Mistake, Position};

/// `server { listen 5432; proxy_pass db.demo.svc:5432; }` at layer 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamServer {
    /// Where.
    pub at: Position,
    /// Its ports.
    pub ports: Vec<StreamListen>,
    /// Where they lead.
    pub target: PassTarget,
    /// `proxy_protocol on`: the Service is told who the client is.
    pub gives_proxy: bool,
}

/// A port of a [`StreamServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamListen {
    /// Its number.
    pub number: u16,
    /// `udp`
    pub udp: bool,
    /// `proxy_protocol`: clients say who they are.
    pub takes_proxy: bool,
}

impl Compiler<'_> {
    pub(super) fn stream(&mut self, directives: &[Directive], servers: &mut Vec<StreamServer>) {
        for directive in directives {
            let Some(row) = self.row(Level::Stream, directive) else { continue };
            match row.fate {
                Fate::Built(Build::Server) => {
                    let server = self.stream_server(directive);
                    servers.extend(server);
                }
                _ => self.stream_setting(directive, row),
            }
        }
    }

    fn stream_setting(&mut self, directive: &Directive, row: &Row) {
        match row.fate {
            Fate::Built(_) => self.wrong(not_here(directive, "it stands in a server")),
            _ => self.setting(Level::Stream, directive, row, &mut Settings::default()),
        }
    }

    fn stream_server(&mut self, around: &Directive) -> Option<StreamServer> {
        let (mut ports, mut target, mut gives_proxy) = (Vec::new(), None, false);
        for directive in inner(around) {
            let Some(row) = self.row(Level::Stream, directive) else { continue };
            match row.fate {
                Fate::Built(Build::Listen) => {
                    let port = stream_listen(directive);
                    ports.extend(self.value(port));
                }
                Fate::Built(Build::StreamPass) => {
                    let word = &directive.arguments()[0];
                    let found = service(&word.text, false).filter(|_| word.text.contains(':'));
                    let found = found.ok_or_else(|| {
                        let text =
                            "proxy_pass of a stream leads to a Service: name.namespace.svc:port";
                        Mistake::refused(word.at, text)
                    });
                    target = self.value(found);
                }
                Fate::Built(Build::StreamProxy) => {
                    let on = flag(&directive.arguments()[0]);
                    gives_proxy = self.value(on).unwrap_or_default();
                }
                Fate::Built(_) => {
                    self.wrong(Mistake::refused(directive.at(), said(directive, row)))
                }
                _ => self.stream_setting(directive, row),
            }
        }
        if ports.is_empty() || target.is_none() {
            let text = "a server of a stream has \"listen\" and \"proxy_pass\"";
            self.wrong(Mistake::refused(around.at(), text));
        }
        Some(StreamServer { at: around.at(), ports, target: target?, gives_proxy })
    }
}

fn stream_listen(directive: &Directive) -> Result<StreamListen, Mistake> {
    let mut plain = directive.clone();
    plain.words.retain(|word| word.text != "udp");
    let udp = plain.words.len() < directive.words.len();
    let listen = listen(&plain)?;
    if listen.address.is_some() {
        let text = "listen with an address: ports of layer 4 are open on all";
        return Err(Mistake::refused(directive.at(), text));
    }
    Ok(StreamListen { number: listen.port, udp, takes_proxy: listen.proxy_protocol })
}
