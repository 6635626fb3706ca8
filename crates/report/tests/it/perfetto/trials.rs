//! Tests of what a trace says about trials: incidents, processes, and what it does not have.

use super::*;

#[test]
fn incidents_have_their_cause_and_the_members_of_the_document() {
    let trace = Made::with(&[(0, "ping", seen(0))]).trace(&[]);
    let [incident] = trace.report.conditions[0].incidents.as_slice() else { panic!() };
    let found = trace.named("incident");
    let [slice] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((slice.begin_ns, slice.end_ns), (incident.begin_ns, incident.end_ns));
    assert!(slice.track.ends_with(" / incidents") && slice.name.contains("waited_for_cpu (stress)"), "{slice:?}");
    assert_eq!(trace.annotation(slice, "text")["string_value"], incident.text);
    assert_eq!(trace.annotation(slice, "excess_ns")["int_value"], incident.excess_ns);
    let entries = trace.annotation(slice, "ledger")["array_values"].as_array().unwrap().len();
    assert_eq!(entries, incident.ledger.as_ref().unwrap().len());
}

#[test]
fn processes_and_threads_have_their_names() {
    let trace = Made::with(&[(0, "ping", seen(0)), (1, "ping", seen(1))]).trace(&[]);
    let processes: Vec<_> = trace.packets.iter().filter_map(|p| p["track_descriptor"].get("process")).collect();
    let named: BTreeMap<i64, &str> =
        processes.iter().map(|p| (p["pid"].as_i64().unwrap(), p["process_name"].as_str().unwrap())).collect();
    assert_eq!(named[&4_010], "ping of trial 1: udp over veth, 64 B, 1 kHz");
    assert_eq!(named.keys().copied().collect::<Vec<_>>(), [4_000, 4_010, 5_000, 5_010]);
    let trees: Vec<_> = trace.packets.iter().filter_map(|p| p.get("process_tree")).collect();
    let thread = |tid: i64| {
        let all = trees.iter().flat_map(|t| t["threads"].as_array().unwrap());
        all.filter(|t| t["tid"] == tid).map(|t| (t["tgid"].clone(), t["name"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(thread(4_011), [(4_010.into(), "recv".into())]);
    let kernel = trees[0]["processes"].as_array().unwrap().iter().find(|p| p["pid"] == KERNEL).unwrap();
    assert_eq!((&kernel["ppid"], &kernel["is_kthread"]), (&2.into(), &true.into()));
}

/// Processes of two PID namespaces can have the same id; the viewer would take them for one.
#[test]
fn a_process_id_stands_for_one_process() {
    let made = Made::with(&[(0, "ping", seen(0))]);
    let path = made.dir().join("threads/0-pong.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"pid\":5000", "\"pid\":4000")).unwrap();
    let trace = made.trace(&[]);
    assert_eq!(trace.packets.iter().filter(|p| p["track_descriptor"].get("process").is_some()).count(), 1);
    assert!(
        trace.tracks().values().any(|name| name == "pong of trial 0: udp over veth, 64 B, 1 kHz / messages"),
        "{:?}",
        trace.tracks()
    );
}

#[test]
fn without_events_the_trace_has_messages_and_incidents_and_says_so() {
    let trace = Made::of(1, |_, _, _| (), |_| (), &[]).trace(&[]);
    assert!(trace.ftrace().is_empty());
    assert_eq!((trace.named("incident").len(), trace.named("message ").len() > 5), (1, true));
    let note = "Trial 0: the record has no events of the kernel; the trace has messages and incidents only.";
    assert_eq!(trace.notes, [note]);
    let refused =
        Switches { events: Vec::new(), windows: Vec::new(), scope: SwitchScope::Nothing("no".into()), ..seen(0) };
    let trace = Made::with(&[(0, "ping", refused)]).trace(&[]);
    let note = "Trial 0: events could not be recorded: no; the trace has messages and incidents only.";
    assert_eq!(trace.notes, [note]);
}

#[test]
fn a_file_that_is_cut_off_is_named_and_the_rest_is_in_the_trace() {
    let made = Made::with(&[(0, "ping", seen(0)), (1, "ping", seen(1))]);
    let path = made.dir().join("switches/0-ping.json");
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let trace = made.trace(&[0, 1]);
    assert!(
        trace.notes[0].starts_with("Trial 0: FOLDER/record/switches/0-ping.json: EOF while parsing"),
        "{:?}",
        trace.notes
    );
    assert!(trace.notes[0].ends_with("the trace has no events of this file."), "{:?}", trace.notes);
    assert!(events_of(&trace).iter().all(|(at_ns, ..)| *at_ns >= due(1, 0)) && !events_of(&trace).is_empty());
    let of = |trial: &str| trace.named("message ").iter().filter(|d| d.track.contains(trial)).count();
    assert!(of("trial 0") > 5 && of("trial 1") > 5);
    // Samples that are cut off.
    let path = made.dir().join("samples/1/ping-0.parquet");
    let rows = std::fs::read(&path).unwrap();
    std::fs::write(&path, &rows[..rows.len() / 2]).unwrap();
    let trace = made.trace(&[1]);
    assert!(trace.notes.iter().any(|n| n.contains("samples/1/ping-0.parquet: ")), "{:?}", trace.notes);
    assert_eq!(events_of(&trace).len(), seen(1).events.len());
}

#[test]
fn trials_are_chosen_by_events_or_by_number() {
    let made = Made::with(&[(1, "ping", seen(1))]);
    let tracks = |trials: &[usize]| made.trace(trials).tracks().into_values().collect::<Vec<_>>().join("\n");
    assert!(!tracks(&[]).contains("trial 0") && tracks(&[]).contains("trial 1"));
    assert!(tracks(&[0]).contains("trial 0") && !tracks(&[0]).contains("trial 1"));
    assert!(tracks(&[1, 0, 1]).matches("trial 1: udp over veth, 64 B, 1 kHz / incidents").count() == 1);
    assert_eq!(made.refusal(&[2]), "the record has no trial 2; the record has the trials 0 to 1");
    assert_eq!(Made::with(&[]).refusal(&[7]), "the record has no trial 7; the record has trial 0 only");
}
