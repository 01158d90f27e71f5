//! A list with a fixed capacity that never allocates. The shim's loop keeps its records in such lists.

use std::fmt;

/// At most `N` items, in the order they were pushed.
#[derive(Clone)]
pub struct Bounded<T, const N: usize> {
    items: [T; N],
    length: usize,
}

impl<T: Default, const N: usize> Default for Bounded<T, N> {
    fn default() -> Self {
        Self { items: std::array::from_fn(|_| T::default()), length: 0 }
    }
}

impl<T: Default, const N: usize> Bounded<T, N> {
    /// Adds an item at the end. A full list drops its first item.
    pub fn push(&mut self, item: T) {
        if self.length == N {
            self.drop_first(1);
        }
        self.items[self.length] = item;
        self.length += 1;
    }

    /// Removes `count` items from the front, or all if there are fewer.
    pub fn drop_first(&mut self, count: usize) {
        let count = count.min(self.length);
        self.items[..self.length].rotate_left(count);
        self.length -= count;
        self.items[self.length..][..count].fill_with(T::default);
    }
}

impl<T, const N: usize> Bounded<T, N> {
    pub fn as_slice(&self) -> &[T] {
        &self.items[..self.length]
    }

    /// The items, oldest first, for changes in place.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items[..self.length]
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Bounded<T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq, const N: usize> Eq for Bounded<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Bounded<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: Default, const N: usize> FromIterator<T> for Bounded<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::default();
        items.into_iter().for_each(|item| list.push(item));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_item_makes_room_for_the_newest() {
        let list: Bounded<u8, 3> = (1..=5).collect();
        assert_eq!(list.as_slice(), [3, 4, 5]);
    }

    #[test]
    fn items_go_from_the_beginning() {
        let mut list: Bounded<u8, 3> = (1..=3).collect();
        list.drop_first(2);
        assert_eq!(list.as_slice(), [3]);
        list.drop_first(9);
        assert_eq!(list.as_slice(), [0; 0]);
    }
}
