//! Figures that a study asks for: metrics, the report, budgets.

mod budget;
mod metric;
mod view;

pub use budget::{
    AtMost, BaselineBudget, Budget, COMPARED_STATISTICS, FLOW_STATISTICS, FlowLimit, LOST, Limit, LimitSet, MISSES,
    MissesLimit, MissesLimits, THROUGHPUT,
};
pub use metric::Metric;
pub use view::{
    AgainstSpec, HistogramSpec, MissWindow, Pattern, Published, PublishedFigures, RangeSpec, ReportSpec,
    SPREAD_METRICS, TailSpec,
};
