//! Bounds for offset and drift between two clocks, from the messages between them.
//!
//! A message never takes less than zero time. A message from A to B proves that B's clock is ahead of A's by at most
//! the receive time minus the send time. A message from B to A proves that B's clock is ahead by at least the send time
//! minus the receive time. Every line (offset and drift) between these points is possible, and no other line. The
//! module does not assume that one direction takes half of a round trip. (For each message the bounds are those in
//! Marzullo and Owicki, Operating Systems Review 19(3), 1985. Lines between the two hulls are used in Zhang, Liu and
//! Xia, INFOCOM 2002, to choose one line; here all of them are kept.)

/// Largest drift between clocks, ns per s: 1,000 ppm. The kernel adjusts a clock by at most 500 ppm (adjtimex), and a
/// crystal is wrong by about 100 ppm.
pub const MOST_DRIFT: f64 = 1e6;
/// Resolution of timestamps in ns: timestamps are whole nanoseconds.
const RESOLUTION_NS: f64 = 1.0;
/// Number of stored points at which all points that do not narrow the bounds are dropped.
const KEPT: usize = 4_096;

/// Messages between the ends A and B in both directions, in any order.
#[derive(Debug, Clone, Default)]
pub struct TwoClocks {
    /// First time and first difference between the clocks, in ns. All other times are relative to these two, so that a
    /// float represents them exactly to the nanosecond.
    origin: Option<(i64, i64)>,
    /// Points (time in s, bound in ns): at this time, clock B minus clock A is at most this bound.
    most: Vec<(f64, f64)>,
    /// Points (time in s, bound in ns): at this time, clock B minus clock A is at least the negative of this value. The
    /// sign is inverted so that one hull function is enough.
    least: Vec<(f64, f64)>,
}

/// All pairs of offset and drift between two clocks that the times of the messages permit.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockBounds {
    origin: (i64, i64),
    /// Corners of the region of possible pairs: (offset at the origin in ns, drift in ns/s).
    corners: Vec<(f64, f64)>,
}

/// One pair of offset and drift between two clocks that the bounds permit: it converts every time of one clock to the
/// other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockLine {
    origin: (i64, i64),
    offset_ns: f64,
    /// Rate by which clock B runs faster than clock A, ns per s.
    drift: f64,
}

/// Reason why the difference between two clocks has no bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBounds {
    /// No bounds: messages went in one direction only.
    OneWay,
    /// Two steady clocks cannot have produced these timestamps: one clock was stepped, or its rate was adjusted, in
    /// between.
    Crossed,
}

impl TwoClocks {
    /// Adds a message from A to B: sent at this time of A's clock or later, received at this time of B's clock, ns.
    pub fn there(&mut self, sent_a_ns: i64, received_b_ns: i64) {
        let point = self.relative(sent_a_ns, received_b_ns);
        keep(&mut self.most, point);
    }

    /// Adds a message from B to A: sent at this time of B's clock or later, received at this time of A's clock, ns.
    pub fn back(&mut self, sent_b_ns: i64, received_a_ns: i64) {
        let (time, offset) = self.relative(received_a_ns, sent_b_ns);
        keep(&mut self.least, (time, -offset));
    }

    fn relative(&mut self, a_ns: i64, b_ns: i64) -> (f64, f64) {
        let difference = b_ns.wrapping_sub(a_ns);
        let (time, base) = *self.origin.get_or_insert((a_ns, difference));
        (a_ns.wrapping_sub(time) as f64 / 1e9, difference.wrapping_sub(base) as f64)
    }

    /// Adds all messages of `other`, which are between the same ends.
    pub fn join(&mut self, other: &TwoClocks) {
        let Some((other_ns, other_difference)) = other.origin else { return };
        let (own_ns, own_difference) = *self.origin.get_or_insert((other_ns, other_difference));
        let later = other_ns.wrapping_sub(own_ns) as f64 / 1e9;
        let more = other_difference.wrapping_sub(own_difference) as f64;
        self.most.extend(other.most.iter().map(|(time, most)| (time + later, most + more)));
        self.least.extend(other.least.iter().map(|(time, least)| (time + later, least - more)));
        if self.most.len().max(self.least.len()) >= KEPT {
            self.reduce();
        }
    }

    /// Drops the points that do not narrow the bounds.
    pub(crate) fn reduce(&mut self) {
        lower_hull(&mut self.most);
        lower_hull(&mut self.least);
    }

    /// Computes the bounds between the clocks that follow from all messages together.
    ///
    /// # Errors
    /// There are messages in one direction only, or no line lies between the points of both directions.
    pub fn bounds(&mut self) -> Result<ClockBounds, NoBounds> {
        let Some(origin) = self.origin.filter(|_| !self.most.is_empty() && !self.least.is_empty()) else {
            return Err(NoBounds::OneWay);
        };
        self.reduce();
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
    /// Time by which B's clock is ahead of A's when A's clock shows `at_a_ns`: minimum and maximum.
    pub fn offset_ns(&self, at_a_ns: i64) -> [i64; 2] {
        let time = at_a_ns.wrapping_sub(self.origin.0) as f64 / 1e9;
        let [low, high] = range(self.corners.iter().map(|(offset, drift)| offset + drift * time));
        [low.floor() as i64, high.ceil() as i64].map(|ns| ns.wrapping_add(self.origin.1))
    }

    /// Rate by which B's clock runs faster than A's, ns per s: minimum and maximum.
    pub fn drift_ns_per_s(&self) -> [f64; 2] {
        range(self.corners.iter().map(|c| c.1))
    }

    /// Time that A's clock shows when B's clock shows `at_b_ns`: minimum and maximum. (B shows t + offset + drift t,
    /// which is solved for t. The quotient is largest and smallest at corners, because it is monotonic along every
    /// line.)
    pub fn at_a_ns(&self, at_b_ns: i64) -> [i64; 2] {
        let since = at_b_ns.wrapping_sub(self.origin.0).wrapping_sub(self.origin.1) as f64;
        let [low, high] = range(self.corners.iter().map(|(offset, drift)| (since - offset) / (1.0 + drift / 1e9)));
        [low.floor() as i64, high.ceil() as i64].map(|ns| ns.wrapping_add(self.origin.0))
    }

    /// Duration of a message from A to B by A's clock: minimum and maximum. The duration is never below zero.
    pub fn there_ns(&self, sent_a_ns: i64, received_b_ns: i64) -> [i64; 2] {
        self.at_a_ns(received_b_ns).map(|at| at.wrapping_sub(sent_a_ns).max(0))
    }

    /// Time from `at_b_ns` of B's clock to `received_a_ns` of A's clock, in A's time: minimum and maximum. The minimum
    /// is below zero if the event on B's clock may have been later than the event on A's clock.
    pub fn back_ns(&self, at_b_ns: i64, received_a_ns: i64) -> [i64; 2] {
        let [low, high] = self.at_a_ns(at_b_ns);
        [high, low].map(|at| received_a_ns.wrapping_sub(at))
    }
}

impl ClockBounds {
    /// The bounds with which, besides, B's clock is ahead of A's by a time within `offset_ns` when A's clock shows each of the times
    /// `at_a_ns`. `None` = no pair of clocks fits both.
    pub fn narrowed(&self, at_a_ns: &[i64], offset_ns: [i64; 2]) -> Option<ClockBounds> {
        let [low, high] = offset_ns.map(|ns| ns.wrapping_sub(self.origin.1) as f64);
        let mut corners = self.corners.clone();
        for at_ns in at_a_ns {
            let time = at_ns.wrapping_sub(self.origin.0) as f64 / 1e9;
            corners = clip(&corners, |(offset, drift)| high + RESOLUTION_NS - (offset + drift * time));
            corners = clip(&corners, |(offset, drift)| offset + drift * time - low + RESOLUTION_NS);
        }
        (!corners.is_empty()).then_some(ClockBounds { origin: self.origin, corners })
    }

    /// The line at the centre of the region of possible pairs.
    pub fn middle(&self) -> ClockLine {
        self.line(centre(&self.corners))
    }

    /// The lines at the borders of the region: those with the smallest and the largest offset at each of these times of
    /// clock A (ns), and those with the smallest and the largest drift. No line is in the result twice.
    pub fn extremes(&self, at_a_ns: impl Iterator<Item = i64>) -> Vec<ClockLine> {
        let seconds = at_a_ns.map(|at| at.wrapping_sub(self.origin.0) as f64 / 1e9);
        let by_offset = seconds.map(|time| (1.0, time));
        let mut found: Vec<(f64, f64)> = Vec::new();
        for (of_offset, of_drift) in by_offset.chain([(0.0, 1.0)]) {
            let value = |corner: &&(f64, f64)| of_offset * corner.0 + of_drift * corner.1;
            let by_value = |a: &&(f64, f64), b: &&(f64, f64)| value(a).total_cmp(&value(b));
            let ends = [self.corners.iter().min_by(by_value), self.corners.iter().max_by(by_value)];
            for corner in ends.into_iter().flatten().filter(|corner| !found.contains(corner)).collect::<Vec<_>>() {
                found.push(*corner);
            }
        }
        found.into_iter().map(|corner| self.line(corner)).collect()
    }

    fn line(&self, (offset_ns, drift): (f64, f64)) -> ClockLine {
        ClockLine { origin: self.origin, offset_ns, drift }
    }
}

impl ClockLine {
    /// Time that clock A shows when clock B shows `at_b_ns`, ns. Later times of clock B are never earlier times of clock A.
    pub fn at_a_ns(&self, at_b_ns: i64) -> i64 {
        let since = at_b_ns.wrapping_sub(self.origin.0).wrapping_sub(self.origin.1) as f64;
        let at = (since - self.offset_ns) / (1.0 + self.drift / 1e9);
        (at.round() as i64).wrapping_add(self.origin.0)
    }

    /// Time that clock B shows when clock A shows `at_a_ns`, ns.
    pub fn at_b_ns(&self, at_a_ns: i64) -> i64 {
        let since = at_a_ns.wrapping_sub(self.origin.0) as f64;
        let ahead = since * self.drift / 1e9 + self.offset_ns;
        (ahead.round() as i64).wrapping_add(self.origin.1).wrapping_add(at_a_ns)
    }
}

/// Centre of the area of a convex polygon; of a polygon without an area, the mean of its corners.
fn centre(corners: &[(f64, f64)]) -> (f64, f64) {
    let count = corners.len().max(1) as f64;
    let mean = corners.iter().fold((0.0, 0.0), |sum, c| (sum.0 + c.0 / count, sum.1 + c.1 / count));
    // Seen from the mean, so that the products stay exact enough.
    let seen = |n: usize| (corners[n].0 - mean.0, corners[n].1 - mean.1);
    let (mut area, mut sum) = (0.0, (0.0, 0.0));
    for n in 0..corners.len() {
        let (a, b) = (seen(n), seen((n + 1) % corners.len()));
        let twice = a.0 * b.1 - a.1 * b.0;
        area += twice;
        sum = (sum.0 + (a.0 + b.0) * twice, sum.1 + (a.1 + b.1) * twice);
    }
    let within = (mean.0 + sum.0 / (3.0 * area), mean.1 + sum.1 / (3.0 * area));
    if within.0.is_finite() && within.1.is_finite() { within } else { mean }
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

/// Reduces the points to their lower convex hull, in the order of time: a line lies below all points if it lies below
/// the hull. (Andrew's monotone chain, Information Processing Letters 9(5), 1979.)
fn lower_hull(points: &mut Vec<(f64, f64)>) {
    points.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.total_cmp(&q.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for p in points.iter() {
        while let [.., a, b] = hull[..]
            && (b.0 - a.0) * (p.1 - a.1) - (b.1 - a.1) * (p.0 - a.0) <= 0.0
        {
            hull.pop();
        }
        // The first of several points with the same time is the lowest.
        if hull.last().is_none_or(|last| last.0 < p.0) {
            hull.push(*p);
        }
    }
    *points = hull;
}

/// The part of a convex polygon where `inside`, a linear function, is not negative. (Sutherland and Hodgman,
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
