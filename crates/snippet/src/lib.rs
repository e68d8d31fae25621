//! Snippets: raw configuration of nginx, understood and never injected.
//!
//! A text is read in three steps, each of which says with line and column what is wrong:
//!
//! 1. [`syntax`]: words, quotes, escapes, comments and blocks, within [`Bounds`].
//! 2. [`TABLE`]: each directive is declared once, with where it may stand, what it takes and what becomes of it here.
//! 3. [`Meaning`]: typed values ([`typed`]). A directive or a variable that is not known refuses the whole snippet.
//!
//! What is understood is plain data; [`run`] is the evaluator of its programs. Everything here is pure: no sockets,
//! no clock, no files. A snippet that is not understood is a list of [`Mistake`]s, none of which affects another
//! snippet.
//!
//! # Variables
//!
//! In nginx a variable is known everywhere as soon as it is declared somewhere. Here it is known to the snippets that
//! one request may meet: gather [`Names`] of the `http-snippet`, of the server's snippets and of the location's, then
//! [`Snippet::understand`] each with all of them. Names have no case. One that is never set is empty; `set` counts
//! before `map`, `geo` and `split_clients`, and those before what the request has under that name. Values of tables
//! are remembered for the request unless `volatile`. Text is evaluated when it is used, with the groups of the last
//! match.
//!
//! # Order
//!
//! The phases of nginx, and with them the contract of whoever evaluates a [`typed::Scope`]:
//!
//! 1. *Server program*: [`run::run`] with [`run::Owner::Server`], before a location is looked for. The ConfigMap's
//!    snippet stands behind the Ingress's: one program after the other, unless the first one ended by `break`, `last`
//!    or an answer.
//! 2. *Search*: own locations stand beside those of Ingresses. Exact, else the longest prefix; `^~` ends the search
//!    there, else the first expression in order counts (those of Ingresses stand behind those of a `server-snippet`);
//!    then locations within the found one are searched in the same way. `@name` and `internal` are never found by a
//!    client.
//! 3. *Location program*: the ConfigMap's `location-snippet`, then the Ingress's `configuration-snippet`, then its
//!    `rewrite-target`. [`run::Next::Search`] leads back to 2, ten times at most, then 500. Settings of the last `if`
//!    that was entered ([`run::Outcome::branch`]) count from here on in place of the location's.
//! 4. *Before access*: real address, `limit_req`, `limit_conn`. (The real address is replaced before 1 where a server
//!    says so, again after 2 where a location does.)
//! 5. *Access*: `limit_except` (its rules count in place of the location's for other methods, and no program does in 3;
//!    that of each text must let in, and takes nobody from what the text before says of the location), `allow` and
//!    `deny` in order, `auth_basic`, `auth_request`; all of them, or one with `satisfy any`.
//!    `auth_request_set` is read once the authenticator has answered, whatever it said. `return` in 1 and 3 comes
//!    before all of them: that is how nginx works, and applications depend on it.
//! 6. *Content*: `proxy_pass`, `stub_status`, an answer of an earlier phase; `error_page` for statuses of 300 and
//!    more that were made here, and with `*_intercept_errors` for those of upstreams. A path of an `error_page` begins
//!    anew at 1 with the method GET, `@name` at 3 with the method as it is; every guard is asked again.
//! 7. *Headers of the request*: `more_set_input_headers` and `more_clear_input_headers` act at the end of 3, on what
//!    variables see too; `proxy_set_header` when the upstream's request is written.
//! 8. *Headers of the answer*: `*_hide_header`, `proxy_cookie_*`, `proxy_redirect` when the upstream's answer is read;
//!    then `more_set_headers` and `more_clear_headers`, for answers of every status and origin; then `expires` and
//!    `add_header` (by status, unless `always`), which have the last word: `more_clear_headers` takes nothing away that
//!    `add_header` of the same location adds.
//! 9. *Body*: `sub_filter`, then compression.
//!
//! # Inheritance
//!
//! [`typed::Inherit::inherit`] takes from the level around what a level does not say: http to server to location to
//! `if` and to locations within. A value that is said once is replaced, each for itself. A list is replaced as a
//! whole by one entry of the inner level: `add_header`, `proxy_set_header`, `allow` and `deny`, `error_page`,
//! `sub_filter`, `proxy_hide_header`, `limit_req`, `limit_conn`, `auth_request_set`, `set_real_ip_from`. What
//! headers-more does is stacked: outer levels first. Programs, locations and `limit_except` are not inherited.
//!
//! Two texts for one level (ConfigMap and Ingress) are one level: [`typed::Scope::join`]. What the controller itself
//! says on a level (its `proxy_set_header`, time-outs, `add_header` of CORS) belongs to the location: so
//! `proxy_set_header` of a `server-snippet` never reaches the location of an Ingress, and that of a
//! `configuration-snippet` replaces the controller's field of the same name.
//!
//! # Bounds
//!
//! [`Bounds`] for texts. For a request: 10,000 steps of all programs (each KiB of a text is one), 64 KiB of one text,
//! 256 KiB of all variables,
//! ten searches; an expression that exceeds its steps fails the request (500), so that no guard opens by it.

#![allow(unreachable_pub, clippy::match_bool, reason = "until its circle is untied")]

mod compile;
mod level;
mod mistake;
mod need;
mod note;
mod page;
mod read;
pub mod run;
pub mod syntax;
mod table;
mod text;
mod variables;

pub use compile::{Meaning, StreamListen, StreamServer};
pub use level::{Context, Level, Levels};
pub use mistake::{Kind, Mistake};
pub use model::snippet::{self as typed, Knowledge, OTHERS, Other, OtherRow, Position};
pub use need::{Need, Needed};
pub use note::Note;
pub use page::markdown;
pub use read::headers::expires_of;
pub use syntax::Bounds;
pub use table::{Row, TABLE};
pub use text::{Snippet, size_of, understand};
pub use variables::{Names, names_upstream};
