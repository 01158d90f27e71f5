//! Places and moments as stored.

use std::time::Duration;

use crate::core::frame::kept::NUMBER_MAX;
use crate::core::ids::RowNumber;
use crate::core::moment::Moment;
use crate::core::screen::snapshot::cells::Damage;
use crate::core::shell::commands::record::Position;

pub(super) type KeptPosition = (u64, u16);

pub(super) fn kept_position(position: Position) -> KeptPosition {
    (position.row.0, position.col)
}

pub(super) fn position((row, col): KeptPosition) -> Result<Position, Damage> {
    if row > NUMBER_MAX {
        return Err("a number is too high");
    }
    Ok(Position { row: RowNumber(row), col })
}

pub(crate) fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.since_boot().as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn moment(nanos: u64) -> Moment {
    Moment::from_boot(Duration::from_nanos(nanos))
}
