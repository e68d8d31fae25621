//! Header fields in the order and spelling they came in; names compare without case (RFC 9110 section 5.1).

use bytes::Bytes;

/// One field line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as it was written.
    pub name: Bytes,
    /// Value without surrounding white space; any bytes but NUL, CR and LF.
    pub value: Bytes,
}

impl Field {
    /// Whether the field is called `name` (given in any case).
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The fields of a message's header or trailer section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    fields: Vec<Field>,
}

impl Headers {
    /// Room for `count` fields.
    pub fn with_capacity(count: usize) -> Self {
        Self { fields: Vec::with_capacity(count) }
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.fields.push(Field { name: name.into(), value: value.into() });
    }

    /// Adds a field with a static name at the end.
    pub fn add(&mut self, name: &'static str, value: impl Into<Bytes>) {
        self.push(Bytes::from_static(name.as_bytes()), value);
    }

    /// Adds a field with a static name before all others.
    pub fn add_first(&mut self, name: &'static str, value: impl Into<Bytes>) {
        let name = Bytes::from_static(name.as_bytes());
        self.fields.insert(0, Field { name, value: value.into() });
    }

    /// Replaces all fields called `name` by one.
    pub fn set(&mut self, name: &'static str, value: impl Into<Bytes>) {
        self.remove(name);
        self.add(name, value);
    }

    /// Replaces all fields called `name` by one, or by none if the value is empty.
    pub fn replace(&mut self, name: &Bytes, value: Bytes) {
        self.fields.retain(|field| !field.name.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.push(name.clone(), value);
        }
    }

    /// Gives the first field called `name` this value and removes the others, where there is none adds one; an empty
    /// value removes all of them.
    pub fn put(&mut self, name: &Bytes, value: Bytes) {
        let mut value = Some(value).filter(|value| !value.is_empty());
        self.fields.retain_mut(|field| {
            if !field.name.eq_ignore_ascii_case(name) {
                return true;
            }
            let new = value.take();
            let stays = new.is_some();
            field.value = new.unwrap_or_default();
            stays
        });
        if let Some(value) = value {
            self.push(name.clone(), value);
        }
    }

    /// Does what [`Self::put`] does with each of `new`, no two of which have the same name and none of which is empty.
    pub fn put_all(&mut self, new: &[Field]) {
        // Most lengths differ, so this is all that is looked at.
        let same = |one: &Bytes, other: &Bytes| {
            one.len() == other.len() && one.eq_ignore_ascii_case(other)
        };
        let is_new = |field: &Field| new.iter().any(|one| same(&one.name, &field.name));
        let taken = self.fields.iter().any(is_new);
        if taken {
            new.iter().for_each(|field| self.put(&field.name, field.value.clone()));
        } else {
            self.fields.extend_from_slice(new);
        }
    }

    /// Removes all fields called `name`.
    pub fn remove(&mut self, name: &str) {
        self.fields.retain(|field| !field.is(name));
    }

    /// Keeps the fields that `keep` says yes to.
    pub fn retain(&mut self, keep: impl FnMut(&Field) -> bool) {
        self.fields.retain(keep);
    }

    /// Value of the first field called `name`.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.fields.iter().find(|field| field.is(name)).map(|field| &field.value)
    }

    /// Value of the first field called `name`, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Values of all fields called `name`, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Bytes> {
        self.fields.iter().filter(move |field| field.is(name)).map(|field| &field.value)
    }

    /// Whether a field is called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The fields in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.fields.iter()
    }

    /// The fields in order, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Field> {
        self.fields.iter_mut()
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether one of the comma-separated members of the fields called `name` is `token` (without case).
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .any(|value| tokens(value).any(|member| member.eq_ignore_ascii_case(token.as_bytes())))
    }
}

/// The members of a comma-separated list, without white space around them; empty ones are left out.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether a byte may be part of a token (RFC 9110 section 5.6.2).
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
