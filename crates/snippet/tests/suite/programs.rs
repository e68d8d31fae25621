//! programs.
