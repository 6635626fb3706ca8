//! Axes of charts, mainly logarithmic axes: positions and ticks.

/// A logarithmic axis from the value `low` to the value `high`, drawn between two positions in SVG units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    pub low: f64,
    pub high: f64,
    pub from: f64,
    pub to: f64,
}

impl Log {
    pub fn at(self, value: f64) -> f64 {
        let span = self.high.ln() - self.low.ln();
        if span == 0.0 {
            return (self.from + self.to) / 2.0;
        }
        self.from + (self.to - self.from) * (value.max(1e-12).ln() - self.low.ln()) / span
    }

    /// Ticks of a logarithmic axis at 1, 2 and 5 in every decade, or fewer ticks if there would be more than `most`.
    pub fn ticks(self, most: usize) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let inside = |steps: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|e| steps.iter().map(move |s| s * 10f64.powi(e)));
            all.filter(|t| *t >= self.low * 0.999 && *t <= self.high * 1.001).collect()
        };
        let kinds: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let fits = kinds.iter().map(|k| inside(k)).find(|t| t.len() <= most);
        fits.unwrap_or_else(|| inside(&[1.0]))
    }
}

/// About `most` ticks of a linear axis from 0 to `high`, in steps of 1, 2 or 5 times a power of ten.
pub(crate) fn linear_ticks(high: f64, most: u32) -> Vec<f64> {
    let rough = high / f64::from(most);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|s| *s >= rough * 0.9999).unwrap_or(rough);
    (0..).map(|k| f64::from(k) * step).take_while(|t| *t <= high * 1.0001).collect()
}

/// Widens a range of values until both ends are 1, 2 or 5 times a power of ten.
pub(crate) fn nice(low: f64, high: f64) -> (f64, f64) {
    let floor = 10f64.powf(low.log10().floor());
    let base = 10f64.powf(high.log10().floor());
    let down = [5.0, 2.0, 1.0].into_iter().map(|s| s * floor).find(|v| *v <= low * 1.0001);
    let up = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * base).find(|v| *v >= high * 0.9999);
    (down.unwrap_or(floor), up.unwrap_or(10.0 * base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_lie_on_the_axis() {
        assert_eq!(nice(31_000.0, 1_200_000.0), (20_000.0, 2_000_000.0));
        let axis = Log { low: 20_000.0, high: 2_000_000.0, from: 0.0, to: 200.0 };
        assert_eq!(axis.ticks(9), [2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6]);
        assert_eq!(axis.ticks(3), [1e5, 1e6]);
        assert!((axis.at(200_000.0) - 100.0).abs() < 1e-9);
        assert_eq!(linear_ticks(392.0, 5), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(linear_ticks(1.0, 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        // An axis may fall, for example from all messages down to 1 in 100.
        assert!((Log { low: 1.0, high: 0.01, from: 0.0, to: 10.0 }.at(0.1) - 5.0).abs() < 1e-9);
    }
}
