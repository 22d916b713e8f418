//! Everything a person can get wrong on the way to a rental: each has its message and its exit code, costs
//! nothing, and leaves nothing behind.

#![cfg(test)]

use feira_tests::liar::Liar;
use feira_tests::market::Market;
use feira_tests::programs::{program, registry, run_within};
use feira_tests::stage::Stage;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

const COMMAND: Duration = Duration::from_secs(60);
/// A user in no group that may use Docker.
const NOBODY: u32 = 65_534;

fn market() -> Market {
    let listing = ["--price", "0.36", "--disk-max", "20"];
    Market::listed(Stage::new(), &[], &listing, 10)
}

/// Rents `image` and expects this exit code and these words; then nothing was charged or is held.
#[track_caller]
fn refuses(market: &Market, image: &str, more: &[&str], code: i32, words: &str) {
    // The machine of a start that failed is free again a moment later.
    market.renter.wait_for_offers(1);
    let image = format!("{}/{image}", registry());
    let mut arguments = vec!["rent", "--image", &image, "--yes"];
    for (flag, value) in [("--max-price", "1"), ("--budget", "1")] {
        if !more.contains(&flag) {
            arguments.extend_from_slice(&[flag, value]);
        }
    }
    arguments.extend_from_slice(more);
    let said = market.renter.feira(&arguments).code(code);
    let text = format!("{}{}", said.out, said.err).to_lowercase();
    assert!(
        text.contains(&words.to_lowercase()),
        "no '{words}' in {said}"
    );
    assert_eq!(market.renter.balance(), (10_000_000, 0), "{said}");
}
#[test]
fn images_that_cannot_run_are_refused_with_the_reason() {
    let market = market();
    refuses(&market, "no-such-image:1", &[], 3, "no-such-image");
    refuses(&market, "feira-demo:no-such-tag", &[], 3, "no-such-tag");
    let absent = format!("feira-demo@sha256:{}", "0".repeat(64));
    refuses(&market, &absent, &[], 3, "0000");
    refuses(&market, "feira-nocommand:1", &[], 1, "no such file");
    refuses(
        &market,
        "feira-demo:1",
        &["--", "/no/such/program"],
        1,
        "/no/such/program",
    );
    // Three layers of 100 MB and a busybox of about one.
    let layers = "the image's layers are 30";
    refuses(&market, "feira-big:1", &["--disk", "0.1"], 1, layers);
    market.broker.check_ledger();
}

#[test]
fn a_registry_that_is_down_is_said_before_anything_is_signed() {
    let market = market();
    let nowhere = ["--image", "127.0.0.1:9/feira-demo:1"];
    let _ = market
        .renter
        .rent("down", &nowhere)
        .code(8)
        .says("127.0.0.1:9");
    assert_eq!(
        market.renter.feira(&["ls", "--all", "--json"]).ok().json()["items"],
        serde_json::json!([])
    );
}

#[test]
fn prices_money_and_sizes_out_of_reach_are_refused() {
    let market = market();
    refuses(&market, "feira-demo:1", &["--max-price", "0.01"], 5, "0.3");
    refuses(&market, "feira-demo:1", &["--disk", "100000"], 5, "disk");
    refuses(&market, "feira-demo:1", &["--budget", "0"], 2, "budget");
    refuses(&market, "feira-demo:1", &["--budget=-1"], 2, "budget");
    let poor = market.stage.renter("poor", &[&market.broker.address]);
    let _ = poor.rent("poor", &[]).code(6).says("available");
    let image = format!("{}/feira-demo:1", registry());
    let gone = [
        "rent",
        "o-7k3f7k3f",
        "--image",
        &image,
        "--yes",
        "--budget",
        "1",
    ];
    let _ = poor.feira(&gone).code(7);
}

#[test]
fn an_image_without_a_shell_says_so() {
    let market = market();
    let image = format!("{}/feira-noshell:1", registry());
    let _ = market.renter.rent("bare", &["--image", &image]).ok();
    let _ = market
        .renter
        .feira(&["shell", "bare"])
        .code(255)
        .says("no shell");
    let said = market.renter.feira(&["exec", "bare", "--", "/bin/nothing"]);
    // As docker and ssh: 127 is not there, 126 is there and cannot be run.
    let _ = said.code(127).says("/bin/nothing");
    let _ = market
        .renter
        .feira(&["exec", "bare", "--", "/etc"])
        .code(126);
    let _ = market.renter.feira(&["end", "bare", "--yes"]).ok();
}

#[test]
fn names_and_commands_that_do_not_exist() {
    let market = market();
    for command in ["show", "logs", "stop", "resume", "receipt"] {
        let _ = market
            .renter
            .feira(&[command, "nobody"])
            .code(3)
            .says("nobody");
    }
    let _ = market
        .renter
        .feira(&["end", "nobody", "--yes"])
        .code(3)
        .says("nobody");
    let _ = market
        .renter
        .feira(&["exec", "nobody", "--", "true"])
        .code(3)
        .says("nobody");
    let _ = market.renter.feira(&["serach"]).code(2).says("search");
    let _ = market
        .renter
        .feira(&["search", "gpu_nmae=RTX_4090"])
        .code(2)
        .says("gpu_name");
    let _ = market
        .renter
        .feira(&["search", "num_gpus=many"])
        .code(2)
        .says("num_gpus");
    // Nothing matches: an honest answer with the reason, filter by filter.
    let said = market
        .renter
        .feira(&["search", "gpu_name=RTX_4090 num_gpus>=2 dph<0.5"])
        .ok();
    assert!(said.err.contains("gpu_name"), "{said}");
}

#[test]
fn ending_without_a_yes_ends_nothing() {
    let market = market();
    let _ = market.renter.rent("kept", &[]).ok();
    let _ = market.renter.feira(&["end", "kept"]).code(2).says("--yes");
    assert_eq!(market.renter.lease("kept")["state"], "running");
    let _ = market.renter.feira(&["end", "kept", "--yes"]).ok();
}

#[test]
fn spending_without_a_terminal_wants_a_yes_and_a_ceiling() {
    let market = market();
    let image = format!("{}/feira-demo:1", registry());
    let bounded = [
        "rent",
        "--image",
        &image,
        "--budget",
        "1",
        "--max-price",
        "1",
    ];
    let _ = market.renter.feira(&bounded).code(2).says("--yes");
    let unbounded = [
        "rent",
        "num_gpus=0",
        "--image",
        &image,
        "--budget",
        "1",
        "--yes",
    ];
    let _ = market.renter.feira(&unbounded).code(2).says("--max-price");
    let dry = [
        "rent",
        "--image",
        &image,
        "--budget",
        "1",
        "--max-price",
        "1",
        "--dry-run",
    ];
    let _ = market.renter.feira(&dry).ok().says("0.3");
    assert_eq!(
        market.renter.feira(&["ls", "--json"]).ok().json()["items"],
        serde_json::json!([])
    );
}

#[test]
fn a_broker_that_is_down_is_unreachable_not_a_hang() {
    let mut market = market();
    market.broker.kill();
    let _ = market.renter.feira(&["ls"]).code(8);
    let _ = market
        .broker
        .command(&["status"])
        .code(8)
        .says("feira-broker run");
}

#[test]
fn keys_and_settings_that_are_wrong_are_named() {
    let market = market();
    let config = market
        .stage
        .folder()
        .join("renter/config/feira/config.toml");
    let good = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("brokrs = []\n{good}")).unwrap();
    let said = market.renter.feira(&["ls"]).code(2).says("brokrs");
    assert!(
        said.err.contains("config.toml") && said.err.contains('1'),
        "{said}"
    );
    std::fs::write(&config, good).unwrap();

    let key = market.stage.folder().join("renter/data/feira/keys/default");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let _ = market.renter.feira(&["ls"]).code(4).says("chmod");

    let toml = market.broker.data.join("broker.toml");
    let good = std::fs::read_to_string(&toml).unwrap();
    std::fs::write(
        &toml,
        format!(
            "fee_bps = \"much\"\n{}",
            good.replace("fee_bps", "# fee_bps")
        ),
    )
    .unwrap();
    let mut run = Command::new(program("feira-broker"));
    let said = run_within(
        run.arg("run").arg("--data").arg(&market.broker.data),
        COMMAND,
    )
    .code(2);
    let _ = said.says("fee_bps").says("line 1");
}

#[test]
fn two_programs_on_one_folder_and_a_taken_port_are_told() {
    let market = market();
    let mut run = Command::new(program("feira-broker"));
    let said = run_within(
        run.arg("run").arg("--data").arg(&market.broker.data),
        COMMAND,
    );
    assert_ne!(said.code, 0, "{said}");
    let host = market.stage.folder().join("host");
    let mut run = Command::new(program("feira-host"));
    let said = run_within(run.arg("run").arg("--data").arg(host), COMMAND);
    assert_ne!(said.code, 0, "{said}");
    assert!(
        said.err.contains("already") || said.err.contains("another"),
        "{said}"
    );

    let other = market.stage.folder().join("other");
    let listen = format!("/ip4/127.0.0.1/tcp/{}", market.broker.socket().port());
    let mut init = Command::new(program("feira-broker"));
    init.args(["init", "--listen", &listen, "--data"])
        .arg(&other);
    let _ = run_within(&mut init, COMMAND).ok();
    let mut run = Command::new(program("feira-broker"));
    let said = run_within(run.arg("run").arg("--data").arg(&other), COMMAND);
    assert_ne!(said.code, 0, "{said}");
    let _ = said.says(&market.broker.socket().port().to_string());
}

#[test]
fn a_host_without_an_engine_says_what_to_do() {
    let stage = Stage::on_engine(std::path::Path::new("/nonexistent/docker.sock"));
    let broker = stage.broker("broker", &[]);
    let host = stage.unlisted_host("host", &[&broker.address]);
    let said = host.command(&["doctor"]).code(1);
    assert!(
        format!("{}{}", said.out, said.err).contains("/nonexistent/docker.sock"),
        "{said}"
    );
}

#[test]
fn a_registry_with_something_else_under_a_digest_is_found_out_and_costs_nothing() {
    let market = market();
    let liar = Liar::before(&registry());
    let rent = |image: &str| {
        market
            .renter
            .rent("lied", &["--image", image, "--budget", "1"])
    };
    // The renter finds the tag's digest, the host pulls by it and is given something else.
    let said = rent(&format!("{}/feira-demo:1", liar.name())).code(1);
    let _ = said.says("not what the digest names").says("registry");
    assert_eq!(market.renter.balance(), (10_000_000, 0));
    market.renter.wait_for_offers(1);
    // By its digest the renter asks itself, and nothing is signed.
    let honest = market
        .renter
        .by_digest(&format!("{}/feira-demo:1", registry()));
    let said = rent(&honest.replace(&registry(), &liar.name())).code(1);
    let _ = said.says("E0704").says("nothing was signed");
    assert_eq!(market.renter.balance(), (10_000_000, 0));
    let open = market.renter.feira(&["ls", "--json"]).ok().json();
    assert_eq!(open["items"], serde_json::json!([]));
}

/// `feira-host` as a user who may not use Docker, with a folder of that user's own.
fn host_of_nobody(stage: &Stage) -> impl Fn(&[&str]) -> Command {
    let at = |name: &str| stage.folder().join(name);
    let (own, data) = (at("feira-host"), at("nobody"));
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::copy(program("feira-host"), &own).unwrap();
    std::fs::set_permissions(stage.folder(), open).unwrap();
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY))
        .expect("tests of others' rights are root's");
    move |words| {
        let mut command = Command::new("setpriv");
        let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
        command.args(user).arg("--clear-groups").arg(&own);
        command.args(words).arg("--data").arg(&data);
        command
    }
}

#[test]
fn docker_that_this_user_may_not_use_is_said_with_what_to_do() {
    let stage = Stage::new();
    let broker = stage.broker("broker", &[]);
    let host = host_of_nobody(&stage);
    let say = |words: &[&str]| run_within(&mut host(words), COMMAND);
    let _ = say(&["init", "--broker", &broker.address]).ok();
    let advice = "usermod --append --groups docker";
    let what = "may not be used by this user";
    let _ = say(&["doctor"]).code(1).says(what).says(advice);
    for words in [&["list", "--price", "0.36"][..], &["run"]] {
        let _ = say(words).code(4).says(what).says(advice);
    }
}
