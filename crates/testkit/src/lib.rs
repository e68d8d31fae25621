//! What tests share: a real control plane, and a small kubelet that runs its Pods.

pub mod cluster;
pub mod kubelet;
