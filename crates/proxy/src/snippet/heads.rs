//! `large_client_header_buffers`, `underscores_in_headers` and `ignore_invalid_headers`: a head is read before its host
//! is known, so all are read as the most generous server has it; the server that is found judges again.

use http::StatusCode;
use model::Global;
use model::snippet::Client;
use wire::http1::Names;
use wire::{Field, Request, header_too_large};

/// The longest head that a snippet can ask for: any client may send that much to any host.
const MOST: u64 = 1 << 20;

/// What heads may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    /// Bytes of one line.
    pub line: usize,
    /// Bytes of all lines.
    pub total: usize,
    /// Field lines.
    pub count: usize,
    /// Which names are kept.
    pub names: Names,
    /// Whether servers differ.
    pub differ: bool,
}

/// What a server says of heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    sizes: Option<(u32, u64)>,
    underscores: Option<bool>,
    ignore_invalid: Option<bool>,
}

impl Said {
    /// What snippets say; none if they do not.
    pub(crate) fn of(client: &Client) -> Option<Self> {
        let said = Self {
            sizes: client.large_header_buffers,
            underscores: client.underscores_in_headers,
            ignore_invalid: client.ignore_invalid_headers,
        };
        Some(said).filter(|said| *said != Self::default())
    }
}

impl From<&Global> for Heads {
    fn from(global: &Global) -> Self {
        Self {
            // nginx asks for large buffers once the first one is full.
            line: global.limits.header_line.max(global.limits.header_first),
            total: global.limits.header_total.max(global.limits.header_first),
            count: global.limits.header_count,
            names: Names {
                underscores: global.underscores_in_headers,
                drop_odd: global.ignore_invalid_headers,
            },
            differ: false,
        }
    }
}

impl Heads {
    /// What all are read by, where these servers say something.
    pub(crate) fn most_generous(global: &Global, said: impl Iterator<Item = Said>) -> Self {
        let own = Self::from(global);
        said.map(|said| own.as_said(said)).fold(own, |all, one| Self {
            line: all.line.max(one.line),
            total: all.total.max(one.total),
            count: all.count,
            names: Names {
                underscores: all.names.underscores | one.names.underscores,
                drop_odd: all.names.drop_odd & one.names.drop_odd,
            },
            differ: true,
        })
    }

    /// As a server reads them that says this.
    pub(crate) fn of(global: &Global, said: Option<Said>) -> Self {
        let own = Self::from(global);
        said.map_or(own, |said| own.as_said(said))
    }

    fn as_said(mut self, said: Said) -> Self {
        if let Some((buffers, size)) = said.sizes {
            let bytes = |bytes: u64| usize::try_from(bytes.min(MOST)).unwrap_or(usize::MAX);
            self.line = bytes(size);
            self.total = bytes(size.saturating_mul(u64::from(buffers)));
        }
        self.names.underscores = said.underscores.unwrap_or(self.names.underscores);
        self.names.drop_odd = said.ignore_invalid.unwrap_or(self.names.drop_odd);
        self
    }
}

/// Judges the head of a request as its server would have read it; the status is what is wrong with it.
pub(crate) fn judge(
    request: &mut Request,
    global: &Global,
    said: Option<Said>,
) -> Result<(), StatusCode> {
    let own = Heads::of(global, said);
    if request.line.as_ref().is_some_and(|line| line.len() > own.line) {
        return Err(StatusCode::URI_TOO_LONG);
    }
    let is_long = |field: Field<'_>| field.name.len() + 2 + field.value.len() > own.line;
    if request.head_size > own.total || request.headers.iter().any(is_long) {
        return Err(header_too_large());
    }
    request.headers.retain(|field| own.names.keep(field.name));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Heads;
    use model::{Global, Limits};

    #[test]
    fn a_first_buffer_that_is_larger_takes_longer_lines() {
        let of = |header_first| {
            let limits = Limits { header_first, ..Limits::default() };
            let heads = Heads::from(&Global { limits, ..Global::default() });
            (heads.line, heads.total)
        };
        assert_eq!(of(1 << 10), (8 << 10, 32 << 10));
        assert_eq!(of(16 << 10), (16 << 10, 32 << 10));
        assert_eq!(of(64 << 10), (64 << 10, 64 << 10));
    }
}
