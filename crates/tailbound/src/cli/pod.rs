//! `tailbound pod`: hidden commands that `run` starts to reach a Kubernetes cluster.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum PodSub {
    /// Create pods; the order is read from standard input
    Make,
    /// Delete the pods with a label; the access to the cluster is read from standard input
    Delete {
        /// Value of the label of the pods
        #[arg(long)]
        token: String,
    },
    /// Create a discovery server for the pods of a run; the order is read from standard input
    Serve,
    /// Create a headless Service that names the pods of a run; the order is read from standard input
    Name,
    /// Print the reason why the discovery server is not ready; the JSON document with which `serve` created it is read
    /// from standard input
    Unserved,
    /// Delete the Services and Deployments with a label; the access to the cluster is read from standard input
    Unserve {
        /// Value of the label of the Services and Deployments
        #[arg(long)]
        token: String,
    },
    /// Start Tailbound in a pod and forward its standard input and output
    Stream {
        /// Access to the Kubernetes cluster, as JSON
        #[arg(long)]
        spec: String,
        /// Namespace of the pod
        #[arg(long)]
        namespace: String,
        /// Name of the pod
        #[arg(long)]
        name: String,
        /// Arguments of Tailbound in the pod
        #[arg(last = true)]
        words: Vec<String>,
    },
}
