//! How often a tenant may call, where the operator set a limit.

use serde_json::{Value, json};
use termgate::core::quota::Quota;
use tokio::time::Instant;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};
use crate::harness::waiting::soon;

/// A daemon that takes one call a second.
async fn limited() -> TestDaemon {
    let calls = Quota::new(1, 1);
    TestDaemon::configured(|config| config.calls = calls).await
}

/// Calls until it is too often, and gives back the refusal.
async fn exhaust(client: &mut Wire) -> Value {
    let refusal = async {
        loop {
            let answer = client.call("list_sessions", json!({})).await;
            if answer["isError"] == true {
                return answer;
            }
        }
    };
    soon("a refusal", refusal).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_calls_too_often_is_told_when_to_try_again_and_may_then() {
    for era in Era::BOTH {
        let daemon = limited().await;
        let mut client = daemon.client(era).await;
        let refused = exhaust(&mut client).await;
        assert_eq!(error_code(&refused), "rate_limited");
        let wait = refused["structuredContent"]["retry_after_ms"].as_u64().unwrap();
        assert!((1..=1_000).contains(&wait), "{refused}");
        let again =
            async { while client.call("list_sessions", json!({})).await["isError"] == true {} };
        soon("a call to be taken again", again).await;
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_connections_of_a_tenant_share_its_calls() {
    let daemon = limited().await;
    let mut first = daemon.client(Era::Legacy).await;
    let mut second = daemon.client(Era::Modern).await;
    let (started, mut taken) = (Instant::now(), 0);
    for _ in 0..10 {
        for client in [&mut first, &mut second] {
            let answer = client.call("list_sessions", json!({})).await;
            taken += u32::from(answer["isError"] != true);
        }
    }
    // One at once, and one for each second that has passed, however long this took.
    let most = 1.0 + started.elapsed().as_secs_f64();
    assert!(f64::from(taken) <= most, "{taken} calls were taken");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_resources_and_beginning_to_observe_count_as_calls() {
    let list = json!({"uri": "termgate://sessions"});
    for (method, params) in
        [("resources/read", list), ("termgate/observe", json!({"session": "s"}))]
    {
        let daemon = limited().await;
        let mut client = daemon.client(Era::Legacy).await;
        let refused = async {
            loop {
                match client.request(method, params.clone()).await {
                    Err(error) if error["code"] == -32000 => return error,
                    Ok(_) | Err(_) => {}
                }
            }
        };
        let refused = soon("a refusal", refused).await;
        assert_eq!(refused["data"]["error_code"], "rate_limited", "{method}: {refused}");
        assert!(refused["data"]["retry_after_ms"].is_u64(), "{method}: {refused}");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_are_never_limited() {
    let daemon = limited().await;
    let mut operator = daemon.operator().await;
    for _ in 0..20 {
        operator.structured("list_sessions", json!({})).await;
        operator.request("resources/read", json!({"uri": "termgate://sessions"})).await.unwrap();
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_set_a_limit_the_own_user_has_none() {
    let daemon = TestDaemon::read_only().await;
    let mut client = daemon.client(Era::Modern).await;
    for _ in 0..500 {
        client.structured("list_sessions", json!({})).await;
    }
    daemon.stop().await;
}
