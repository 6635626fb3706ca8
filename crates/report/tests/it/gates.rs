//! Tests of the figures about gates of a record whose messages were sent through gates.

use crate::support::gated::{CYCLE, LOAD, MISSED, OVER, write};
use tailbound_model::GatesBy;
use tailbound_report::*;

#[test]
fn the_timeline_has_the_classes_and_the_messages_that_missed_their_window() {
    let folder = tempfile::tempdir().unwrap();
    let report = analyse(&write(&folder.path().join("record"))).unwrap();
    assert_eq!(report.conditions.len(), OVER.len() * LOAD.len());
    for condition in &report.conditions {
        let [gate] = &condition.gates[..] else { panic!("{:?}", condition.gates) };
        let classes: Vec<_> = gate.classes.iter().map(|class| (class.name.as_str(), &class.open[..])).collect();
        let [stream, ptp, bulk] = [[0, 101_000], [0, CYCLE], [204_000, CYCLE]];
        assert_eq!(classes, [("stream", &[stream][..]), ("ptp", &[ptp]), ("bulk", &[bulk])]);
        assert_eq!((gate.outside, gate.not_placed), (0, 0));
        // A message that came too late for its window waited for a whole closed part; no other one did so longer.
        let missed: Vec<_> = gate.messages.iter().filter(|message| MISSED.contains(&message.slot)).collect();
        assert_eq!(missed.len(), MISSED.len(), "{:?}", gate.messages);
        for message in &missed {
            let left_ns = message.left_after_ns.unwrap();
            let permitted_ns = message.permitted_after_ns.unwrap();
            assert!(left_ns > permitted_ns && left_ns - permitted_ns < 10_000, "{message:?}");
            let opens_ns = (message.due_phase_ns + permitted_ns) % CYCLE;
            assert!((opens_ns - CYCLE / 2).abs() > CYCLE / 2 - 300, "the gate opens when a cycle begins: {message:?}");
        }
        let worst: Vec<usize> = gate.messages.iter().filter_map(|message| message.worst).collect();
        assert_eq!((1..=10).filter(|place| worst.contains(place)).count(), 10, "{worst:?}");
        for message in gate.messages.iter().filter(|message| message.worst.is_some()) {
            let of = &condition.worst[message.worst.unwrap() - 1];
            assert_eq!((of.trial, of.slot), (message.trial, message.slot));
            assert_eq!(of.send_lateness_ns, Some(message.sent_after_ns));
            assert_eq!(of.out_ns.unwrap() + message.sent_after_ns, message.received_after_ns.unwrap());
        }
    }
    let page = render_html(&report);
    let section = page.split_once("<section id=\"gates\">").unwrap().1.split_once("</section>").unwrap().0;
    assert_eq!(section.matches("aria-label=\"Gates of the classes at the ping end").count(), 6);
    let drawn = section.matches("data-slot=\"2345\" data-trial=\"0\"").count();
    assert_eq!(drawn, 1, "a message of a condition is drawn once");
}

#[test]
fn existing_gates_and_gates_with_launch_times_have_a_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = write(&folder.path().join("record"));
    for condition in &mut record.manifest.plan.conditions {
        let gates = condition.spec.ping.gates.as_mut().unwrap();
        (gates.by, gates.classes) = (GatesBy::Existing, Vec::new());
    }
    let existing = analyse(&record).unwrap();
    let gate = &existing.conditions[0].gates[0];
    let names: Vec<&str> = gate.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!((names, gate.class.as_str()), (vec!["0", "1", "2"], "0"));
    assert!(section(&render_html(&existing), "gates").contains(">class 0</text>"));
    // A frame is launched 300 us after its arrival in the queue at the earliest (txtime-assist).
    for trial in &mut record.manifest.trials {
        let fact = trial.path.as_mut().unwrap().ends[0].gates.as_mut().unwrap();
        (fact.flags, fact.delay_ns) = (1, 300_000);
    }
    let assisted = analyse(&record).unwrap();
    let gate = &assisted.conditions[0].gates[0];
    assert!(gate.permitted.is_empty() && gate.classes.len() == 3);
    assert!(gate.messages.iter().all(|m| m.permitted_after_ns.unwrap() >= m.ready_after_ns + 300_000));
    assert!(section(&render_html(&assisted), "gates").contains("aria-label=\"Gates of the classes"));
}

/// Tests the figures of gates and of network and user as files: they say which condition they show, and have no style sheet.
#[test]
fn the_figures_of_gates_are_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let report = analyse(&write(&folder.path().join("record"))).unwrap();
    let longest = |c: &ConditionReport| c.gates[0].phases.iter().map(|phase| phase.way_max_ns).max();
    let worst = report.conditions.iter().max_by_key(|condition| longest(condition)).unwrap();
    for (figure, begins, drawn) in [
        (Figure::GateWaits, "Measured ways (dots) and predicted wait: ping, ", "<circle"),
        (Figure::GateTimeline, "Gates, and the messages that waited longest: ping, ", ">bulk</text>"),
        (Figure::NetworkUser, "Times of messages to the kernel (network)", ">network</text>"),
    ] {
        let svg = render_svg(&report, figure).unwrap();
        assert!(svg.contains(&format!(">{begins}")) && svg.contains(drawn) && !svg.contains("class="), "{svg}");
        assert!(figure == Figure::NetworkUser || svg.contains(&format!("{begins}{}", worst.name)), "{}", worst.name);
    }
}

/// The section of a page with this id.
fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let begin = format!("<section id=\"{id}\">");
    page.split_once(&begin).unwrap_or_else(|| panic!("{id}")).1.split_once("</section>").unwrap().0
}

#[test]
fn the_times_to_the_kernel_and_to_the_thread_are_in_one_histogram() {
    let folder = tempfile::tempdir().unwrap();
    let record = write(&folder.path().join("record"));
    let report = analyse(&record).unwrap();
    for condition in &report.conditions {
        let [network, user] =
            [&condition.out_network, &condition.out].map(|metric| metric.as_ref().unwrap().histogram.clone());
        let thread = condition.stages[0].parts.iter().find(|part| part.stages == [StageWord::Thread]).unwrap();
        for buckets in [&network, &user, &thread.histogram] {
            assert_eq!(buckets.iter().map(|(.., n)| n).sum::<u64>(), condition.counts.answered);
            assert!(buckets.windows(2).all(|pair| pair[0].1 < pair[1].0), "the buckets are in rising order");
        }
        let last = thread.histogram.last().unwrap();
        assert!((last.0..=last.1).contains(&thread.max_ns), "{last:?} {}", thread.max_ns);
    }
    let page = render_html(&report);
    let drawn = section(&page, "network-user");
    // Three histograms of messages. Answers have no stamps of their stages.
    assert_eq!(drawn.matches("aria-label=\"Histogram of network and user, out").count(), 6);
    assert_eq!(drawn.matches("aria-label=\"Histogram of network and user, back").count(), 6);
    assert_eq!(drawn.matches("class=\"piece\"").count(), 12 * 2);
    assert_eq!(drawn.matches("class=\"line thin\"").count(), 6);
    assert!(!drawn.contains("NaN") && !drawn.contains("class=\"line flat\""), "the ends have one clock");
}

#[test]
fn between_two_clocks_the_histogram_has_the_shortest_and_the_longest_possible_times() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = write(&folder.path().join("record"));
    for trial in &mut record.manifest.trials {
        trial.ends.get_mut("pong").unwrap().clock = "another boot".into();
    }
    let report = analyse(&record).unwrap();
    assert!(report.conditions.iter().all(|c| c.out_network.is_none() && c.out_network_range.is_some()));
    let page = render_html(&report);
    let drawn = section(&page, "network-user");
    assert_eq!((drawn.matches("class=\"piece\"").count(), drawn.matches("class=\"line flat\"").count()), (24, 24));
    assert!(drawn.contains("the area has the shortest ones, and the dashed line the longest ones"));
}

#[test]
fn the_levels_of_a_factor_are_side_by_side_with_the_same_axes() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = write(&folder.path().join("record"));
    let report = analyse(&record).unwrap();
    let page = render_html(&report);
    let drawn = section(&page, "levels");
    assert_eq!(drawn.matches("<h3>").count(), LOAD.len(), "a row of drawings for each load");
    assert_eq!(drawn.matches("<svg viewBox=\"0 0 300 190\"").count(), OVER.len() * LOAD.len());
    let panels: Vec<&str> = drawn.split("<svg ").skip(1).collect();
    let ticks = |panel: &&str| -> Vec<String> {
        panel.split("class=\"tick").skip(1).map(|rest| rest.split_once("</text>").unwrap().0.to_owned()).collect()
    };
    let first = ticks(&panels[0]);
    assert!(first.len() > 4 && panels.iter().all(|panel| ticks(panel) == first), "{first:?}");
    // The clock of the second trial was not known to be in step for two times.
    assert_eq!(
        panels.iter().map(|panel| panel.matches("url(#hatch-level-").count()).collect::<Vec<_>>(),
        [0, 0, 0, 2, 0, 0]
    );
    for (condition, panel) in
        report.conditions.iter().map(|c| (c, panels.iter().find(|p| p.contains(&c.name)).unwrap()))
    {
        let longest = condition.round_trip.as_ref().unwrap().max_ns.unwrap();
        let words =
            format!("trial {}: max {}, p50", condition.trial_ids[0], tailbound_report::number::time(longest as f64));
        assert!(panel.contains(&words), "{words}: {panel}");
    }
    let file = render_svg(&report, Figure::Levels).unwrap();
    assert_eq!(file.matches(": max ").count(), panels.len(), "the file has the same drawings");
    assert_eq!(file.matches("translate(600,0)").count(), LOAD.len(), "three in a row");
    assert!(file.matches("url(#hatch-level-").count() == 2 && !file.contains("class="));
    // A record with one condition has nothing to stand side by side.
    record.manifest.plan.conditions.truncate(1);
    record.manifest.plan.trials.truncate(1);
    record.manifest.trials.truncate(1);
    let report = analyse(&record).unwrap();
    let alone = render_html(&report);
    assert!(!alone.contains("<section id=\"levels\">") && alone.contains("<section id=\"network-user\">"));
    let refused = render_svg(&report, Figure::Levels).unwrap_err();
    assert!(refused.what.contains("no factor of the study has 2 to 12 levels"), "{refused:?}");
}
