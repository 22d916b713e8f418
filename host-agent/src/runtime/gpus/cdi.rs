//! The lists of devices that an engine with CDI (Container Device Interface) reads: which names are in them. What is
//! in a list beside its kind and its names is the engine's business.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// A list larger than this is not one.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// Lists of one folder that are read.
const LISTS_MAX: usize = 64;

/// A list, as far as it is read.
#[derive(Debug, Deserialize)]
struct List {
    kind: String,
    #[serde(default)]
    devices: Vec<Device>,
}

#[derive(Debug, Deserialize)]
struct Device {
    name: String,
}

/// All names in the lists of `folders`, like `nvidia.com/gpu=GPU-…`. A list that cannot be read has none.
#[must_use]
pub fn read<'a>(folders: impl IntoIterator<Item = &'a Path>) -> BTreeSet<String> {
    let lists = folders.into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).take(LISTS_MAX)
    });
    lists.flat_map(|path| names_of_file(&path)).collect()
}

fn names_of_file(path: &Path) -> Vec<String> {
    let is_json = path.extension().is_some_and(|it| it == "json");
    let is_yaml = path
        .extension()
        .is_some_and(|it| it == "yaml" || it == "yml");
    let is_small =
        std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= LIST_BYTES_MAX);
    if !is_small || !(is_json || is_yaml) {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if is_json {
        names_of_json(&text)
    } else {
        names_of_yaml(&text)
    }
}

/// The names in a list that is JSON.
#[must_use]
pub fn names_of_json(text: &str) -> Vec<String> {
    let Ok(List { kind, devices }) = serde_json::from_str::<List>(text) else {
        return Vec::new();
    };
    let names = devices.into_iter().map(|device| device.name);
    names.map(|name| format!("{kind}={name}")).collect()
}

/// The names in a list that is YAML, of the plain shape that `nvidia-ctk cdi generate` writes: keys at the start of
/// their lines, and under `devices` items of mappings. A name that is written otherwise is not found, and its device
/// is given in another way.
#[must_use]
pub fn names_of_yaml(text: &str) -> Vec<String> {
    let mut kind = None;
    let mut names = Vec::new();
    let mut is_in_devices = false;
    let mut depth = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        let is_item = bare == "-" || bare.starts_with("- ");
        if indent == 0 && !is_item && !bare.is_empty() && !bare.starts_with('#') {
            is_in_devices = bare.trim_end() == "devices:";
            depth = None;
            if let Some(value) = bare.strip_prefix("kind:") {
                kind = Some(unquoted(value));
            }
            continue;
        }
        if !is_in_devices {
            continue;
        }
        // The keys of a device stand where its first one does, behind the dash of the outermost items.
        let (column, entry) = match bare.strip_prefix("- ") {
            Some(entry) => (indent + 2, entry),
            None => (indent, bare),
        };
        let own = *depth.get_or_insert(column);
        if column == own
            && let Some(value) = entry.strip_prefix("name:")
        {
            names.push(unquoted(value));
        }
    }
    let Some(kind) = kind else {
        return Vec::new();
    };
    names
        .into_iter()
        .map(|name| format!("{kind}={name}"))
        .collect()
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `nvidia-ctk cdi generate --device-name-strategy=uuid` writes it, with a hook that has a name of its own.
    const LIST: &str = r#"---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args:
    - nvidia-cdi-hook
    hookName: createContainer
    name: not-a-device
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      name: neither
  name: GPU-5a1e
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "MIG-77"
- name: all
  containerEdits: {}
kind: nvidia.com/gpu
"#;

    #[test]
    fn the_names_of_a_list_are_those_of_its_devices() {
        let wanted = [
            "nvidia.com/gpu=GPU-5a1e",
            "nvidia.com/gpu=MIG-77",
            "nvidia.com/gpu=all",
        ];
        assert_eq!(names_of_yaml(LIST), wanted);
        let json = r#"{"cdiVersion":"0.6.0","kind":"amd.com/gpu","devices":[{"name":"0","containerEdits":{}}]}"#;
        assert_eq!(names_of_json(json), ["amd.com/gpu=0"]);
        assert!(names_of_yaml("devices:\n- name: x\n").is_empty(), "no kind");
        assert!(names_of_json("[]").is_empty() && names_of_yaml("{{{").is_empty());
    }

    #[test]
    fn a_folder_is_read_and_what_is_no_list_is_passed_over() {
        let folder = tempfile::TempDir::new().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("nvidia.yaml", LIST);
        write("broken.json", "{");
        write("notes.txt", LIST);
        let nowhere = folder.path().join("none");
        let names = read([folder.path(), nowhere.as_path()]);
        assert_eq!(names.len(), 3);
        assert!(names.contains("nvidia.com/gpu=MIG-77"));
    }
}
