//! Fields that a section came with, whether or not they are still in it.

use super::Headers;
use crate::names::{bit, is_same};

impl Headers {
    /// The values of all fields called `name` that the section came with, also of those that were removed since, such
    /// as those of its framing. All its bytes are looked through: for what is asked for seldom.
    pub fn came<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let section = self.section.as_ref();
        let section = section.filter(|section| section.names & bit(name.as_bytes()) != 0);
        let text = section.map_or(&[][..], |section| {
            if section.read.is_empty() { &section.added } else { &section.read }
        });
        text.split(|byte| *byte == b'\n').filter_map(move |line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            is_same(&line[..colon], name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
        })
    }
}
