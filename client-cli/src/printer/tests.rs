//! What the printer writes at several widths, into pipes and in each format.

use super::*;
use std::sync::Arc;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn listing() -> Listing {
    let row = |id: &str, gpu: &str, price: &str, place: &str| Row {
        id: format!("{id}-in-full"),
        cells: vec![
            id.into(),
            gpu.into(),
            price.into(),
            place.into(),
            "10.0 GB".into(),
        ],
        json: serde_json::json!({"id": id, "price_usd_per_hour": price}),
    };
    Listing {
        schema: "feira.offers/1",
        columns: vec![
            Column::left("OFFER"),
            Column::left("GPU").rank(1),
            Column::right("$/H"),
            Column::left("WHERE").rank(2),
            Column::right("DISK").wide(),
        ],
        rows: vec![
            row("o-7k3f", "1x RTX 4090 24G", "0.336", "Stockholm SE"),
            row("o-2mzq", "8x H100", "14.80", "東京 JP"),
        ],
        empty: "No offers.".into(),
        next: None,
    }
}

fn shown(format: Format, width: Option<usize>, colour: bool) -> (String, String) {
    let (out, talk) = (Sink::default(), Sink::default());
    let printer = Printer::new(
        Stream::new(Box::new(out.clone()), colour, width),
        Stream::new(Box::new(talk.clone()), colour, width),
        format,
        Verbosity::Normal,
    );
    printer.list(&listing()).unwrap();
    (out.text(), talk.text())
}

#[test]
fn all_columns_fit_into_eighty() {
    let (out, talk) = shown(Format::Table, Some(80), false);
    let wanted = "OFFER   GPU                $/H  WHERE\n\
                  o-7k3f  1x RTX 4090 24G  0.336  Stockholm SE\n\
                  o-2mzq  8x H100          14.80  東京 JP\n";
    assert_eq!(out, wanted);
    assert_eq!(talk, "");
}

#[test]
fn a_narrow_terminal_loses_the_least_important_column_and_says_so() {
    let (out, talk) = shown(Format::Table, Some(35), false);
    let wanted = "OFFER   GPU                $/H\n\
                  o-7k3f  1x RTX 4090 24G  0.336\n\
                  o-2mzq  8x H100          14.80\n";
    assert_eq!(out, wanted);
    assert_eq!(talk, "1 column hidden: -o wide shows all\n");
    // Nothing of rank 0 goes, however narrow it is.
    let (out, talk) = shown(Format::Table, Some(3), false);
    assert_eq!(out, "OFFER     $/H\no-7k3f  0.336\no-2mzq  14.80\n");
    assert_eq!(talk, "2 columns hidden: -o wide shows all\n");
}

#[test]
fn wide_shows_everything_in_any_width() {
    let (out, _) = shown(Format::Wide, Some(20), false);
    assert!(
        out.starts_with("OFFER   GPU                $/H  WHERE            DISK\n"),
        "{out}"
    );
}

#[test]
fn colours_only_where_they_are_wanted() {
    assert!(
        shown(Format::Table, Some(100), true)
            .0
            .starts_with("\u{1b}[1mOFFER")
    );
    for format in [
        Format::Table,
        Format::Wide,
        Format::Json,
        Format::Ndjson,
        Format::Tsv,
    ] {
        assert!(
            !shown(format, None, false).0.contains('\u{1b}'),
            "{format:?}"
        );
    }
}

#[test]
fn programs_get_a_schema_lines_tabs_or_ids() {
    let (out, _) = shown(Format::Json, None, false);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], "feira.offers/1");
    assert_eq!(document["items"][1]["price_usd_per_hour"], "14.80");
    assert_eq!(document["next"], serde_json::Value::Null);
    assert_eq!(shown(Format::Ndjson, None, false).0.lines().count(), 2);
    let (tsv, _) = shown(Format::Tsv, None, false);
    assert!(
        tsv.starts_with("o-7k3f\t1x RTX 4090 24G\t0.336\tStockholm SE\t10.0 GB\n"),
        "{tsv}"
    );
    assert_eq!(
        shown(Format::Id, None, false).0,
        "o-7k3f-in-full\no-2mzq-in-full\n"
    );
}

#[test]
fn nothing_to_list_is_a_sentence_for_people_and_an_empty_list_for_programs() {
    let (out, talk) = (Sink::default(), Sink::default());
    let printer = |format| {
        Printer::new(
            Stream::new(Box::new(out.clone()), false, None),
            Stream::new(Box::new(talk.clone()), false, None),
            format,
            Verbosity::Normal,
        )
    };
    let nothing = Listing {
        rows: Vec::new(),
        ..listing()
    };
    printer(Format::Table).list(&nothing).unwrap();
    assert_eq!(
        (out.text().as_str(), talk.text().as_str()),
        ("", "No offers.\n")
    );
    printer(Format::Json).list(&nothing).unwrap();
    assert_eq!(
        out.text(),
        "{\"items\":[],\"next\":null,\"schema\":\"feira.offers/1\"}\n"
    );
}

#[test]
fn a_stranger_cannot_steer_the_terminal() {
    let mut wicked = listing();
    wicked.rows[0].cells[1] = "\u{1b}]0;owned\u{7}".into();
    let out = Sink::default();
    let printer = Printer::new(
        Stream::new(Box::new(out.clone()), false, None),
        Stream::new(Box::new(Sink::default()), false, None),
        Format::Table,
        Verbosity::Normal,
    );
    printer.list(&wicked).unwrap();
    assert!(!out.text().contains(['\u{1b}', '\u{7}']), "{}", out.text());
}
