//! In which order to fill a map.

/// Three of five entries, then the others.
///
/// A B-tree that is filled in the order of its keys splits each full node in two and never comes back: all stay half
/// empty. This way the others come back and fill them; were they as many, nodes of the standard library, which keep 6
/// of 11, would be split once more.
pub fn interleaved<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (number, entry) in all.into_iter().enumerate() {
        if number % 5 % 2 == 0 { first.push(entry) } else { others.push(entry) }
    }
    first.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::interleaved;

    #[test]
    fn each_comes_once() {
        let taken = |most: u32| interleaved(0..most).collect::<Vec<_>>();
        assert!(taken(0).is_empty());
        assert_eq!(taken(1), [0]);
        assert_eq!(taken(7), [0, 2, 4, 5, 1, 3, 6]);
    }
}
