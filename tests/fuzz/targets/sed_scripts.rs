#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::sed_scripts::check(data));
