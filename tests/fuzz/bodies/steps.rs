//! An input for a screen: the output of a program, with other steps between.
//!
//! Recorded output is an input as it is. A byte 0xff begins a step of two bytes, and twice it stands for itself.

use std::time::Duration;

use termgate::core::frame::Size;

const STEP: u8 = 0xff;

/// The size of a screen before the first step.
pub const SIZE: Size = Size { rows: 6, cols: 20 };

#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    Output(&'a [u8]),
    Resize(Size),
    /// Publish a frame.
    Publish,
    /// Time passes.
    Wait(Duration),
    ClearHistory,
}

/// The steps of an input, in order.
pub fn steps(data: &[u8]) -> Vec<Step<'_>> {
    let (mut rest, mut steps) = (data, Vec::new());
    while !rest.is_empty() {
        let length = rest.iter().position(|byte| *byte == STEP).unwrap_or(rest.len());
        let (output, after) = rest.split_at(length);
        if !output.is_empty() {
            steps.push(Step::Output(output));
        }
        rest = after;
        if let [STEP, code, after @ ..] = rest {
            steps.push(step(*code));
            rest = after;
        } else {
            // The last byte begins nothing.
            rest = &[];
        }
    }
    steps
}

fn step(code: u8) -> Step<'static> {
    let size = |rows, cols| Step::Resize(Size { rows, cols });
    match code {
        STEP => Step::Output(&[STEP]),
        0xf0..STEP => Step::ClearHistory,
        0xe0..0xf0 => Step::Wait(Duration::from_millis(25 * u64::from(code & 0xf))),
        0xc4..0xe0 => Step::Publish,
        0xc3 => size(2, 1_000),
        0xc2 => size(50, 132),
        0xc1 => size(24, 80),
        0xc0 => size(100, 2),
        _ => size(2 + u16::from(code / 16), 2 + 3 * u16::from(code % 16)),
    }
}
