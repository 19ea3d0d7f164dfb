//! Charges and limits of extensions after a pause of Main, as by a debugger or a suspended machine.

use std::{fs, process::Stdio, thread::park_timeout, time::Duration};

use rustix::process::Signal;

use super::support::{PUPPET, Running, configured};

fn pause(main: &Running, time: Duration) {
    main.signal(Signal::STOP);
    park_timeout(time);
    main.signal(Signal::CONT);
}

/// Ticks per second in `/proc`.
const TICKS: f64 = 100.0;

fn processor_time(main: &Running) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", main.pid())).unwrap();
    // The name is in parentheses. The third field comes after it.
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

#[test]
fn a_pause_is_not_charged_to_the_extension_that_ran_meanwhile() {
    let limits = "limits.cpu-share = '95%'\nlimits.fuel-per-message = 1_000_000_000_000_000";
    let main = Running::with(&format!("{PUPPET}{limits}"));
    let charged = || main.json(&["status", "--json", "puppet"])["cpu-seconds"].as_f64().unwrap();
    let mut call = main.command(&["call", "puppet@1", "run", "--raw", "spin"]);
    let mut call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..5 {
        let before = charged();
        // The request itself costs processor time.
        while charged() < before + 0.05 {
            park_timeout(Duration::from_millis(50));
        }
        pause(&main, Duration::from_secs(1));
    }
    // Nearly every pause hit the middle of a slice.
    let (charged, used) = (charged(), processor_time(&main));
    call.kill().unwrap();
    call.wait().unwrap();
    assert!(charged < used + 2.0, "{charged} s are charged, {used} s were used");
}

#[test]
fn a_pause_counts_neither_towards_the_start_nor_towards_the_stop_of_an_extension() {
    let waiting = |id: &str, when: &str| {
        format!(
            r#"
            [[extension]]
            id = "{id}"
            path = "puppet.wasm"
            fulfills = ["{id}@1"]
            requires = ["puppet@1"]
            config = {{ contract = "{id}@1", {when} = "call puppet@1 run forget" }}
            limits.ready-timeout = "8s"
            limits.stop-timeout = "8s"
            restart = {{ policy = "never" }}
            "#
        )
    };
    let (stopping, starting) = (waiting("stopping", "stop"), waiting("starting", "start"));
    let mut main = Running::begin(configured(&format!("{PUPPET}{stopping}{starting}autostart = false\n")));
    main.until("extensions are ready");
    let status = |id: &str| main.json(&["status", "--json", id]);
    let begin = |verb: &str, id: &str| main.command(&[verb, id]).stdout(Stdio::piped()).spawn().unwrap();
    let stop = begin("stop", "stopping");
    let start = begin("start", "starting");
    while status("puppet")["received"] != 2 {}

    pause(&main, Duration::from_secs(9));

    for request in 1..=4 {
        main.weir(&["call", "puppet@1", "run", "--raw", &format!("respond {request}")]);
    }
    let said =
        |child: std::process::Child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said(start), "`starting` is ready\n");
    assert_eq!(said(stop), "`stopping` is stopped\n");
    for id in ["stopping", "starting"] {
        assert_eq!(status(id)["failures"], serde_json::Value::Null, "{id}");
    }
}
