#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::command_lines::check(data));
