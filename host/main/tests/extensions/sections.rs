//! A program with its own section of the operator's file, which hears of reloads.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use weir_host::{
    Main, Service,
    config::{
        Shape,
        extend::{ConfigSection, Section, Settling},
    },
    host::StartError,
};

#[derive(Clone, Debug, Default, PartialEq)]
struct DoorConfig {
    connections: u64,
}

impl ConfigSection for DoorConfig {
    const TABLE: &'static str = "door";
    type Draft = Self;
    type Locations = ();

    fn read(draft: &mut Self, file: &mut Section<'_, '_>) {
        file.table(Self::TABLE, |door| {
            draft.connections = door.number("connections", &Shape::Count(1..=9)).map_or(0, |at| at.value);
        });
    }

    fn settle(draft: Self, _settling: &mut Settling<'_>) -> (Self, ()) {
        (draft, ())
    }

    fn serves() -> Vec<weir_host::names::ContractName> {
        vec!["door@1".parse().unwrap()]
    }
}

fn service() -> Service {
    Service::new("door@1".parse().unwrap())
        .on("open".parse().unwrap(), |_request| async { Ok("open".into()) })
}

#[tokio::test]
async fn a_reload_hands_the_section_over_once_it_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("weir.toml");
    fs::write(&file, "[door]\nconnections = 1").unwrap();
    let config = weir_host::loader().section::<DoorConfig>().load(&file).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = heard.clone();
    let builder = Main::builder(config).serve(service()).on_reload(move |config| {
        hearing.lock().unwrap().push(config.section::<DoorConfig>().unwrap().connections);
    });
    let main = builder.start().await.unwrap();
    assert!(heard.lock().unwrap().is_empty());

    fs::write(&file, "[door]\nconnections = 2").unwrap();
    main.control().reload().await.unwrap();
    fs::write(&file, "[door]\nconnections = 10").unwrap();
    let refused = main.control().reload().await.unwrap_err().to_string();
    assert!(refused.contains("connections"), "{refused}");
    assert_eq!(*heard.lock().unwrap(), [2]);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_contract_of_a_section_that_the_program_does_not_serve_refuses_the_start() {
    let config =
        weir_host::loader().section::<DoorConfig>().parse("", "weir.toml", "/etc/weir".as_ref()).unwrap();
    let error = Main::builder(config).start().await.unwrap_err();
    assert!(matches!(&error, StartError::NotServed(contract) if contract.as_str() == "door@1"), "{error}");
}
