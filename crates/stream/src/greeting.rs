//! What each side says first on a connection: one line of JSON. Fields that are not known are ignored.

use serde::{Deserialize, Serialize};

/// The client's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// Identity of the session.
    pub session: String,
    /// The client's release.
    pub release: String,
    /// Arguments of the process to be held.
    pub command: Vec<String>,
    /// Octets that the client has received.
    pub received: u64,
    /// The session was answered before: it must not begin anew.
    #[serde(default)]
    pub resumes: bool,
}

/// The holder's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Joined {
        /// Octets that the holder has received.
        received: u64,
        /// The process was started for this connection.
        new: bool,
        /// The holder's release.
        release: String,
    },
    Refused {
        /// Why, as a sentence.
        refused: String,
    },
}

/// A line, with its end.
pub(crate) fn line(of: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(of).expect("texts and numbers");
    line.push(b'\n');
    line
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
