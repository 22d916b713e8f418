//! Which of the machine's GPUs is the one that is wanted.

use super::failed;
use audit::prover::Unable;
use cudarc::driver::CudaContext;
use std::sync::Arc;

pub(super) fn find(wanted: &str) -> Result<Arc<CudaContext>, Unable> {
    let count = CudaContext::device_count().map_err(failed("count its devices"))?;
    let count = usize::try_from(count).unwrap_or(0);
    let open = |ordinal| CudaContext::new(ordinal).map_err(failed("open the device"));
    if count == 1 || (count > 1 && wanted == "machine") {
        return open(0);
    }
    let mut seen = Vec::new();
    for ordinal in 0..count {
        let context = open(ordinal)?;
        let uuid = text_of(context.uuid().map_err(failed("say its UUID"))?.bytes);
        if wanted.split_once('-').is_some_and(|(_, rest)| rest == uuid) {
            return Ok(context);
        }
        seen.push(uuid);
    }
    Err(Unable(format!(
        "there is no device {wanted} here; there are: {}",
        if seen.is_empty() {
            "none".to_owned()
        } else {
            seen.join(", ")
        }
    )))
}

/// A UUID as the driver's tools write it, without what stands in front.
fn text_of(bytes: [std::ffi::c_char; 16]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // A char of C's has a sign on some machines and none on others.
        let [byte] = byte.to_ne_bytes();
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_the_tools_write_it() {
        let bytes = std::array::from_fn(|at| std::ffi::c_char::try_from(at).unwrap());
        assert_eq!(text_of(bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
