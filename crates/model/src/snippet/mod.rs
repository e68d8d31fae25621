//! What snippets mean, as plain data: nothing here is text of a user that is still to be read. The `snippet` crate
//! makes it of texts and evaluates its programs.

mod access;
mod answer;
mod headers;
mod http;
mod inherit;
mod location;
mod others;
mod pieces;
mod position;
mod program;
mod server;
mod template;
mod texts;
mod upstream;

pub use access::{
    Access, AccessRule, AuthBasic, ClientAddress, LimitConn, LimitExcept, LimitReq, Limits, RealIp,
    RequestDelay, Satisfy,
};
pub use answer::{
    Answers, Brotli, CookieFlags, ErrorCode, ErrorPage, ErrorTarget, Gzip, ProxyRedirect, Replaced,
    Replacement, SubFilter,
};
pub use headers::{
    AddHeader, Expires, HeaderPattern, Headers, InputAction, InputHeader, MoreAction, MoreHeader,
    SetHeader,
};
pub use http::{
    ConnZone, Geo, GlobalScope, Listen, Map, MapKey, OwnServer, Rate, ReqZone, Share, SplitClients,
    VirtualName,
};
pub use inherit::{Inherit, Stacked};
pub use location::{LocationKind, OwnLocation, Pass, PassTarget, Scope, Settings};
pub use others::{Knowledge, OTHERS, Other, OtherRow};
pub use position::Position;
pub use program::{
    Comparison, Condition, IfBlock, Program, Redirect, Return, Rewrite, Step, Task, Then, Uri,
};
pub use server::{Client, Referers};
pub use template::{Name, Piece, Regex, Template};
pub use texts::Pieces;
pub use upstream::{Transfer, UpstreamTls};
