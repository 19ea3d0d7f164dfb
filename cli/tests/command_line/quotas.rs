//! `max-bytes` and `max-files` of a granted directory, and the quota of a store.

use std::fs;

use super::support::{PUPPET, Running, with_own_component};

#[test]
fn an_extension_fills_no_more_of_a_disk_than_it_is_granted() {
    let config = format!(
        "{PUPPET}grants.dirs = [\n\
           {{ host = 'disk', guest = '/data', mode = 'rw', max-bytes = '64 KiB', max-files = 10 }}]\n\
         [main]\ndata-dir = 'kept'\n[store.storage]\nbytes = '256 KiB'\n\
         [[extension]]\nid = 'storage'\npath = 'storage.wasm'\nfulfills = ['local.storage@1']\n\
         grants.stores = ['storage']\n"
    );
    let dir = with_own_component(&config);
    fs::copy(test_guests::path("storage"), dir.path().join("storage.wasm")).unwrap();
    fs::create_dir(dir.path().join("disk")).unwrap();
    let main = Running::start(dir);
    let tell = |command: &str| main.weir(&["call", "puppet@1", "run", "--raw", command]);

    tell("fill /data/a 60000").good();
    let refused = tell("fill /data/a 10000");
    assert!(refused.stderr.contains("StorageFull"), "{}", refused.stderr);
    assert_eq!(fs::metadata(main.path().join("disk/a")).unwrap().len(), 60_000);
    for file in 0..40 {
        tell(&format!("write /data/{file} x"));
    }
    // 60,000 bytes are 15 blocks of 4 KiB. The disk holds 16.
    assert_eq!(fs::read_dir(main.path().join("disk")).unwrap().count(), 2);
    let shown = main.weir(&["limits", "puppet"]).good();
    let row = |of: &str| shown.lines().find(|line| line.contains(of)).unwrap().to_owned();
    let words = |row: String| row.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        words(row("bytes in /data")),
        "bytes in /data 64.0 KiB 64.0 KiB 64.0 KiB, 58.6 KiB written `grants.dirs`"
    );
    assert_eq!(words(row("files in /data")), "files in /data 10 2 2 `grants.dirs`");

    // The extension reports the lack of room, keeps its data, and goes on once there is room.
    let set = |key: &str, bytes: usize| {
        let arguments = format!("{{\"key\":\"{key}\",\"value\":\"{}\"}}", "v".repeat(bytes));
        main.weir_with_stdin(&["call", "local.storage@1", "set", "-"], arguments.as_bytes())
    };
    set("kept", 100_000).good();
    let refused = set("large", 200_000);
    assert!(refused.stderr.contains("the store is full"), "{}", refused.stderr);
    set("small", 1000).good();
    assert_eq!(
        main.weir(&["call", "local.storage@1", "get", "{\"key\":\"large\"}"]).good(),
        "{\"value\":null}"
    );
    let kept = main.weir(&["call", "local.storage@1", "get", "{\"key\":\"kept\"}"]).good();
    assert!(kept.len() > 100_000);
}
