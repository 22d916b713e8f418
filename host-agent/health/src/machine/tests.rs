//! What fails together, and whom something happened to.

use super::*;

fn device(gpu: &str, link_group: u8, switch: Option<&str>) -> Device {
    Device {
        gpu: Text::cut(gpu),
        vendor: Vendor::Nvidia,
        slot: Text::cut(&format!("0000:0{}:00", gpu.len())),
        link_group,
        switch: switch.map(Text::cut),
        coherent: false,
        clock_max_mhz: 0,
        memory: 0,
        cleanable: true,
    }
}

fn names(gpus: &BTreeSet<ResourceName>) -> Vec<&str> {
    gpus.iter().map(|gpu| gpu.as_str()).collect()
}

#[test]
fn every_domain_has_its_members_and_no_other() {
    let amd = Device {
        vendor: Vendor::Amd,
        ..device("X", 1, None)
    };
    let machine = Machine::new([
        device("A", 1, Some("s1")),
        device("B", 1, Some("s2")),
        device("C", 0, Some("s2")),
        device("D", 0, None),
        amd,
    ]);
    let members = |domain: Domain| {
        let members = machine.members(&domain);
        names(&members).join(" ")
    };
    let gpu = Text::cut;
    assert_eq!(members(Domain::Slice(gpu("A"), 3)), "A");
    assert_eq!(members(Domain::Gpu(gpu("A"))), "A");
    assert_eq!(members(Domain::Linked(gpu("A"))), "A B");
    assert_eq!(members(Domain::Switch(gpu("B"))), "B C");
    assert_eq!(members(Domain::Host), "A B C D X");
    // Zero is no group, no switch is no switch, and numbers of two vendors are not one.
    assert_eq!(members(Domain::Linked(gpu("C"))), "C");
    assert_eq!(members(Domain::Switch(gpu("D"))), "D");
    assert_eq!(members(Domain::Linked(gpu("X"))), "X");
    // One that is not known is alone.
    assert_eq!(members(Domain::Linked(gpu("Z"))), "Z");
    assert_eq!(names(&machine.reset_domain(&gpu("B"))), ["A", "B"]);
}

fn tenancy(lease: u8, places: &[(&str, &str, Option<u32>)]) -> Tenancy {
    Tenancy {
        lease: LeaseId::from_bytes([lease; 16]),
        renter: RenterId::from_bytes([lease; 32]),
        places: places
            .iter()
            .map(|(resource, gpu, instance)| Place {
                resource: Text::cut(resource),
                gpu: Text::cut(gpu),
                instance: *instance,
            })
            .collect(),
    }
}

#[test]
fn what_is_attributed_to_a_slice_is_its_alone_and_what_is_to_none_is_everybodys() {
    let tenants = Tenants::new([
        tenancy(1, &[("A/3g", "A", Some(3))]),
        tenancy(2, &[("A/2g", "A", Some(5))]),
        tenancy(3, &[("B", "B", None), ("C", "C", None)]),
        // Not cut yet.
        tenancy(4, &[("A/1g", "A", None)]),
    ]);
    let struck = |gpu, instance| -> Vec<u8> {
        let struck = tenants.struck(gpu, instance);
        struck.map(|tenancy| tenancy.lease.as_bytes()[0]).collect()
    };
    assert_eq!(struck("A", Some(3)), [1]);
    assert_eq!(struck("A", Some(9)), [0_u8; 0]);
    assert_eq!(struck("A", None), [1, 2, 4]);
    assert_eq!(struck("B", Some(3)), [3]);
    assert_eq!(struck("C", None), [3]);
    assert_eq!(struck("D", None), [0_u8; 0]);
    let within = BTreeSet::from([Text::cut("C")]);
    assert_eq!(tenants.within(&within).count(), 1);
    assert!(
        tenants
            .of(LeaseId::from_bytes([3; 16]))
            .unwrap()
            .is_together()
    );
    assert!(
        !tenants
            .of(LeaseId::from_bytes([1; 16]))
            .unwrap()
            .is_together()
    );
}
