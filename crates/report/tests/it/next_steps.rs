//! Tests of the next steps: a planted cause gives a step with its commands and its gain, in every form of the report; without a
//! cause there is none.

use crate::stalls::{HOG, Stall, everything, report, stalls};
use tailbound_report::*;

/// A report whose late messages waited for a CPU that one thread had.
fn of_hog() -> Report {
    let hogs: Vec<Stall> = stalls().iter().map(|s| Stall { by: HOG, ..*s }).collect();
    report(&hogs, &everything(), 0)
}

#[test]
fn a_step_answers_the_cause_and_gains_what_the_estimate_says() {
    let report = of_hog();
    let steps = &report.conditions[0].next_steps;
    let of = report.conditions[0].without_cause.iter().find(|w| w.cause == CauseWord::WaitedForCpu).unwrap();
    let p99_9 = of.quantiles.iter().find(|one| one.q == 0.999).unwrap();
    // The ends have fifo 80 and the other thread is a time-sharing one, so that no priority is the answer.
    assert_eq!(
        steps.iter().map(|step| step.rule.as_str()).collect::<Vec<_>>(),
        ["move-the-other-program", "receive-spin"]
    );
    for step in steps {
        assert_eq!((step.q, step.now_ns, step.then_ns), (Some(0.999), p99_9.value_ns, p99_9.without_ns));
        assert_eq!(step.metric.as_deref(), Some("from_intended"));
    }
    let (by_hand, step) = (&steps[0], &steps[1]);
    assert_eq!((&by_hand.command, &by_hand.tune), (&None, &None));
    assert!(step.command.as_ref().unwrap().starts_with("tailbound run "), "{step:?}");
    assert!(step.tune.as_ref().unwrap().ends_with(" --for p99.9"), "{step:?}");
}

#[test]
fn every_form_of_the_report_has_the_step() {
    let report = of_hog();
    let terminal = render_terminal(&report, 80, false);
    let begin = terminal.find("Next step: ").unwrap();
    let lines: Vec<&str> = terminal[begin..].lines().take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!("next_step_terminal", lines.join("\n").replace('\u{202f}', " "));
    let markdown = render_markdown(&report);
    let begin = markdown.find("## Next step").unwrap();
    let end = begin + markdown[begin..].find("\nRound trip").unwrap();
    insta::assert_snapshot!("next_step_markdown", markdown[begin..end].replace('\u{202f}', " "));
    let page = render_html(&report);
    assert!(page.contains("<section id=\"next-step\"><h2>Next step</h2>") && page.contains("href=\"#next-step\""));
    let document: serde_json::Value = serde_json::from_str(&render_json(&report)).unwrap();
    assert_eq!(document["conditions"][0]["next_steps"][0]["rule"], "move-the-other-program");
}

#[test]
fn without_a_cause_that_was_seen_there_is_no_step() {
    for without in [report(&[], &everything(), 0), report(&stalls(), &[], 0)] {
        assert!(without.conditions[0].next_steps.is_empty(), "{:?}", without.conditions[0].next_steps);
        for text in [render_terminal(&without, 80, false), render_markdown(&without)] {
            assert!(!text.contains("Next step"), "{text}");
        }
        // The tile of the page shows a hint of the findings in this case.
        assert!(!render_html(&without).contains("id=\"next-step\""));
    }
}
