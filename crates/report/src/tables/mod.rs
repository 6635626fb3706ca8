//! Tables and lists of a report as text cells, ready for every form: terminal, Markdown, page.

pub(crate) mod against;
pub(crate) mod bins;
pub(crate) mod causes;
pub(crate) mod flow;
pub(crate) mod flow_axis;
pub(crate) mod gates;
pub(crate) mod grid;
pub(crate) mod growth;
pub(crate) mod launch;
pub(crate) mod legs;
pub(crate) mod loads;
pub(crate) mod loops;
pub(crate) mod nodes;
pub(crate) mod path_proof;
pub(crate) mod patterns;
pub(crate) mod range;
pub(crate) mod remaining;
pub(crate) mod side_by_side;
pub(crate) mod sparkline;
pub(crate) mod stages;
pub(crate) mod summary;
pub(crate) mod tools;
pub(crate) mod value_column;
pub(crate) mod warnings;
pub(crate) mod waterfall;
pub(crate) mod writer;
