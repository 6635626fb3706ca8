//! Types of the documents of reports, comparisons and budgets, with the members that the JSON output has.
//!
//! `tailbound-analysis` fills the documents from a record, and `tailbound-report` writes the documents as text, HTML
//! pages and pictures. This crate reads no record and computes no figures. It also contains the functions that write
//! numbers and factors as text ([`number`], [`short_factor`]), because some members of the documents are sentences.
//!
//! Times are nanoseconds of the sender's monotonic clock. A member that does not apply is absent.

mod bins;
mod budget;
mod cause;
mod circumstances;
mod clock_history;
mod comparison;
mod condition;
mod factor;
mod flow;
mod gates;
mod held;
mod incident;
mod launch;
mod message;
mod metric;
mod movement;
mod next_step;
mod nodes;
pub mod number;
mod over_time;
mod overhead;
mod path_proof;
mod pattern;
mod published;
mod range;
mod recording;
mod report;
mod side_by_side;
mod since;
mod slot_columns;
mod spread;
mod stages;
mod status;
mod tail_estimate;
mod tools;
mod usual;
mod warm_up;
mod watch;
mod waterfall;

pub use bins::BinsReport;
pub use budget::{BudgetCheck, BudgetOutcome, BudgetReport};
pub use cause::*;
pub use circumstances::*;
pub use clock_history::*;
pub use comparison::*;
pub use condition::{ConditionReport, ConditionStatus, Counts};
pub use factor::short_factor;
pub use flow::{FlowCast, FlowReport, FlowSecond, FlowSubscriber, FlowTrial, Spread, SubscriberLatency};
pub use gates::{GateClassReport, GateLeft, GateMessage, GatePhase, GateReport, GateWaits};
pub use held::{HeldBurstReport, HeldReport};
pub use incident::*;
pub use launch::LaunchReport;
pub use message::{Message, WORST_DESCRIBED};
pub use metric::{Beyond, LegRange, MetricReport, QuantileReport};
pub use movement::{MovementKind, MovementReport};
pub use next_step::{NEXT_STEPS, NextStep};
pub use nodes::{HopReport, NodeCostReport, NodeProgramReport, NodeReport, NodeWayReport};
pub use over_time::{ColumnValues, OverTime};
pub use overhead::{AgainstReport, AgainstRow, OVERHEAD_FIGURES, Overhead, OverheadFigure};
pub use path_proof::{InterfaceProof, PathProofReport};
pub use pattern::PatternReport;
pub use published::{
    PublishedCellReport, PublishedColumnReport, PublishedFiguresReport, PublishedNumberReport, PublishedReport,
    PublishedRowReport, PublishedTableReport,
};
pub use range::{AboveCount, AboveReport, ChosenReport};
pub use recording::{LevelCost, RecordingReport};
pub use report::*;
pub use side_by_side::{SameFigure, SideBySide};
pub use since::{LimitLine, SinceReport};
pub use slot_columns::{Course, Range};
pub use spread::{Difference, SPREAD_STATISTICS};
pub use stages::{StagePart, StageReport, StageWord, WireRange};
pub use status::{FormatVersion, ReportStatus};
pub use tail_estimate::TailReport;
pub use tools::{ToolFigureReport, ToolReport};
pub use usual::{UsualPart, UsualReport};
pub use warm_up::WarmUpReport;
pub use watch::*;
pub use waterfall::*;
