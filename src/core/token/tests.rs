//! The rules of tokens, with time as a variable.

use super::*;

const NOW: UnixTime = UnixTime(1_000);

fn secret(byte: u8) -> Secret {
    Secret::from_random([byte; BYTES])
}

fn name(text: &str) -> TokenName {
    text.parse().unwrap()
}

fn wanted(text: &str, byte: u8) -> TokenTerms {
    let hash = secret(byte).hash();
    TokenTerms { name: name(text), hash, scope: TokenScope::Write, expires: None }
}

#[test]
fn a_secret_reads_back_what_it_reveals() {
    let text = secret(0xa7).reveal();
    assert_eq!(text.len(), Secret::TEXT_LEN);
    assert_eq!(text, format!("tgt_{}", "a7".repeat(32)));
    assert_eq!(text.parse(), Ok(secret(0xa7)));
}

#[test]
fn what_is_no_secret_is_refused() {
    let digits = "a7".repeat(32);
    let texts = [
        String::new(),
        digits.clone(),
        format!("tgt_{}", &digits[1..]),
        format!("tgt_{digits}0"),
        format!("tgt_{digits}00"),
        format!("tgt_{}", digits.to_uppercase()),
        format!("tgt_{}é", &digits[2..]),
        format!(" tgt_{digits}"),
    ];
    for text in texts {
        assert_eq!(text.parse::<Secret>(), Err(NotASecret), "{text}");
    }
}

#[test]
fn nothing_that_can_be_logged_shows_a_secret() {
    let shown = format!("{:?} {} {}", secret(0xa7), NotASecret, Rejection::Malformed);
    assert!(!shown.contains("a7a7"), "{shown}");
    assert_ne!(secret(0xa7).hash().to_string(), "a7".repeat(32));
}

#[test]
fn the_hash_is_that_of_the_256_bits() {
    // The SHA-256 of 32 zero bytes, as any other program computes it.
    let expected = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925";
    assert_eq!(secret(0).hash().to_string(), expected);
    assert_eq!(expected.parse(), Ok(secret(0).hash()));
}

#[test]
fn a_name_is_one_that_a_label_can_be() {
    for text in ["a", "ci", "Claude-Code_2.1", &"x".repeat(40)] {
        assert_eq!(name(text).to_string(), text);
        assert_eq!(*Caller::clean_label(text), *text);
    }
    for text in ["", "-a", ".a", "a b", "a#b", "é", "a/b", &"x".repeat(41)] {
        assert_eq!(text.parse::<TokenName>(), Err(NotATokenName), "{text}");
    }
}

#[test]
fn the_token_that_is_shown_is_found_by_its_hash_alone() {
    let mut tokens = Tokens::default();
    tokens.add(NOW, wanted("one", 1)).unwrap();
    tokens.add(NOW, wanted("two", 2)).unwrap();
    assert_eq!(tokens.find(NOW, &secret(2).hash()).unwrap().name, name("two"));
    assert_eq!(tokens.find(NOW, &secret(3).hash()), Err(Rejection::Unknown));
}

#[test]
fn a_token_is_worth_nothing_from_the_second_on_in_which_it_expires() {
    let mut tokens = Tokens::default();
    let expires = Some(UnixTime(2_000));
    tokens.add(NOW, TokenTerms { expires, ..wanted("one", 1) }).unwrap();
    assert!(tokens.find(UnixTime(1_999), &secret(1).hash()).is_ok());
    assert_eq!(tokens.find(UnixTime(2_000), &secret(1).hash()), Err(Rejection::Expired));
}

#[test]
fn a_revoked_token_is_unknown_and_its_name_free() {
    let mut tokens = Tokens::default();
    tokens.add(NOW, wanted("one", 1)).unwrap();
    assert_eq!(tokens.remove(&name("one")).unwrap().number, 1);
    assert_eq!(tokens.remove(&name("one")), None);
    assert_eq!(tokens.find(NOW, &secret(1).hash()), Err(Rejection::Unknown));
    assert!(tokens.add(NOW, wanted("one", 2)).is_ok());
}

#[test]
fn no_number_is_given_twice_so_that_no_token_inherits_what_another_held() {
    let mut tokens = Tokens::default();
    let first = tokens.add(NOW, wanted("one", 1)).unwrap().principal();
    tokens.remove(&name("one"));
    let second = tokens.add(NOW, wanted("one", 1)).unwrap().principal();
    assert_ne!(first, second);
    // Also where the file says less than it should.
    let kept = Tokens::kept(0, tokens.all().to_vec());
    assert_eq!(kept.last_number(), 2);
}

#[test]
fn a_name_is_given_once_and_the_number_of_tokens_is_bounded() {
    let mut tokens = Tokens::default();
    for number in 0..TOKENS_MAX {
        tokens.add(NOW, wanted(&format!("t{number}"), 0)).unwrap();
    }
    assert_eq!(tokens.add(NOW, wanted("t0", 1)), Err(NotAdded::NameTaken(name("t0"))));
    assert_eq!(tokens.add(NOW, wanted("more", 1)), Err(NotAdded::TooMany));
}
