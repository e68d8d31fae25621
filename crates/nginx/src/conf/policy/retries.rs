//! `proxy-next-upstream*`.

use super::super::Word;
use super::super::location::At;
use super::super::tree::put;
use model::policy::{Condition, Protocol, Retries};

pub(in crate::conf) fn write(policy: &Retries, protocol: Protocol, at: &mut At<'_, '_>) {
    let Retries { conditions, tries, timeout } = policy;
    let words: Vec<Word> = if conditions.is_empty() {
        vec!["off".into()]
    } else {
        conditions.iter().map(|condition| word(*condition)).collect()
    };
    match protocol {
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => {
            at.block.put("proxy_next_upstream", words);
            put!(at.block, "proxy_next_upstream_timeout", *timeout);
            put!(at.block, "proxy_next_upstream_tries", *tries);
        }
        Protocol::Grpc | Protocol::Grpcs => {
            at.block.put("grpc_next_upstream", words);
            put!(at.block, "grpc_next_upstream_timeout", *timeout);
            put!(at.block, "grpc_next_upstream_tries", *tries);
        }
        Protocol::Fcgi => {
            at.block.put("fastcgi_next_upstream", words);
            put!(at.block, "fastcgi_next_upstream_timeout", *timeout);
            put!(at.block, "fastcgi_next_upstream_tries", *tries);
        }
    }
}

fn word(condition: Condition) -> Word {
    match condition {
        Condition::Error => "error".into(),
        Condition::Timeout => "timeout".into(),
        Condition::InvalidHeader => "invalid_header".into(),
        Condition::Status(status) => Word::from("http_").then(status),
        Condition::NonIdempotent => "non_idempotent".into(),
    }
}
