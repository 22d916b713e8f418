//! Hardware in the book: claims that are refused, slices beside GPUs, proof, and what a row takes.

use super::offers::{BROKER, NOW, gpu, host, offer, signed, text};
use super::{at_ask, book, prices, refused, search};
use crate::core::book::{Announced, Book, BookLimits, BookRefusal};
use protocol::bounded::List;
use protocol::ids::Digest;
use protocol::machine::{Gpu, Measure, Quantity};
use protocol::message::Rejection;
use protocol::offer::{Isolation, Offer, Partition, offer_id};
use protocol::units::{Bytes, Timestamp};
use protocol::verify::{VerificationLevel, Withdrawal};

fn h100() -> Gpu {
    Gpu {
        vram: Bytes(81_559 << 20),
        ..gpu("NVIDIA H100 80GB HBM3", "GPU-1")
    }
}

/// Host `number`'s H100 as a whole.
fn whole(number: u32, price: u64) -> Offer {
    let mut offer = offer(number, "GPU-1", price);
    offer.share.gpus = List::new(vec![h100()]).unwrap();
    offer.machine.gpus = offer.share.gpus.clone();
    offer
}

/// The same GPU in slices: `profile` at these starts, of so many units and so much memory.
fn slices(number: u32, profile: &str, starts: &[u8], (size, mib): (u8, u64), price: u64) -> Offer {
    let names = starts
        .iter()
        .map(|start| text(&format!("GPU-1/{profile}@{start}+{size}")));
    let mut offer = whole(number, price);
    offer.share.resources = List::new(names.collect()).unwrap();
    offer.id = offer_id(host(number), &offer.share.resources);
    offer.partition = Some(Partition {
        profile: text(profile),
        vram: Bytes(mib << 20),
        multiprocessors: (16, 132),
        memory_slices: (size, 8),
        isolation: Isolation::Hardware,
    });
    offer
}

fn large(number: u32, price: u64) -> Offer {
    slices(number, "3g.40gb", &[0, 4], (4, 40_448), price)
}

fn small(number: u32, price: u64) -> Offer {
    slices(number, "1g.10gb", &[0, 1, 2, 3, 4, 5, 6], (1, 9984), price)
}

/// One H100, whole and in slices of two kinds: $2.25, $1.30 and $0.33.
fn divided() -> Book {
    let mut book = book();
    let list = [whole(0, 2_250_000), large(0, 1_300_000), small(0, 330_000)];
    let list = list.map(|offer| signed(0, offer)).to_vec();
    assert_eq!(
        book.announce(NOW, host(0), list, List::default()),
        Ok(Announced::Replaced)
    );
    book
}

#[test]
fn a_claim_beyond_its_model_is_refused_with_the_numbers() {
    let mut fast = offer(0, "GPU-1", 90);
    fast.measures = List::first([Measure {
        quantity: Quantity::Fp32,
        value: 200_000,
        method: text("fma"),
        version: 1,
        at: NOW,
    }]);
    let Rejection::BadValue { field, problem } = refused(vec![signed(0, fast.clone())]).into()
    else {
        panic!("another refusal")
    };
    let wanted = format!(
        "offer {}: speed in FP32 of 200.0 TFLOP/s is beyond the 94.9 TFLOP/s of NVIDIA GeForce RTX 4090",
        fast.id.short()
    );
    assert_eq!((field.as_str(), problem.as_str()), ("offers", &*wanted));
    // The longest name that a driver prints is cut, and the numbers are not.
    let mut big = offer(0, "GPU-1", 90);
    big.share.gpus = List::first([Gpu {
        vram: Bytes(192 << 30),
        compute_capability: (12, 0),
        ..gpu(
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            "GPU-1",
        )
    }]);
    big.machine.gpus = big.share.gpus.clone();
    let Rejection::BadValue { problem, .. } = refused(vec![signed(0, big)]).into() else {
        panic!("another refusal")
    };
    assert!(
        problem.contains("192.0 GiB is beyond the 103.6 GiB"),
        "{problem}"
    );
    let mut mixed = offer(0, "GPU-1", 90);
    mixed.share.resources = List::first([text("GPU-1"), text("GPU-2")]);
    mixed.share.gpus = List::first([
        gpu("NVIDIA GeForce RTX 4090", "GPU-1"),
        gpu("NVIDIA L40S", "GPU-2"),
    ]);
    mixed.machine.gpus = mixed.share.gpus.clone();
    mixed.id = offer_id(host(0), &mixed.share.resources);
    assert_eq!(
        refused(vec![signed(0, mixed.clone())]),
        BookRefusal::BadOffer {
            offer: mixed.id,
            problem: "its GPUs are not all of one model"
        }
    );
    let wrong = slices(0, "3g.40gb", &[2], (4, 40_448), 90);
    assert!(matches!(
        refused(vec![signed(0, wrong)]),
        BookRefusal::Implausible { .. }
    ));
}

// peers 3.9 #133: a GPU and its slices stand beside each other; nothing else is sold twice.
#[test]
fn a_thing_is_sold_by_one_offer_of_a_list() {
    divided();
    let half = slices(0, "3g.40gb", &[0], (4, 40_448), 90);
    let both = large(0, 100);
    assert_eq!(
        refused(vec![signed(0, both.clone()), signed(0, half.clone())]),
        BookRefusal::SoldTwice {
            resource: text("GPU-1/3g.40gb@0+4"),
            first: both.id,
            second: half.id,
        }
    );
    let mut machine = offer(0, "GPU-1", 90);
    machine.share.resources = List::first([text("machine")]);
    machine.share.gpus = List::default();
    machine.id = offer_id(host(0), &machine.share.resources);
    let one = offer(0, "GPU-1", 90);
    for list in [[&machine, &one], [&one, &machine]] {
        let list = list.map(|offer| signed(0, offer.clone())).to_vec();
        assert!(matches!(refused(list), BookRefusal::SoldTwice { .. }));
    }
    for name in ["GPU-1/3g.40gb@04+4", "GPU-1/"] {
        let mut odd = offer(0, "GPU-1", 90);
        odd.share.resources = List::first([text(name)]);
        odd.share.gpus = List::default();
        odd.id = offer_id(host(0), &odd.share.resources);
        assert!(matches!(
            refused(vec![signed(0, odd)]),
            BookRefusal::BadOffer { .. }
        ));
    }
}

/// Settled and not, the index and the look at each portion: a search that does not say which is about whole GPUs.
#[test]
fn slices_are_found_where_partition_is_named() {
    let mut book = divided();
    let settled: Vec<_> = [whole(0, 1).id, large(0, 1).id, small(0, 1).id]
        .map(|id| (id, 1, false))
        .to_vec();
    for is_settled in [false, true] {
        if is_settled {
            book.settle(host(0), &settled);
        }
        let found = |text: &str| {
            let found = book.search(&search(text), NOW, at_ask);
            (prices(&found), found.of)
        };
        assert_eq!(found("gpu=h100"), (vec![2_250_000], 1));
        assert_eq!(found("partition=none"), (vec![2_250_000], 3));
        assert_eq!(found("partition=3g.40gb"), (vec![1_300_000], 3));
        assert_eq!(found("partition!=none gpu_ram<=10"), (vec![330_000], 3));
        assert_eq!(
            found("partition=any"),
            (vec![330_000, 1_300_000, 2_250_000], 3)
        );
        assert_eq!(found("isolation=hardware"), (vec![], 1));
        // Nothing that was not looked at is explained.
        let none = book.search(&search("gpu=h100 price<1.5"), NOW, at_ask);
        assert_eq!(none.eliminated[1].eliminated, 1);
        let nearest = none.nearest.unwrap().offer.verify().unwrap().into_body();
        assert_eq!(nearest.id, whole(0, 1).id);
        assert_eq!(
            book.matching(&search("").filter, search("").need, 1, NOW)
                .len(),
            1
        );
    }
    book.withdraw(host(0));
    assert_eq!(book.search(&search(""), NOW, at_ask).of, 0);
}

#[test]
fn proof_is_said_host_by_host_and_is_searched() {
    let mut book = divided();
    let proved = VerificationLevel::Verified {
        at: NOW,
        verdict: Digest::of(b"verdict"),
    };
    let verified = |book: &Book, text: &str| book.search(&search(text), NOW, at_ask).offers;
    assert!(verified(&book, "verified=true").is_empty());
    // The whole GPU alone.
    book.verify(host(0), |offer| {
        if offer.partition.is_none() {
            proved.clone()
        } else {
            VerificationLevel::Unverified
        }
    });
    let found = verified(&book, "verified=true partition=any");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].verification, proved);
    let failed = VerificationLevel::Withdrawn {
        reason: Withdrawal::Stale,
        at: Timestamp(NOW.0 + 1),
    };
    book.verify(host(0), |_| failed.clone());
    assert!(verified(&book, "verified=true partition=any").is_empty());
    assert_eq!(
        verified(&book, "verification=deverified partition=any").len(),
        3
    );
    // What is announced anew is not proved until it is said again.
    let again = Offer {
        sequence: 2,
        ..whole(0, 1)
    };
    book.announce(NOW, host(0), vec![signed(0, again)], List::default())
        .unwrap();
    assert_eq!(verified(&book, "verification=unverified").len(), 1);
}

/// Offers in which all that can differ does: prices, what was measured, what is there.
#[test]
fn a_row_takes_less_than_two_hundred_bytes() {
    let mut book = Book::new(BROKER, BookLimits::default());
    let count = 1500_u64;
    for number in 0..count {
        let spread = |range: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & (range - 1);
        let speeds = [
            (Quantity::Fp32, 78_000 + spread(8192)),
            (Quantity::Fp16Matrix, 150_000 + spread(8192)),
            (Quantity::GpuMemory, 900_000 + spread(65_536)),
            (Quantity::HostToDevice, 22_000 + spread(4096)),
            (Quantity::DiskRead, 1500 + spread(4096)),
            (Quantity::Download, 100_000 + spread(1 << 20)),
            (Quantity::Upload, 50_000 + spread(1 << 20)),
        ];
        let measure = |(quantity, value)| Measure {
            quantity,
            value,
            method: text("own"),
            version: 1,
            at: NOW,
        };
        let at = u32::try_from(number).unwrap();
        let mut offer = offer(at, "GPU-1", 200_000 + spread(262_144));
        offer.measures = List::first(speeds.map(measure));
        offer.share.ram = Bytes::from_gb(16 + spread(32));
        offer.limits.disk_max = Bytes::from_gb(100 + spread(512));
        offer.machine.cpu_mhz = 3000 + u32::try_from(spread(16)).unwrap() * 50;
        book.announce(NOW, host(at), vec![signed(at, offer)], List::default())
            .unwrap();
    }
    let bytes = book.portions.index_bytes() / usize::try_from(count).unwrap();
    assert!(bytes <= 200, "{bytes} bytes a row");
}
