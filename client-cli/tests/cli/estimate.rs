//! `feira estimate` from outside: the worked examples from files, and what is refused with which exit code.

use crate::market::{Broker, Script};
use crate::program::{Home, Ran};
use serde_json::{Value, json};
use std::error::Error;
use std::fs;

type Test = Result<(), Box<dyn Error>>;

/// A job of the examples.
fn example(name: &str) -> String {
    format!("{}/examples/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// The host of the worked examples with one such GPU at this price: 1 Gb/s, 2 GB/s, $0.10 a GB-month.
fn offer(model: &str, gigabytes: u64, price: &str) -> Value {
    json!({
        "id": format!("{model} {price}"),
        "gpus": [{ "model": model, "vram_bytes": gigabytes << 30 }],
        "compute_usd_per_hour": price,
        "storage_usd_per_gb_month": "0.10",
        "boot_seconds": 20,
        "download_bytes_per_second": 125e6,
        "upload_bytes_per_second": 125e6,
        "disk_bytes_per_second": 2e9,
        "unpack_bytes_per_second": 200e6,
        "has_image": false,
        "failures_per_hour": 0,
    })
}

fn with(mut offer: Value, key: &str, value: Value) -> Value {
    offer[key] = value;
    offer
}

fn estimate(job: &str, offers: &[Value], flags: &[&str]) -> Result<Ran, Box<dyn Error>> {
    let home = Home::new()?;
    let file = home.path("offers.json");
    fs::write(&file, json!({ "items": offers }).to_string())?;
    let file = file.to_string_lossy();
    let words = [&["estimate", job, "--offers", &file], flags].concat();
    home.run(&words)
}

/// Each offer's price in full and cost of the job, rounded to the digits of the example.
fn costs(ran: &Ran) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let document = ran.json()?;
    let items = document["items"].as_array().ok_or("no items")?;
    let cost = |item: &Value| -> Option<(String, String)> {
        let cost: f64 = item["job"]["cost_usd"].as_str()?.parse().ok()?;
        Some((item["id"].as_str()?.to_owned(), format!("{cost:.4}")))
    };
    items
        .iter()
        .map(|item| cost(item).ok_or_else(|| item.to_string().into()))
        .collect()
}

#[test]
fn a_fine_tune_is_cheapest_on_the_fastest_card() -> Test {
    let offers = [
        offer("NVIDIA GeForce RTX 4090", 24, "0.68"),
        offer("NVIDIA A100-SXM4-80GB", 80, "1.17"),
        offer("NVIDIA H100 80GB HBM3", 80, "2.25"),
    ];
    let ran = estimate(&example("fine-tune"), &offers, &["--json"])?;
    let wanted = [
        ("NVIDIA H100 80GB HBM3 2.25", "3.5878"),
        ("NVIDIA A100-SXM4-80GB 1.17", "5.7521"),
        ("NVIDIA GeForce RTX 4090 0.68", "6.3424"),
    ];
    let wanted = wanted.map(|(id, cost)| (id.to_owned(), cost.to_owned()));
    assert_eq!(costs(&ran)?, wanted);
    let document = ran.json()?;
    assert_eq!(document["schema"], "feira.offers/1");
    let job = &document["items"][0]["job"];
    assert_eq!(job["assumed"], json!(["data_sheet"]));
    assert_eq!(job["seconds"], 5687.853);
    let ids = estimate(
        &example("fine-tune"),
        &offers,
        &["-o", "id", "--limit", "1"],
    )?;
    assert_eq!(ids.answer, "NVIDIA H100 80GB HBM3 2.25\n");
    Ok(())
}

#[test]
fn decoding_is_cheapest_on_the_cheaper_card() -> Test {
    let offers = [
        offer("NVIDIA GeForce RTX 4090", 24, "0.68"),
        offer("NVIDIA GeForce RTX 3090", 24, "0.25"),
        offer("NVIDIA GeForce RTX 5090", 32, "0.20"),
    ];
    let ran = estimate(&example("decode"), &offers, &["--json", "--limit", "2"])?;
    let costs: Vec<String> = costs(&ran)?.into_iter().map(|(_, cost)| cost).collect();
    assert_eq!(costs, ["1.6236", "3.5982"]);
    // For people: what cannot be said is said.
    let table = estimate(&example("decode"), &offers, &["-o", "wide"])?;
    let lines: Vec<&str> = table.answer.lines().collect();
    assert!(
        lines[0].starts_with("OFFER") && lines[0].contains("$/JOB"),
        "{table:?}"
    );
    assert!(
        lines[1].contains("1.62") && lines[3].ends_with("-"),
        "{table:?}"
    );
    let why = "NVIDIA GeForce RTX 5090 0.20: nobody knows how fast it does this work.";
    assert!(table.errors.contains(why), "{table:?}");
    assert!(
        table
            .errors
            .contains("cheapest job first, with 150 GB of disk")
    );
    Ok(())
}

#[test]
fn checkpoints_and_notice_make_cheap_hosts_cheap() -> Test {
    let failing = |price, hours: f64| {
        let offer = offer("NVIDIA GeForce RTX 4090", 24, price);
        with(offer, "failures_per_hour", json!(1.0 / hours))
    };
    let interruptible = with(failing("0.18", 500.0), "kind", json!("interruptible"));
    let interruptible = with(interruptible, "interruptions_per_hour", json!(4.0 / 24.0));
    let interruptible = with(interruptible, "notice_seconds", json!(120));
    let offers = [
        failing("0.40", 500.0),
        interruptible,
        failing("0.55", 500.0),
        with(failing("0.40", 12.0), "id", json!("0.40 fails")),
    ];
    let ran = estimate(&example("ten-hours"), &offers, &["--json"])?;
    let costs: Vec<String> = costs(&ran)?.into_iter().map(|(_, cost)| cost).collect();
    assert_eq!(costs, ["2.0300", "4.2488", "4.3290", "5.7632"]);
    Ok(())
}

#[test]
fn files_that_cannot_be_used_are_refused_with_the_place() -> Test {
    let home = Home::new()?;
    let job = home.path("JOB.toml");
    fs::write(&job, "disk_gb = 10\nimage_gb = -3\n[work]\nflops = 1e18\n")?;
    let job = job.to_string_lossy().into_owned();
    let good = example("fine-tune");
    let broken = home.path("broken.json");
    fs::write(&broken, "{\"items\": [{\"id\": 5}]}")?;
    let broken = broken.to_string_lossy().into_owned();
    let refusals: [(&[&str], i32, &[&str]); 6] = [
        (
            &["estimate", &job],
            2,
            &["E0211", "line 2 (image_gb = -3)", "gigabytes from 0"],
        ),
        (&["search", "--job", &job], 2, &["E0211", "line 2"]),
        (&["estimate", "nosuch.toml"], 3, &["E0303", "nosuch.toml"]),
        (
            &["estimate", &good, "--offers", &broken],
            2,
            &["E0212", "line 1"],
        ),
        (
            &["estimate", &good, "--offers", "nosuch.json"],
            3,
            &["E0303"],
        ),
        (
            &["search", "--job", &good, "--sort", "price"],
            2,
            &["--sort"],
        ),
    ];
    for (words, code, said) in refusals {
        let ran = home.run(words)?;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        for part in said {
            assert!(ran.errors.contains(part), "{part}: {ran:?}");
        }
        assert_eq!(ran.answer, "");
    }
    let endless = home.run(&["estimate", "/dev/zero"])?;
    assert_eq!(endless.code, Some(2));
    assert!(
        endless.errors.contains("/dev/zero is a device, not a file"),
        "{endless:?}"
    );
    Ok(())
}

#[test]
fn a_search_by_job_shows_what_it_costs_until_it_is_done() -> Test {
    let home = Home::with_key()?;
    let broker = Broker::start(1, Script::default())?;
    let job = home.path("job.toml");
    let pieces = "[work]\nunits = 3600\n[work.units_per_second]\nnone = 1\n";
    fs::write(&job, pieces)?;
    let job = job.to_string_lossy();
    let live = ["--broker", &broker.address, "--json"];
    let searched = home.run(&[&["search", "--job", &job], &live[..]].concat())?;
    let document = searched.json()?;
    let item = &document["items"][0];
    // A start in 20 s and an hour of work at $0.40 with 10 GB of disk, and what a host costs that nobody knows
    // much of: it begins again when it fails.
    assert_eq!(item["job"]["work_seconds"], 3600.0);
    assert_eq!(item["job"]["boot_seconds"], 20.0);
    assert_eq!(item["price_usd_per_hour"], "0.401388");
    assert_eq!(item["job"]["assumed"], json!(["boot"]));
    let estimated = home.run(&[&["estimate", &job], &live[..]].concat())?;
    assert_eq!(estimated.json()?["items"][0]["job"], item["job"]);
    // What a search prints can be estimated again without anybody.
    let file = home.path("offers.json");
    fs::write(&file, &searched.answer)?;
    let file = file.to_string_lossy();
    let again = home
        .run(&["estimate", &job, "--offers", &file, "--json"])?
        .json()?;
    assert_eq!(again["items"][0]["job"], item["job"]);
    Ok(())
}
