//! Operating system and kernel, from `os-release` and `uname`.

/// What runs on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Its name, like `Debian GNU/Linux 12 (bookworm)`.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
}

/// `PRETTY_NAME` of the text of an `os-release` file.
#[must_use]
pub fn parse_os_release(text: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let bare = value.trim().trim_matches(['"', '\'']);
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// Kernel release and architecture.
#[must_use]
pub fn uname() -> (String, String) {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    (text(name.release()), text(name.machine()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_is_read_with_and_without_quotes() {
        let quoted = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(
            parse_os_release(quoted).unwrap(),
            "Debian GNU/Linux 12 (bookworm)"
        );
        assert_eq!(parse_os_release("PRETTY_NAME=Alpine\n").unwrap(), "Alpine");
        assert_eq!(parse_os_release("ID=debian\n"), None);
    }

    #[test]
    fn the_kernel_is_the_one_that_proc_names() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(uname().0, release.trim());
    }
}
