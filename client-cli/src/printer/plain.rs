//! Text from strangers, made safe to show: nothing in it can move the cursor, change colours, set a title
//! or reorder what stands beside it.

/// `text` with every control character, and every character that changes the direction of writing, written
/// out as an escape.
pub(crate) fn plain(text: &str) -> String {
    if !text.chars().any(steers) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if steers(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control characters (C0, DEL, C1), bidirectional overrides and isolates, line and paragraph separators.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}'
        )
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        assert_eq!(plain("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(plain("one\ntwo\tthree\r"), "one\\ntwo\\tthree\\r");
        assert_eq!(plain("\u{9b}31m\u{7f}"), "\\u{9b}31m\\u{7f}");
        assert_eq!(plain("\u{202e}exe.gpj"), "\\u{202e}exe.gpj");
    }

    #[test]
    fn letters_of_all_kinds_stay() {
        assert_eq!(plain("Zürich 東京 ✓"), "Zürich 東京 ✓");
    }
}
