//! `limit-rate` and `limit-rate-after`.

use super::super::location::At;
use super::super::tree::put;
use model::policy::LimitRate;

pub(in crate::conf) fn write(policy: LimitRate, at: &mut At<'_, '_>) {
    let LimitRate { rate, after } = policy;
    if rate > 0 {
        put!(at.block, "limit_rate", rate);
    }
    if after > 0 {
        put!(at.block, "limit_rate_after", after);
    }
}
