//! Components that describe contracts: what they say is bounded, and kept with their code.

use weir_host::{
    component::{self, SigningKey},
    config::{Limits, Traces},
    control::DescribedContract,
};

use super::*;

/// A contract with one operation, which takes this.
fn document(argument: &str) -> String {
    format!(
        r#"{{"openrpc":"1.3.2","info":{{"title":"hostile@1","version":"1","description":"\u001b[2J"}},"methods":[{{"name":"hostile@1/run","params":[],"x-argument":{argument},"result":{{"name":"answer","schema":{{}}}}}}]}}"#
    )
}

/// A section in text form.
fn custom(content: &str) -> String {
    let bytes: String = content.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(r#"(@custom "weir:contracts" "{bytes}")"#)
}

/// A program, with a section in its module and one beside it.
fn describing(within: &str, beside: &str) -> Vec<u8> {
    let module = r#"(func (export "run") (result i32) i32.const 0)"#;
    let text = program(&format!("{module} {}", custom(within)));
    let text = text.strip_suffix(')').unwrap();
    wat::parse_str(format!("{text} {})", custom(beside))).unwrap()
}

#[tokio::test]
async fn contracts_out_of_bounds_are_refused_before_anything_runs() {
    let deep = (0..1000).fold("{}".to_owned(), |inner, _| format!(r#"{{"type":"array","items":{inner}}}"#));
    let half = "\n".repeat(40_000);
    let cases = [
        ("large", describing("", &"x".repeat(10 << 20))),
        ("together", describing(&half, &half)),
        ("deep", describing("", &document(&deep))),
        ("malformed", describing("{\"openrpc\":", "")),
        ("twice", describing(&document("{}"), &document("{\"type\":\"null\"}"))),
    ];
    let mut refusals = String::new();
    for compilation in [child(), Compilation::InProcess] {
        let mut files = Files::new();
        files.compilation = compilation;
        let mut said = String::new();
        for (name, component) in &cases {
            let name = format!("{name}.wasm");
            files.write(&name, component);
            let error =
                component::check(&files.main, &files.extension(&name), &files.compilation).unwrap_err();
            said += &format!("{error}\n").replace(&*files.path().to_string_lossy(), "DIR");
        }
        assert!(refusals.is_empty() || refusals == said, "{said}");
        refusals = said;
    }
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("refused-contracts", refusals));

    let files = Files::new();
    files.write("large.wasm", &cases[0].1);
    let cause = refusals.lines().next().unwrap();
    files.refused(files.extension("large.wasm"), cause).await;
}

/// What Main says of the extension.
async fn described(files: &Files, name: &str) -> Vec<DescribedContract> {
    let mut extension = files.extension(name);
    extension.fulfills = vec!["hostile@1".parse().unwrap()];
    support::set(&mut extension, "contract", "hostile@1");
    let stage = files.start(extension).await;
    support::reached(&stage.main, "hostile", ExtensionState::Ready).await;
    stage.main.control().contracts()
}

#[tokio::test]
async fn contracts_are_the_same_from_the_compiler_the_cache_and_an_artifact_and_hold_no_escapes() {
    let mut files = Files::new();
    let beside = format!("(component {})", custom(&document("{\"type\":\"integer\"}")));
    let section = wat::parse_str(beside).unwrap();
    let puppet = fs::read(support::puppet("it").component.path().unwrap()).unwrap();
    // Without the head of its component.
    files.write("component.wasm", &[puppet.as_slice(), &section[8..]].concat());
    let key = SigningKey::generate().unwrap();
    let path = files.path().join("component.wasm");
    let artifact =
        component::compile(&path, None, &Limits::max(), Traces::default(), &child(), &key).unwrap();
    files.write("artifact.cwasm", &artifact);
    files.main.trusted_keys = vec![key.trusted_key()];
    files.main.cache_dir = Some(files.path().join("cache"));

    let compiled = described(&files, "component.wasm").await;
    let [contract] = compiled.as_slice() else { panic!("{compiled:?}") };
    assert_eq!(contract.document.methods[0].name, "run");
    assert!(!contract.document.text().contains('\x1b'));
    files.compilation = no_compiler();
    assert_eq!(described(&files, "component.wasm").await, compiled);
    files.compilation = Compilation::PrecompiledOnly;
    assert_eq!(described(&files, "artifact.cwasm").await, compiled);
}
