//! How far a typed word is from a known one, for "did you mean".
//!
//! The protocol's own, so that broker and client suggest alike without another dependency.

/// The known word nearest to `typed`, if it is near enough to be meant: a third of its letters at most
/// are wrong, missing, superfluous or swapped with a neighbour.
pub(super) fn nearest(
    typed: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let typed: Vec<char> = typed.to_ascii_lowercase().chars().take(64).collect();
    let allowed = (typed.len() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|word| (edits(&typed, &word.chars().collect::<Vec<_>>()), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// Optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours.
fn edits(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let substituted = last[column] + usize::from(a != b);
            let mut best = substituted
                .min(last[column + 1] + 1)
                .min(current[column] + 1);
            let swapped = row > 0 && column > 0 && left[row - 1] == *b && right[column - 1] == *a;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_counted_by_hand() {
        let count = |left: &str, right: &str| {
            edits(
                &left.chars().collect::<Vec<_>>(),
                &right.chars().collect::<Vec<_>>(),
            )
        };
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("dph_totl", "dph_total"), 1);
        assert_eq!(count("num_gpsu", "num_gpus"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
    }

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["dph_total", "num_gpus", "gpu_ram"];
        assert_eq!(nearest("dph_totl", known), Some("dph_total"));
        assert_eq!(nearest("GPU_RAM ", known), Some("gpu_ram"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
