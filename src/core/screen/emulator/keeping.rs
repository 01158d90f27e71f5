//! Converts the emulator to the form that a snapshot stores, and back.
//!
//! It covers both screens, their cursors, and every setting that affects later output. It checks
//! every stored value before it uses it.

use std::sync::Arc;

use alacritty_terminal::vte::ansi::KeyboardModes;

use crate::core::frame::Size;
use crate::core::frame::kept::NUMBER_MAX;
use crate::core::screen::ScreenLimits;
use crate::core::screen::emulator::{EMULATOR_ROWS_MAX, Emulator, HiddenResize, Sync};
use crate::core::screen::links::Links;
use crate::core::screen::row_numbers::RowNumbers;
use crate::core::screen::snapshot::KeptEmulator;
use crate::core::screen::snapshot::cells::{Damage, KeptGrid};
use crate::core::screen::snapshot::numbers::{moment, nanos};

/// What can happen to the hidden normal screen. The index of each is its number in a snapshot.
const HIDDEN_RESIZES: [HiddenResize; 3] =
    [HiddenResize::Untouched, HiddenResize::Resized, HiddenResize::Rewrapped];

impl Emulator {
    pub(crate) fn kept(&mut self) -> KeptEmulator<'_> {
        self.harvest();
        let Size { rows, cols } = self.size();
        let alternate = self.alternate();
        let links = std::mem::take(self.ledger.links());
        let other = self.with_other(|grid| {
            if alternate {
                KeptGrid::of(grid, &links)
            } else {
                KeptGrid::without_rows(grid, &links)
            }
        });
        let shown = KeptGrid::of(self.term.grid(), &links);
        *self.ledger.links() = links;
        let settings = self.kept_settings();
        KeptEmulator {
            rows,
            cols,
            alternate,
            shown,
            other,
            hidden_resize: self.hidden_resize as u8,
            settings,
            bells: self.bells,
            title: &self.title,
            titles: self.titles.iter().map(|title| &**title).collect(),
            sync: self.sync.map(|sync| (nanos(sync.until), sync.bytes as u64)),
        }
    }

    /// Restores an emulator from its stored state, with the history and numbering of this ledger.
    pub(crate) fn restored(
        kept: &KeptEmulator<'_>,
        limits: ScreenLimits,
        ledger: RowNumbers,
    ) -> Result<Self, Damage> {
        let size = Size::checked(kept.rows, kept.cols, Size::CELLS_MAX);
        let mut emulator = Self::new(size.ok_or("there is no such size")?, limits, ledger);
        emulator.put_settings(&kept.settings)?;
        emulator.put_screens(kept)?;
        emulator.put_titles(kept);
        emulator.bells = kept.bells.min(NUMBER_MAX);
        emulator.sync = kept.sync.map(|(until, bytes)| Sync {
            until: moment(until),
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        });
        Ok(emulator)
    }

    fn put_screens(&mut self, kept: &KeptEmulator<'_>) -> Result<(), Damage> {
        let (flags, shown, other) = &kept.settings.keyboard;
        let mut links = Links::default();
        // The normal screen is shown up to here. Each stack is filled while its screen is shown.
        if kept.alternate {
            kept.other.put(self.term.grid_mut(), EMULATOR_ROWS_MAX, &mut links)?;
            self.put_keyboard_stack(other)?;
            self.swap_screens();
            let resize = HIDDEN_RESIZES.get(usize::from(kept.hidden_resize));
            self.hidden_resize = *resize.ok_or("no such state of the normal screen")?;
        } else {
            self.swap_screens();
            self.put_keyboard_stack(other)?;
            self.swap_screens();
            self.with_other(|grid| kept.other.put(grid, 0, &mut links))?;
        }
        kept.shown.put(self.term.grid_mut(), 0, &mut links)?;
        *self.ledger.links() = links;
        self.put_keyboard_stack(shown)?;
        self.set_keyboard_flags(KeyboardModes::from_bits_truncate(*flags));
        Ok(())
    }

    /// Restores titles, cut to the current limits.
    fn put_titles(&mut self, kept: &KeptEmulator<'_>) {
        let characters_max = self.limits.title_characters_max;
        let cut = |title: &&str| -> Arc<str> {
            let characters = title.chars().filter(|character| !character.is_control());
            characters.take(characters_max).collect::<String>().into()
        };
        let surplus = kept.titles.len().saturating_sub(self.limits.titles_max);
        self.title = cut(&kept.title);
        self.titles = kept.titles.iter().skip(surplus).map(cut).collect();
    }
}
