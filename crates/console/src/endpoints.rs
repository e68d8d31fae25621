//! What the API has: each path with its parameters, what it says, and what makes the answer.

use crate::now::Now;
use crate::query::{Parameter, Query, Refusal};
use crate::views;

/// What describes the API, generated of these and of the types of the answers.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");
/// Where that is.
pub(crate) const DESCRIPTION: &str = "/api/v1/openapi.json";

/// The story of one request.
pub(crate) const TRACE: &str = "/api/v1/trace";

/// A path of the API.
pub(crate) struct Endpoint {
    pub(crate) path: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the description"))]
    pub(crate) about: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Whether it says how much traffic there is.
    pub(crate) sampled: bool,
    /// Whether it says how it goes at endpoints.
    pub(crate) endpoints: bool,
    /// Whether it has the replicas beside each other.
    pub(crate) replicas: bool,
    pub(crate) make: fn(&Now, &Query) -> Result<String, Refusal>,
}

const SEARCH: Parameter =
    Parameter { name: "search", about: "Words that all have to be found, in any case." };
const OFFSET: Parameter =
    Parameter { name: "offset", about: "The number of the first row, from 0." };
const LIMIT: Parameter =
    Parameter { name: "limit", about: "Rows at most: 100 by default, 500 at most." };

/// All of them.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/v1/overview",
        about: "What serves: traffic, problems, what is in force, who this is.",
        parameters: &[],
        sampled: true,
        endpoints: false,
        replicas: true,
        make: views::overview::make,
    },
    Endpoint {
        path: "/api/v1/routes",
        about: "Host, path, Ingress or route of the Gateway API, Service and endpoints, each with its traffic; and ports of TCP and UDP.",
        parameters: &[
            SEARCH,
            Parameter {
                name: "sort",
                about: "host (the default), rate, errors or latency; the latter begin with the most.",
            },
            OFFSET,
            LIMIT,
        ],
        sampled: true,
        endpoints: false,
        replicas: false,
        make: views::routes::make,
    },
    Endpoint {
        path: "/api/v1/route",
        about: "One route: its endpoints, and the settings in force that are not the defaults, each with the annotation, key or field that asks for it.",
        parameters: &[
            Parameter { name: "host", about: "The host, as /api/v1/routes has it." },
            Parameter { name: "path", about: "The path, as /api/v1/routes has it." },
            Parameter {
                name: "kind",
                about: "Exact or Prefix (the default); Host or Port where there is no path.",
            },
            Parameter {
                name: "id",
                about: "Which one of several, as /api/v1/routes has it; that of an Ingress without it.",
            },
        ],
        sampled: true,
        endpoints: true,
        replicas: false,
        make: views::route::make,
    },
    Endpoint {
        path: "/api/v1/problems",
        about: "Mistakes in objects: which object, which key, what is wrong and how to mend it, since when.",
        parameters: &[
            SEARCH,
            Parameter { name: "namespace", about: "Those of one namespace only." },
            OFFSET,
            LIMIT,
        ],
        sampled: false,
        endpoints: false,
        replicas: false,
        make: views::problems::make,
    },
    Endpoint {
        path: "/api/v1/certificates",
        about: "Certificates in the order of expiry: names, issuer, and the hosts that use them.",
        parameters: &[SEARCH, OFFSET, LIMIT],
        sampled: false,
        endpoints: false,
        replicas: false,
        make: views::certificates::make,
    },
    Endpoint {
        path: "/api/v1/changes",
        about: "The last 200 generations, the newest first: what each changed in meaning, and since when.",
        parameters: &[OFFSET, LIMIT],
        sampled: false,
        endpoints: false,
        replicas: false,
        make: views::changes::make,
    },
    Endpoint {
        path: "/api/v1/limits",
        about: "What is full and what was turned away.",
        parameters: &[],
        sampled: true,
        endpoints: false,
        replicas: false,
        make: views::limits::make,
    },
    Endpoint {
        path: "/api/v1/shadow",
        about: "With --shadow: what would have become of the requests that copies came of, in groups.",
        parameters: &[],
        sampled: true,
        endpoints: false,
        replicas: false,
        make: views::shadow::make,
    },
    Endpoint {
        path: TRACE,
        about: "What became of one real request: it is waited for from the first question on, by its X-Request-ID.",
        parameters: &[Parameter {
            name: "id",
            about: "The X-Request-ID that the request is sent with; 128 bytes at most.",
        }],
        sampled: false,
        endpoints: false,
        replicas: false,
        make: views::trace::make,
    },
    Endpoint {
        path: "/api/v1/explain",
        about: "Why a request would go where it goes; nothing is sent to anybody.",
        parameters: &[
            Parameter { name: "url", about: "The URL, as a client writes it." },
            Parameter { name: "method", about: "The method; GET by default." },
            Parameter {
                name: "header",
                about: "A header field, such as `Cookie: a=b`; may be repeated.",
            },
            Parameter { name: "client", about: "The client's address; 192.0.2.1 by default." },
        ],
        sampled: false,
        endpoints: false,
        replicas: false,
        make: views::explain::make,
    },
];
