//! What is read back to somebody, with the middle left out where it is longer than anybody reads.
//!
//! Must not change what is of a usual length: commands and paths are copied from what is said.

/// Longest run without a space that is shown whole: longer than an address through a relay, or a path.
const RUN_MAX: usize = 250;
/// What is left of a longer one at either end.
const RUN_ENDS: (usize, usize) = (60, 20);
/// Longest line that is shown whole.
const LINE_MAX: usize = 1500;
/// What is left of a longer one at either end.
const LINE_ENDS: (usize, usize) = (700, 300);

/// `text`, where a run without spaces or a line that is very long has its two ends alone, and how long it was.
///
/// What was typed stands in errors, and what was typed may be a whole file by mistake.
#[must_use]
pub fn abridged(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let runs = line.split(' ').map(|run| shortened(run, RUN_MAX, RUN_ENDS));
        let line = runs.collect::<Vec<_>>().join(" ");
        shortened(&line, LINE_MAX, LINE_ENDS)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn shortened(text: &str, most: usize, (first, last): (usize, usize)) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(length.saturating_sub(last)).collect();
    format!("{start}…({length} characters)…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_a_usual_length_stays() {
        let text = "error: 'x' is no amount\n\n  help: feira rent --gpu rtx4090";
        assert_eq!(abridged(text), text);
        let run = "a".repeat(RUN_MAX);
        assert_eq!(abridged(&run), run);
    }

    #[test]
    fn a_word_of_ten_thousand_letters_has_its_ends_alone() {
        let said = format!("error: '{}' is no amount", "9".repeat(10_000));
        let short = abridged(&said);
        let wanted = format!(
            "error: '{}…(10002 characters)…{}' is no amount",
            "9".repeat(59),
            "9".repeat(19)
        );
        assert_eq!(short, wanted);
    }

    #[test]
    fn many_words_and_letters_of_several_bytes_are_cut_between_letters() {
        let said = format!("first {}last", "né ".repeat(5_000));
        let short = abridged(&said);
        assert!(
            short.starts_with("first né") && short.ends_with("né last"),
            "{short}"
        );
        assert!(short.chars().count() < LINE_MAX, "{short}");
        assert!(short.contains("…(15010 characters)…"), "{short}");
    }
}
