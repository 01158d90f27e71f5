#![no_main]

/// The parser may panic: the daemon catches that, and the text counts as not understood.
fn let_the_parser_panic() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_parsers = |at: &std::panic::Location<'_>| at.file().contains("/brush-parser-");
        if !panic.location().is_some_and(is_parsers) {
            abort(panic);
        }
    }));
}

libfuzzer_sys::fuzz_target!(init: let_the_parser_panic(), |data: &[u8]| {
    bodies::command_lines::check(data)
});
