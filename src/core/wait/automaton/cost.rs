//! Counts what compiling an expression costs, before compiling it.
//!
//! One unit is about a quarter of a microsecond. The costly parts are repeated classes of many ranges,
//! which are split into bytes at each repetition, and the case folding of a class.

use regex_syntax::ast::{
    Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, Flag, Flags, GroupKind,
    RepetitionKind, RepetitionRange,
};

/// A named class, at the size of the largest one.
const NAMED: usize = 1_000;
const DIGIT: usize = 100;
const SPACE: usize = 30;
const DOT: usize = 30;
/// An ASCII class in brackets, in ranges.
const ASCII: usize = 4;
/// The number of characters, and how many of them one unit folds.
const CHARACTERS: usize = 0x11_0000;
const FOLDED_PER_UNIT: usize = 36;

/// The highest cost of compiling this expression.
pub(super) fn cost(ast: &Ast) -> usize {
    CostCounter { folds: false }.ast(ast)
}

struct CostCounter {
    /// Whether case is ignored from here to the end of the group.
    folds: bool,
}

impl CostCounter {
    fn ast(&mut self, ast: &Ast) -> usize {
        match ast {
            Ast::Empty(_) | Ast::Literal(_) | Ast::Assertion(_) => 1,
            Ast::Flags(set) => {
                self.on_flags(&set.flags);
                1
            }
            Ast::Dot(_) => DOT,
            Ast::ClassUnicode(_) => NAMED + self.folded(CHARACTERS),
            Ast::ClassPerl(class) => perl(class),
            Ast::ClassBracketed(class) => self.bracketed(class),
            Ast::Repetition(repetition) => {
                let each = self.ast(&repetition.ast);
                each.saturating_mul(times(&repetition.op.kind))
            }
            Ast::Group(group) => {
                let outside = self.folds;
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.on_flags(flags);
                }
                let cost = self.ast(&group.ast);
                self.folds = outside;
                cost
            }
            Ast::Alternation(alternation) => self.all(&alternation.asts),
            Ast::Concat(concat) => self.all(&concat.asts),
        }
    }

    fn all(&mut self, asts: &[Ast]) -> usize {
        asts.iter().fold(0, |sum, ast| sum.saturating_add(self.ast(ast)))
    }

    fn on_flags(&mut self, flags: &Flags) {
        self.folds = flags.flag_state(Flag::CaseInsensitive).unwrap_or(self.folds);
    }

    fn folded(&self, characters: usize) -> usize {
        if self.folds { characters.min(CHARACTERS) / FOLDED_PER_UNIT } else { 0 }
    }

    /// Each part of the class may be combined with all others.
    fn bracketed(&self, class: &ClassBracketed) -> usize {
        let mut parts = Parts::default();
        parts.on_set(&class.kind);
        let each = parts.ranges + self.folded(parts.characters);
        parts.sets.saturating_mul(each)
    }
}

/// The parts of a class in brackets.
#[derive(Default)]
struct Parts {
    sets: usize,
    ranges: usize,
    /// The characters to fold, without those that are known to be cheap.
    characters: usize,
}

impl Parts {
    fn on_set(&mut self, set: &ClassSet) {
        self.sets += 1;
        match set {
            ClassSet::Item(item) => self.on_item(item),
            ClassSet::BinaryOp(operation) => {
                self.on_set(&operation.lhs);
                self.on_set(&operation.rhs);
            }
        }
    }

    fn on_item(&mut self, item: &ClassSetItem) {
        let (ranges, characters) = match item {
            ClassSetItem::Empty(_) => (0, 0),
            ClassSetItem::Literal(_) => (1, 1),
            ClassSetItem::Range(range) => {
                let (start, end) = (u32::from(range.start.c), u32::from(range.end.c));
                (1, (end - start) as usize + 1)
            }
            ClassSetItem::Ascii(class) => (ASCII, if class.negated { CHARACTERS } else { 0 }),
            ClassSetItem::Unicode(_) => (NAMED, CHARACTERS),
            ClassSetItem::Perl(class) => (perl(class), if class.negated { CHARACTERS } else { 0 }),
            ClassSetItem::Bracketed(class) => {
                self.on_set(&class.kind);
                (0, if class.negated { CHARACTERS } else { 0 })
            }
            ClassSetItem::Union(union) => {
                union.items.iter().for_each(|item| self.on_item(item));
                (0, 0)
            }
        };
        self.ranges += ranges;
        self.characters += characters;
    }
}

fn perl(class: &ClassPerl) -> usize {
    match class.kind {
        ClassPerlKind::Digit => DIGIT,
        ClassPerlKind::Space => SPACE,
        ClassPerlKind::Word => NAMED,
    }
}

/// How many copies of an expression this repetition compiles to.
fn times(kind: &RepetitionKind) -> usize {
    let times = match kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 1,
        RepetitionKind::Range(RepetitionRange::Exactly(times)) => *times,
        RepetitionKind::Range(RepetitionRange::AtLeast(least)) => least.saturating_add(1),
        RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most,
    };
    times.max(1) as usize
}
