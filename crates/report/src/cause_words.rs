//! Words for what made a message late.

use tailbound_document::{CauseWord, CausedBy};

/// Words for a cause after its time, e.g. `waiting for a CPU that \`stress-ng\` had (pong end)`.
pub fn cause_words(cause: CauseWord, end: Option<&str>, by: Option<&CausedBy>) -> String {
    let carrier = by.and_then(|by| by.carrier.as_ref()).map(|name| format!("`{name}`"));
    let by = by.map_or(String::new(), |by| format!("`{}`", by.name));
    let towards = || end.unwrap_or("other");
    let end = end.map_or(String::new(), |end| format!(" ({end} end)"));
    match cause {
        CauseWord::WaitedForCpu if by.is_empty() => format!("waiting for a CPU{end}"),
        CauseWord::WaitedForCpu => format!("waiting for a CPU that {by} had{end}"),
        CauseWord::KernelThread | CauseWord::Instrument if carrier.is_some() => {
            format!("waiting of the kernel thread {} while {by} had its CPU{end}", carrier.unwrap_or_default())
        }
        CauseWord::KernelThread => format!("waiting for a CPU that the kernel thread {by} had{end}"),
        CauseWord::Instrument => format!("waiting for a CPU that {by} of Tailbound had{end}"),
        CauseWord::Irq => format!("in the interrupt {by}{end}"),
        CauseWord::Ipi => format!("in the interrupt {by}, which another CPU sent{end}"),
        CauseWord::Softirq => format!("in the soft interrupt {by}{end}"),
        CauseWord::PageFault => format!("in page faults{end}"),
        CauseWord::Reclaim => format!("freeing memory before the work went on{end}"),
        CauseWord::BlockedIo => format!("waiting for a disk{end}"),
        CauseWord::KernelLock => format!("asleep in the kernel, waiting for a lock and not for a disk{end}"),
        CauseWord::UserLock => format!("asleep in the driver's call to send until {by} ended the wait{end}"),
        CauseWord::WriterThrottled => {
            format!("asleep in the driver's call to send, waiting for an acknowledgement{end}")
        }
        CauseWord::Stopped => format!("stopped by a signal or a debugger{end}"),
        CauseWord::Frozen => format!("stopped by the freezer of a control group{end}"),
        CauseWord::CpuQuota => format!("stopped by a CPU quota{end}"),
        CauseWord::RtThrottled => format!("stopped by the limit of real-time run time{end}"),
        CauseWord::DeadlineThrottled => format!("stopped by the run time of the policy deadline{end}"),
        CauseWord::Gate => format!("until the gate opened{end}"),
        CauseWord::Launch => format!("until the launch time{end}"),
        CauseWord::QueueDiscipline => format!("in the queue discipline {by} (towards the {} end)", towards()),
        CauseWord::DeviceQueue => format!("at the device {by} (towards the {} end)", towards()),
        CauseWord::Retransmission => format!("until messages were sent again (towards the {} end)", towards()),
        CauseWord::Reassembly if by.is_empty() => format!("waiting for the rest of a message{end}"),
        CauseWord::Reassembly => format!("waiting for the rest of a message, which was at {by}{end}"),
        CauseWord::SocketQueue => format!("in a socket, behind other datagrams{end}"),
        CauseWord::FairServer => format!("waiting for a CPU that the fair server of the kernel gave to {by}{end}"),
        CauseWord::IdleExit => format!("until an idle CPU ran the thread{end}"),
        CauseWord::Executor => format!("waiting for an executor that handled other messages{end}"),
        CauseWord::TimerLate => format!("asleep until a late timer ended the sleep{end}"),
        CauseWord::Steal => format!("without a CPU, which the hypervisor had{end}"),
        CauseWord::Frequency => format!("because of a low frequency of the CPU{end}"),
        CauseWord::MachineGap => format!("on a CPU that may have stood still{end}"),
        CauseWord::OwnWork => format!("in the threads of the measured program{end}"),
        CauseWord::Network => {
            format!("on the way to the {} end, where no thread of an end had the message", towards())
        }
        CauseWord::HoldAndRelease => {
            format!("held on the way to the {} end and released together with others", towards())
        }
        CauseWord::DriverCall => format!("asleep in the driver's call to send{end}"),
    }
}
