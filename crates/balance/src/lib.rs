//! Which endpoint is next: pure, one file per algorithm, without I/O and without Kubernetes.

mod round_robin;

pub use round_robin::RoundRobin;
