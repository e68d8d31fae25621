//! Prometheus' text format, version 0.0.4: what `/metrics` is written in.
//!
//! Written here rather than by a library since series are not copied before they are written, since a page of a million
//! lines goes out piece by piece, and since bounds are spelled as Go spells them, which is what alerts compare with.

use std::fmt::Write;

/// The media type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the values of a family are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They only grow.
    Counter,
    /// They go up and down.
    Gauge,
    /// How many were at most each bound.
    Histogram,
}

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page, or a piece of it.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family; its samples follow.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// One value.
    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.line(name, "", labels, None, value);
    }

    /// A family with one series.
    pub fn single(&mut self, name: &str, kind: Kind, help: &str, labels: Labels<'_>, value: f64) {
        self.family(name, kind, help);
        self.sample(name, labels, value);
    }

    /// One histogram: `up_to` has one count for each bound, and one for all.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        bounds: &[f64],
        up_to: &[u64],
        sum: f64,
    ) {
        for (bound, count) in bounds.iter().zip(up_to) {
            self.line(name, "_bucket", labels, Some(&bound_text(*bound)), *count as f64);
        }
        let all = up_to.last().copied().unwrap_or(0) as f64;
        self.line(name, "_bucket", labels, Some("+Inf"), all);
        self.line(name, "_sum", labels, None, sum);
        self.line(name, "_count", labels, None, all);
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }

    fn line(&mut self, name: &str, ending: &str, labels: Labels<'_>, le: Option<&str>, value: f64) {
        self.text.push_str(name);
        self.text.push_str(ending);
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(le.map(|le| ("le", le))) {
            self.text.push(separator);
            self.text.push_str(label);
            self.text.push_str("=\"");
            self.escaped(value);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        match value {
            f64::INFINITY => self.text.push_str(" +Inf\n"),
            f64::NEG_INFINITY => self.text.push_str(" -Inf\n"),
            value => self.put(format_args!(" {value}\n")),
        }
    }

    fn escaped(&mut self, value: &str) {
        if !value.contains(['"', '\\', '\n']) {
            return self.text.push_str(value);
        }
        for character in value.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str(r"\\"),
                '\n' => self.text.push_str(r"\n"),
                other => self.text.push(other),
            }
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

/// A bound as Go prints it (strconv.FormatFloat with 'g'): `0.005`, `100000`, `1e+06`.
fn bound_text(bound: f64) -> String {
    let scientific = format!("{bound:e}");
    let parts = scientific.split_once('e');
    let Some((digits, Ok(exponent))) = parts.map(|(digits, power)| (digits, power.parse::<i32>()))
    else {
        return bound.to_string();
    };
    match exponent {
        -4..6 => bound.to_string(),
        ..-4 => format!("{digits}e-{:02}", -exponent),
        6.. => format!("{digits}e+{exponent:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposition, Kind, bound_text};

    #[test]
    fn a_page_has_help_type_and_escaped_labels() {
        let mut page = Exposition::default();
        page.family("a_total", Kind::Counter, "What\nand why.");
        page.sample("a_total", &[("path", "/\"q\"\\\n"), ("x", "")], 3.0);
        page.single("b", Kind::Gauge, "B.", &[], 0.5);
        let text = "# HELP a_total What\\nand why.\n# TYPE a_total counter\n\
                    a_total{path=\"/\\\"q\\\"\\\\\\n\",x=\"\"} 3\n\
                    # HELP b B.\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(page.into_text(), text);
    }

    #[test]
    fn a_histogram_ends_with_all_of_them() {
        let mut page = Exposition::default();
        page.histogram("h", &[("a", "b")], &[0.5, 1e6], &[1, 2, 4], 9.25);
        let text = "h_bucket{a=\"b\",le=\"0.5\"} 1\nh_bucket{a=\"b\",le=\"1e+06\"} 2\n\
                    h_bucket{a=\"b\",le=\"+Inf\"} 4\nh_sum{a=\"b\"} 9.25\nh_count{a=\"b\"} 4\n";
        assert_eq!(page.into_text(), text);
    }

    #[test]
    fn bounds_are_spelled_as_in_go() {
        let spelled = [
            (0.005, "0.005"),
            (1.0, "1"),
            (2.5, "2.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (1.25e7, "1.25e+07"),
            (1_234_567.0, "1.234567e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.0, "0"),
        ];
        for (bound, text) in spelled {
            assert_eq!(bound_text(bound), text);
        }
    }
}
