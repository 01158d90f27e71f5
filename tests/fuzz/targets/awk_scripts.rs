#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::awk_scripts::check(data));
