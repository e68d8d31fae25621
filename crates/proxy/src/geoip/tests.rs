//! Databases made by hand, as files that change.

use super::{GeoFiles, GeoIp};
use model::GeoVariable;
use std::net::IpAddr;
use std::sync::Arc;

/// A value of MaxMind's format (MaxMind DB 2.0, section "Data Field Format").
enum Datum {
    Text(&'static str),
    Number(u32),
    Decimal(f64),
    Flag(bool),
    List(Vec<Self>),
    Map(Vec<(&'static str, Self)>),
}

impl Datum {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                out.push(2 << 5 | text.len() as u8);
                out.extend_from_slice(text.as_bytes());
            }
            Self::Number(number) => {
                out.push(6 << 5 | 4);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Decimal(number) => {
                out.push(3 << 5 | 8);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Flag(flag) => out.extend_from_slice(&[u8::from(*flag), 7]),
            Self::List(items) => {
                out.extend_from_slice(&[items.len() as u8, 4]);
                items.iter().for_each(|item| item.write(out));
            }
            Self::Map(fields) => {
                out.push(7 << 5 | fields.len() as u8);
                for (name, value) in fields {
                    Self::Text(name).write(out);
                    value.write(out);
                }
            }
        }
    }
}

/// A database that says `record` about every address below 128.0.0.0 and nothing about others.
fn database(record: &Datum) -> Vec<u8> {
    const NODES: u32 = 1;
    let mut out = Vec::new();
    // One node: the left half leads to the first byte of the data, the right one nowhere.
    for half in [NODES + 16, NODES] {
        out.extend_from_slice(&half.to_be_bytes()[1..]);
    }
    out.extend_from_slice(&[0; 16]);
    record.write(&mut out);
    out.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
    let short = |number: u16| {
        let mut bytes = vec![5 << 5 | 2];
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes
    };
    let mut fields = vec![
        ("record_size", short(24)),
        ("ip_version", short(4)),
        ("binary_format_major_version", short(2)),
        ("binary_format_minor_version", short(0)),
        ("build_epoch", vec![1, 2, 1]),
    ];
    for (name, value) in [
        ("node_count", Datum::Number(NODES)),
        ("database_type", Datum::Text("Test")),
        ("languages", Datum::List(vec![Datum::Text("en")])),
        ("description", Datum::Map(vec![("en", Datum::Text("made by hand"))])),
    ] {
        let mut bytes = Vec::new();
        value.write(&mut bytes);
        fields.push((name, bytes));
    }
    out.push(7 << 5 | fields.len() as u8);
    for (name, value) in fields {
        Datum::Text(name).write(&mut out);
        out.extend_from_slice(&value);
    }
    out
}

fn city(name: &'static str) -> Vec<u8> {
    let names = |name| Datum::Map(vec![("en", Datum::Text(name))]);
    database(&Datum::Map(vec![
        (
            "country",
            Datum::Map(vec![
                ("iso_code", Datum::Text("DE")),
                ("geoname_id", Datum::Number(2_921_044)),
            ]),
        ),
        ("city", Datum::Map(vec![("names", names(name))])),
        (
            "location",
            Datum::Map(vec![
                ("latitude", Datum::Decimal(50.11)),
                ("longitude", Datum::Decimal(-8.5)),
            ]),
        ),
        ("subdivisions", Datum::List(vec![Datum::Map(vec![("iso_code", Datum::Text("HE"))])])),
    ]))
}

fn says(geoip: &GeoIp, name: &str, address: &str) -> String {
    let variable = GeoVariable::named(name).expect("a known variable");
    let address: IpAddr = address.parse().expect("an address");
    let mut out = "<".to_owned();
    geoip.push(variable, address, &mut out);
    out + ">"
}

fn geoip(directory: &std::path::Path, editions: &[&str]) -> Arc<GeoIp> {
    let editions = editions.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(GeoIp::new(GeoFiles { directory: directory.to_owned(), editions }))
}

#[tokio::test]
async fn variables_have_the_values_that_nginx_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("GeoLite2-City.mmdb"), city("Frankfurt")).expect("written");
    let anonymous = database(&Datum::Map(vec![("is_anonymous", Datum::Flag(true))]));
    std::fs::write(folder.path().join("GeoIP2-Anonymous-IP.mmdb"), anonymous).expect("written");
    let geoip = geoip(folder.path(), &["GeoLite2-City", "GeoLite2-ASN", "GeoIP2-Anonymous-IP"]);
    assert_eq!(says(&geoip, "city", "10.0.0.1"), "<>");
    geoip.follow(true).await;
    for (name, value) in [
        ("city", "<Frankfurt>"),
        ("city_country_code", "<DE>"),
        ("city_country_geoname_id", "<2921044>"),
        ("latitude", "<50.11000>"),
        ("longitude", "<-8.50000>"),
        ("region_code", "<HE>"),
        ("subregion_code", "<>"),
        ("asn", "<>"),
        ("country_code", "<>"),
        ("is_anonymous", "<1>"),
        ("is_tor_exit_node", "<0>"),
    ] {
        assert_eq!(says(&geoip, name, "10.0.0.1"), value, "{name}");
    }
    for address in ["192.0.2.1", "2001:db8::1"] {
        assert_eq!(says(&geoip, "city", address), "<>");
    }
    geoip.follow(false).await;
    assert_eq!(says(&geoip, "city", "10.0.0.1"), "<>");
}

#[tokio::test]
async fn a_file_that_changed_is_read_again_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("GeoIP2-City.mmdb");
    let geoip = geoip(folder.path(), &["GeoIP2-City"]);
    geoip.follow(true).await;
    assert_eq!(says(&geoip, "city", "10.0.0.1"), "<>");
    for (content, city) in [
        (city("Mainz"), "<Mainz>"),
        (city("Darmstadt"), "<Darmstadt>"),
        (b"broken".to_vec(), "<Darmstadt>"),
    ] {
        std::fs::write(&path, content).expect("written");
        geoip.look(false).await;
        assert_eq!(says(&geoip, "city", "10.0.0.1"), city);
    }
}
