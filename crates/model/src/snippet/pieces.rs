//! Every piece of text in each kind of value, so that what texts ask for is known before a request comes.

use super::program::Redirect;
use super::{
    AccessRule, AddHeader, AuthBasic, Comparison, Condition, CookieFlags, ErrorCode, ErrorPage,
    ErrorTarget, Expires, Geo, HeaderPattern, IfBlock, InputAction, InputHeader, LimitConn,
    LimitExcept, LimitReq, Map, MoreAction, MoreHeader, Name, Pass, Piece, Pieces, Program,
    ProxyRedirect, Referers, Regex, Replaced, Replacement, Return, Rewrite, Satisfy, SetHeader,
    SplitClients, Stacked, Step, SubFilter, Task, Uri,
};
use super::{ClientAddress, PassTarget};
use crate::{Pattern, Secret};
use std::time::Duration;

impl<T: Pieces> Pieces for Secret<T> {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        T::pieces(self, see);
    }
}

impl<T: Pieces> Pieces for Stacked<T> {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        self.0.pieces(see);
    }
}

/// Values without any text that has variables.
macro_rules! without {
    ($($kind:ty),* $(,)?) => {
        $(impl Pieces for $kind {
            fn pieces<'s>(&'s self, _see: &mut dyn FnMut(&'s Piece)) {}
        })*
    };
}

without! {
    bool, u16, u32, u64, String, Duration, Pattern, Regex, Name, AccessRule, Satisfy, ClientAddress, LimitReq,
    LimitConn, Referers, ErrorCode, HeaderPattern, PassTarget,
}

/// Structs whose named fields have texts; the compiler asks about all others.
macro_rules! fields {
    ($($kind:ident { $($with:ident),*; $($without:ident),* })*) => {
        $(impl Pieces for $kind {
            fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
                let Self { $($with,)* $($without: _,)* } = self;
                $($with.pieces(see);)*
            }
        })*
    };
}

fields! {
    ErrorPage { target; statuses, code, owner }
    SubFilter { from, to; }
    Replaced { from, to; }
    CookieFlags { name, flags; }
    AddHeader { value; name, always }
    SetHeader { value; name, if_not_empty }
    MoreHeader { action; statuses, types }
    InputHeader { action; types }
    Pass { path; grpc, tls, target }
    LimitExcept { settings; methods, before }
    Program { steps; }
    Step { task; at, owner }
    IfBlock { condition, steps; branch }
    Condition { variable, comparison; }
    Rewrite { to; regex, keeps_query }
    Redirect { location; status, has_query }
    Map { source, keys, patterns, default; name, hostnames, volatile }
    Geo { address; name, proxies, proxy_recursive, networks, ranges, default }
    SplitClients { source; name, shares }
}

impl Pieces for AuthBasic {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Off => {}
            Self::Realm(text) => text.pieces(see),
        }
    }
}

impl Pieces for ErrorTarget {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Named(_) => {}
            Self::Path(text) | Self::Url(text) => text.pieces(see),
        }
    }
}

impl Pieces for Replacement {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Text(text) => text.pieces(see),
            Self::Regex(_) => {}
        }
    }
}

impl Pieces for ProxyRedirect {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Default => {}
            Self::Replace(replaced) => replaced.pieces(see),
        }
    }
}

impl Pieces for Expires {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Variable { value, .. } => value.pieces(see),
            Self::Off | Self::Epoch | Self::Max => {}
            Self::After(_) | Self::Modified(_) | Self::Daily(_) => {}
        }
    }
}

impl Pieces for MoreAction {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Set(_, text) | Self::Append(_, text) => text.pieces(see),
            Self::Clear(_) => {}
        }
    }
}

impl Pieces for InputAction {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Set(_, text) | Self::Replace(_, text) => text.pieces(see),
            Self::Clear(_) => {}
        }
    }
}

impl Pieces for Task {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Set(_, text) => text.pieces(see),
            Self::If(block) => block.pieces(see),
            Self::Return(answer) => answer.pieces(see),
            Self::Rewrite(rewrite) => rewrite.pieces(see),
            Self::Break => {}
        }
    }
}

impl Pieces for Comparison {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Equals(text) | Self::Differs(text) => text.pieces(see),
            Self::Set | Self::Matches(_) | Self::DoesNotMatch(_) => {}
        }
    }
}

impl Pieces for Return {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Status(_) => {}
            Self::Text(_, text) | Self::Redirect(_, text) => text.pieces(see),
        }
    }
}

impl Pieces for Uri {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Path { path, query, then: _ } => {
                path.pieces(see);
                query.pieces(see);
            }
            Self::Redirect(redirect) => redirect.pieces(see),
        }
    }
}
