//! Flags of `tailbound bundle`, `image` and `k8s`: the commands that prepare Tailbound for other machines.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Bundle {
    /// Directory of the bundle; must not exist [default: tailbound-bundle]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Driver to include in addition to the built-in drivers, by name or path; may be given more than once [default: every driver that is found]
    #[arg(long = "driver", value_name = "DRIVER")]
    pub drivers: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Image {
    /// File of the container image; must not exist [default: tailbound-image.tar]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Name of the container image; the default registry is localhost, the default tag is the release [default:
    /// localhost/tailbound]
    #[arg(long, value_name = "NAME[:TAG]")]
    pub name: Option<String>,
    /// Directory of an existing bundle to use, in place of a new bundle of this program
    #[arg(long, value_name = "DIR", conflicts_with = "drivers")]
    pub bundle: Option<PathBuf>,
    /// Driver to include in addition to the built-in drivers, by name or path; may be given more than once [default: every driver that is found]
    #[arg(long = "driver", value_name = "DRIVER")]
    pub drivers: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum K8sSub {
    /// Print a namespace, the rights that Tailbound needs, and an example Job, for `kubectl apply -f -`
    Manifest(Manifest),
}

#[derive(Debug, Args)]
pub struct Manifest {
    /// Namespace of all printed objects; the namespace object is printed too, unless the name is `default` or begins
    /// with `kube-`
    #[arg(long, default_value = "tailbound")]
    pub namespace: String,
    /// Name of the printed objects; a different name allows a second set in the same namespace
    #[arg(long, default_value = "tailbound")]
    pub name: String,
    /// Image of the example Job, by the name that the nodes know [default: localhost/tailbound:RELEASE]
    #[arg(long)]
    pub image: Option<String>,
}
