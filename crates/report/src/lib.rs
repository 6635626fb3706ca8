//! Reports: from a record to figures, sentences, tables and pages.
//!
//! What goes in: a [`Record`](tailbound_record::Record) on disk. [`analyse`] turns it into a [`Report`], which is
//! exactly the JSON document of `schema/report.json`; every other form is made from the document alone. Nothing here
//! measures, and nothing here knows a host, a lab or a driver: a record is enough.

mod against;
mod analyse;
mod bins;
mod budget;
mod calendar;
mod chosen;
mod circumstances;
mod clocks;
mod compare;
mod condition;
mod course;
mod csv;
mod document;
mod findings;
mod flaws;
mod flow;
mod gather;
mod glance;
mod grid;
mod host_settings;
mod html;
mod json;
mod legs;
mod limits;
mod loads;
mod loops;
mod markdown;
mod metrics;
mod names;
mod nodes;
mod number;
mod over_time;
mod passes;
mod patterns;
mod picture;
mod plain;
mod proof;
mod same_warnings;
mod series;
mod side_by_side;
mod spark;
mod starved;
mod summary;
mod tail;
mod tail_estimate;
mod tasks;
mod terminal;
mod tools;
mod waits;
mod warm_up;
mod why;
mod worst;

pub use against::{AgainstReport, AgainstRow, Overhead};
pub use analyse::analyse;
pub use bins::{BinsReport, PublishedReport};
pub use budget::{
    BudgetCheck, BudgetOutcome, BudgetReport, judge_budget, render_budget_junit, render_budget_markdown,
    render_budget_terminal,
};
pub use calendar::utc as date;
pub use chosen::{AboveCount, AboveReport, ChosenReport};
pub use circumstances::*;
pub use compare::*;
pub use condition::*;
pub use course::{Course, Range};
pub use csv::render_csv;
pub use document::*;
pub use flow::{FlowCast, FlowReport, FlowSecond, FlowSubscriber, FlowTrial, Spread, SubscriberLatency};
pub use glance::glance;
pub use host_settings::{HostSettingReport, HostSettingsReport};
pub use html::{escape_html, render_frame, render_html};
pub use json::{render_json, schema};
pub use markdown::render_markdown;
pub use nodes::{HopReport, NodeCostReport, NodeProgramReport, NodeReport, NodeWayReport};
pub use over_time::{ColumnValues, OverTime};
pub use patterns::PatternReport;
pub use picture::{Figure, render_svg};
#[cfg(feature = "png")]
pub use picture::{PngError, render_png};
pub use proof::{InterfaceProof, PathProofReport};
pub use side_by_side::{SameFigure, SideBySide};
pub use tail_estimate::TailReport;
pub use terminal::render_terminal;
pub use tools::{ToolFigureReport, ToolReport};
pub use warm_up::WarmUpReport;
