//! Suggests the intended name if a user mistyped a name.

/// Finds the candidate that is most similar to a mistyped word, if any candidate is similar enough. The result is used
/// in error messages such as "did you mean `udp`?".
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= limit || (c.len() > 3 && word.len() > 3 && c.starts_with(word)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_similar_names_are_suggested() {
        assert_eq!(nearest("eth1", ["lo", "eth0"]), Some("eth0"));
        assert_eq!(nearest("ddspref", ["sockperf", "ddsperf"]), Some("ddsperf"));
        assert_eq!(nearest("quik", ["quick", "ping-pong"]), Some("quick"));
        assert_eq!(nearest("wlan3", ["lo", "eth0"]), None);
    }
}
