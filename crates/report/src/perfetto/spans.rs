//! Time spans: joined, subtracted, searched.

/// Begin and end of a time span, ns.
pub(super) type Span = (i64, i64);

/// Joins spans that overlap or touch; the result is in the order of time.
pub(super) fn joined(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    let mut sorted: Vec<Span> = spans.into_iter().filter(|(from, to)| from <= to).collect();
    sorted.sort_unstable();
    let mut apart: Vec<Span> = Vec::with_capacity(sorted.len());
    for (from, to) in sorted {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// The parts of `spans` that lie outside `others`; both are joined spans.
pub(super) fn without(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    for &(mut from, to) in spans {
        for &(other_from, other_to) in &others[others.partition_point(|(_, end)| *end < from)..] {
            if other_from > to {
                break;
            }
            if from < other_from {
                left.push((from, other_from - 1));
            }
            from = from.max(other_to.saturating_add(1));
        }
        if from <= to {
            left.push((from, to));
        }
    }
    left
}

/// Index of the first of the joined `spans` that has a moment in common with the span from `from` to `to`.
pub(super) fn meeting(spans: &[Span], from: i64, to: i64) -> Option<usize> {
    let at = spans.partition_point(|(_, end)| *end < from);
    spans.get(at).filter(|(begin, _)| *begin <= to).map(|_| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_are_one() {
        assert_eq!(joined([(5, 9), (0, 3), (3, 4), (20, 30), (8, 12), (40, 39)]), [(0, 4), (5, 12), (20, 30)]);
    }

    #[test]
    fn parts_outside_other_spans_remain() {
        let others = [(10, 20), (30, 40)];
        assert_eq!(without(&[(0, 50)], &others), [(0, 9), (21, 29), (41, 50)]);
        assert_eq!(without(&[(12, 18), (20, 25), (45, 46)], &others), [(21, 25), (45, 46)]);
        assert_eq!(without(&[(10, 20)], &others), []);
        assert_eq!(without(&[(1, 2)], &[]), [(1, 2)]);
    }

    #[test]
    fn a_span_meets_the_first_span_that_overlaps() {
        let spans = [(10, 20), (30, 40)];
        assert_eq!(meeting(&spans, 20, 35), Some(0));
        assert_eq!(meeting(&spans, 21, 30), Some(1));
        assert_eq!(meeting(&spans, 21, 29), None);
        assert_eq!(meeting(&spans, 41, 50), None);
    }
}
