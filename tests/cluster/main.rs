//! Fairway beside a real control plane, with the rights of `deploy/rbac.yaml` and Pods that are processes.

mod acme;
mod admission;
mod balancer;
mod changes;
mod classes;
mod console;
mod dns;
mod echoes;
mod events;
mod fairway;
mod faults;
mod gateways;
mod leader;
mod lies;
mod load;
mod login;
mod monitoring;
mod objects;
mod outages;
mod records;
mod replicas;
mod rollouts;
mod solvers;
mod start;
mod status;
mod zero_loss;
