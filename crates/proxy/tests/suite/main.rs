//! The engine from outside: over real sockets, with Configurations made by hand.

mod authentication;
mod balancing;
mod bed;
mod collector;
mod compression;
mod effects;
mod error_pages;
mod fastcgi;
mod http2;
mod listeners;
mod logs;
mod long_answers;
mod metrics;
mod mirror;
mod ocsp;
mod onward;
mod opentelemetry;
mod passthrough;
mod redirects;
mod scattered;
mod serve;
mod snippets;
mod snippets_in_texts;
mod snippets_of_servers;
mod snippets_of_tenants;
mod unfinished;
