//! Writes families with the labels that their rows in the table have.

use super::families::Family;
use bytes::Bytes;
use runtime::exposition::Exposition;

/// Who speaks: three labels that ingress-nginx gives nearly every metric, and what was built.
#[derive(Debug)]
pub struct Identity {
    /// The controller class.
    pub class: String,
    /// The namespace of this Pod.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// The commit that the program was built from, if that is known.
    pub commit: Option<&'static str>,
    /// Where its source is, if that is known.
    pub repository: Option<&'static str>,
}

impl Identity {
    /// The three labels.
    pub(crate) fn labels(&self) -> [(&'static str, &str); 3] {
        [
            ("controller_class", &self.class),
            ("controller_namespace", &self.namespace),
            ("controller_pod", &self.pod),
        ]
    }
}

/// A piece of the page.
pub(crate) struct Writer<'a> {
    identity: &'a Identity,
    page: Exposition,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(identity: &'a Identity) -> Self {
        Self { identity, page: Exposition::default() }
    }

    /// The controller class.
    pub(crate) fn class(&self) -> &'a str {
        &self.identity.class
    }

    /// A family with one value for each set of labels; nothing at all without any.
    pub(crate) fn family<const N: usize>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = ([impl AsRef<str>; N], f64)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        self.page.family(family.name, family.kind, family.help);
        for (values, value) in samples {
            let own = family.labels.iter().copied().zip(values.iter().map(AsRef::as_ref));
            let identity = self.identity.labels().into_iter().filter(|_| family.identity);
            let labels: Vec<_> = identity.chain(own).collect();
            self.page.sample(family.name, &labels, value);
        }
    }

    /// A family with one value.
    pub(crate) fn single(&mut self, family: &Family, value: f64) {
        self.family::<0>(family, [([""; 0], value)]);
    }

    /// A family with one histogram of times.
    pub(crate) fn timings(&mut self, family: &Family, timings: &controller::Timings) {
        self.page.family(family.name, family.kind, family.help);
        let (up_to, sum) = timings.read();
        self.page.histogram(family.name, &[], &controller::BOUNDS, &up_to, sum);
    }

    /// The piece.
    pub(crate) fn finish(self) -> Bytes {
        self.page.into_text().into()
    }
}
