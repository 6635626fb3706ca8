//! What two clocks prove of each other by the messages between them.
//!
//! No message takes less than no time. One from A to B shows that B's clock is ahead of A's by at most what it received
//! minus what it sent, one from B to A that it is ahead by at least what it sent minus what was received. Every line
//! (offset and drift) between all of these is possible, no other is: half of a round trip is not assumed to be one way
//! of it. (The bounds of Marzullo and Owicki, Operating Systems Review 19(3), 1985, for each message; lines between the
//! two hulls as in Zhang, Liu and Xia, INFOCOM 2002, there to choose one line, here to keep all.)

/// The fastest that clocks are taken to drift apart, ns per s: 1,000 ppm. The kernel slews by at most 500 (adjtimex), a
/// crystal strays by some 100.
const MOST_DRIFT: f64 = 1e6;
/// Stamps are whole nanoseconds.
const RESOLUTION_NS: f64 = 1.0;
/// Points kept before those that prove nothing are dropped.
const KEPT: usize = 4_096;

/// Messages between A and B, both ways, in any order.
#[derive(Debug, Clone, Default)]
pub struct TwoClocks {
    /// First time and first difference: what the rest is relative to, so that it fits a float to the nanosecond.
    origin: Option<(i64, i64)>,
    /// (s, ns): B - A is at most this.
    most: Vec<(f64, f64)>,
    /// (s, ns): B - A is at least this, with both signs turned, so that one hull serves both.
    least: Vec<(f64, f64)>,
}

/// All pairs of offset and drift that the messages leave possible.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockBounds {
    origin: (i64, i64),
    /// Corners of the region: (offset at the origin ns, drift ns/s).
    corners: Vec<(f64, f64)>,
}

/// Why there are no bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBounds {
    /// There is no message in one of the directions.
    OneWay,
    /// No steady clocks could have stamped these messages: one was stepped, or slewed, in between.
    Crossed,
}

impl TwoClocks {
    /// A message from A to B: sent by A's clock, received by B's, ns. It left at that time or later.
    pub fn there(&mut self, sent_a_ns: i64, received_b_ns: i64) {
        let point = self.relative(sent_a_ns, received_b_ns);
        keep(&mut self.most, point);
    }

    /// A message from B to A: sent by B's clock, received by A's, ns. It left at that time or later.
    pub fn back(&mut self, sent_b_ns: i64, received_a_ns: i64) {
        let (time, offset) = self.relative(received_a_ns, sent_b_ns);
        keep(&mut self.least, (time, -offset));
    }

    fn relative(&mut self, a_ns: i64, b_ns: i64) -> (f64, f64) {
        let difference = b_ns.wrapping_sub(a_ns);
        let (time, base) = *self.origin.get_or_insert((a_ns, difference));
        (a_ns.wrapping_sub(time) as f64 / 1e9, difference.wrapping_sub(base) as f64)
    }

    /// What all messages together leave possible.
    ///
    /// # Errors
    /// Messages of one direction only; or no line lies between those of both.
    pub fn bounds(&mut self) -> Result<ClockBounds, NoBounds> {
        let Some(origin) = self.origin.filter(|_| !self.most.is_empty() && !self.least.is_empty()) else {
            return Err(NoBounds::OneWay);
        };
        lower_hull(&mut self.most);
        lower_hull(&mut self.least);
        let all = || self.most.iter().chain(&self.least);
        let span = all().map(|p| p.0.abs()).fold(1.0, f64::max);
        let far = all().map(|p| p.1.abs()).fold(1.0, f64::max) + 2.0 * span * MOST_DRIFT;
        let mut corners = vec![(-far, -MOST_DRIFT), (far, -MOST_DRIFT), (far, MOST_DRIFT), (-far, MOST_DRIFT)];
        for (time, most) in &self.most {
            corners = clip(&corners, |(offset, drift)| most + RESOLUTION_NS - (offset + drift * time));
        }
        for (time, least) in &self.least {
            corners = clip(&corners, |(offset, drift)| offset + drift * time + least + RESOLUTION_NS);
        }
        if corners.is_empty() { Err(NoBounds::Crossed) } else { Ok(ClockBounds { origin, corners }) }
    }
}

impl ClockBounds {
    /// By how much B's clock is ahead of A's when A's shows `at_a_ns`: at least, at most.
    pub fn offset_ns(&self, at_a_ns: i64) -> [i64; 2] {
        let time = at_a_ns.wrapping_sub(self.origin.0) as f64 / 1e9;
        let [low, high] = range(self.corners.iter().map(|(offset, drift)| offset + drift * time));
        [low.floor() as i64, high.ceil() as i64].map(|ns| ns.wrapping_add(self.origin.1))
    }

    /// By how much B's clock runs faster than A's, ns per s: at least, at most.
    pub fn drift_ns_per_s(&self) -> [f64; 2] {
        range(self.corners.iter().map(|c| c.1))
    }

    /// What A's clock shows when B's shows `at_b_ns`: at least, at most. (B shows t + offset + drift t, which is solved
    /// for t; the quotient is greatest and least at corners, as it is monotonic along every line.)
    pub fn at_a_ns(&self, at_b_ns: i64) -> [i64; 2] {
        let since = at_b_ns.wrapping_sub(self.origin.0).wrapping_sub(self.origin.1) as f64;
        let [low, high] = range(self.corners.iter().map(|(offset, drift)| (since - offset) / (1.0 + drift / 1e9)));
        [low.floor() as i64, high.ceil() as i64].map(|ns| ns.wrapping_add(self.origin.0))
    }

    /// How long a message from A to B took by A's clock: at least, at most. Never below zero.
    pub fn there_ns(&self, sent_a_ns: i64, received_b_ns: i64) -> [i64; 2] {
        self.at_a_ns(received_b_ns).map(|at| at.wrapping_sub(sent_a_ns).max(0))
    }

    /// How long after `at_b_ns` by B's clock it was `received_a_ns` by A's, in A's time: at least, at most. Below zero
    /// where B's moment may have come later.
    pub fn back_ns(&self, at_b_ns: i64, received_a_ns: i64) -> [i64; 2] {
        let [low, high] = self.at_a_ns(at_b_ns);
        [high, low].map(|at| received_a_ns.wrapping_sub(at))
    }
}

fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)])
}

fn keep(points: &mut Vec<(f64, f64)>, point: (f64, f64)) {
    points.push(point);
    if points.len() >= KEPT {
        lower_hull(points);
    }
}

/// Leaves the lower convex hull, in the order of time: a line lies below all points if it lies below these. (Andrew's
/// monotone chain, Information Processing Letters 9(5), 1979.)
fn lower_hull(points: &mut Vec<(f64, f64)>) {
    points.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.total_cmp(&q.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for p in points.iter() {
        while let [.., a, b] = hull[..]
            && (b.0 - a.0) * (p.1 - a.1) - (b.1 - a.1) * (p.0 - a.0) <= 0.0
        {
            hull.pop();
        }
        // Of points of one time the first is the lowest.
        if hull.last().is_none_or(|last| last.0 < p.0) {
            hull.push(*p);
        }
    }
    *points = hull;
}

/// The part of a convex polygon where `inside` is not negative; `inside` is linear. (Sutherland and Hodgman,
/// Communications of the ACM 17(1), 1974.)
fn clip(polygon: &[(f64, f64)], inside: impl Fn((f64, f64)) -> f64) -> Vec<(f64, f64)> {
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (i, &to) in polygon.iter().enumerate() {
        let from = polygon[(i + polygon.len() - 1) % polygon.len()];
        let (before, after) = (inside(from), inside(to));
        if (before < 0.0) != (after < 0.0) {
            let share = before / (before - after);
            kept.push((from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share));
        }
        if after >= 0.0 {
            kept.push(to);
        }
    }
    kept
}
