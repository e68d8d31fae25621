//! Writes families with the labels that their rows in the table have.

use super::families::Family;
use crate::own_pod::{NAME, NAMESPACE, variable};
use bytes::Bytes;
use runtime::exposition::Exposition;

/// Who speaks: three labels that ingress-nginx gives nearly every metric.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) class: String,
    pub(crate) namespace: String,
    pub(crate) pod: String,
}

impl Identity {
    /// This Pod, as its environment says (POD_NAMESPACE, POD_NAME).
    pub(crate) fn of_this_pod(class: &str) -> Self {
        Self {
            class: class.to_owned(),
            namespace: variable(NAMESPACE).unwrap_or_else(|| "default".to_owned()),
            pod: variable(NAME).unwrap_or_default(),
        }
    }

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
