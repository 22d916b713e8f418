//! Whose the data folder is: what root makes in another user's folder, that user's agent could not open. Commands that
//! only read, and those that the running agent carries out, are root's as well.

use super::Place;
use protocol::operator::{Exit, Failure};
use std::os::unix::fs::MetadataExt;

/// Where the names of users are.
const USERS: &str = "/etc/passwd";

impl Place {
    /// Refuses to write in a folder of another user. `words` are the command's own, for the advice.
    pub(super) fn check_owner(&self, words: &str) -> Result<(), Failure> {
        let folder = self.folder.path();
        let Ok(found) = std::fs::metadata(folder) else {
            // It is made, or missed, by whoever needs it.
            return Ok(());
        };
        let me = rustix::process::geteuid().as_raw();
        if found.uid() == me {
            return Ok(());
        }
        let users = std::fs::read_to_string(USERS).unwrap_or_default();
        let user = found.uid();
        let command = self.command(words);
        let (owner, change) = match user_name(&users, user) {
            Some(name) => (name.to_owned(), format!("runuser -u {name} -- {command}")),
            None => (
                format!("user {user}"),
                format!("setpriv --reuid={user} --clear-groups {command}"),
            ),
        };
        let help = if me == 0 {
            change
        } else {
            format!("run it as {owner}, or as root: {change}")
        };
        let what = format!(
            "{} belongs to {owner}, who could not use what this user makes there",
            folder.display()
        );
        Err(Failure::new(Exit::NotAllowed, what).help(help))
    }
}

/// The name of a user, from the text of `/etc/passwd`.
fn user_name(users: &str, user: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == user).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_by_their_numbers() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nfeira-host:x:998:997::/var/lib/feira-host:/bin/sh\n";
        assert_eq!(user_name(users, 998), Some("feira-host"));
        assert_eq!(user_name(users, 7), None);
    }
}
