//! Tables of plain columns: one record a line, never folded; columns that do not fit are left out.

use super::plain;
use unicode_width::UnicodeWidthStr;

/// Space between two columns.
const GAP: usize = 2;

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    title: &'static str,
    align: Align,
    /// What is dropped first on a narrow terminal: the highest rank; 0 is never dropped.
    rank: u8,
    wide_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl Column {
    /// A column of text.
    pub(crate) const fn left(title: &'static str) -> Self {
        Self {
            title,
            align: Align::Left,
            rank: 0,
            wide_only: false,
        }
    }

    /// A column of numbers.
    pub(crate) const fn right(title: &'static str) -> Self {
        Self {
            title,
            align: Align::Right,
            rank: 0,
            wide_only: false,
        }
    }

    /// How soon it is dropped when it does not fit.
    #[must_use]
    pub(crate) const fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// Shown with `-o wide` only.
    #[must_use]
    pub(crate) const fn wide(mut self) -> Self {
        self.wide_only = true;
        self
    }
}

/// A table as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// Header and rows, a line each.
    pub text: String,
    /// How many columns did not fit.
    pub hidden: usize,
}

/// Draws `rows` in at most `width` characters, if there is a width.
pub(crate) fn draw(
    columns: &[Column],
    rows: &[&[String]],
    wide: bool,
    width: Option<usize>,
) -> Drawn {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|cells| cells.iter().map(|cell| plain(cell)).collect())
        .collect();
    let mut shown: Vec<usize> = (0..columns.len())
        .filter(|index| wide || !columns[*index].wide_only)
        .collect();
    let before = shown.len();
    let widths: Vec<usize> = (0..columns.len())
        .map(|index| column_width(&columns[index], &rows, index))
        .collect();
    while let Some(limit) = width
        && line_width(&shown, &widths) > limit
        && let Some(position) = least_important(&shown, columns)
    {
        shown.remove(position);
    }
    let mut text = line(&shown, columns, &widths, |index| columns[index].title);
    for cells in &rows {
        text.push_str(&line(&shown, columns, &widths, |index| {
            cells.get(index).map_or("", String::as_str)
        }));
    }
    Drawn {
        text,
        hidden: before - shown.len(),
    }
}

fn column_width(column: &Column, rows: &[Vec<String>], index: usize) -> usize {
    let cells = rows
        .iter()
        .filter_map(|cells| cells.get(index))
        .map(|cell| cell.width());
    cells.max().unwrap_or(0).max(column.title.width())
}

fn line_width(shown: &[usize], widths: &[usize]) -> usize {
    let columns: usize = shown.iter().map(|index| widths[*index]).sum();
    columns + GAP * shown.len().saturating_sub(1)
}

/// The position of the shown column with the highest rank above 0; of two, the later.
fn least_important(shown: &[usize], columns: &[Column]) -> Option<usize> {
    let ranked = shown
        .iter()
        .enumerate()
        .filter(|(_, index)| columns[**index].rank > 0);
    ranked
        .max_by_key(|(_, index)| columns[**index].rank)
        .map(|(position, _)| position)
}

fn line<'a>(
    shown: &[usize],
    columns: &[Column],
    widths: &[usize],
    cell: impl Fn(usize) -> &'a str,
) -> String {
    let mut text = String::new();
    for index in shown {
        let cell = cell(*index);
        let padding = " ".repeat(widths[*index].saturating_sub(cell.width()));
        match columns[*index].align {
            Align::Left => text.push_str(&format!("{cell}{padding}")),
            Align::Right => text.push_str(&format!("{padding}{cell}")),
        }
        text.push_str(&" ".repeat(GAP));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
