//! A stand-in for NVIDIA's management library, driven by a scenario file: for tests on machines without a GPU.
