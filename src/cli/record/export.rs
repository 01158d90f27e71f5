//! `record export`: a recording as text, as an image, or as an animation.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis, parse_duration};
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::record::film::{Film, FilmCut};
use crate::cli::record::gif::gif_of;
use crate::cli::record::pace::{PlaybackPace, parse_speed};
use crate::cli::record::played::PlayedScreen;
use crate::cli::record::progress::ExportProgress;
use crate::cli::record::source::{OpenRecording, failed, find, open};
use crate::cli::record::svg::{animated_svg, svg_of};
use crate::core::counted::counted;

/// The longest pause of an animation, unless another one is asked for.
const IDLE_LIMIT: Duration = Duration::from_secs(5);

/// How many characters without a glyph are named.
const NAMED_MAX: usize = 10;

/// Export a recording as text, an image or an animation
///
/// An animation has up to 15 frames per second. Times count from the start of the recording, such as 90s or 5m.
#[derive(Debug, Args)]
pub(super) struct ExportRecording {
    /// A session, to export its newest recording, or an asciicast file
    #[arg(value_name = "SESSION|FILE", add = ArgValueCompleter::new(offer_sessions))]
    recording: String,
    /// Plain text of the history and the last screen; the default
    #[arg(long, group = "form")]
    txt: bool,
    /// An animated SVG image
    #[arg(long, groups = ["form", "animation"])]
    svg: bool,
    /// Write an animated GIF image to this file; it must not exist
    #[arg(long, value_name = "FILE", groups = ["form", "animation"], conflicts_with = "output")]
    gif: Option<PathBuf>,
    /// A still picture of this time, or of the `end`, instead of an animation
    #[arg(long, value_name = "TIME|end", value_parser = parse_instant)]
    at: Option<Duration>,
    /// Begin at this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "animation",
        conflicts_with = "at")]
    from: Option<Duration>,
    /// End at this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "animation",
        conflicts_with = "at")]
    to: Option<Duration>,
    /// Play faster by this factor, 0.01 to 1000
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed, requires = "animation",
        conflicts_with = "at")]
    speed: Option<f64>,
    /// Shorten longer pauses to this [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "animation",
        conflicts_with = "at")]
    idle_limit: Option<Duration>,
    /// Write to this file instead of standard output; it must not exist
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The time of a picture; the end comes after all others.
fn parse_instant(given: &str) -> Result<Duration, String> {
    match given {
        "end" => Ok(Duration::MAX),
        time => parse_duration(time).map_err(|error| format!("{error}, or `end`")),
    }
}

impl ExportRecording {
    pub(super) async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let path = find(context, self.recording.clone()).await?;
        let events = open(&path)?;
        let mut progress = ExportProgress::begin(&context.output);
        if let Some(output) = &self.gif {
            return self.export_gif(output, events, &path, &mut progress);
        }
        let (form, text) = match (self.svg, self.at) {
            (true, None) => ("svg", animated_svg(&self.film(events, &path, &mut progress)?)?),
            (true, Some(at)) => ("svg", svg_of(&screen_at(at, events, &path)?.frame())),
            (false, at) => ("txt", screen_at(at.unwrap_or(Duration::MAX), events, &path)?.text()),
        };
        let Some(output) = &self.output else {
            return Ok(CommandReport::new(json!({"format": form, "text": text}), text));
        };
        write_new("--output", output, format!("{text}\n").as_bytes())?;
        let told = format!("wrote {}", output.display());
        Ok(CommandReport::new(json!({"format": form, "path": output}), told))
    }

    fn export_gif(
        &self,
        output: &Path,
        events: OpenRecording,
        path: &Path,
        progress: &mut ExportProgress<'_>,
    ) -> Result<CommandReport, CliFailure> {
        let film = match self.at {
            Some(at) => Film::still(&mut screen_at(at, events, path)?),
            None => self.film(events, path, progress)?,
        };
        let image = gif_of(&film, progress)?;
        write_new("--gif", output, &image.bytes)?;
        let told = format!("wrote {}", output.display());
        let (pictures, missing) = (film.pictures.len(), image.missing.len());
        let data = json!({
            "format": "gif", "path": output, "pictures": pictures,
            "length_ms": millis(film.length), "missing_characters": missing,
        });
        let mut report = CommandReport::new(data, told);
        if missing > 0 {
            let named: Vec<_> = image.missing.iter().take(NAMED_MAX).map(char::to_string).collect();
            let rest = if missing > NAMED_MAX { " …" } else { "" };
            let (missing, named) = (counted(missing, "character"), named.join(" "));
            report.notes.push(format!("the font lacks {missing}, shown as boxes: {named}{rest}"));
        }
        Ok(report)
    }

    fn film(
        &self,
        events: OpenRecording,
        path: &Path,
        progress: &mut ExportProgress<'_>,
    ) -> Result<Film, CliFailure> {
        let idle_limit = Some(self.idle_limit.unwrap_or(IDLE_LIMIT));
        let pace = PlaybackPace { speed: self.speed.unwrap_or(1.0), idle_limit };
        let (from, to) = (self.from.unwrap_or_default(), self.to.unwrap_or(Duration::MAX));
        if from > to {
            return Err(CliFailure::Usage("--from: it is after --to".to_owned()));
        }
        let screen = PlayedScreen::new(events.facts().size);
        let events = events.map(|event| event.map_err(|error| failed(path, &error)));
        Film::play(screen, events, &FilmCut { from, to, pace }, progress)
    }
}

/// The screen at a time of a recording.
fn screen_at(at: Duration, events: OpenRecording, path: &Path) -> Result<PlayedScreen, CliFailure> {
    let mut screen = PlayedScreen::new(events.facts().size);
    for event in events {
        let event = event.map_err(|error| failed(path, &error))?;
        if event.at > at {
            break;
        }
        screen.play(event);
    }
    Ok(screen)
}

/// Writes the file that this flag names, which must not exist.
fn write_new(flag: &str, path: &Path, bytes: &[u8]) -> Result<(), CliFailure> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| {
        let problem = if error.kind() == ErrorKind::AlreadyExists {
            format!("{shown} exists already; name another file, or remove this one first")
        } else if error.kind() == ErrorKind::NotFound {
            format!("{shown} is in a directory that does not exist; make it first")
        } else {
            format!("cannot write {shown}: {error}; name a file that you may write")
        };
        CliFailure::Usage(format!("{flag}: {problem}"))
    })?;
    Ok(file.write_all(bytes).with_context(|| format!("cannot write {shown}"))?)
}
