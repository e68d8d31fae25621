//! The time of day for `Date` headers and log lines, computed once a second.

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Cached texts of the current second; one per thread.
#[derive(Default)]
pub struct Clock {
    cached: RefCell<Cached>,
}

#[derive(Clone, Default)]
struct Cached {
    /// When the second ends. The system is not asked before: whoever sets its clock has that seen a second later.
    until: Option<Instant>,
    value: Option<HeaderValue>,
    /// The line of the field.
    date: Bytes,
    local: Bytes,
}

impl Clock {
    /// Now as an IMF-fixdate (RFC 9110 section 5.6.7), the value of a field.
    pub fn http_date(&self) -> Option<HeaderValue> {
        self.refreshed(|cached| cached.value.clone())
    }

    /// Appends now as nginx's `$time_local` (in UTC), `21/Nov/2026:12:00:00 +0000`.
    pub fn put_local(&self, out: &mut Vec<u8>) {
        self.refreshed(|cached| out.extend_from_slice(&cached.local));
    }

    /// Appends a Date field that says now.
    pub fn put_date(&self, out: &mut BytesMut) {
        self.refreshed(|cached| out.extend_from_slice(&cached.date));
    }

    fn refreshed<T>(&self, take: impl FnOnce(&Cached) -> T) -> T {
        let now = crate::now();
        let mut cached = self.cached.borrow_mut();
        if cached.until.is_none_or(|until| until <= now) {
            let time = since_epoch();
            let rest = Duration::from_secs(1) - Duration::from_nanos(time.subsec_nanos().into());
            let date = Date::of(time.as_secs());
            *cached = Cached {
                until: Some(now + rest),
                value: HeaderValue::try_from(date.http()).ok(),
                date: format!("Date: {}\r\n", date.http()).into(),
                local: date.local().into(),
            };
        }
        take(&cached)
    }
}

/// Time since 1970.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// ISO 8601 with offset, nginx's `$time_iso8601`.
pub fn iso8601(second: u64) -> String {
    let Date { year, month, day, hour, minute, second, .. } = Date::of(second);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+00:00")
}

/// The time in datagrams for syslog, `Nov  1 08:00:00` (RFC 3164 section 4.1.2).
pub fn syslog_time(second: u64) -> String {
    let date = Date::of(second);
    let Date { day, hour, minute, second, .. } = date;
    format!("{} {day:2} {hour:02}:{minute:02}:{second:02}", date.month())
}

/// The date in a cookie's `Expires` (nginx: ngx_http_cookie_time).
pub fn cookie_date(second: u64) -> String {
    let date = Date::of(second);
    let (weekday, month) = (DAYS[date.weekday], date.month());
    let Date { year, day, hour, minute, second, .. } = date;
    // Browsers take two digits for a year up to 2037.
    let (year, width) = if year > 2037 { (year, 4) } else { (year % 100, 2) };
    format!("{weekday}, {day:02}-{month}-{year:0width$} {hour:02}:{minute:02}:{second:02} GMT")
}

/// A second since 1970 as an IMF-fixdate (RFC 9110 section 5.6.7).
pub fn http_date(second: u64) -> String {
    Date::of(second).http()
}

/// The date as nginx's `$date_gmt` and `$date_local` have it by default (ngx_http_ssi_filter_module).
pub fn long_date(second: u64, zone: &str) -> String {
    let date = Date::of(second);
    let (weekday, month) = (LONG_DAYS[date.weekday], date.month());
    let Date { year, day, hour, minute, second, .. } = date;
    format!("{weekday}, {day:02}-{month}-{year:04} {hour:02}:{minute:02}:{second:02} {zone}")
}

struct Date {
    year: i64,
    month: u32,
    day: u32,
    weekday: usize,
    hour: u64,
    minute: u64,
    second: u64,
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const LONG_DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Date {
    /// The civil date of a second since 1970, in UTC.
    fn of(second: u64) -> Self {
        let moment = jiff::Timestamp::from_second(second.cast_signed()).unwrap_or_default();
        let civil = jiff::tz::Offset::UTC.to_datetime(moment);
        Self {
            year: i64::from(civil.year()),
            month: u32::from(civil.month().unsigned_abs()),
            day: u32::from(civil.day().unsigned_abs()),
            weekday: usize::try_from((second / 86_400) % 7).unwrap_or(0),
            hour: (second / 3600) % 24,
            minute: (second / 60) % 60,
            second: second % 60,
        }
    }

    fn month(&self) -> &'static str {
        MONTHS[(self.month as usize - 1) % 12]
    }

    fn http(&self) -> String {
        let Self { year, day, hour, minute, second, .. } = self;
        let (weekday, month) = (DAYS[self.weekday], self.month());
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }

    fn local(&self) -> String {
        let Self { year, day, hour, minute, second, .. } = self;
        format!("{day:02}/{}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000", self.month())
    }
}

#[cfg(test)]
mod tests {
    use super::{Date, cookie_date, iso8601, long_date, syslog_time};

    #[test]
    fn the_example_of_rfc_9110_is_spelled_so() {
        assert_eq!(Date::of(784_111_777).http(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Date::of(784_111_777).local(), "06/Nov/1994:08:49:37 +0000");
        assert_eq!(iso8601(784_111_777), "1994-11-06T08:49:37+00:00");
        assert_eq!(syslog_time(784_111_777), "Nov  6 08:49:37");
        assert_eq!(cookie_date(1_290_079_655), "Thu, 18-Nov-10 11:27:35 GMT");
        assert_eq!(long_date(784_111_777, "GMT"), "Sunday, 06-Nov-1994 08:49:37 GMT");
        assert_eq!(cookie_date(2_500_000_000), "Mon, 22-Mar-2049 04:26:40 GMT");
    }
}
