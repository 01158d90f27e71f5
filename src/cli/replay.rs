//! `replay`: plays a recording on a person's terminal.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::attach::renderer::{Canvas, ENTER, PaintedCursor, Picture, TerminalSize};
use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::{OutputForm, put};
use crate::cli::raw_terminal::RawTerminal;
use crate::cli::record::pace::PlaybackPace;
use crate::cli::record::played::PlayedScreen;
use crate::cli::record::source::{OpenRecording, failed, find, open};
use crate::core::frame::Size;
use crate::core::frame::line::{Attributes, Line, Run, Style};
use crate::core::moment::Moment;
use crate::core::one_line::one_line;
use crate::session::clock::Clock;
use crate::session::recording::asciicast::CastEvent;
use crate::session::recording::reader::TimedEvent;

/// The shortest time between two pictures.
const PICTURE_EVERY: Duration = Duration::from_millis(16);

/// Play a recording in your terminal
///
/// Press Space to pause, q or C-c to exit. Escape sequences of the recording do not reach your terminal. Without a
/// terminal, prints the history and the last screen as text; with --json, prints one event per line.
#[derive(Debug, Args)]
pub struct ReplayCommand {
    /// A session, to play its newest recording, or an asciicast file
    #[arg(value_name = "SESSION|FILE", add = ArgValueCompleter::new(offer_sessions))]
    recording: String,
    #[command(flatten)]
    pace: PlaybackPace,
    /// Exit at the end instead of waiting for a key
    #[arg(long)]
    no_pause: bool,
}

impl ReplayCommand {
    pub async fn run(self, context: &Context) -> Result<CommandExit, CliFailure> {
        let path = find(context, self.recording.clone()).await?;
        let events = open(&path)?;
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        match context.output.form() {
            OutputForm::Json => print_events(context, events, &path)?,
            OutputForm::People if is_terminal => {
                self.play(events, &path, context.output.clock()).await?;
            }
            OutputForm::People => print_text(context, events, &path)?,
        }
        Ok(CommandExit::Done)
    }

    async fn play(
        &self,
        mut events: OpenRecording,
        path: &Path,
        clock: &Clock,
    ) -> Result<(), CliFailure> {
        let mut screen = PlayedScreen::new(events.facts().size);
        let mut stage = ReplayStage::take()?;
        let (mut due, mut before, mut painted_at) = (clock.now(), Duration::ZERO, None);
        for event in &mut events {
            let event = event.map_err(|error| failed(path, &error))?;
            due = due + self.pace.pause(event.at.saturating_sub(before));
            before = event.at;
            let is_old = painted_at.is_none_or(|at: Moment| clock.now().since(at) >= PICTURE_EVERY);
            if due > clock.now() || is_old {
                stage.paint(&mut screen)?;
                painted_at = Some(clock.now());
                match stage.wait(clock, Some(due), &mut screen).await? {
                    StageNews::Due => {}
                    StageNews::Left => return Ok(()),
                    StageNews::Paused => {
                        let begun = clock.now();
                        if stage.pause(clock, &mut screen).await? {
                            return Ok(());
                        }
                        due = due + clock.now().since(begun);
                    }
                }
            }
            screen.play(event);
        }
        stage.paint(&mut screen)?;
        if !self.no_pause {
            stage.pause(clock, &mut screen).await?;
        }
        Ok(())
    }
}

fn print_text(context: &Context, events: OpenRecording, path: &Path) -> Result<(), CliFailure> {
    let mut screen = PlayedScreen::new(events.facts().size);
    for event in events {
        screen.play(event.map_err(|error| failed(path, &error))?);
    }
    context.output.raw_line(&screen.text())
}

fn print_events(context: &Context, events: OpenRecording, path: &Path) -> Result<(), CliFailure> {
    for event in events {
        let TimedEvent { at, event } = event.map_err(|error| failed(path, &error))?;
        let (kind, data) = match event {
            CastEvent::Output(text) => ("output", json!(text)),
            CastEvent::Resize(size) => ("resize", json!({"cols": size.cols, "rows": size.rows})),
            CastEvent::Marker(text) => ("marker", json!(text)),
            CastEvent::Exit(code) => ("exit", json!(code)),
        };
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        context.output.item(&json!({"at_ms": at_ms, "kind": kind, "value": data}), "")?;
    }
    Ok(())
}

/// What happened while the next event was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageNews {
    Due,
    Paused,
    Left,
}

/// The terminal that a recording is played on. Dropping it restores the terminal.
struct ReplayStage {
    terminal: RawTerminal,
    canvas: Canvas,
    resized: Signal,
    terminated: Signal,
    hung_up: Signal,
}

impl ReplayStage {
    fn take() -> Result<Self, CliFailure> {
        let listen = |kind| signal(kind).map_err(CliFailure::Output);
        let terminal = RawTerminal::open().map_err(CliFailure::Output)?;
        let stage = Self {
            resized: listen(SignalKind::window_change())?,
            terminated: listen(SignalKind::terminate())?,
            hung_up: listen(SignalKind::hangup())?,
            canvas: Canvas::default(),
            terminal,
        };
        stage.terminal.enter().map_err(CliFailure::Output)?;
        put(ENTER)?;
        Ok(stage)
    }

    /// Waits until a moment, or until a person leaves or pauses.
    async fn wait(
        &mut self,
        clock: &Clock,
        until: Option<Moment>,
        screen: &mut PlayedScreen,
    ) -> Result<StageNews, CliFailure> {
        loop {
            let due = async {
                match until {
                    Some(until) => clock.sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let mut keys = [0; 64];
            tokio::select! {
                count = self.terminal.read(&mut keys) => match count {
                    Ok(0) | Err(_) => return Ok(StageNews::Left),
                    Ok(count) => match keys[..count] {
                        [b'q' | b'\x03'] => return Ok(StageNews::Left),
                        [b' '] => return Ok(StageNews::Paused),
                        _ => {}
                    },
                },
                _ = self.resized.recv() => self.paint(screen)?,
                _ = self.terminated.recv() => return Ok(StageNews::Left),
                _ = self.hung_up.recv() => return Ok(StageNews::Left),
                () = due => return Ok(StageNews::Due),
            }
        }
    }

    /// Waits until a person goes on; says whether they leave instead.
    async fn pause(
        &mut self,
        clock: &Clock,
        screen: &mut PlayedScreen,
    ) -> Result<bool, CliFailure> {
        Ok(self.wait(clock, None, screen).await? == StageNews::Left)
    }

    fn paint(&mut self, screen: &mut PlayedScreen) -> Result<(), CliFailure> {
        let (rows, cols) = self.terminal.size();
        let room = TerminalSize { rows, cols };
        if self.canvas.room() != room {
            self.canvas.resize(room);
        }
        put(&self.canvas.paint(&picture(screen, room)))
    }
}

impl Drop for ReplayStage {
    fn drop(&mut self) {
        // A closed terminal cannot show anything.
        let _ = put(&self.canvas.leave());
        self.terminal.leave();
    }
}

/// The part of the screen that fits above a line about the replay. Nothing of the recording but rows and the place of
/// the cursor reaches the terminal.
fn picture(screen: &mut PlayedScreen, room: TerminalSize) -> Picture {
    let frame = screen.frame();
    let size = frame.size.value;
    let inner = usize::from(room.rows.saturating_sub(1));
    let mut lines: Vec<_> =
        frame.lines.iter().take(inner).map(|line| line.value.cut(0, room.cols)).collect();
    lines.resize(inner, Line::default());
    let seconds = screen.at().as_secs();
    let marker = one_line(screen.marker().unwrap_or_default());
    let (minutes, seconds, Size { rows, cols }) = (seconds / 60, seconds % 60, size);
    let told = format!(" {minutes}:{seconds:02}  {cols}x{rows}  space pauses, q leaves  {marker}");
    let text = format!("{told:width$}", width = usize::from(room.cols));
    let style = Style { attributes: Attributes::INVERSE, ..Style::default() };
    let runs = [Run { column: 0, columns: room.cols, style }].into();
    let line = Line { text: text.as_str().into(), runs, ..Line::default() };
    lines.push(line.cut(0, room.cols));
    let cursor = frame.cursor.value;
    let row = u16::try_from(cursor.row.0.saturating_sub(frame.base_row.0)).unwrap_or(u16::MAX);
    let is_seen = cursor.visible && usize::from(row) < inner && cursor.col < room.cols;
    let pointer = is_seen.then_some(PaintedCursor { row, col: cursor.col, style: cursor.style });
    Picture { lines, pointer, ..Picture::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_recording_but_its_rows_reaches_the_terminal() {
        let mut screen = PlayedScreen::new(Size { rows: 5, cols: 40 });
        let hostile = "text\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b[c\x1b[6n\x1b[?1003h\x1b[?2004h\x1bP+q\x1b\\\x07";
        let play = |screen: &mut PlayedScreen, event| {
            screen.play(TimedEvent { at: Duration::from_secs(61), event });
        };
        play(&mut screen, CastEvent::Output(hostile.to_owned()));
        play(&mut screen, CastEvent::Marker("\x1b[2Jmark".to_owned()));
        let room = TerminalSize { rows: 4, cols: 60 };
        let mut canvas = Canvas::default();
        canvas.resize(room);
        let empty = canvas.paint(&Picture { lines: Vec::new(), ..Picture::default() });
        let painted = canvas.paint(&picture(&mut screen, room));
        for sequence in
            ["\x1b]", "\x1b[c", "\x1b[6n", "?1003h", "?2004h", "\x1bP", "\x07", "\x1b[2J"]
        {
            assert!(!painted.contains(sequence), "{sequence:?} in {painted:?} after {empty:?}");
        }
        assert!(
            painted.contains("text") && painted.contains("1:01  40x5") && painted.contains("mark")
        );
    }
}
