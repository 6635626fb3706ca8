//! Makes outlines of bars that stand side by side, as short SVG paths: each step of a path is relative to the end of
//! the previous step, in units that the path defines.

use std::fmt::Write;

/// A bar (column) by its position in the drawing: left and right side, top, median and bottom. A smaller vertical
/// number is higher up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub from: f64,
    pub to: f64,
    pub top: f64,
    pub median: f64,
    pub bottom: f64,
}

/// Units of an SVG path: where the path begins, how large a unit is, and how many decimals the path has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    /// Horizontal position in the drawing that is 0 in the SVG path.
    pub left: f64,
    /// Width and height of one unit of the SVG path, in units of the drawing.
    pub unit: (f64, f64),
    /// Number of decimals of horizontal and of vertical steps of the SVG path.
    pub digits: (u32, u32),
}

/// An SVG path to which steps are appended one by one.
pub(crate) struct Steps {
    pub d: String,
    units: Units,
    /// The position after the last step of the SVG path, as a multiple of the last decimal of a step.
    at: (i64, i64),
    /// The position at which the present shape of the SVG path begins, as a multiple of the last decimal of a step.
    begin: (i64, i64),
}

impl Steps {
    pub fn new(units: Units) -> Steps {
        Steps { d: String::new(), units, at: (0, 0), begin: (0, 0) }
    }

    fn x(&self, x: f64) -> i64 {
        let Units { left, unit, digits } = self.units;
        ((x - left) / unit.0 * 10_f64.powi(digits.0 as i32)).round() as i64
    }

    fn y(&self, y: f64) -> i64 {
        let Units { unit, digits, .. } = self.units;
        (y / unit.1 * 10_f64.powi(digits.1 as i32)).round() as i64
    }

    /// Begins a shape of the SVG path at a position in the drawing.
    pub fn begin(&mut self, (x, y): (f64, f64)) {
        let (x, y) = (self.x(x), self.y(y));
        self.d.push('m');
        push(&mut self.d, x - self.at.0, self.units.digits.0);
        if y >= self.at.1 {
            self.d.push(' ');
        }
        push(&mut self.d, y - self.at.1, self.units.digits.1);
        (self.at, self.begin) = ((x, y), (x, y));
    }

    /// Appends a horizontal line to a position in the drawing.
    pub fn level(&mut self, x: f64) {
        let x = self.x(x);
        self.d.push('h');
        push(&mut self.d, x - self.at.0, self.units.digits.0);
        self.at.0 = x;
    }

    /// Appends a vertical line to a position in the drawing.
    pub fn upright(&mut self, y: f64) {
        let y = self.y(y);
        if y != self.at.1 {
            self.d.push('v');
            push(&mut self.d, y - self.at.1, self.units.digits.1);
            self.at.1 = y;
        }
    }

    /// Closes the shape that was begun last.
    pub fn close(&mut self) {
        self.d.push('z');
        self.at = self.begin;
    }
}

/// Appends the length of a step with at most `digits` decimals, without zeros at the end. A page has some hundred
/// thousand steps, so that no text is made for each.
fn push(d: &mut String, value: i64, digits: u32) {
    let mut unit = 10_u64.pow(digits);
    let (whole, mut rest) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
    if value < 0 {
        d.push('-');
    }
    if whole != 0 || rest == 0 {
        // Writing to a text does not fail.
        let _ = write!(d, "{whole}");
    }
    if rest != 0 {
        d.push('.');
    }
    while rest != 0 {
        unit /= 10;
        d.push(char::from(b'0' + (rest / unit) as u8));
        rest %= unit;
    }
}

/// The area of columns from their bottom to their top. Columns that touch each other share an outline. Columns that
/// have no value in common share no outline, because a line between them would show values that no message had.
pub(crate) fn outlines(columns: &[Column], units: Units) -> String {
    let mut steps = Steps::new(units);
    let touch = |a: &Column, b: &Column| b.from <= a.to && a.top <= b.bottom && b.top <= a.bottom;
    for together in columns.chunk_by(touch) {
        let Some(first) = together.first() else { continue };
        steps.begin((first.from, first.top));
        for column in together {
            steps.upright(column.top);
            steps.level(column.to);
        }
        for column in together.iter().rev() {
            steps.upright(column.bottom);
            steps.level(column.from);
        }
        steps.close();
    }
    steps.d
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(from: f64, top: f64, bottom: f64) -> Column {
        Column { from, to: from + 1.0, top, median: top, bottom }
    }

    const UNITS: Units = Units { left: 10.0, unit: (0.5, 0.2), digits: (3, 0) };

    #[test]
    fn columns_that_overlap_share_an_outline() {
        let d = outlines(&[column(10.0, 1.0, 3.0), column(11.0, 2.0, 4.0)], UNITS);
        assert_eq!(d, "m0 5h2v5h2v10h-2v-5h-2z");
    }

    #[test]
    fn no_line_joins_columns_without_a_common_value_or_with_a_gap() {
        let far = outlines(&[column(10.0, 1.0, 2.0), column(11.0, 3.0, 4.0)], UNITS);
        assert_eq!(far, "m0 5h2v5h-2zm2 10h2v5h-2z");
        let gap = outlines(&[column(10.0, 1.0, 2.0), column(12.0, 1.0, 2.0)], UNITS);
        assert_eq!(gap, "m0 5h2v5h-2zm4 0h2v5h-2z");
    }

    #[test]
    fn a_column_whose_messages_agree_is_drawn() {
        assert_eq!(outlines(&[column(10.0, 1.0, 1.0)], UNITS), "m0 5h2h-2z");
    }

    #[test]
    fn roundings_do_not_add_up() {
        let third = |i: f64| Column { from: 10.0 + i / 3.0, to: 10.0 + (i + 1.0) / 3.0, ..column(0.0, 1.0, 1.0) };
        let columns: Vec<Column> = (0..300).map(|i| third(f64::from(i))).collect();
        let mut steps = Steps::new(Units { unit: (1.0, 1.0), digits: (2, 1), ..UNITS });
        steps.begin((10.0, 1.0));
        columns.iter().for_each(|c| steps.level(c.to));
        assert_eq!(steps.at.0, 10_000, "100 units in hundredths");
        assert!(steps.d.starts_with("m0 1h.33h.34h.33"), "{}", &steps.d[..20]);
    }

    #[test]
    fn numbers_are_short() {
        let of = [(0, 0), (-7, 0), (1_000, 3), (-1_500, 3), (-5, 3), (250, 3), (12_030, 3)].map(|(value, digits)| {
            let mut d = String::new();
            push(&mut d, value, digits);
            d
        });
        assert_eq!(of, ["0", "-7", "1", "-1.5", "-.005", ".25", "12.03"]);
    }
}
