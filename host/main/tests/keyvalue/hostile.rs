//! What a hostile program does with a store, and what comes of it.

use weir_host::control::ExtensionState;

use super::support::*;

#[tokio::test]
async fn what_a_store_does_not_take_is_an_error_and_the_program_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = store();
    (small.bytes, small.keys, small.value_size) = (98_304, 3, 40_000);
    let long = "k".repeat(1025);
    let tasks = format!(
        "set s t text; increment s t 1; get s t; set s {long} 1; set-large s v 40001; set-large s v 40000; \
         set-large s w 30000; set s a 1; set s b 1; bad-cursor s; open s; get s v"
    );
    let main = start(dir.path(), vec![once("a", "keyvalue", &tasks, &["s"])], &[("s", small)]).await;
    let said = [
        "done",
        "error: other: the value is not a whole number as decimal text, so it cannot be incremented",
        "text",
        "error: other: a key has 1 to 1024 bytes, and this one has 1025",
        "error: other: the value has 40001 bytes, and the store's `value-size` is 40000",
        "done",
        "error: other: the store is full: its entries would count 98438 bytes, and its `bytes` is 98304",
        "done",
        "error: other: the store is full: it would have 4 keys, and its `keys` is 3",
        "error: other: no cursor 77 of this bucket",
        "opened",
        "40000 bytes",
    ];
    assert_eq!(printed(&main, "a").await, said);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn thousands_of_handles_are_bounded_and_come_back_when_they_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(dir.path(), vec![once("a", "keyvalue", "open-many s", &["s"])], &[("s", store())]).await;
    let said = printed(&main, "a").await;
    assert!(said[0].ends_with("are open: other: too many handles are open: drop some; then one"), "{said:?}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn lists_are_whole_while_their_keys_are_deleted_and_batches_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut guest =
        once("a", "keyvalue", "fill s 2500; list-while-deleting s; batch s 4096; batch s 4097", &["s"]);
    guest.limits.fuel_to_start = 1_000_000_000;
    guest.limits.ready_timeout = PATIENCE;
    let main = start(dir.path(), vec![guest], &[("s", store())]).await;
    let said = [
        "done",
        "2500 seen, 1250 deleted, 1250 left",
        "4096",
        "error: other: a call has at most 4096 keys, and this one has 4097",
    ];
    assert_eq!(printed(&main, "a").await, said);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn keys_and_values_of_any_length_and_number_are_an_error_and_the_program_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = "batch s 100000; set-large s v 1114113; set-large s v 5000000; long-key s k 5000000; \
                 long-key s k 16385; long-name s n 5000000; set s a b";
    let mut guest = once("a", "keyvalue", tasks, &["s"]);
    guest.limits.fuel_to_start = 1_000_000_000;
    guest.limits.ready_timeout = PATIENCE;
    let main = start(dir.path(), vec![guest], &[("s", store())]).await;
    let said = [
        "error: other: the keys and values of one call have more than 1114112 bytes",
        "error: other: the value has 1114113 bytes, and one call carries at most 1114112, its key included",
        "error: other: the value has 5000000 bytes, and one call carries at most 1114112, its key included",
        "error: other: a key has 1 to 1024 bytes, and this one has 5000000",
        "error: other: a key has 1 to 1024 bytes, and this one has 16385",
        "error: no-such-store",
        "done",
    ];
    assert_eq!(printed(&main, "a").await, said);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn one_that_writes_for_ever_does_not_starve_another_and_ends_when_it_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let flood = once("flood", "keyvalue", "flood s k v", &["s"]);
    let polite = puppet("polite", &["s"]);
    let (main, _started) =
        weir_host::Main::builder(config(dir.path(), vec![flood, polite], &[("s", shared())]))
            .launch()
            .unwrap();
    let mut events = main.control().events();
    while main.control().status("polite").unwrap().state != ExtensionState::Ready {
        events.next().await.unwrap();
    }
    // Each answer comes while the flood goes on.
    for number in 1..=50 {
        let ask = "call store@1 increment {\"store\":\"s\",\"key\":\"n\"}";
        let answer = main.client().call("polite@1", "run", ask).await.unwrap();
        assert_eq!(answer, format!("{{\"value\":{number}}}"));
    }
    // Each write is a wait, and its share bounds what it takes.
    assert_eq!(main.control().status("flood").unwrap().state, ExtensionState::Ready);
    main.control().stop("flood").await.unwrap();
    assert_eq!(main.control().status("flood").unwrap().failures, []);
    main.shutdown().await.unwrap();
}
