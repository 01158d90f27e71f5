//! Parses and writes the text of the token file, which never contains a secret.
//! Anything unknown is an error, so that a typing mistake cannot keep a right alive that should end.

use serde::{Deserialize, Serialize};

use crate::core::token::{Token, TokenScope, Tokens, UnixTime};

/// The comment at the top of the file.
const HEAD: &str = "# The tokens of termgate, by the SHA-256 of their secrets. `termgate token` writes \
                    this file;\n# a token that is taken out of it is worth nothing from then on.\n\n";

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    last_number: u64,
    #[serde(default, rename = "token")]
    tokens: Vec<TokenEntry>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    name: String,
    number: u64,
    sha256: String,
    scope: String,
    created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
}

/// Parses the text of the file. An error is one line.
pub fn read(text: &str) -> Result<Tokens, String> {
    let kept: TokenFile =
        toml::from_str(text).map_err(|error| error.message().replace('\n', " "))?;
    let tokens: Result<Vec<Token>, String> = kept.tokens.iter().map(token).collect();
    Ok(Tokens::kept(kept.last_number, tokens?))
}

pub fn text(tokens: &Tokens) -> String {
    let kept = tokens.all().iter().map(|token| TokenEntry {
        name: token.name.to_string(),
        number: token.number,
        sha256: token.hash.to_string(),
        scope: token.scope.as_str().to_owned(),
        created: token.created.0,
        expires: token.expires.map(|at| at.0),
    });
    let kept = TokenFile { last_number: tokens.last_number(), tokens: kept.collect() };
    let text = toml::to_string(&kept).expect("numbers of seconds and words are TOML");
    format!("{HEAD}{text}")
}

fn token(kept: &TokenEntry) -> Result<Token, String> {
    let wrong = |problem: String| format!("token {}: {problem}", kept.number);
    Ok(Token {
        name: kept.name.parse().map_err(|error| wrong(format!("name: {error}")))?,
        number: kept.number,
        hash: kept.sha256.parse().map_err(|error| wrong(format!("sha256: {error}")))?,
        scope: TokenScope::parse(&kept.scope).ok_or_else(|| {
            wrong(format!("scope: {} is not write, read_only, approve or operate", kept.scope))
        })?,
        created: UnixTime(kept.created),
        expires: kept.expires.map(UnixTime),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::token::{Secret, TokenTerms};

    fn tokens() -> Tokens {
        let mut tokens = Tokens::default();
        let wanted = |name: &str, byte, expires| TokenTerms {
            name: name.parse().unwrap(),
            hash: Secret::from_random([byte; 32]).hash(),
            scope: TokenScope::Write,
            expires,
        };
        tokens.add(UnixTime(5), wanted("ci", 1, None)).unwrap();
        let watching =
            TokenTerms { scope: TokenScope::ReadOnly, ..wanted("w", 2, Some(UnixTime(9))) };
        tokens.add(UnixTime(6), watching).unwrap();
        tokens.add(UnixTime(7), wanted("gone", 3, None)).unwrap();
        tokens.remove(&"gone".parse().unwrap());
        tokens
    }

    #[test]
    fn what_is_written_reads_back() {
        for tokens in [Tokens::default(), tokens()] {
            assert_eq!(read(&text(&tokens)).unwrap(), tokens);
        }
        assert_eq!(read(&text(&tokens())).unwrap().last_number(), 3);
    }

    #[test]
    fn the_file_holds_no_secret() {
        let text = text(&tokens());
        for byte in [1, 2] {
            let secret = Secret::from_random([byte; 32]);
            assert!(!text.contains(&secret.reveal()[4..]), "{text}");
            assert!(text.contains(&secret.hash().to_string()), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error_in_one_line() {
        let text = text(&tokens());
        let broken = [
            ("last_number = 3", "last_number = -3"),
            ("scope = \"write\"", "scope = \"all\""),
            ("name = \"ci\"", "name = \"c i\""),
            ("expires = 9", "expires_at = 9"),
            ("expires = 9", "expires = \"never\""),
            ("sha256 = \"", "sha256 = \"0"),
            ("[[token]]", "[[token"),
        ];
        for (right, wrong) in broken {
            assert!(text.contains(right), "{right}");
            let error = read(&text.replacen(right, wrong, 1)).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
        }
        assert!(read("").is_err());
    }
}
