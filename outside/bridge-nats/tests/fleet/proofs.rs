//! How a bridge proves its name at the server, and what a refusal looks like.

use std::{fs, path::Path, process::Command};

use super::{contracts::provider, node::Node, server::Server};

/// A node with these keys in `[nats]`, and these files beside its own.
fn with_proof(directory: &Path, server: &Server, keys: &str, files: &[(&str, &str)]) -> Node {
    let mut plan = provider("hall", "to = [\"*\"]");
    plan.nats = keys.to_owned();
    let mut node = Node::new(directory, &plan, server.address());
    for (name, text) in files {
        fs::write(directory.join("hall").join(name), text).unwrap();
    }
    node.start();
    node
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn each_proof_lets_the_bridge_in_and_a_wrong_one_is_told() {
    let key = nkeys::KeyPair::new_user();
    let seed = format!("{}\n", key.seed().unwrap());
    let users = format!(
        "authorization {{ users = [ {{ user: hall, password: secret }}, {{ nkey: {} }} ] }}",
        key.public_key()
    );
    let token = "authorization { token: word }";
    let password = "user = \"hall\"\npassword-file = \"secret\"";
    let cases = [
        (&*users, password, [("secret", "secret\n")], true),
        (&users, "nkey-file = \"seed\"", [("seed", &*seed)], true),
        (token, "token-file = \"token\"", [("token", "word")], true),
        (&users, password, [("secret", "wrong")], false),
        (&users, "", [("unused", "")], false),
    ];
    for (authorization, keys, files, is_let_in) in cases {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(directory.path(), authorization).await;
        let node = with_proof(directory.path(), &server, keys, &files);
        if is_let_in {
            node.until_bridge_says(" ready").await;
        } else {
            node.until_bridge_says("authorization violation").await;
            assert!(!node.bridge_said().contains(" ready"));
        }
        assert!(!node.bridge_said().contains("wrong") && !node.bridge_said().contains(seed.trim()));
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_certificate_of_both_sides_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    for (ca, days) in [("ca", "1"), ("other", "1")] {
        let (key, cert, subject) = (format!("{ca}.key"), format!("{ca}.pem"), format!("/CN={ca}"));
        let mut request =
            vec!["req", "-x509", "-days", days, "-keyout", &key, "-out", &cert, "-subj", &subject];
        request.extend(ec);
        openssl(&request);
    }
    fs::write(directory.path().join("san"), "subjectAltName = IP:127.0.0.1\n").unwrap();
    for name in ["server", "client"] {
        let (key, csr, cert) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        let mut request = vec!["req", "-new", "-keyout", &key, "-out", &csr, "-subj", &subject];
        request.extend(ec);
        openssl(&request);
        openssl(&[
            "x509",
            "-req",
            "-in",
            &csr,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "1",
            "-extfile",
            "san",
            "-out",
            &cert,
        ]);
    }
    let at = |name: &str| directory.path().join(name).display().to_string();
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        at("server.pem"),
        at("server.key"),
        at("ca.pem")
    );
    let server = Server::start(directory.path(), &tls).await;
    let client = format!("certificate-file = {:?}\nkey-file = {:?}", at("client.pem"), at("client.key"));
    let good = format!("[nats.tls]\nrequired = true\nca-file = {:?}\n{client}", at("ca.pem"));
    let no_certificate = format!("[nats.tls]\nca-file = {:?}", at("ca.pem"));
    let other_ca = format!("[nats.tls]\nca-file = {:?}\n{client}", at("other.pem"));
    for (place, keys, is_let_in) in
        [("good", good, true), ("none", no_certificate, false), ("other", other_ca, false)]
    {
        let place = directory.path().join(place);
        fs::create_dir(&place).unwrap();
        let node = with_proof(&place, &server, &keys, &[]);
        if is_let_in {
            node.until_bridge_says(" ready").await;
        } else {
            node.until_bridge_says("NATS is away: cannot use").await;
            assert!(!node.bridge_said().contains(" ready"), "{}", node.bridge_said());
        }
    }
}
