//! The targets of links (OSC 8). A cell holds a number, so that memory is bounded whatever a program prints.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::Hyperlink;

use crate::core::frame::line::Link;

/// The newest different targets. The cells of older ones are no links any more.
#[derive(Debug, Default)]
pub(crate) struct Links {
    targets: VecDeque<Arc<str>>,
    /// The number of the first of them.
    first: u64,
    numbers: HashMap<Arc<str>, u64>,
}

impl Links {
    const TARGETS_MAX: usize = 1_024;

    /// The most bytes of the targets on one row. Further links of the row are left out.
    const ROW_BYTES_MAX: usize = 4 * Link::BYTES_MAX;

    /// The link for the cells that are written from now on.
    pub(crate) fn open(&mut self, target: &str) -> Hyperlink {
        let number = match self.numbers.get(target) {
            Some(number) => *number,
            None => self.add(target.into()),
        };
        Hyperlink { id: Some(number.to_string()), uri: String::new() }
    }

    fn add(&mut self, target: Arc<str>) -> u64 {
        if self.targets.len() == Self::TARGETS_MAX
            && let Some(oldest) = self.targets.pop_front()
        {
            self.numbers.remove(&oldest);
            self.first += 1;
        }
        let number = self.first + self.targets.len() as u64;
        self.numbers.insert(Arc::clone(&target), number);
        self.targets.push_back(target);
        number
    }

    /// Reads the links of a row.
    pub(crate) fn read(&self, cells: &[Cell], links: &mut Vec<Link>) {
        let mut room = Self::ROW_BYTES_MAX;
        for (column, cell) in cells.iter().enumerate() {
            let Some(target) = self.target(cell) else { continue };
            match links.last_mut() {
                Some(last)
                    if usize::from(last.column + last.columns) == column
                        && last.target == *target =>
                {
                    last.columns += 1;
                }
                Some(_) | None => {
                    let Some(rest) = room.checked_sub(target.len()) else { return };
                    room = rest;
                    let (column, target) = (column as u16, Arc::clone(target));
                    links.push(Link { column, columns: 1, target });
                }
            }
        }
    }

    /// The target of a cell, or of the cells that are written from now on.
    pub(crate) fn target(&self, cell: &Cell) -> Option<&Arc<str>> {
        let number: u64 = cell.hyperlink()?.id().parse().ok()?;
        self.targets.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(links: &mut Links, targets: &[&str]) -> Vec<Cell> {
        let mut cells = vec![Cell::default(); targets.len()];
        for (cell, target) in cells.iter_mut().zip(targets) {
            let link = (!target.is_empty()).then(|| links.open(target).into());
            cell.set_hyperlink(link);
        }
        cells
    }

    fn read(links: &Links, cells: &[Cell]) -> Vec<(u16, u16, String)> {
        let mut found = Vec::new();
        links.read(cells, &mut found);
        found.iter().map(|link| (link.column, link.columns, link.target.to_string())).collect()
    }

    #[test]
    fn neighbours_with_the_same_target_are_one_link() {
        let mut links = Links::default();
        let mut cells = row(&mut links, &["", "a", "a", "b", "", "b"]);
        cells.extend(row(&mut links, &["a"]));
        // The same target again, after another one.
        cells.extend(row(&mut links, &["b", "a"]).into_iter().skip(1));
        let link = |column, columns, target: &str| (column, columns, target.to_owned());
        let expected = [link(1, 2, "a"), link(3, 1, "b"), link(5, 1, "b"), link(6, 2, "a")];
        assert_eq!(read(&links, &cells), expected);
    }

    #[test]
    fn the_oldest_targets_are_forgotten() {
        let mut links = Links::default();
        let cells = row(&mut links, &["old", "new"]);
        for number in 0..Links::TARGETS_MAX - 1 {
            links.open(&number.to_string());
        }
        assert_eq!(read(&links, &cells), [(1, 1, "new".to_owned())]);
        // A known one takes no place.
        links.open("new");
        assert_eq!(read(&links, &cells), [(1, 1, "new".to_owned())]);
        assert_eq!((links.targets.len(), links.numbers.len()), (1_024, 1_024));
    }

    #[test]
    fn the_targets_of_a_row_have_a_bound() {
        let mut links = Links::default();
        let long = |letter: &str| letter.repeat(Link::BYTES_MAX);
        let targets = ["a", "b", "c", "d", "e"].map(long);
        let targets: Vec<_> = targets.iter().map(String::as_str).collect();
        let cells = row(&mut links, &targets);
        assert_eq!(read(&links, &cells).len(), 4);
    }
}
