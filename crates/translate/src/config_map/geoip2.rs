//! Databases about the addresses of clients.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::Global;

pub(super) const AREA: Area = Area { name: "geoip2", keys: &[&USE], apply };

static USE: Key<bool> = Key::config_map("use-geoip2", parse::boolean).switch(
    false,
    "The $geoip2_ variables have values, from the databases that --maxmind-edition-ids names in --geoip-directory. A \
     changed file is read within ten seconds; without its database a variable is empty.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    global.geoip2 = settings.get_or(&USE, global.geoip2);
}
