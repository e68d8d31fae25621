//! The `$geoip2_` variables that ingress-nginx defines, with the databases and fields they come from
//! (ngx_http_geoip2_module; MaxMind's names).

/// A step into a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeoStep {
    /// The field with this name.
    Key(&'static str),
    /// The item with this number, from 0.
    Index(usize),
}

/// What a variable is.
#[derive(Debug, PartialEq, Eq)]
pub struct GeoVariable {
    /// Its name without `geoip2_`.
    pub name: &'static str,
    /// Ends of the names of the databases that have it: `-City` for `GeoLite2-City` and `GeoIP2-City`.
    pub databases: &'static [&'static str],
    /// Where it is in a record.
    pub path: &'static [GeoStep],
    /// What it is where the record or the field is absent.
    pub default: &'static str,
}

impl GeoVariable {
    /// All of them.
    pub fn all() -> &'static [Self] {
        VARIABLES
    }

    /// The variable with this name (without `$geoip2_`).
    pub fn named(name: &str) -> Option<&'static Self> {
        VARIABLES.iter().find(|variable| variable.name == name)
    }
}

macro_rules! path {
    ($($key:ident $(@ $index:literal)?)*) => {
        &[$(GeoStep::Key(stringify!($key)), $(GeoStep::Index($index),)?)*]
    };
}

macro_rules! variables {
    ($($name:literal: $databases:ident, [$($step:tt)*] $(or $default:literal)?;)*) => {
        static VARIABLES: &[GeoVariable] = &[$(GeoVariable {
            name: $name,
            databases: $databases,
            path: path!($($step)*),
            default: concat!($($default)?),
        },)*];
    };
}

const COUNTRY: &[&str] = &["-Country"];
const CITY: &[&str] = &["-City"];
const ASN: &[&str] = &["-ASN", "-ISP"];
const LITE_ASN: &[&str] = &["-ASN"];
const ISP: &[&str] = &["-ISP"];
const CONNECTION: &[&str] = &["-Connection-Type"];
const ANONYMOUS: &[&str] = &["-Anonymous-IP"];

variables! {
    "country_code": COUNTRY, [country iso_code];
    "country_name": COUNTRY, [country names en];
    "country_geoname_id": COUNTRY, [country geoname_id];
    "continent_code": COUNTRY, [continent code];
    "continent_name": COUNTRY, [continent names en];
    "continent_geoname_id": COUNTRY, [continent geoname_id];
    "city_country_code": CITY, [country iso_code];
    "city_country_name": CITY, [country names en];
    "city_country_geoname_id": CITY, [country geoname_id];
    "city": CITY, [city names en];
    "city_geoname_id": CITY, [city geoname_id];
    "postal_code": CITY, [postal code];
    "dma_code": CITY, [location metro_code];
    "latitude": CITY, [location latitude];
    "longitude": CITY, [location longitude];
    "time_zone": CITY, [location time_zone];
    "region_code": CITY, [subdivisions @ 0 iso_code];
    "region_name": CITY, [subdivisions @ 0 names en];
    "region_geoname_id": CITY, [subdivisions @ 0 geoname_id];
    "subregion_code": CITY, [subdivisions @ 1 iso_code];
    "subregion_name": CITY, [subdivisions @ 1 names en];
    "subregion_geoname_id": CITY, [subdivisions @ 1 geoname_id];
    "city_continent_code": CITY, [continent code];
    "city_continent_name": CITY, [continent names en];
    "city_continent_geoname_id": CITY, [continent geoname_id];
    "asn": ASN, [autonomous_system_number];
    "org": LITE_ASN, [autonomous_system_organization];
    "isp": ISP, [isp];
    "isp_org": ISP, [organization];
    "connection_type": CONNECTION, [connection_type];
    "is_anon": ANONYMOUS, [is_anonymous];
    "is_anonymous": ANONYMOUS, [is_anonymous] or "0";
    "is_anonymous_vpn": ANONYMOUS, [is_anonymous_vpn] or "0";
    "is_hosting_provider": ANONYMOUS, [is_hosting_provider] or "0";
    "is_public_proxy": ANONYMOUS, [is_public_proxy] or "0";
    "is_tor_exit_node": ANONYMOUS, [is_tor_exit_node] or "0";
}
