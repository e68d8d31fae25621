//! Programs, locations, and what stands at http level.

use super::row::{Build, Fate, H, HSL, L, LIF, MANY, Row, S, SIF, fate, rows};
use crate::level::Levels;

pub(super) static REWRITE: &[Row] = rows! { "ngx_http_rewrite_module";
    "if", S | L, 1, MANY, built(If), "Conditions on a variable: alone, =, !=, ~, ~*, !~, !~*. -f, -d, -e and -x look at files and need nginx.";
    "set", S | L | SIF | LIF, 2, 2, built(Set), "Sets a variable for the rest of the request.";
    "return", S | L | SIF | LIF, 1, 2, built(Return), "Answers at once: a status, a text, a redirect; 444 closes the connection.";
    "rewrite", S | L | SIF | LIF, 2, 3, built(Rewrite), "Changes path and query, or redirects: last, break, redirect, permanent.";
    "break", S | L | SIF | LIF, 0, 0, built(Break), "Ends the program of this level.";
    "rewrite_log", HSL | SIF | LIF, 1, 1, no_effect(), "`fairway explain` shows the steps.";
    "uninitialized_variable_warn", HSL | SIF | LIF, 1, 1, no_effect(), "A variable that was not set is empty, without a line in a log.";
};

pub(super) static CORE: &[Row] = rows! { "ngx_http_core_module";
    "location", S | L, 1, 2, built(Location), "A location of its own: =, prefix, ^~, ~, ~*, @name; nested too.";
    "internal", L, 0, 0, built(Internal), "Only for requests that are led here, by a rewrite, an error_page or an upstream; clients get 404. Locations within are internal, too.";
    "limit_except", L, 1, MANY, built(LimitExcept), "Guards for all methods but these.";
    "types", HSL, 0, 0, built(Types), "The types of answers that are made here, by the extension of the path.";
    "server", H, 0, 0, built(Server), "A server of its own, with return, rewrite and locations.";
    "listen", S, 1, MANY, built(Listen), "The port of a server in an http-snippet. In a server-snippet it is refused: ports are those of the controller.";
    "server_name", S, 1, MANY, built(ServerName), "The names of a server in an http-snippet. In a server-snippet it has no effect: names come from Ingresses.";
};

pub(super) static HTTP: &[Row] = rows! { "ngx_http_map_module, _geo_, _split_clients_";
    "map", H, 2, 2, built(Map), "A variable by the value of another: text, expressions with captures, hostnames, default, volatile.";
    "geo", H, 1, 2, built(Geo), "A variable by the client's network: default, ranges, proxy, delete.";
    "split_clients", H, 2, 2, built(SplitClients), "A variable by the hash of a text, in shares.";
    "limit_req_zone", H, 3, 4, built(RequestZone), "Whose requests are counted, and how many there may be.";
    "limit_conn_zone", H, 2, 2, built(ConnectionZone), "Whose requests at once are counted.";
    "map_hash_max_size", H, 1, 1, no_effect(), "Tables grow as needed.";
    "map_hash_bucket_size", H, 1, 1, no_effect(), "Tables grow as needed.";
    "variables_hash_max_size", H, 1, 1, no_effect(), "Tables grow as needed.";
    "variables_hash_bucket_size", H, 1, 1, no_effect(), "Tables grow as needed.";
    "server_names_hash_max_size", H, 1, 1, no_effect(), "Tables grow as needed.";
    "server_names_hash_bucket_size", H, 1, 1, no_effect(), "Tables grow as needed.";
    "types_hash_max_size", HSL, 1, 1, no_effect(), "Tables grow as needed.";
    "types_hash_bucket_size", HSL, 1, 1, no_effect(), "Tables grow as needed.";
    "upstream", H, 1, 1, needs_nginx(), "Upstreams are those of Kubernetes: make a Service, of type ExternalName or with EndpointSlices of its own.";
};
