//! Figures that a study asks for: metrics, the report, budgets.

mod budget;
mod metric;
mod pattern;
mod published;
mod view;

pub use budget::{
    AtMost, BaselineBudget, Budget, COMPARED_STATISTICS, FLOW_STATISTICS, FlowLimit, LOST, Limit, LimitSet, MISSES,
    MissesLimit, MissesLimits, ON_WIRE, THROUGHPUT, WireLimit,
};
pub use metric::Metric;
pub use pattern::Pattern;
pub use published::{
    ChosenLevels, FigureCompared, FigureMetric, FigureStatistic, FigureUnit, OwnFigure, Published, PublishedColumn,
    PublishedFigures, PublishedNumber, PublishedRow, PublishedTable,
};
pub use view::{AgainstSpec, HistogramSpec, MissWindow, RangeSpec, ReportSpec, SPREAD_METRICS, TailSpec};
