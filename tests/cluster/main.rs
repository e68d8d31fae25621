//! Fairway beside a real control plane, with the rights of `deploy/rbac.yaml` and Pods that are processes.

mod admission;
mod changes;
mod classes;
mod fairway;
mod objects;
mod outages;
mod rollouts;
mod start;
