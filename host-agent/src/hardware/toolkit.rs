//! Which NVIDIA container toolkit is installed: what lets a container engine give GPUs to containers.

use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Programs of the toolkit that say its version: the first has its number from 1.12 on, the others before it too.
const PROGRAMS: [&str; 3] = [
    "nvidia-ctk",
    "nvidia-container-toolkit",
    "nvidia-container-cli",
];
/// They look at nothing to say it; one that takes as long as this hangs.
const DEADLINE: Duration = Duration::from_secs(2);

/// The toolkit's version, like `1.17.8`; empty where none is installed.
pub async fn version() -> String {
    of_programs(&PROGRAMS).await
}

async fn of_programs(programs: &[&str]) -> String {
    for program in programs {
        let said = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        if let Ok(Ok(output)) = timeout(DEADLINE, said).await
            && let Some(version) = parse(&String::from_utf8_lossy(&output.stdout))
        {
            return version;
        }
    }
    String::new()
}

/// The version in what such a program says: `NVIDIA Container Toolkit CLI version 1.17.8`, `cli-version: 1.17.8`.
fn parse(said: &str) -> Option<String> {
    let words = said.lines().flat_map(str::split_whitespace);
    let version = words.map(|word| word.trim_start_matches('v')).find(|word| {
        word.contains('.') && word.starts_with(|letter: char| letter.is_ascii_digit())
    });
    version.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_are_found_in_what_the_programs_say() {
        for (said, wanted) in [
            (
                "NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202b80a9b9d0db00d9b1d73c0128c8962c55f4d\n",
                Some("1.17.8"),
            ),
            (
                "NVIDIA Container Runtime Hook version 1.13.5\ncommit: 6b8589dcb4dead72ab64f14a5912886e6165c079\n",
                Some("1.13.5"),
            ),
            ("cli-version: 1.14.3\nlib-version: 1.14.3\n", Some("1.14.3")),
            (
                "NVIDIA Container Toolkit CLI version 1.18.0-rc.2\n",
                Some("1.18.0-rc.2"),
            ),
            ("", None),
            ("usage: something", None),
        ] {
            assert_eq!(parse(said).as_deref(), wanted, "{said}");
        }
    }

    #[tokio::test]
    async fn the_first_program_that_answers_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nvidia-ctk");
        let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'NVIDIA Container Toolkit CLI version 1.17.8'\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let missing = folder.path().join("no-such-program");
        let paths = [missing.to_str().unwrap(), program.to_str().unwrap()];
        assert_eq!(of_programs(&paths).await, "1.17.8");
        assert_eq!(of_programs(&paths[..1]).await, "");
    }
}
