//! GatewayClasses: whose they are, and what they are told.

use super::features;
use super::status::{ClassStatus, Condition, unserved};
use crate::Options;
use objects::gateway::GatewayClass;

/// Whether a class is this controller's.
pub(super) fn is_ours(class: &GatewayClass, options: &Options) -> bool {
    class.controller == options.gateway_controller
}

/// What a class of ours is told.
pub(super) fn class_status(class: &GatewayClass, options: &Options) -> ClassStatus {
    let accepted = if options.raw {
        let (reason, message) = unserved("Gateways");
        Condition::fails("Accepted", reason, message)
    } else if class.has_parameters {
        let message = "spec.parametersRef: no parameters are known; take it out".to_owned();
        Condition::fails("Accepted", "InvalidParameters", message)
    } else {
        Condition::holds("Accepted", "Accepted")
    };
    ClassStatus {
        generation: class.meta.generation,
        conditions: vec![accepted],
        features: features::supported(options),
    }
}
