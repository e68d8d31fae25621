//! Fairway beside a real control plane, with the rights of `deploy/rbac.yaml` and Pods that are processes.

mod balancer;
mod changes;
mod classes;
mod fairway;
mod faults;
mod load;
mod objects;
mod outages;
mod rollouts;
mod start;
mod zero_loss;
