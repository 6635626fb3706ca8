//! Built-in loads that send no messages. They keep the CPU, the memory or the cache busy, or make system calls.

use super::{Did, is_over};
use std::hint::black_box;
use tailbound_model::LoadKind;
use tailbound_stats::SplitMix64;

/// Number of bytes that the CPU load processes between two checks whether the load is over. The size of the image that
/// the load processes is a multiple of this number.
const PIECE: usize = 64 << 10;

/// Result of a load: number of bytes processed (`None` = not counted), and number of rounds.
type Done = (Option<u64>, u64);

/// Runs a load of kind `word` until it is over. Returns `None` if there is no such kind of load.
pub(super) fn run(word: &str) -> Option<Did> {
    let (bytes, rounds) = match kind(word)? {
        LoadKind::Cpu => invert(),
        LoadKind::Memory => copy(),
        LoadKind::Cache => chase(),
        _ => call(),
    };
    Some(Did { bytes, rounds: Some(rounds), ..Did::default() })
}

fn kind(word: &str) -> Option<LoadKind> {
    [LoadKind::Cpu, LoadKind::Memory, LoadKind::Cache, LoadKind::Syscall].into_iter().find(|k| k.word() == word)
}

fn until_over(mut round: impl FnMut() -> Done) -> Done {
    let mut sum: Done = (None, 0);
    while !is_over() {
        let (bytes, rounds) = round();
        sum = (bytes.map(|o| sum.0.unwrap_or(0) + o), sum.1 + rounds);
    }
    sum
}

fn invert() -> Done {
    let mut image = vec![0x5a_u8; 8 << 20];
    // A whole round takes seconds where instructions are emulated, so the signal is checked after each piece.
    let mut from = 0;
    until_over(|| {
        let piece = &mut black_box(&mut image)[from..from + PIECE];
        piece.iter_mut().for_each(|byte| *byte = !*byte);
        from = (from + PIECE) % image.len();
        (Some(PIECE as u64), u64::from(from == 0))
    })
}

fn copy() -> Done {
    let (mut one, mut two) = (vec![1_u8; 64 << 20], vec![2_u8; 64 << 20]);
    until_over(|| {
        black_box(&mut two).copy_from_slice(&one);
        std::mem::swap(&mut one, &mut two);
        (Some(one.len() as u64), 1)
    })
}

/// Cache load: reads cache lines in a random cycle through all lines, so that no prefetcher guesses the next line
/// (Sattolo's algorithm, 1986).
fn chase() -> Done {
    const LINE: usize = 64 / size_of::<usize>();
    let lines = (32 << 20) / 64;
    let mut order: Vec<usize> = (0..lines).collect();
    let mut random = SplitMix64(1);
    for i in (1..lines).rev() {
        order.swap(i, (random.bits() % i as u64) as usize);
    }
    let mut memory = vec![0_usize; lines * LINE];
    order.iter().enumerate().for_each(|(line, next)| memory[line * LINE] = next * LINE);
    let mut at = 0;
    until_over(|| {
        for _ in 0..10_000 {
            at = memory[at];
        }
        black_box(at);
        (None, 10_000)
    })
}

fn call() -> Done {
    until_over(|| {
        for _ in 0..1_000 {
            // SAFETY: no preconditions. The call is made by number, so that no cached result is returned.
            black_box(unsafe { libc::syscall(libc::SYS_getppid) });
        }
        (None, 1_000)
    })
}
