//! Options of the server: which records are served, and under which names.

use std::path::{Path, PathBuf};
use tailbound_model::Problem;

/// Function that compares two records. It returns a whole HTML page, in which text from users is escaped, or the reason
/// why the records cannot be compared.
pub type Compare = fn(&Path, &Path) -> Result<String, Problem>;

/// Options of the server: the folder of records, host names, and how records are compared.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the records that the HTTP server shows.
    pub folder: PathBuf,
    /// Host names, besides IP addresses and `localhost`, that requests to this server may use.
    pub names: Vec<String>,
    /// Function that compares two records; if it is `None`, the list of records offers no comparison.
    pub compare: Option<Compare>,
}
