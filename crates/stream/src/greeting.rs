//! The first line that client and holder send on a connection, as JSON. Unknown fields are ignored.

use crate::carry::Connection;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// Time limit for sending a greeting, or for sending its refusal.
pub(crate) const GREETING: Duration = Duration::from_secs(10);

/// The first line that the client sends on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// Identifier of the client's session.
    pub session: String,
    /// Tailbound release of the client.
    pub release: String,
    /// Arguments of the process that the holder starts for the session.
    pub command: Vec<String>,
    /// Number of bytes that the client has received in the session.
    pub received: u64,
    /// Whether the holder has answered this session before: then the holder must not start a new process.
    #[serde(default)]
    pub resumes: bool,
}

/// The first line that the holder sends on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Joined {
        /// Number of bytes that the holder has received in the session.
        received: u64,
        /// Whether the holder started the process for this connection.
        new: bool,
        /// Tailbound release of the holder.
        release: String,
    },
    Refused {
        /// Reason why the holder refuses the session, as a sentence.
        refused: String,
    },
}

/// Makes a line of JSON, with its final newline, from a greeting or its answer.
pub(crate) fn line(of: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(of).expect("texts and numbers");
    line.push(b'\n');
    line
}

/// Sends the client the reason why the holder refuses the session.
pub(crate) async fn refuse<R, W>(mut connection: Connection<R, W>, refused: String)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    connection.writer.add(&line(&Answer::Refused { refused }));
    // A client that does not read the reason does not need it.
    let _ = timeout(GREETING, connection.writer.all()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_as_written_down() {
        let greeting: Greeting =
            serde_json::from_str(r#"{"session":"r-1","release":"0.1.0","command":["agent"],"received":7,"later":1}"#)
                .unwrap();
        assert_eq!((greeting.session.as_str(), greeting.received, greeting.resumes), ("r-1", 7, false));
        for (answer, text) in [
            (
                Answer::Joined { received: 3, new: true, release: "0.1.0".into() },
                "{\"received\":3,\"new\":true,\"release\":\"0.1.0\"}\n",
            ),
            (Answer::Refused { refused: "it has ended".into() }, "{\"refused\":\"it has ended\"}\n"),
        ] {
            assert_eq!(String::from_utf8(line(&answer)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Answer>(text).unwrap(), answer);
        }
    }
}
