//! Addresses of resources in one form, so that rules see through the many ways to write one.

use percent_encoding::percent_decode_str;

/// How often an address is decoded: some servers decode what is decoded already.
const ROUNDS: usize = 3;

/// An address as most servers read it: scheme and host in small letters, nothing escaped that is UTF-8, one `/` for
/// several and for `\`, no `.`, `..`, standard port or fragment, of files no host `localhost` and no query.
pub fn normal_address(address: &str) -> String {
    // Readers of URLs take these out wherever they stand (WHATWG URL, 4.4).
    let address = address.replace(['\t', '\n', '\r'], "");
    let address = address.trim_matches(|it: char| it <= ' ');
    let address = address.split_once('#').map_or(address, |(before, _)| before);
    let (scheme, rest) = match address.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        Some(_) | None => (String::new(), address),
    };
    let slashes = rest.replace('\\', "/");
    let (host, rest) = match slashes.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            (Some(normal_host(&scheme, &rest[..end])), &rest[end..])
        }
        Some(_) | None => (None, slashes.as_str()),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let mut normal = scheme.clone();
    if !scheme.is_empty() {
        normal.push(':');
    }
    if let Some(host) = &host {
        normal.push_str("//");
        normal.push_str(host);
    } else if scheme == "file" {
        normal.push_str("//");
    }
    let path = normal_path(&decoded(path));
    if host.is_some() && !path.starts_with('/') {
        normal.push('/');
    }
    normal.push_str(&path);
    if let Some(query) = query.filter(|_| scheme != "file") {
        normal.push('?');
        normal.push_str(&decoded(query));
    }
    normal
}

fn is_scheme(text: &str) -> bool {
    let is_fine = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
    text.starts_with(|it: char| it.is_ascii_alphabetic()) && text.chars().all(is_fine)
}

fn normal_host(scheme: &str, host: &str) -> String {
    let host = decoded(host).to_lowercase();
    let host = match scheme {
        "http" | "ws" => host.strip_suffix(":80"),
        "https" | "wss" => host.strip_suffix(":443"),
        "file" => host.strip_suffix("localhost"),
        _ => None,
    }
    .map_or(host.clone(), str::to_owned);
    host.trim_end_matches(['.', ':']).to_owned()
}

/// A path without empty, `.` and `..` parts. A `/` at its end stays.
fn normal_path(path: &str) -> String {
    let slashes = path.replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in slashes.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let is_directory = ["/", "/.", "/.."].iter().any(|end| slashes.ends_with(end));
    let begin = if slashes.starts_with('/') { "/" } else { "" };
    let end = if is_directory && !parts.is_empty() { "/" } else { "" };
    format!("{begin}{}{end}", parts.join("/"))
}

/// The text with its `%XX` decoded, as far as that is UTF-8.
fn decoded(text: &str) -> String {
    let mut decoded = text.to_owned();
    for _ in 0..ROUNDS {
        let Some(next) = decoded_once(&decoded) else { break };
        decoded = next;
    }
    decoded
}

/// `None` if nothing is left to decode.
fn decoded_once(text: &str) -> Option<String> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    let mut next = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        next.push_str(chunk.valid());
        next.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    (next != text).then_some(next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_address_has_one_form_however_it_is_written() {
        for address in [
            "file:///a/b",
            "FILE:///a/b",
            "file:/a/b",
            "file://localhost/a/b",
            "file:///a/x/../b",
            "file:///../../a/./b",
            "file:////a//b",
            "file:///a/%62",
            "file:///a%2fb",
            "file:///a/x/%2E%2e/b",
            "file:///a/%2562",
            "file:///a\\b",
            "file:///a/x%5c..%5cb",
            "file:///a/b#c",
            "file:///a/b?c",
            " file:///a/b",
            "\u{1}file:///a/b\u{1f}",
            "fi\tle:///a/x/.\t./b\n",
            "file:///a\r/%6\t2",
        ] {
            assert_eq!(normal_address(address), "file:///a/b", "{address}");
        }
        for address in [
            "https://h.example/x?q=1",
            "HTTPS://H.Example:443/./x?q=%31",
            "https://h.example./x?q=1",
        ] {
            assert_eq!(normal_address(address), "https://h.example/x?q=1", "{address}");
        }
    }

    #[test]
    fn what_differs_stays_different() {
        for address in [
            "file:///",
            "file:///a/",
            "http://h/",
            "https://h:8443/X",
            "memo:insights",
            "notes/today",
            "/a",
            "a%",
            "a%zz",
            "db://h/ä?x=y",
        ] {
            assert_eq!(normal_address(address), address);
        }
        assert_eq!(normal_address("http://h"), "http://h/");
        // What is no text is not decoded, and hides nothing behind it.
        assert_eq!(normal_address("file:///%ff/x%2f..%2f%61"), "file:///%FF/a");
    }

    proptest! {
        #[test]
        fn noise_between_the_parts_of_a_path_changes_nothing(
            parts in prop::collection::vec(("[a-z.%]{0,3}[a-z]", 0..6_usize), 1..5)
        ) {
            const NOISE: [&str; 6] = ["/", "//", "/./", "/x/../", "\\", "%2F%2e%2f"];
            let plain = parts.iter().map(|(part, _)| format!("/{part}")).collect::<String>();
            let noisy = parts.iter().map(|(part, noise)| format!("{}{part}", NOISE[*noise]));
            let noisy = format!("file:///{}", noisy.collect::<String>());
            prop_assert_eq!(normal_address(&noisy), normal_address(&format!("file://{plain}")));
        }
    }
}
