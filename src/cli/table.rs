//! Tables for people, with columns as wide as their widest cell.
//!
//! Cells can contain untrusted text, so no control character of a cell reaches the terminal.

use crate::core::one_line::one_line;

const GAP: &str = "  ";

/// Renders a head and rows, one per line, without trailing blanks.
pub fn render<const COLUMNS: usize>(head: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let head = head.map(str::to_owned);
    let lines =
        || std::iter::once(&head).chain(rows).map(|row| row.each_ref().map(|it| one_line(it)));
    let mut widths = [0; COLUMNS];
    for line in lines() {
        for (width, cell) in widths.iter_mut().zip(&line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let lines = lines().map(|line| {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["1".to_owned(), "a".to_owned()], ["1000".to_owned(), String::new()]];
        assert_eq!(render(["ID", "NAME"], &rows), "ID    NAME\n1     a\n1000");
    }

    #[test]
    fn a_cell_cannot_command_the_terminal() {
        let table = render(["A"], &[["\x1b[2J\nb".to_owned()]]);
        assert_eq!(table, "A\n\\u{1b}[2J\\nb");
    }
}
