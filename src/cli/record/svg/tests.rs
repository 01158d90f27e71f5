//! Images as programs that read XML see them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::cli::record::film::tests::{WHOLE, film_of};
use crate::cli::record::played::PlayedScreen;
use crate::session::recording::asciicast::CastEvent;
use crate::session::recording::reader::TimedEvent;

fn image(output: &str) -> String {
    let mut screen = PlayedScreen::new(Size { rows: 3, cols: 20 });
    let event = CastEvent::Output(output.to_owned());
    screen.play(TimedEvent { at: Duration::ZERO, event });
    svg_of(&screen.frame())
}

/// An element with its attributes, and all text within.
#[derive(Clone, Debug, Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn get(&self, attribute: &str) -> &str {
        self.attributes.get(attribute).map_or("", String::as_str)
    }

    fn all(&self) -> Vec<&Element> {
        self.children.iter().flat_map(|child| [vec![child], child.all()].concat()).collect()
    }
}

/// Reads a document, which must be well-formed.
fn parsed(document: &str) -> Element {
    let mut open = vec![Element::default()];
    let mut rest = document;
    while let Some((text, behind)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        open.iter_mut().for_each(|element| element.text.push_str(text.trim_matches('\n')));
        let (tag, behind) = behind.split_once('>').unwrap();
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            let ended = open.pop().unwrap();
            assert_eq!(ended.name, name);
            open.last_mut().unwrap().children.push(ended);
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut element = Element { name: name.to_owned(), ..Element::default() };
        while let Some((name, value)) = attributes.trim_start().split_once("=\"") {
            let (value, behind) = value.split_once('"').unwrap();
            let known = element.attributes.insert(name.to_owned(), value.to_owned());
            assert_eq!(known, None, "{tag}");
            attributes = behind;
        }
        assert_eq!(attributes, "", "{tag}");
        match is_empty {
            true => open.last_mut().unwrap().children.push(element),
            false => open.push(element),
        }
    }
    let [document] = &open[..] else { panic!("{} elements have no end", open.len() - 1) };
    let [root] = &document.children[..] else { panic!("{:?}", document.children) };
    root.clone()
}

/// The rows that a viewer shows at a part of the time, from 0 to 1; those of a viewer that knows no animations
/// without.
fn shown(root: &Element, part: Option<f64>) -> Vec<String> {
    let all = root.all();
    let style = &all.iter().find(|element| element.name == "style").unwrap().text;
    let mut rows = vec![String::new(); 3];
    for element in all.iter().filter(|element| element.name == "use") {
        let name = element.get("style").strip_prefix("animation-name:");
        let is_seen = match (part, name) {
            (Some(part), Some(name)) => is_visible(style, name, part * 100.0),
            (_, _) => element.get("visibility") != "hidden",
        };
        let target = all.iter().find(|it| element.get("href") == format!("#{}", it.get("id")));
        let target = target.expect("what is used is defined");
        if is_seen && target.name == "g" {
            rows[element.get("y").parse::<usize>().unwrap() / 20].push_str(&target.text);
        }
    }
    rows
}

/// What the last keyframe says until this percentage of the time.
fn is_visible(style: &str, name: &str, percentage: f64) -> bool {
    let (_, keyframes) = style.split_once(&format!("@keyframes {name}{{")).unwrap();
    let (keyframes, _) = keyframes.split_once("}}").unwrap();
    let keyframe = |text: &str| -> (f64, bool) {
        let (time, word) = text.split_once("%{visibility:").unwrap();
        (time.parse().unwrap(), word == "visible")
    };
    let keyframes: Vec<_> = keyframes.split('}').map(keyframe).collect();
    assert!(keyframes[0].0 == 0.0 && keyframes.is_sorted_by(|one, next| one.0 < next.0));
    keyframes.iter().rfind(|(time, _)| *time <= percentage).unwrap().1
}

#[test]
fn text_stands_at_its_cell_in_its_colour_and_cannot_end_its_element() {
    let image = image("ab\x1b[3;5H\x1b[1;31m<b>&\x1b[0m");
    let expected = "<text x=\"40\" y=\"55\" textLength=\"40\" lengthAdjust=\"spacingAndGlyphs\" \
        xml:space=\"preserve\" fill=\"#cd0000\" font-weight=\"bold\">&lt;b&gt;&amp;</text>";
    assert!(image.contains(expected), "{image}");
    assert!(image.contains(">ab</text>"), "{image}");
    assert_eq!(parsed(&image).text, "ab<b>&");
}

#[test]
fn backgrounds_and_inverse_text_are_rectangles() {
    let image = image("\x1b[48;5;21mx\x1b[0m\x1b[7my");
    let blue = "<rect x=\"0\" y=\"0\" width=\"10\" height=\"20\" fill=\"#0000ff\"/>";
    let light = "<rect x=\"10\" y=\"0\" width=\"10\" height=\"20\" fill=\"#d8d8d8\"/>";
    assert!(image.contains(blue) && image.contains(light), "{image}");
    assert!(image.contains("fill=\"#181818\">y</text>"), "{image}");
}

#[test]
fn an_animation_shows_each_screen_for_its_time_and_the_last_one_where_nothing_moves() {
    // Five seconds of pictures, and three more of the last one.
    let events = [
        (0, "one\r\ntwo <&>"),
        (1_000, "\r\nthree"),
        (2_000, "\r\none"),
        (4_000, "\x1b[2;1H\x1b[K"),
        (5_000, "\x1b[1;1Hone \x1b[K"),
    ];
    let root = parsed(&animated_svg(&film_of(&events, &WHOLE)).unwrap());
    let at = |seconds: f64| shown(&root, Some(seconds / 8.0));
    assert_eq!(at(0.5), ["one", "two <&>", ""]);
    assert_eq!(at(1.5), ["one", "two <&>", "three"]);
    assert_eq!(at(3.0), ["two <&>", "three", "one"]);
    assert_eq!(at(4.5), ["two <&>", "", "one"]);
    assert_eq!(at(7.9), ["one", "", "one"]);
    assert_eq!(shown(&root, None), ["one", "", "one"]);
    let lines = root.all().into_iter().filter(|it| it.name == "g" && !it.get("id").is_empty());
    assert_eq!(lines.count(), 3, "each line is there once");
    assert!(root.text.contains("use{animation:8.000s step-end infinite}"), "{}", root.text);
}

#[test]
fn a_screen_that_does_not_change_needs_no_animation() {
    let root = parsed(&animated_svg(&film_of(&[(0, "still")], &WHOLE)).unwrap());
    assert_eq!(shown(&root, Some(0.0)), ["still", "", ""]);
    assert!(!root.text.contains("@keyframes"), "{}", root.text);
}
