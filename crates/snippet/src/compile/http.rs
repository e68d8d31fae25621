//! What stands at http level: servers, zones, and settings for everybody.

use super::maps::counts;
use super::{Compiler, inner, said};
use crate::level::Level;
use crate::read::{Reader, bytes, invalid, is_digits};
use crate::syntax::{Directive, Word};
use crate::table::{Build, Fate};
use crate::typed::{ConnZone, GlobalScope, Listen, OwnServer, Rate, ReqZone, VirtualName};
use crate::{Mistake, Needed};

/// The least that a zone may have, as in nginx: eight pages.
const ZONE: u64 = 8 * 4096;

impl Compiler<'_> {
    pub(super) fn global(&mut self, directives: &[Directive], http: &mut GlobalScope) {
        for directive in directives {
            let Some(row) = self.row(Level::Http, directive) else { continue };
            let Fate::Built(build) = row.fate else {
                self.setting(Level::Http, directive, row, &mut http.settings);
                continue;
            };
            match build {
                Build::Map => {
                    let map = self.map(directive);
                    http.maps.extend(self.value(map).filter(|map| counts(&map.name)));
                }
                Build::Geo => {
                    let geo = self.geo(directive);
                    http.geos.extend(self.value(geo).filter(|geo| counts(&geo.name)));
                }
                Build::SplitClients => {
                    let split = self.split_clients(directive);
                    http.splits.extend(self.value(split).filter(|split| counts(&split.name)));
                }
                Build::RequestZone => {
                    let zone = request_zone(&self.reader, directive);
                    http.request_zones.extend(self.value(zone));
                }
                Build::ConnectionZone => {
                    let zone = connection_zone(&self.reader, directive);
                    http.connection_zones.extend(self.value(zone));
                }
                Build::Server => self.server(directive, http),
                Build::Types => self.types(directive, &mut http.settings),
                _ => self.wrong(Mistake::refused(directive.at(), said(directive, row))),
            }
        }
    }

    fn server(&mut self, directive: &Directive, http: &mut GlobalScope) {
        let mut server = OwnServer { at: directive.at(), ..OwnServer::default() };
        let mut names = None;
        for directive in inner(directive) {
            let Some(row) = self.row(Level::Server, directive) else { continue };
            match row.fate {
                Fate::Built(Build::Listen) => {
                    let listen = listen(directive);
                    if let Some(listen) = self.value(listen) {
                        self.listens(directive, listen, &mut server, http);
                    }
                }
                Fate::Built(Build::ServerName) => {
                    for word in directive.arguments() {
                        let name = self.server_name(word);
                        server.names.extend(self.value(name));
                    }
                    names = Some(directive);
                }
                _ => self.one(Level::Server, directive, row, &mut server.scope, None),
            }
        }
        if server.listens.is_empty() {
            let text = "a server without \"listen\": port 80 is that of the controller";
            self.wrong(Mistake::refused(directive.at(), text));
        }
        if let Some(directive) = names.filter(|_| is_taken(&server, http)) {
            let why = "a server before has one of these names on this port, and answers to it";
            self.reader.note(directive, why);
        }
        http.servers.push(server);
    }

    /// Keeps an address of a server, unless another one stands in its way.
    fn listens(
        &mut self,
        directive: &Directive,
        listen: Listen,
        server: &mut OwnServer,
        http: &GlobalScope,
    ) {
        let is_same =
            |other: &&Listen| (other.address, other.port) == (listen.address, listen.port);
        let mut others = http.servers.iter().flat_map(|other| &other.listens).filter(is_same);
        let at = directive.at();
        if server.listens.iter().any(|other| is_same(&other)) {
            self.wrong(Mistake::refused(at, "the server listens here already"));
        }
        if listen.default_server && others.clone().any(|other| other.default_server) {
            let text = "the port has a default_server already: leave the word out of one of them";
            self.wrong(Mistake::refused(at, text));
        }
        if others.any(|other| other.proxy_protocol != listen.proxy_protocol) {
            let why = "that another server of the port has, or has not, proxy_protocol: it counts \
                       for all of them";
            self.reader.note(directive, why);
        }
        self.reader.need(directive, Needed::Port(listen.port));
        if listen.default_server {
            self.reader.need(directive, Needed::DefaultOf(listen.port));
        }
        server.listens.push(listen);
    }

    fn server_name(&mut self, word: &Word) -> Result<VirtualName, Mistake> {
        match word.text.strip_prefix('~') {
            Some(source) => Ok(VirtualName::Regex(self.reader.regex(source, true, word.at)?)),
            None => Ok(VirtualName::Name(word.text.to_ascii_lowercase())),
        }
    }
}

/// Whether a server before has a name of this one on a port of this one.
fn is_taken(server: &OwnServer, http: &GlobalScope) -> bool {
    let is_port = |listen: &Listen| {
        server.listens.iter().any(|own| (own.address, own.port) == (listen.address, listen.port))
    };
    let before = http.servers.iter().filter(|other| other.listens.iter().any(is_port));
    before.flat_map(|other| &other.names).any(|name| server.names.contains(name))
}

pub(super) fn listen(directive: &Directive) -> Result<Listen, Mistake> {
    let words = directive.arguments();
    let word = &words[0];
    let (address, port) = match word.text.rsplit_once(':') {
        None => (None, word.text.as_str()),
        // A port alone, and `*`, is one of IPv4, as in nginx.
        Some(("*", port)) => (None, port),
        Some(("unix", _)) => {
            return Err(Mistake::needs_nginx(word.at, "listen on a socket of the file system"));
        }
        Some((address, port)) => {
            let address = address.trim_start_matches('[').trim_end_matches(']');
            let address = address.parse().map_err(|_| invalid(word, "address and port"))?;
            (Some(address), port)
        }
    };
    let port = port.parse().ok().filter(|number| *number > 0 && is_digits(port));
    let port = port.ok_or_else(|| invalid(word, "port"))?;
    let mut listen = Listen { address, port, default_server: false, proxy_protocol: false };
    for word in &words[1..] {
        match word.text.as_str() {
            "default_server" | "default" => listen.default_server = true,
            "proxy_protocol" => listen.proxy_protocol = true,
            "reuseport" | "deferred" | "bind" | "http2" | "so_keepalive=on"
            | "so_keepalive=off" | "ipv6only=on" | "ipv6only=off" => {}
            text if text.starts_with("backlog=") || text.starts_with("fastopen=") => {}
            text if text.starts_with("rcvbuf=") || text.starts_with("sndbuf=") => {}
            "ssl" => {
                return Err(Mistake::needs_nginx(
                    word.at,
                    "listen with ssl: hosts with TLS are those of Ingresses",
                ));
            }
            _ => return Err(invalid(word, "parameter of listen")),
        }
    }
    Ok(listen)
}

/// `zone=name:size`.
fn zone(word: &Word) -> Option<Result<(String, u64), Mistake>> {
    let zone = word.text.strip_prefix("zone=")?;
    let read =
        zone.split_once(':').and_then(|(name, size)| Some((name.to_owned(), bytes(size, "kKmM")?)));
    Some(match read {
        Some((name, size)) if !name.is_empty() && size >= ZONE => Ok((name, size)),
        Some((name, _)) if !name.is_empty() => {
            Err(Mistake::refused(word.at, format!("zone \"{name}\" is too small: 32k at least")))
        }
        _ => Err(invalid(word, "zone such as zone=name:10m")),
    })
}

fn request_zone(reader: &Reader<'_>, directive: &Directive) -> Result<ReqZone, Mistake> {
    let words = directive.arguments();
    let key = reader.template(&words[0])?;
    let mut found = None;
    let mut rate = Rate { requests: 1, per_minute: false };
    for word in &words[1..] {
        if let Some(zone) = zone(word) {
            found = Some(zone?);
        } else if let Some(text) = word.text.strip_prefix("rate=") {
            rate = self::rate(text).ok_or_else(|| invalid(word, "rate such as rate=10r/s"))?;
        } else {
            return Err(invalid(word, "part of limit_req_zone; zone= and rate= are"));
        }
    }
    let (name, size) =
        found.ok_or_else(|| Mistake::refused(directive.at(), "limit_req_zone without zone="))?;
    Ok(ReqZone { key, name, size, rate })
}

fn rate(text: &str) -> Option<Rate> {
    let (number, per_minute) = match text.strip_suffix("r/s") {
        Some(number) => (number, false),
        None => (text.strip_suffix("r/m")?, true),
    };
    let requests = number.parse().ok().filter(|requests| *requests > 0 && is_digits(number))?;
    Some(Rate { requests, per_minute })
}

fn connection_zone(reader: &Reader<'_>, directive: &Directive) -> Result<ConnZone, Mistake> {
    let words = directive.arguments();
    let (name, size) =
        zone(&words[1]).ok_or_else(|| invalid(&words[1], "zone such as zone=name:10m"))??;
    Ok(ConnZone { key: reader.template(&words[0])?, name, size })
}
