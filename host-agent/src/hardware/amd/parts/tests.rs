//! GPUs that are divided through the driver's files, on a made-up tree in the place of the driver: it shows what is
//! written, and what else a driver does is done by hand.

use super::super::tests::mi300x;
use super::super::{AmdGpu, read};
use super::*;
use crate::hardware::pci::tree::plant;
use mig::amd::ComputeMode;
use std::path::PathBuf;
use tempfile::TempDir;

const LIST: &str = "1002  AMD\n\t74a1  Aqua Vanjaram [Instinct MI300X]\n";
const GPU: &str = "GPU-fc23a1b4d5e6f708";
const ADDRESS: &str = "0000:05:00.0";

struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        mi300x(root.path(), ADDRESS, "fc23a1b4d5e6f708\n");
        let tree = Self(root);
        tree.show(1);
        tree
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("bus/pci/devices").join(ADDRESS)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap()
    }

    /// The compute driver shows so many devices of it, from node 2 and render node 128 on.
    fn show(&self, devices: u32) {
        let nodes = self.0.path().join("class/kfd/kfd/topology/nodes");
        let _ = fs::remove_dir_all(&nodes);
        for part in 0..devices {
            let properties = format!(
                "simd_count {}\nsimd_per_cu 4\nlocation_id {}\ndrm_render_minor {}\n",
                1216 / devices,
                0x0500 + part,
                128 + part
            );
            let id = format!("{}\n", 7000 + part);
            let files = [("properties", properties.as_str()), ("gpu_id", id.as_str())];
            plant(&nodes.join((part + 2).to_string()), &files);
        }
    }

    fn gpus(&self) -> Vec<AmdGpu> {
        read(self.0.path(), LIST)
    }

    fn seen(&self) -> Divisible {
        let mut all = divisibles(&self.gpus());
        all.remove(&ResourceName::cut(GPU)).unwrap()
    }

    fn divide(&self, compute: ComputeMode, memory: MemoryMode) -> Result<(), CutProblem> {
        let wanted = Division::new(Model::Mi300x, compute, memory).unwrap();
        divide(self.0.path(), &self.gpus(), &ResourceName::cut(GPU), wanted)
    }
}

#[test]
fn a_gpu_is_divided_by_what_is_written_and_each_part_has_its_render_node() {
    let tree = Tree::new();
    let whole = tree.seen();
    assert_eq!(
        (whole.mode, whole.standing.len(), whole.in_use),
        (Mode::Whole, 0, false)
    );
    tree.divide(ComputeMode::Cpx, MemoryMode::Nps1).unwrap();
    assert_eq!(tree.file(COMPUTE), "CPX");
    assert_eq!(tree.file(MEMORY), "NPS1\n", "it was so already");
    // Ten nodes and more are still in order.
    tree.show(8);
    let parts = tree.seen();
    assert_eq!(parts.mode, Mode::Divided);
    let devices: Vec<&str> = parts
        .standing
        .iter()
        .map(|it| it.device.as_deref().unwrap())
        .collect();
    let wanted: Vec<String> = (128..136).map(|minor| format!("renderD{minor}")).collect();
    assert_eq!(devices, wanted);
    let names: Vec<String> = parts
        .standing
        .iter()
        .map(|it| parts.name_of(it).unwrap().to_string())
        .collect();
    assert_eq!(names[0], format!("{GPU}/1g.24gb@0+1"));
    assert_eq!(names[7], format!("{GPU}/1g.24gb@7+1"));
    // And back.
    tree.divide(ComputeMode::Spx, MemoryMode::Nps1).unwrap();
    assert_eq!(tree.file(COMPUTE), "SPX");
}

#[test]
fn memory_is_changed_first_and_the_driver_is_asked_once_more() {
    let tree = Tree::new();
    tree.divide(ComputeMode::Cpx, MemoryMode::Nps4).unwrap();
    assert_eq!(
        (tree.file(MEMORY), tree.file(COMPUTE)),
        ("NPS4".to_owned(), "CPX".to_owned())
    );
    tree.show(8);
    assert_eq!(tree.seen().uniform.unwrap().to_string(), "CPX/NPS4");
}

#[test]
fn what_the_driver_does_not_have_is_an_error_that_says_what_it_has() {
    let tree = Tree::new();
    plant(&tree.folder(), &[(COMPUTE_AVAILABLE, "SPX, DPX\n")]);
    let refused = tree.divide(ComputeMode::Cpx, MemoryMode::Nps1).unwrap_err();
    assert_eq!(refused.detail, "the driver has no CPX here: SPX, DPX");
    assert_eq!(tree.file(COMPUTE), "SPX\n", "nothing was written");
    // A kernel whose file of the memory's mode is not there has one mode.
    fs::remove_file(tree.folder().join(MEMORY)).unwrap();
    let refused = tree.divide(ComputeMode::Cpx, MemoryMode::Nps4).unwrap_err();
    assert!(refused.detail.starts_with("NPS4 to "), "{}", refused.detail);
    assert!(tree.divide(ComputeMode::Dpx, MemoryMode::Nps1).is_ok());
}

#[test]
fn memory_of_a_program_on_any_part_is_use_of_the_gpu() {
    let tree = Tree::new();
    let processes = tree.0.path().join("class/kfd/kfd/proc/4711");
    plant(&processes, &[("vram_7000", "0\n"), ("vram_9999", "4096\n")]);
    assert!(!tree.seen().in_use, "another GPU's, and none");
    plant(&processes, &[("vram_7000", "2097152\n")]);
    assert!(tree.seen().in_use);
}

#[test]
fn a_card_that_is_not_known_to_be_divided_is_left_alone() {
    let tree = Tree::new();
    let gpus = read(
        tree.0.path(),
        "1002  AMD\n\t74a1  Aqua Vanjaram [Instinct MI999]\n",
    );
    assert!(divisibles(&gpus).is_empty());
    let wanted = Division::new(Model::Mi300x, ComputeMode::Cpx, MemoryMode::Nps1).unwrap();
    let refused = divide(tree.0.path(), &gpus, &ResourceName::cut("GPU-0"), wanted).unwrap_err();
    assert_eq!(refused.detail, "GPU-0 is not there");
}
