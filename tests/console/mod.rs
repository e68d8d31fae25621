//! The page in a real browser: Debian's Chromium, driven over WebDriver by fantoccini, whose chromedriver Debian brings
//! along; nothing of the browser's own protocol has to be compiled in.

mod api;
mod bed;
mod faults;
mod gateways;
mod page;
mod pictures;
mod secrets;
mod shadow;
mod top;
mod trace;
