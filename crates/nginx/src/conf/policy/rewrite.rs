//! `rewrite-target` (ngx_http_rewrite_module, `rewrite … break`).

use super::super::location::At;
use super::super::pattern::{limit_of_paths, pattern_for};
use super::super::tree::{put, words};
use super::super::{Block, Word};
use model::policy::Rewrite;
use model::{Part, Template, Variable};

pub(in crate::conf) fn write(policy: Option<&Rewrite>, at: &mut At<'_, '_>) {
    let Some(Rewrite { pattern, target, prefix }) = policy else { return };
    if prefix.as_ref().is_some_and(|prefix| prefix.literal().is_none()) {
        // Groups of the path go into a header, which a line break would end.
        let mut refuse = Block::default();
        put!(refuse, "return", 400_u16);
        let broken = words!["(", "$uri", "~", "[\\x00-\\x1f\\x7f]", ")"];
        at.block.open("if", broken, refuse);
    }
    let limit = limit_of_paths(at.server);
    let pattern = limit.then("(?i)").then(pattern_for(at.location, pattern.source()));
    let target = match target.parts() {
        // By this very spelling nginx knows a redirect.
        [Part::Variable(Variable::Scheme), rest @ ..] => {
            Word::from("$scheme").then(Word::template(&Template::from_parts(rest.to_vec())))
        }
        _ => Word::template(target),
    };
    put!(at.block, "rewrite", pattern, target, "break");
}
