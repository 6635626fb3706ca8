//! A table for a terminal: one row per condition, with a second line below the row for intervals.

use crate::tables::summary::Summary;
use crate::text::Paint;
use tailbound_document::short_factor;

/// A column of a terminal table: its head, the first and second line of every row, and its alignment.
#[derive(Clone)]
pub(crate) struct Column {
    pub head: String,
    pub cells: Vec<(String, String)>,
    pub right: bool,
}

impl Column {
    fn width(&self) -> usize {
        let of = |s: &String| s.chars().count();
        let cells = self.cells.iter().map(|(a, b)| of(a).max(of(b))).max();
        cells.unwrap_or(0).max(of(&self.head))
    }

    fn set(&self, text: &str) -> String {
        let width = self.width();
        if self.right { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }
}

/// A table of a report, formatted for a terminal.
pub(crate) struct Grid {
    pub columns: Vec<Column>,
    /// Number of table columns that contain levels of factors.
    factors: usize,
    /// A factor whose levels are printed above their table rows instead of in a column.
    over: Option<Column>,
}

impl Grid {
    /// Makes a terminal table of all conditions that has only the columns with their levels.
    pub fn of_levels(table: &Summary) -> Grid {
        let column = |(i, head): (usize, &String)| Column {
            head: short_factor(head),
            cells: table.rows.iter().map(|r| (r.levels[i].clone(), String::new())).collect(),
            right: false,
        };
        let columns: Vec<Column> = table.factors.iter().enumerate().map(column).collect();
        Grid { factors: columns.len(), columns, over: None }
    }

    /// Makes a table with only the columns of levels, and with additional rows for names that are not conditions.
    pub fn of_levels_and(table: &Summary, names: impl Iterator<Item = String>) -> Grid {
        let mut grid = Grid::of_levels(table);
        for name in names {
            let (last, outer) = grid.columns.split_last_mut().expect("a table has a factor");
            outer.iter_mut().for_each(|c| c.cells.push(Default::default()));
            last.cells.push((name, String::new()));
        }
        grid
    }

    /// Makes tables with these columns, of which each begins with the first column. No table is wider than the terminal.
    pub fn of_columns(first: &Column, columns: Vec<Column>, width: usize) -> Vec<Grid> {
        let mut grids: Vec<Grid> = Vec::new();
        for column in columns {
            match grids.last_mut().filter(|g| g.width() + column.width() <= width) {
                Some(grid) => grid.columns.push(column),
                None => grids.push(Grid { columns: vec![first.clone(), column], factors: 1, over: None }),
            }
        }
        grids
    }

    /// Width of all columns of the table and of the spaces after them, in characters.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|c| c.width() + 2).sum()
    }

    /// If the table is too wide, moves the levels of the outermost factor from a column to lines above their rows.
    pub fn fit(&mut self, width: usize) {
        if self.factors > 1 && self.width() > width {
            self.over = Some(self.columns.remove(0));
        }
    }

    /// Splits the columns into several tables that repeat the level columns. No table is wider than the terminal,
    /// because wrapped lines would be unreadable.
    pub fn split(table: &Summary, columns: Vec<Column>, width: usize) -> Vec<Grid> {
        let mut whole = Grid::of_levels(table);
        if whole.width() + columns.iter().map(|c| c.width() + 2).sum::<usize>() <= width {
            whole.columns.extend(columns);
            return vec![whole];
        }
        let mut grids: Vec<Grid> = Vec::new();
        let begun = || {
            let mut grid = Grid::of_levels(table);
            // If the outermost factor is printed above the rows, there is more space for columns.
            if grid.factors > 1 {
                grid.over = Some(grid.columns.remove(0));
            }
            grid
        };
        for column in columns {
            let fits = |g: &Grid| g.width() + column.width() <= width;
            match grids.last_mut().filter(|g| fits(g)) {
                Some(grid) => grid.columns.push(column),
                None => {
                    let mut grid = begun();
                    grid.columns.push(column);
                    grids.push(grid);
                }
            }
        }
        grids
    }

    /// Formats the head and the rows of the table as lines. The function `behind` returns text that follows the first
    /// line of a row, and the function `below` returns lines that follow the row.
    pub fn lines(
        &self,
        paint: &Paint,
        behind: impl Fn(usize) -> String,
        below: impl Fn(usize) -> Vec<String>,
    ) -> Vec<String> {
        let join = |cells: Vec<String>| cells.join("  ");
        let mut lines = vec![paint.bold(&join(self.columns.iter().map(|c| c.set(&c.head)).collect()))];
        let rows = self.columns.first().map_or(0, |c| c.cells.len());
        for i in 0..rows {
            let begins = |g: &&Column| !g.cells[i].0.is_empty() && (i == 0 || g.cells[i] != g.cells[i - 1]);
            if let Some(over) = self.over.as_ref().filter(begins) {
                lines.push(format!("{} {}", over.head, paint.bold(&over.cells[i].0)));
            }
            lines.push(join(self.columns.iter().map(|c| c.set(&c.cells[i].0)).collect()) + &behind(i));
            let second = join(self.columns.iter().map(|c| c.set(&c.cells[i].1)).collect());
            if !second.trim().is_empty() {
                lines.push(paint.dim(&second));
            }
            lines.extend(below(i));
        }
        lines
    }
}
