//! The program with several brokers, or several leases that could be mixed up: who is asked, who is waited for,
//! and that an id means its own lease.

use crate::brokers::{three, with};
use crate::market::{Broker, Script};
use crate::program::Home;
use protocol::net::{Identity, Node, NodeConfig};
use std::error::Error;
use std::time::Duration;

type Test = Result<(), Box<dyn Error>>;

/// Nobody listens on port 1.
const NOBODY: &str =
    "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";

#[test]
fn a_broker_that_is_down_is_a_warning_while_another_answers() -> Test {
    let broker = Broker::start(1, three())?;
    let ran = with(&broker, &["ls", "--json", "--broker", NOBODY])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()?["items"].as_array().map(Vec::len), Some(3));
    assert!(
        ran.errors.contains("warning: broker") && ran.errors.contains(NOBODY),
        "{ran:?}"
    );
    Ok(())
}

#[test]
fn a_known_lease_does_not_wait_for_a_broker_that_is_down() -> Test {
    let (home, broker) = (Home::with_key()?, Broker::start(1, three())?);
    let both = ["--broker", NOBODY, "--broker", broker.address.as_str()];
    let run = |words: &[&str]| home.run(&[words, &both].concat());
    assert!(run(&["ls"])?.errors.contains("does not answer"));
    let known = run(&["show", "calm-heron", "-o", "id"])?;
    assert_eq!(
        (known.code, known.errors.as_str()),
        (Some(0), ""),
        "{known:?}"
    );
    // A beginning could be another broker's lease, and one that is over may be anybody's: all are asked.
    assert!(
        run(&["show", "calm-her"])?
            .errors
            .contains("does not answer")
    );
    assert!(
        run(&["show", "old-otter"])?
            .errors
            .contains("does not answer")
    );
    Ok(())
}

#[test]
fn a_broker_that_is_silent_costs_a_second_once_another_has_answered() -> Test {
    // Connections are taken by the system, and nobody ever says a word on them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let peer = NOBODY.rsplit('/').next().unwrap_or_default();
    let address = format!(
        "/ip4/127.0.0.1/tcp/{}/p2p/{peer}",
        silent.local_addr()?.port()
    );
    let broker = Broker::start(1, three())?;
    let ran = with(&broker, &["ls", "--json", "--broker", &address])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()?["items"].as_array().map(Vec::len), Some(3));
    assert!(
        ran.errors
            .contains("silent for a second after another answered"),
        "{ran:?}"
    );
    Ok(())
}

#[test]
fn a_list_of_ids_ends_each_though_one_lease_is_called_like_another_s_id() -> Test {
    let script = Script {
        called_like_an_id: true,
        ..three()
    };
    let (home, broker) = (Home::with_key()?, Broker::start(1, script)?);
    let run = |words: &[&str]| home.run(&[words, &["--broker", &broker.address]].concat());
    let listed = run(&["ls", "--json"])?.json()?;
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let text = |item: &serde_json::Value, field: &str| item[field].as_str().map(str::to_owned);
    let ids: Vec<String> = items.iter().filter_map(|item| text(item, "id")).collect();
    let names: Vec<String> = items.iter().filter_map(|item| text(item, "name")).collect();
    let stolen = names.iter().find(|name| ids.contains(name));
    let stolen = stolen.ok_or("no lease is called like an id")?;
    let shown = run(&["show", stolen, "-o", "id"])?;
    assert_eq!(shown.answer.trim_end(), stolen, "{shown:?}");
    let open: Vec<&str> = items
        .iter()
        .filter(|item| item["state"] == "running")
        .filter_map(|item| item["id"].as_str())
        .collect();
    assert_eq!(open.len(), 2);
    let ran = run(&[&["end", "--yes"], open.as_slice()].concat())?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut ended = broker.seen(|seen| {
        let ids = seen.commands.iter().map(|(lease, _)| lease.to_string());
        ids.collect::<Vec<_>>()
    });
    let mut wanted: Vec<String> = open.iter().map(|id| (*id).to_owned()).collect();
    ended.sort();
    wanted.sort();
    assert_eq!(ended, wanted);
    Ok(())
}

/// A way to `address` that hangs up on the first connections.
fn hanging_up(address: &str, times: usize) -> Result<String, Box<dyn Error>> {
    let port = |address: &str| address.split('/').nth(4).map(str::to_owned);
    let there = port(address).ok_or("no port in the address")?;
    let door = std::net::TcpListener::bind("127.0.0.1:0")?;
    let here = door.local_addr()?.port().to_string();
    let to = format!("127.0.0.1:{there}");
    std::thread::spawn(move || {
        for (index, caller) in door.incoming().flatten().enumerate() {
            if index < times {
                continue;
            }
            let Ok(broker) = std::net::TcpStream::connect(&to) else {
                continue;
            };
            let ways = [
                (caller.try_clone(), broker.try_clone()),
                (Ok(broker), Ok(caller)),
            ];
            for way in ways {
                if let (Ok(mut from), Ok(mut into)) = way {
                    std::thread::spawn(move || std::io::copy(&mut from, &mut into));
                }
            }
        }
    });
    Ok(address.replacen(&there, &here, 1))
}

#[test]
fn a_broker_that_hangs_up_is_called_again() -> Test {
    let (home, broker) = (Home::with_key()?, Broker::start(1, three())?);
    let address = hanging_up(&broker.address, 2)?;
    let ran = home.run(&["ls", "--json", "--broker", &address])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()?["items"].as_array().map(Vec::len), Some(3));
    let address = hanging_up(&broker.address, usize::MAX)?;
    let ran = home.run(&["ls", "--broker", &address])?;
    assert_eq!(ran.code, Some(8), "{ran:?}");
    Ok(())
}

#[test]
fn too_many_programs_of_one_key_are_told_that_they_are() -> Test {
    let (home, broker) = (Home::with_key()?, Broker::start(1, three())?);
    let identity = Identity::load(&home.path("data/feira/keys/default"))?;
    let address = protocol::net::parse_address(&broker.address)?;
    let peer = protocol::net::peer_of_address(&address)?;
    let runtime = tokio::runtime::Runtime::new()?;
    // As many as a broker serves at once.
    let mut programs = Vec::new();
    for _ in 0..32 {
        let (node, events) = runtime.block_on(Node::start(&identity, NodeConfig::renter()))?;
        let connecting = node.connect(peer, vec![address.clone()], Duration::from_secs(10));
        runtime.block_on(connecting)?;
        programs.push((node, events));
    }
    let ran = home.run(&["ls", "--broker", &broker.address])?;
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(
        ran.errors
            .contains("too many connections of this key at once; try again"),
        "{ran:?}"
    );
    if let Some((node, _)) = programs.pop() {
        runtime.block_on(node.shutdown(Duration::from_secs(1)));
    }
    let ran = home.run(&["ls", "--broker", &broker.address])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Ok(())
}
