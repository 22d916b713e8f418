//! The chains of fused multiply-adds that arithmetic is measured with, in either precision.

use crate::What;

/// Chains of fused multiply-adds in one precision.
pub(crate) struct Chains {
    pub(crate) what: What,
    /// PTX.
    pub(crate) text: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) method: &'static str,
}

pub(crate) const SINGLE: Chains = Chains {
    what: What::Fp32,
    text: include_str!("../kernels/fma_f32.ptx"),
    kernel: "fma_f32",
    method: "ptx-fma-chains",
};
/// A GPU for players has a thirty-second or a sixty-fourth of the units that one for computing has: no name hides it.
pub(crate) const DOUBLE: Chains = Chains {
    what: What::Fp64,
    text: include_str!("../kernels/fma_f64.ptx"),
    kernel: "fma_f64",
    method: "ptx-fma-chains-f64",
};
