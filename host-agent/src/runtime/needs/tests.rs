//! Images as they are found, and what is said of GPUs that they do not fit.

use super::*;
use protocol::bounded::Text;

/// Of `nvidia/cuda:12.4.1-base`: the newer driver, or an older one of a data centre's branches.
const CUDA_12_4: &str = "NVIDIA_REQUIRE_CUDA=cuda>=12.4 \
    brand=tesla,driver>=470,driver<471 brand=nvidia,driver>=470,driver<471 \
    brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536";

fn gpu(model: &str, driver: &str, cuda: (u16, u16)) -> LeasedGpu {
    LeasedGpu {
        device: Text::new("GPU-0a").unwrap(),
        card: Gpu {
            model: Text::new(model).unwrap(),
            driver: Text::new(driver).unwrap(),
            cuda,
            compute_capability: (8, 9),
            ..Gpu::unknown(Vendor::Nvidia)
        },
        gpu_instance: None,
        memory: Bytes::from_gb(24),
    }
}

fn image(environment: &[&str], labels: &[(&str, &str)]) -> ImageConfig {
    let label = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    ImageConfig {
        environment: environment.iter().map(|text| (*text).to_owned()).collect(),
        labels: labels.iter().map(label).collect(),
        ..ImageConfig::default()
    }
}

fn said(image: &ImageConfig, gpu: &LeasedGpu) -> (ProblemKind, String) {
    let problem = check(image, std::slice::from_ref(gpu)).unwrap_err();
    (problem.kind, problem.detail.to_string())
}

/// Complaint 79: an image that needs a newer CUDA than the driver has fails late, or waits for ever.
#[test]
fn an_image_for_a_newer_driver_is_refused_with_both_versions() {
    let image = image(&[CUDA_12_4], &[]);
    let newer = gpu("NVIDIA GeForce RTX 4090", "550.54.15", (12, 4));
    assert_eq!(check(&image, std::slice::from_ref(&newer)), Ok(()));
    let older = gpu("NVIDIA GeForce RTX 4090", "535.104.05", (12, 2));
    let (kind, detail) = said(&image, &older);
    assert_eq!(kind, ProblemKind::ImageNeedsOtherGpu);
    assert_eq!(
        detail,
        "the image needs CUDA at least 12.4 (NVIDIA_REQUIRE_CUDA), and NVIDIA GeForce RTX 4090 has CUDA 12.2"
    );
    // The same driver does for a card of a data centre, and the next branch does not.
    assert_eq!(
        check(&image, &[gpu("Tesla T4", "535.104.05", (12, 2))]),
        Ok(())
    );
    assert_eq!(
        check(&image, &[gpu("NVIDIA A100-SXM4-40GB", "535.1", (12, 2))]),
        Ok(())
    );
    said(&image, &gpu("Tesla T4", "545.23.06", (12, 3)));
    // Every GPU of a lease has to fit.
    let problem = check(&image, &[newer, older]).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::ImageNeedsOtherGpu);
}

fn met(requirement: &str) -> bool {
    let card = Card {
        cuda: Version::parse("12.2"),
        driver: Version::parse("535.104.5"),
        capability: Version::parse("8.0"),
        brand: Some("tesla"),
    };
    match requirement::check(requirement, &card) {
        Ok(()) => true,
        Err(Unmet::Not { .. }) => false,
        Err(Unmet::Unreadable { part }) => panic!("{part}"),
    }
}

#[test]
fn the_language_has_six_operators_and_two_ways_to_combine_them() {
    for (requirement, is_met) in [
        ("", true),
        ("cuda>=12.2", true),
        ("cuda>=12.2.0", true),
        ("cuda>12.2", false),
        ("cuda<=12.2", true),
        ("cuda<12.2", false),
        ("cuda=12.2", true),
        ("cuda!=12.2", false),
        // Numbers, and not letters: 12 is more than 9.
        ("cuda>=9.0", true),
        ("driver>=535", true),
        ("driver<536", true),
        ("driver>=535.104.6", false),
        ("arch>=7.0", true),
        ("arch>=9.0", false),
        ("brand=tesla", true),
        ("brand=TESLA", true),
        ("BRAND!=Tesla", false),
        ("cuda>=13 brand=tesla", true),
        ("cuda>=13,brand=tesla", false),
        // A comma binds closer than a space.
        ("cuda>=13 brand=tesla,driver<536", true),
        ("cuda>=13 brand=tesla,driver<535", false),
        ("cuda>=13,brand=tesla brand=geforce", false),
        ("  cuda>=12.0,,  ", true),
    ] {
        assert_eq!(met(requirement), is_met, "{requirement}");
    }
}

#[test]
fn what_is_not_of_the_language_is_named() {
    let card = Card {
        cuda: None,
        driver: None,
        capability: None,
        brand: None,
    };
    for wrong in [
        "cuda",
        "cuda>=",
        ">=12",
        "cuda==12",
        "cuda=>12",
        "cuda>=12.x",
        "colour=red",
        "brand>=tesla",
    ] {
        // Also behind an alternative that is met.
        let all = format!("cuda>=1 {wrong}");
        let Err(Unmet::Unreadable { part }) = requirement::check(&all, &card) else {
            panic!("{wrong} was read")
        };
        assert_eq!(part, wrong);
    }
    let image = image(&["NVIDIA_REQUIRE_CUDA=colour=red"], &[]);
    let (kind, detail) = said(&image, &gpu("Tesla T4", "550", (12, 4)));
    assert_eq!(kind, ProblemKind::ImageUnusable);
    assert_eq!(
        detail,
        "what the image needs cannot be read: 'colour=red' in NVIDIA_REQUIRE_CUDA"
    );
    // What is not known of a GPU is not held against it.
    assert_eq!(
        requirement::check("cuda>=99,arch>=99,brand=x", &card),
        Ok(())
    );
    assert!(requirement::check(&"x".repeat(20_000), &card).is_err());
}

#[test]
fn all_that_an_image_says_must_be_met() {
    let fits = gpu("Tesla T4", "550.54", (12, 4));
    let two = image(
        &[
            "NVIDIA_REQUIRE_CUDA=cuda>=12.0",
            "NVIDIA_REQUIRE_OTHER=driver>=560",
        ],
        &[],
    );
    assert_eq!(
        said(&two, &fits).1,
        "the image needs driver at least 560.0 (NVIDIA_REQUIRE_OTHER), and Tesla T4 has driver 550.54"
    );
    // It may not pass itself over.
    let passed = image(
        &["NVIDIA_DISABLE_REQUIRE=1", "NVIDIA_REQUIRE_CUDA=cuda>=13.0"],
        &[],
    );
    assert_eq!(said(&passed, &fits).0, ProblemKind::ImageNeedsOtherGpu);
}

#[test]
fn older_images_say_their_version_alone() {
    let fits = gpu("Tesla T4", "450.80", (11, 0));
    for image in [
        image(&["CUDA_VERSION=11.2.1"], &[]),
        image(&[], &[("com.nvidia.cuda.version", "11.2.1")]),
    ] {
        assert!(
            said(&image, &fits)
                .1
                .starts_with("the image needs CUDA at least 11.2 ")
        );
    }
    // A patch needs no newer driver, and the better word is taken.
    assert_eq!(
        check(
            &image(&["CUDA_VERSION=11.0.3"], &[]),
            std::slice::from_ref(&fits)
        ),
        Ok(())
    );
    let both = image(
        &["CUDA_VERSION=11.2.1", "NVIDIA_REQUIRE_CUDA=cuda>=11.0"],
        &[],
    );
    assert_eq!(check(&both, &[fits]), Ok(()));
}

#[test]
fn labels_ask_for_memory_capability_and_versions() {
    let card = gpu("NVIDIA L4", "550.54", (12, 4));
    let slice = LeasedGpu {
        memory: Bytes(10_200_547_328),
        ..card.clone()
    };
    let wants = |label: &str, text: &str| image(&[], &[(label, text)]);
    assert_eq!(
        check(&wants(LABEL_MEMORY, "24"), std::slice::from_ref(&card)),
        Ok(())
    );
    assert_eq!(
        said(&wants(LABEL_MEMORY, "16"), &slice).1,
        "the image needs 16.0 GB of GPU memory (feira.needs.vram-gb), and GPU-0a has 10.2 GB"
    );
    assert_eq!(
        check(&wants(LABEL_CAPABILITY, "8.9"), std::slice::from_ref(&card)),
        Ok(())
    );
    assert_eq!(
        said(&wants(LABEL_CAPABILITY, "9.0"), &card).1,
        "the image needs compute capability at least 9.0 (feira.needs.compute-capability), and NVIDIA L4 has compute capability 8.9"
    );
    assert!(
        said(&wants(LABEL_CUDA, "12.6"), &card)
            .1
            .contains("CUDA at least 12.6")
    );
    assert!(
        said(&wants(LABEL_DRIVER, "560"), &card)
            .1
            .contains("driver 550.54")
    );
    for label in [LABEL_MEMORY, LABEL_CAPABILITY] {
        assert_eq!(
            said(&wants(label, "lots"), &card).0,
            ProblemKind::ImageUnusable
        );
    }
}

#[test]
fn an_image_for_nvidia_is_refused_on_another_vendors_gpu_and_free_without_one() {
    let mut amd = gpu("AMD Instinct MI300X", "6.10", (0, 0));
    amd.card.vendor = Vendor::Amd;
    let image = image(&["NVIDIA_REQUIRE_CUDA=cuda>=12.4"], &[]);
    assert_eq!(
        said(&image, &amd).1,
        "the image needs an NVIDIA GPU (NVIDIA_REQUIRE_CUDA=cuda>=12.4), and AMD Instinct MI300X is none"
    );
    assert_eq!(check(&image, &[]), Ok(()));
}

#[test]
fn a_brand_is_in_the_products_name() {
    for (model, wanted) in [
        ("NVIDIA GeForce RTX 4090", Some("geforce")),
        ("NVIDIA TITAN RTX", Some("titan")),
        ("Quadro RTX 6000", Some("quadrortx")),
        ("Quadro P4000", Some("quadro")),
        ("Tesla V100-SXM2-16GB", Some("tesla")),
        ("NVIDIA RTX A6000", Some("nvidiartx")),
        ("NVIDIA H100 80GB HBM3", Some("nvidia")),
        ("Simulated", None),
    ] {
        assert_eq!(brand(model), wanted, "{model}");
    }
}
