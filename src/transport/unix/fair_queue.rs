//! A bounded queue in which sources take turns, one item each.
//!
//! The wait of a source depends on the number of sources, not on the items of others.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

#[derive(Debug)]
pub struct FairQueue<S, T> {
    /// Contains no empty queue.
    waiting: HashMap<S, VecDeque<T>>,
    /// The sources, in the order of their turns.
    turns: VecDeque<S>,
    count: usize,
    most: usize,
}

impl<S: Copy + Eq + Hash, T> FairQueue<S, T> {
    /// Creates a queue for at most `most` items.
    pub fn of(most: usize) -> Self {
        Self { waiting: HashMap::new(), turns: VecDeque::new(), count: 0, most }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds an item. When the queue is full, returns the newest item of the source with the most items.
    pub fn push(&mut self, source: S, item: T) -> Option<(S, T)> {
        let waiting = self.waiting.entry(source).or_insert_with(|| {
            self.turns.push_back(source);
            VecDeque::new()
        });
        waiting.push_back(item);
        self.count += 1;
        if self.count <= self.most {
            return None;
        }
        let of = |source: &S| self.waiting.get(source).map_or(0, VecDeque::len);
        // With equal counts, the source of the new item loses.
        let with_most = self.turns.iter().copied().max_by_key(|one| (of(one), *one == source))?;
        let item = self.waiting.get_mut(&with_most)?.pop_back()?;
        self.on_taken(with_most);
        Some((with_most, item))
    }

    /// Takes the oldest item of the source whose turn it is.
    pub fn pop(&mut self) -> Option<(S, T)> {
        let source = self.turns.pop_front()?;
        let item = self.waiting.get_mut(&source)?.pop_front()?;
        self.turns.push_back(source);
        self.on_taken(source);
        Some((source, item))
    }

    fn on_taken(&mut self, source: S) {
        self.count -= 1;
        if self.waiting.get(&source).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(&source);
            self.turns.retain(|one| *one != source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_one_item_waits_for_one_turn_of_each_other() {
        let mut queue = FairQueue::of(100);
        for number in 0..50 {
            assert_eq!(queue.push("storm", number), None);
        }
        queue.push("newcomer", 7);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order[..3], [("storm", 0), ("newcomer", 7), ("storm", 1)]);
        assert_eq!(order.len(), 51);
        let numbers: Vec<_> = order.iter().filter(|it| it.0 == "storm").map(|it| it.1).collect();
        assert!(numbers.is_sorted(), "a source keeps its order");
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn whoever_has_most_gives_way_where_there_is_no_room() {
        let mut queue = FairQueue::of(4);
        for number in 0..4 {
            assert_eq!(queue.push("storm", number), None);
        }
        assert_eq!(queue.push("storm", 4), Some(("storm", 4)));
        assert_eq!(queue.push("newcomer", 7), Some(("storm", 3)));
        assert_eq!(queue.push("storm", 5), Some(("storm", 5)));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [("storm", 0), ("newcomer", 7), ("storm", 1), ("storm", 2)]);
    }

    #[test]
    fn where_all_have_as_many_the_last_to_come_gives_way() {
        let mut queue = FairQueue::of(3);
        for source in 0..3 {
            assert_eq!(queue.push(source, ()), None);
        }
        assert_eq!(queue.push(9, ()), Some((9, ())));
        assert_eq!(queue.pop(), Some((0, ())));
        assert_eq!(queue.push(9, ()), None, "nothing is left of what gave way");
    }
}
