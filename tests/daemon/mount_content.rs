//! Resources, prompts and completion of mounted servers behind the gate.

use serde_json::{Value, json};
use termgate::core::mount::MountTrust;

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::mounts::Fake;
use crate::daemon::policy::rules_of;

const ONE: &str = "termgate://mount/fake/file:///a b?c#d";

/// The values of a member of the entries of a list that are of the mount.
async fn mounted(client: &mut Wire, (method, list, key): (&str, &str, &str)) -> Vec<String> {
    let listed = client.request(method, json!({})).await.unwrap();
    let values = listed[list].as_array().unwrap().iter().filter_map(|it| it[key].as_str());
    let of_mount = |it: &&str| it.contains("mount/") || it.contains("__");
    values.filter(of_mount).map(str::to_owned).collect()
}

const LISTS: [(&str, &str, &str); 3] = [
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
];

async fn with_content(trust: MountTrust) -> (Fake, TestDaemon) {
    let fake = Fake::new(trust).with_mode("content");
    let (daemon, _) = fake.known(true).await;
    (fake, daemon)
}

#[tokio::test]
async fn resources_are_listed_with_all_pages_and_read() {
    let (fake, daemon) = with_content(MountTrust::Trusted).await;
    for era in Era::BOTH {
        let mut client = daemon.client(era).await;
        assert_eq!(mounted(&mut client, LISTS[0]).await, [ONE, "termgate://mount/fake/two"]);
        assert_eq!(mounted(&mut client, LISTS[1]).await, ["termgate://mount/fake/file:///{path}"]);
        let read = client.request("resources/read", json!({"uri": ONE})).await.unwrap();
        let expected = json!([{"uri": ONE, "text": "read\u{200b} file:///a b?c#d"}]);
        assert_eq!(read["contents"], expected);
        assert_eq!(read.get("resultType").is_some(), era == Era::Modern);
        let refused = client.request("resources/subscribe", json!({"uri": ONE})).await;
        if era == Era::Legacy {
            let refused = refused.unwrap_err();
            assert_eq!(refused["data"]["error_code"], "invalid_argument", "{refused}");
            assert!(refused.to_string().contains("does not tell when its resources change"));
        }
    }
    assert!(fake.heard().contains("read file:///a b?c#d"));
    daemon.stop().await;
}

#[tokio::test]
async fn texts_of_an_untrusted_server_hide_nothing() {
    let (_fake, daemon) = with_content(MountTrust::Untrusted).await;
    let mut client = daemon.client(Era::Legacy).await;
    let listed = client.request("resources/list", json!({})).await.unwrap();
    assert!(listed.to_string().contains("h\\\\u{200b}i"), "{listed}");
    let read = client.request("resources/read", json!({"uri": ONE})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "read\\u{200b} file:///a b?c#d");
    assert_eq!(read["_meta"]["dev.termgate/untrusted"], true);
    daemon.stop().await;
}

#[tokio::test]
async fn prompts_have_names_as_tools_have_and_are_filled_in_and_completed() {
    let (_fake, daemon) = with_content(MountTrust::Trusted).await;
    for era in Era::BOTH {
        let mut client = daemon.client(era).await;
        // The name that two prompts have belongs to none.
        let names = mounted(&mut client, LISTS[2]).await;
        assert!(names.len() == 1 && names[0].starts_with("fake__greet_me_"), "{names:?}");
        let asked = json!({"name": names[0], "arguments": {"who": "Ada"}});
        let filled = client.request("prompts/get", asked).await.unwrap();
        assert_eq!(filled["messages"][0]["content"]["text"], "greet.me Ada");
        assert_eq!(filled.get("resultType").is_some(), era == Era::Modern);
        let twice = client.request("prompts/get", json!({"name": "fake__twice"})).await;
        assert!(twice.unwrap_err().to_string().contains("no prompt is named"));
        for (of, own) in [
            (json!({"type": "ref/prompt", "name": names[0]}), "greet.me"),
            (json!({"type": "ref/resource", "uri": "termgate://mount/fake/x{y}"}), "\"x{y}\""),
        ] {
            let asked = json!({"ref": of, "argument": {"name": "who", "value": "A"}});
            let completed = client.request("completion/complete", asked).await.unwrap();
            let value = completed["completion"]["values"][0].as_str().unwrap();
            assert!(value.contains(own), "{value}");
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_program_inside_a_session_sees_none_of_it() {
    let (fake, daemon) = with_content(MountTrust::Trusted).await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = client.start("sleep 60").await;
    let names = mounted(&mut client, LISTS[2]).await;
    for era in Era::BOTH {
        let mut inside = daemon.at_session(&session, era).await;
        for list in LISTS {
            assert_eq!(mounted(&mut inside, list).await, Vec::<String>::new());
        }
        for (method, params) in
            [("resources/read", json!({"uri": ONE})), ("prompts/get", json!({"name": names[0]}))]
        {
            assert!(inside.request(method, params).await.is_err(), "{method}");
        }
        let of = json!({"type": "ref/prompt", "name": names[0]});
        let asked = json!({"ref": of, "argument": {"name": "who", "value": ""}});
        let completed = inside.request("completion/complete", asked).await.unwrap();
        assert_eq!(completed["completion"]["values"], Value::Array(Vec::new()));
    }
    assert!(!fake.heard().contains("read"));
    daemon.stop().await;
}

#[tokio::test]
async fn rules_hold_for_resources_and_prompts_by_the_names_of_the_server() {
    let fake = Fake::new(MountTrust::Trusted).with_mode("content");
    let text = "
        [[rule]]
        name = \"no-files\"
        effect = \"deny\"
        mount = [\"fake/file:///*\", \"fake/greet.me\"]
        reason = \"not here\"
    ";
    let rules = rules_of(text);
    let (daemon, _) = fake.known_under(rules).await;
    let mut client = daemon.client(Era::Legacy).await;
    for (method, params) in [
        ("resources/read", json!({"uri": ONE})),
        ("prompts/get", json!({"name": mounted(&mut client, LISTS[2]).await[0]})),
    ] {
        let refused = client.request(method, params).await.unwrap_err();
        assert_eq!(refused["data"]["error_code"], "policy_denied", "{refused}");
    }
    assert!(!fake.heard().contains("read"));
    client.request("resources/read", json!({"uri": "termgate://mount/fake/two"})).await.unwrap();
    daemon.stop().await;
}

#[tokio::test]
async fn rules_see_an_address_however_it_is_written() {
    let fake = Fake::new(MountTrust::Trusted).with_mode("content");
    let rules = rules_of(
        r#"
        default = "deny"

        [[rule]]
        name = "no-secrets"
        effect = "deny"
        mount = "fake/file:///etc/secret/**"

        [[rule]]
        name = "etc"
        effect = "allow"
        mount = "fake/file:///etc/**"

        [[rule]]
        name = "by-argument"
        effect = "deny"
        tool = "fake__resources/read"
        arguments.uri = "file:///etc/shadow"
        "#,
    );
    let (daemon, _) = fake.known_under(rules).await;
    let mut client = daemon.client(Era::Legacy).await;
    for (address, is_allowed) in [
        ("file:///etc/hosts", true),
        ("file:///etc/a%20b", true),
        ("file:///etc/secret/x", false),
        ("file:///etc/./secret//x", false),
        ("file:///etc/%73ecret/x", false),
        ("file:///etc/x/%2e%2e/secret/x", false),
        ("FILE://localhost/etc/secret/x", false),
        ("file:///etc/../root/x", false),
        ("file:///etc/%2e%2e/root/x", false),
        ("file:///etc/x/../shadow", false),
        // It is allowed as it is meant, and not as it is written.
        ("file:/etc/hosts", false),
    ] {
        let uri = format!("termgate://mount/fake/{address}");
        let read = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read.is_ok(), is_allowed, "{address}: {read:?}");
        // The server is asked for what the client wrote.
        assert_eq!(fake.heard().contains(&format!("read {address}\n")), is_allowed, "{address}");
    }
    daemon.stop().await;
}
