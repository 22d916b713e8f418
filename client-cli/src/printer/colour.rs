//! Colours, for streams that take them. Nothing may be said by a colour alone.

/// What a piece of text means, when colours are on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    /// A heading.
    Bold,
    /// Less important.
    Dim,
    /// Done.
    Good,
    /// Look here.
    Warning,
    /// Failed.
    Bad,
}

/// `text` in its colour, or as it is.
pub(crate) fn paint(colour: bool, paint: Paint, text: &str) -> String {
    let code = match paint {
        Paint::Bold => "1",
        Paint::Dim => "2",
        Paint::Good => "32",
        Paint::Warning => "33",
        Paint::Bad => "1;31",
    };
    if colour {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}
