//! Numbers of causes in messages between agents and controllers, which may be of different releases.

use tailbound_document::CauseWord;

/// The words with numbers: the number of a word is its position. A new word is added at the end.
const WORDS: [CauseWord; 25] = [
    CauseWord::WaitedForCpu,
    CauseWord::KernelThread,
    CauseWord::Irq,
    CauseWord::Ipi,
    CauseWord::Softirq,
    CauseWord::PageFault,
    CauseWord::Reclaim,
    CauseWord::BlockedIo,
    CauseWord::KernelLock,
    CauseWord::Stopped,
    CauseWord::Frozen,
    CauseWord::CpuQuota,
    CauseWord::RtThrottled,
    CauseWord::DeadlineThrottled,
    CauseWord::FairServer,
    CauseWord::IdleExit,
    CauseWord::Executor,
    CauseWord::TimerLate,
    CauseWord::Steal,
    CauseWord::Frequency,
    CauseWord::QueueDiscipline,
    CauseWord::Gate,
    CauseWord::DeviceQueue,
    CauseWord::SocketQueue,
    CauseWord::Reassembly,
];

/// The number of a word; `None` if it has none, so that the cause is not named while a trial runs.
pub(crate) fn number(word: CauseWord) -> Option<u8> {
    WORDS.iter().position(|one| *one == word).and_then(|at| u8::try_from(at).ok())
}

/// The word with a number; `None` if a later release sent it.
pub(crate) fn word(number: u8) -> Option<CauseWord> {
    WORDS.get(usize::from(number)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_the_word_that_has_it() {
        assert!((0..=24).all(|n| word(n).and_then(number) == Some(n)));
        assert_eq!((number(CauseWord::Stopped), number(CauseWord::Network), word(25)), (Some(9), None, None));
    }

    #[test]
    fn numbers_stay_the_same_in_later_releases() {
        let words: Vec<String> = WORDS.iter().map(|word| serde_json::to_string(word).unwrap()).collect();
        insta::assert_snapshot!(words.join(" "), @r#""waited_for_cpu" "kernel_thread" "irq" "ipi" "softirq" "page_fault" "reclaim" "blocked_io" "kernel_lock" "stopped" "frozen" "cpu_quota" "rt_throttled" "deadline_throttled" "fair_server" "idle_exit" "executor" "timer_late" "steal" "frequency" "queue_discipline" "gate" "device_queue" "socket_queue" "reassembly""#);
    }
}
