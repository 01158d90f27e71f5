//! Shows how a change affects a file: the lines that differ, with context.
//!
//! An entry is added or removed in one place, so one hunk is enough.

/// The number of unchanged lines on each side.
const CONTEXT: usize = 3;

/// The lines that differ in unified form, or an empty text when the texts are equal.
pub fn diff(name: &str, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let start = old.iter().zip(&new).take_while(same).count();
    let shorter = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(shorter);
    if start + end == old.len() && old.len() == new.len() {
        return String::new();
    }
    let (first, last) = (start.saturating_sub(CONTEXT), end.saturating_sub(CONTEXT));
    let lines = |sign: char, lines: &[&str]| -> String {
        lines.iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    let range = |lines: usize| format!("{},{}", first + usize::from(lines > first), lines - first);
    format!(
        "--- {name}\n+++ {name}\n@@ -{} +{} @@\n{}{}{}{}",
        range(old.len() - last),
        range(new.len() - last),
        lines(' ', &old[first..start]),
        lines('-', &old[start..old.len() - end]),
        lines('+', &new[start..new.len() - end]),
        lines(' ', &old[old.len() - end..old.len() - last]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_stand_between_three_that_stayed() {
        let shown = diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n");
        assert_eq!(shown, "--- f\n+++ f\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n");
    }

    #[test]
    fn a_line_that_became_another_is_shown_twice() {
        assert_eq!(diff("f", "a\nb\n", "a\nc\n"), "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    }

    #[test]
    fn a_file_that_begins_has_no_lines_before() {
        assert_eq!(diff("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
    }

    #[test]
    fn a_repeated_line_is_not_counted_from_both_ends() {
        assert_eq!(diff("f", "a\na\n", "a\na\na\n"), "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
    }

    #[test]
    fn nothing_is_shown_where_nothing_differs() {
        assert_eq!(diff("f", "a\n", "a\n"), "");
    }
}
