//! The limit, raised in a process of its own.

use super::*;

use std::path::Path;

use crate::transport::unix::tests::alone;

#[test]
fn the_limit_is_raised_as_far_as_allowed_and_the_earlier_one_told() {
    let name = "transport::unix::limits::tests::\
                the_limit_is_raised_as_far_as_allowed_and_the_earlier_one_told";
    if alone::argument(name).is_none() {
        return alone::run(name, Path::new("/"));
    }
    setrlimit(Resource::RLIMIT_NOFILE, 200, 300).unwrap();
    let expected = DescriptorLimit { before: 200, now: 300 };
    assert_eq!(raise_descriptor_limit().unwrap(), expected);
    assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (300, 300));
    let again = DescriptorLimit { before: 300, now: 300 };
    assert_eq!(raise_descriptor_limit().unwrap(), again);
}
