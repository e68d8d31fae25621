//! Names and passwords: how clients send them, and whether they are right. Slow hashes are computed elsewhere than on
//! the request path, a bounded number at a time, and what was found right is remembered.

mod authorization;
mod des_crypt;
mod digest;
mod md5_crypt;
mod remembered;
mod turns;
mod verifier;
mod verify;

pub(crate) use authorization::{basic, digest};
pub(crate) use digest::{Client, Digests, Judgement};
pub(crate) use remembered::Remembered;
pub(crate) use turns::{Asker, Busy};
pub(crate) use verifier::Verifier;
#[cfg(feature = "fuzzing")]
pub(crate) use verify::verify;
