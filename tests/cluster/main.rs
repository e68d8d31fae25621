//! Fairway beside a real control plane, with the rights of `deploy/rbac.yaml` and Pods that are processes.

mod admission;
mod changes;
mod classes;
mod events;
mod fairway;
mod leader;
mod objects;
mod outages;
mod replicas;
mod rollouts;
mod start;
mod status;
