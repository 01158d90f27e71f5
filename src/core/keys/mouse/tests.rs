//! Mouse reports in their three encodings.

use super::*;

const AT_ORIGIN: MouseEvent = MouseEvent {
    action: MouseAction::Press,
    row: 0,
    col: 0,
    button: MouseButton::Left,
    modifiers: Modifiers::NONE,
};

fn modes(mouse: MouseReporting, mouse_encoding: MouseEncoding) -> InputModes {
    InputModes { mouse, mouse_encoding, ..InputModes::default() }
}

fn sgr(event: MouseEvent) -> String {
    let pieces = encode_mouse(event, &modes(MouseReporting::Motion, MouseEncoding::Sgr)).unwrap();
    assert_eq!(pieces.len(), 1);
    String::from_utf8(pieces[0].bytes().to_vec()).unwrap()
}

fn with_encoding(event: MouseEvent, encoding: MouseEncoding) -> Result<Vec<u8>, MouseError> {
    let pieces = encode_mouse(event, &modes(MouseReporting::Motion, encoding))?;
    Ok(pieces[0].bytes().to_vec())
}

#[test]
fn sgr_counts_columns_and_rows_from_one() {
    assert_eq!(sgr(MouseEvent { row: 4, col: 9, ..AT_ORIGIN }), "\x1b[<0;10;5M");
    assert_eq!(sgr(MouseEvent { row: 999, col: 999, ..AT_ORIGIN }), "\x1b[<0;1000;1000M");
}

#[test]
fn sgr_tells_which_button_was_let_go() {
    let release = MouseEvent { action: MouseAction::Release, ..AT_ORIGIN };
    assert_eq!(sgr(MouseEvent { button: MouseButton::Right, ..release }), "\x1b[<2;1;1m");
}

#[test]
fn a_click_is_a_press_and_a_release_in_one_piece() {
    let click = MouseEvent { action: MouseAction::Click, button: MouseButton::Middle, ..AT_ORIGIN };
    assert_eq!(sgr(click), "\x1b[<1;1;1M\x1b[<1;1;1m");
    let bytes = with_encoding(click, MouseEncoding::Bytes).unwrap();
    assert_eq!(bytes, b"\x1b[M!!!\x1b[M#!!");
}

#[test]
fn modifiers_are_added_to_the_button() {
    let held = |ctrl, alt, shift| {
        sgr(MouseEvent { modifiers: Modifiers { ctrl, alt, shift }, ..AT_ORIGIN })
    };
    assert_eq!(held(false, false, true), "\x1b[<4;1;1M");
    assert_eq!(held(false, true, false), "\x1b[<8;1;1M");
    assert_eq!(held(true, false, false), "\x1b[<16;1;1M");
    assert_eq!(held(true, true, true), "\x1b[<28;1;1M");
}

#[test]
fn the_wheel_is_a_press_of_the_fourth_and_fifth_button() {
    let up = MouseEvent { action: MouseAction::ScrollUp, ..AT_ORIGIN };
    let down = MouseEvent { action: MouseAction::ScrollDown, ..AT_ORIGIN };
    assert_eq!(sgr(up), "\x1b[<64;1;1M");
    assert_eq!(sgr(down), "\x1b[<65;1;1M");
    assert_eq!(with_encoding(up, MouseEncoding::Bytes).unwrap(), b"\x1b[M`!!");
}

#[test]
fn movement_adds_32_and_has_no_button_unless_it_is_held() {
    let right = MouseEvent { button: MouseButton::Right, ..AT_ORIGIN };
    assert_eq!(sgr(MouseEvent { action: MouseAction::Move, ..right }), "\x1b[<35;1;1M");
    assert_eq!(sgr(MouseEvent { action: MouseAction::Drag, ..right }), "\x1b[<34;1;1M");
}

#[test]
fn single_bytes_reach_column_223_and_refuse_the_next() {
    let last = MouseEvent { col: 222, ..AT_ORIGIN };
    assert_eq!(with_encoding(last, MouseEncoding::Bytes).unwrap(), b"\x1b[M \xff!");
    let refused = with_encoding(MouseEvent { col: 223, ..AT_ORIGIN }, MouseEncoding::Bytes);
    assert_eq!(refused, Err(MouseError::OutOfRange { row: 0, col: 223, max: 222 }));
}

#[test]
fn utf8_reaches_column_2015_and_refuses_the_next() {
    let near = MouseEvent { col: 222, ..AT_ORIGIN };
    assert_eq!(with_encoding(near, MouseEncoding::Utf8).unwrap(), "\x1b[M \u{ff}!".as_bytes());
    let last = MouseEvent { row: 2_014, ..AT_ORIGIN };
    assert_eq!(with_encoding(last, MouseEncoding::Utf8).unwrap(), "\x1b[M !\u{7ff}".as_bytes());
    let refused = with_encoding(MouseEvent { row: 2_015, ..AT_ORIGIN }, MouseEncoding::Utf8);
    assert_eq!(refused, Err(MouseError::OutOfRange { row: 2_015, col: 0, max: 2_014 }));
}

#[test]
fn nothing_is_sent_to_a_program_that_did_not_ask() {
    let refused = encode_mouse(AT_ORIGIN, &InputModes::default());
    assert_eq!(refused, Err(MouseError::ReportingOff));
}

#[test]
fn movement_is_sent_only_where_reporting_covers_it() {
    let sent = |action, reporting| {
        encode_mouse(MouseEvent { action, ..AT_ORIGIN }, &modes(reporting, MouseEncoding::Sgr))
            .map(|_| ())
    };
    let off = Err(MouseError::MovementOff);
    assert_eq!(sent(MouseAction::Drag, MouseReporting::Clicks), off);
    assert_eq!(sent(MouseAction::Drag, MouseReporting::Drags), Ok(()));
    assert_eq!(sent(MouseAction::Drag, MouseReporting::Motion), Ok(()));
    assert_eq!(sent(MouseAction::Move, MouseReporting::Clicks), off);
    assert_eq!(sent(MouseAction::Move, MouseReporting::Drags), off);
    assert_eq!(sent(MouseAction::Move, MouseReporting::Motion), Ok(()));
    assert_eq!(sent(MouseAction::Click, MouseReporting::Clicks), Ok(()));
}
