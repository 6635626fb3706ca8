//! Shaping of the frames that an interface sends: the queue disciplines `mqprio` (tc-mqprio(8)) for traffic classes, and `cbs`
//! (tc-cbs(8)) for the credits of a class.

use crate::error::lack;
use crate::netns::NetNs;
use crate::qdisc::{self, attributes, priority_map, push};
use std::io;
use tailbound_host::queues;
use tailbound_model::{CreditFact, Problem, QueueDiscipline, ROOT, SOCKET_PRIORITIES, ShapingFact, ShapingSpec};

/// Kind of the queue discipline at the root of an interface with traffic classes.
pub(crate) const CLASSES: &str = qdisc::MQPRIO;
const CREDITS: &str = "cbs";
/// The handle of `mqprio` of an interface that Tailbound makes.
pub(crate) const HANDLE: u32 = 1 << 16;
/// Attribute of the parameters of `cbs`, `struct tc_cbs_qopt` of linux/pkt_sched.h: offload and three bytes of padding, high and low
/// credit (bytes), idle and send slope (kbit/s).
const PARMS: u16 = 1;
/// Offsets in `struct tc_mqprio_qopt`: classes of the priorities, and numbers of queues.
const MAP_AT: usize = 1;
const COUNTS_AT: usize = 18;

/// Gives an interface these traffic classes and credits in the place of its queue discipline, with this handle, and compares them with
/// what the kernel reports.
pub(crate) async fn put(netns: &NetNs, name: String, (asked, handle): (ShapingFact, u32)) -> io::Result<()> {
    let of_job = asked.clone();
    let job = move |index| {
        let root = QueueDiscipline { handle, ..QueueDiscipline::at_root(CLASSES, map(&of_job)) };
        queues::replace(index, &root)?;
        for (class, credit) in &of_job.credits {
            let parent = handle | queue(&of_job.queues, *class);
            queues::replace(index, &QueueDiscipline { parent, ..QueueDiscipline::at_root(CREDITS, options(credit)) })?;
        }
        Ok(())
    };
    qdisc::at(netns, &name, job).await?;
    match read(netns, name).await? {
        Some(found) if found == asked => Ok(()),
        found => Err(io::Error::other(format!("the kernel set {found:?} instead of {asked:?}"))),
    }
}

/// The traffic classes of an interface and their credits; `None` if it has none.
pub(crate) async fn read(netns: &NetNs, name: String) -> io::Result<Option<ShapingFact>> {
    Ok(parsed(&qdisc::at(netns, &name, queues::read).await?))
}

/// Number of the first transmit queue of a class, counted from 1 as the kernel names them.
fn queue(counts: &[u16], class: u8) -> u32 {
    1 + counts.iter().take(class.into()).copied().map(u32::from).sum::<u32>()
}

fn map(asked: &ShapingFact) -> Vec<u8> {
    let mut classes = [0; SOCKET_PRIORITIES as usize];
    classes.iter_mut().zip(&asked.class_of_priority).for_each(|(to, from)| *to = *from);
    priority_map(classes, &asked.queues)
}

fn options(credit: &CreditFact) -> Vec<u8> {
    let mut parameters = vec![u8::from(credit.offload), 0, 0, 0];
    let CreditFact { idle_slope_kbit_s, send_slope_kbit_s, high_credit_bytes, low_credit_bytes, .. } = *credit;
    let words = [high_credit_bytes, low_credit_bytes, idle_slope_kbit_s, send_slope_kbit_s];
    parameters.extend(words.into_iter().flat_map(i32::to_ne_bytes));
    let mut bytes = Vec::new();
    push(&mut bytes, PARMS, &parameters);
    bytes
}

fn parsed(all: &[QueueDiscipline]) -> Option<ShapingFact> {
    let root = all.iter().find(|one| one.kind == CLASSES && one.parent == ROOT)?;
    let number = usize::from(*root.options.first()?);
    let class_of_priority = root.options.get(MAP_AT..MAP_AT + usize::from(SOCKET_PRIORITIES))?.to_vec();
    let counts = root.options.get(COUNTS_AT..COUNTS_AT + 2 * number)?;
    let queues: Vec<u16> = counts.chunks_exact(2).map(|two| u16::from_ne_bytes([two[0], two[1]])).collect();
    let credit = |class: u8| {
        let parent = root.handle | queue(&queues, class);
        let found = all.iter().find(|one| one.kind == CREDITS && one.parent == parent)?;
        Some((class, parsed_credit(&found.options)?))
    };
    let credits = (0..number as u8).filter_map(credit).collect();
    Some(ShapingFact { class_of_priority, queues, credits })
}

fn parsed_credit(options: &[u8]) -> Option<CreditFact> {
    let (_, bytes) = attributes(options).find(|(kind, _)| *kind == PARMS)?;
    let word = |at: usize| Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some(CreditFact {
        offload: *bytes.first()? != 0,
        high_credit_bytes: word(4)?,
        low_credit_bytes: word(8)?,
        idle_slope_kbit_s: word(12)?,
        send_slope_kbit_s: word(16)?,
    })
}

/// The shaping that an interface of the user should have.
///
/// `mtu`: bytes; `speed_mbit_s`: speed of its link, or the reason why it is not known.
pub(crate) fn asked_of(
    shaping: &ShapingSpec,
    (name, end): (&str, &str),
    mtu: u32,
    speed_mbit_s: &Result<i64, String>,
) -> Result<ShapingFact, Problem> {
    let speed = speed_mbit_s.as_ref().ok().filter(|speed| **speed > 0);
    let kbit_s = speed.map(|speed| i32::try_from(speed.saturating_mul(1_000)).unwrap_or(i32::MAX));
    for (number, credit) in &shaping.credits {
        let class = shaping.classes.get(usize::from(*number)).map_or("", |class| class.name.as_str());
        match kbit_s {
            None if credit.needs_speed() => {
                let why = speed_mbit_s.as_ref().err().map_or_else(String::new, |why| format!(" ({why})"));
                return Err(lack(
                    format!("{name} ({end}) reports no speed{why}, from which credits of the class `{class}` follow"),
                    "write `send_slope_kbit_s`, `high_credit_bytes` and `low_credit_bytes` of the class, or set the speed of the interface \
                     (`ethtool -s`)",
                ));
            }
            Some(kbit_s) if credit.idle_slope_kbit_s >= kbit_s => {
                return Err(lack(
                    format!(
                        "the idle slope of the class `{class}`, {} kbit/s, is not below the speed of {name} ({end}), {kbit_s} kbit/s",
                        credit.idle_slope_kbit_s
                    ),
                    "write a smaller `idle_slope_kbit_s`",
                ));
            }
            _ => {}
        }
    }
    // Without a speed, every credit is given.
    Ok(shaping.asked(mtu, kbit_s.unwrap_or(i32::MAX)))
}

/// The shaping of an interface of the user as commands. Credits that follow from its speed are known only when they are set.
pub(crate) fn command_of(name: &str, shaping: &ShapingSpec) -> String {
    let classes = ShapingFact {
        class_of_priority: shaping.class_of_priority().to_vec(),
        queues: shaping.queues(),
        ..ShapingFact::default()
    };
    let credits = shaping.credits.iter().map(|(class, credit)| {
        let known = |value: Option<i32>| value.map_or_else(|| "BY-SPEED".to_owned(), |value| value.to_string());
        format!(
            "; tc qdisc replace dev {name} parent 1:{} {CREDITS} idleslope {} sendslope {} hicredit {} locredit {} offload 0",
            queue(&classes.queues, *class),
            credit.idle_slope_kbit_s,
            known(credit.send_slope_kbit_s),
            known(credit.high_credit_bytes),
            known(credit.low_credit_bytes)
        )
    });
    let credits: String = credits.collect();
    command(name, &classes).replacen("qdisc add", "qdisc replace", 1) + &credits
}

/// The shaping as commands for an interface.
pub(crate) fn command(name: &str, shaping: &ShapingFact) -> String {
    let words = |all: Vec<String>| all.join(" ");
    let map = words(shaping.class_of_priority.iter().map(u8::to_string).collect());
    let queues = shaping.queues.iter().enumerate();
    let queues = queues.map(|(class, count)| format!("{count}@{}", queue(&shaping.queues, class as u8) - 1)).collect();
    let credit = |(class, credit): (&u8, &CreditFact)| {
        format!(
            "; tc qdisc add dev {name} parent 1:{} {CREDITS} idleslope {} sendslope {} hicredit {} locredit {} offload 0",
            queue(&shaping.queues, *class),
            credit.idle_slope_kbit_s,
            credit.send_slope_kbit_s,
            credit.high_credit_bytes,
            credit.low_credit_bytes
        )
    };
    let credits: String = shaping.credits.iter().map(credit).collect();
    format!(
        "tc qdisc add dev {name} root handle 1: {CLASSES} num_tc {} map {map} queues {} hw 0{credits}",
        shaping.queues.len(),
        words(queues)
    )
}

/// Returns a problem if this kernel cannot shape frames; `has_credits`: whether a class has credits.
pub(crate) fn problem(has_credits: bool) -> Option<Problem> {
    let needed = [CLASSES, CREDITS].into_iter().take(1 + usize::from(has_credits));
    let kind = needed.into_iter().find(|kind| qdisc::is_missing(kind))?;
    Some(qdisc::lack_of(kind, "shaping needs", "shaping"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_what_was_asked_for() {
        let credit = CreditFact {
            idle_slope_kbit_s: 10_000,
            send_slope_kbit_s: -9_990_000,
            high_credit_bytes: 2,
            low_credit_bytes: -1_541,
            offload: false,
        };
        let mut class_of_priority = vec![0; 16];
        class_of_priority[7] = 1;
        let asked = ShapingFact { class_of_priority, queues: vec![2, 1], credits: [(1, credit)].into() };
        let root = QueueDiscipline { handle: HANDLE, ..QueueDiscipline::at_root(CLASSES, map(&asked)) };
        let below = QueueDiscipline { parent: HANDLE | 3, ..QueueDiscipline::at_root(CREDITS, options(&credit)) };
        assert_eq!(parsed(&[root.clone(), below.clone()]), Some(asked.clone()));
        assert_eq!(parsed(&[below]), None);
        assert!(parsed(&[root]).unwrap().credits.is_empty());
        let end = "queues 2@0 1@2 hw 0; tc qdisc add dev x parent 1:3 cbs idleslope 10000 sendslope -9990000 hicredit 2 locredit \
                   -1541 offload 0";
        assert!(command("x", &asked).ends_with(end), "{}", command("x", &asked));
    }
}
