//! Contracts that sidecars describe.

use weir_host::Error;

use crate::support::Stage;

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1/echo']

[peer.'sidecar:theirs']
tokens = ['HASH']
fulfills = ['theirs@1', 'other@1']
";

fn document(contract: &str, more: &str) -> String {
    format!(
        r#"{{"openrpc": "1.3.2", "info": {{"title": "{contract}", "version": "1"}}{more},
            "methods": [{{"name": "{contract}/do", "params": [], "result": {{"name": "r", "schema": true}}}}]}}"#
    )
}

fn described(stage: &Stage) -> Vec<String> {
    let contracts = stage.main.control().contracts();
    contracts.iter().map(|contract| format!("{} {}", contract.provider, contract.contract)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_describes_is_known_while_it_serves_it() {
    let stage = Stage::new(FILE).await;
    let theirs = stage.connect("sidecar:theirs").await;
    let both = format!("[{}, {}]", document("theirs@1", ""), document("other@1", ""));
    theirs.describe(both).await.unwrap();
    assert_eq!(described(&stage), [""; 0], "nothing is served");
    let _requests = theirs.serve("theirs@1", &["do"]).await.unwrap();
    assert_eq!(described(&stage), ["sidecar:theirs theirs@1"]);
    let again = theirs.describe(document("theirs@1", "")).await;
    assert_eq!(again, Err(Error::Invalid("a session describes its contracts once".to_owned())));
    assert_eq!(described(&stage), ["sidecar:theirs theirs@1"]);
    theirs.leave().await;
    stage.sessions_become(0).await;
    assert_eq!(described(&stage), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_describes_no_contract_of_the_peer_is_refused_and_said() {
    let stage = Stage::new(FILE).await;
    let large = format!(r#""version": "1", "description": "{}""#, "d".repeat(70_000));
    let large = document("theirs@1", "").replace(r#""version": "1""#, &large);
    for (documents, error) in [
        ("".to_owned(), "invalid: contracts: not JSON: EOF"),
        ("{".to_owned(), "invalid: contracts: not JSON: EOF"),
        ("[1]".to_owned(), "invalid: contracts: document 1: `$`: must be an object"),
        (
            document("theirs@1", r#", "x-role": "caller""#),
            "invalid: contracts: `theirs@1` is described as its callers do",
        ),
        (document("mine@1", ""), "permission denied: `sidecar:theirs` may not serve `mine@1`"),
        (
            format!(
                "[{0}, {0}, {1}]",
                document("theirs@1", ""),
                document("theirs@1", "").replace("/do", "/else")
            ),
            "`theirs@1` is described before, and differently",
        ),
        (large, "65536"),
        ("[".repeat(60_000), "invalid: contracts: not JSON: it is more than 64 levels deep"),
    ] {
        let theirs = stage.connect("sidecar:theirs").await;
        let refused = theirs.describe(documents).await.unwrap_err().to_string();
        assert!(refused.contains(error), "{refused}");
        // No second try in the same session.
        assert!(theirs.describe(document("theirs@1", "")).await.is_err());
        let _requests = theirs.serve("theirs@1", &["do"]).await.unwrap();
        assert_eq!(described(&stage), [""; 0]);
        theirs.leave().await;
        stage.sessions_become(0).await;
    }
    stage.works().await;
}
