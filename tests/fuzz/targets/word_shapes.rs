#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::word_shapes::check(data));
