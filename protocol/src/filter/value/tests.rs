//! What a value may be in each kind of field, and what is said of one that may not.

use super::*;

#[track_caller]
fn check(field: Field, text: &str, value: Value) {
    assert_eq!(read(field, text), Ok(value), "{text}");
}

fn text(form: &str) -> Value {
    Value::Text(Text::new(form).unwrap())
}

#[test]
fn numbers_are_read_in_the_field_s_unit() {
    check(Field::DphTotal, "0.40", Value::Number(400_000));
    check(Field::DphTotal, "$0.4", Value::Number(400_000));
    check(Field::GpuRam, "24", Value::Number(24_000));
    check(Field::GpuRam, "24GB", Value::Number(24_000));
    check(Field::Duration, "3", Value::Number(259_200));
    check(Field::Duration, "12h", Value::Number(43_200));
    check(Field::DiskSpace, "1.5tb", Value::Number(1_500_000_000_000));
    check(Field::GpuFrac, "50%", Value::Number(500_000));
    check(Field::GpuMaxPower, "450", Value::Number(450_000));
    check(Field::PciGeneration, "4.0", Value::Number(4));
}

#[test]
fn versions_and_capabilities() {
    check(
        Field::DriverVersion,
        "535.86.05",
        Value::Version([535, 86, 5, 0]),
    );
    check(Field::CudaVersion, "12.4", Value::Version([12, 4, 0, 0]));
    check(Field::ComputeCap, "8.9", Value::Version([8, 9, 0, 0]));
    check(Field::ComputeCap, "890", Value::Version([8, 9, 0, 0]));
    check(Field::ComputeCap, "1210", Value::Version([12, 1, 0, 0]));
    check(Field::ComputeCap, "9", Value::Version([9, 0, 0, 0]));
    for wrong in ["8.9.1", "891", "", "8.", "1.2.3.4.5", "9999999999"] {
        assert!(read(Field::ComputeCap, wrong).is_err(), "{wrong}");
    }
    assert_eq!(leading_version("6.1.0-18-amd64"), Some([6, 1, 0, 0]));
    assert_eq!(leading_version("20.10.24+dfsg1"), Some([20, 10, 24, 0]));
    assert_eq!(leading_version("unknown"), None);
}

#[test]
fn texts_take_one_form() {
    check(Field::GpuName, " RTX  4090 ", text("RTX_4090"));
    check(Field::GpuName, "rtx_4090", text("RTX_4090"));
    check(Field::CpuArch, "x86_64", text("amd64"));
    check(Field::HostId, "31BD9", text("h-31bd9"));
    check(
        Field::Os,
        "Debian GNU/Linux 12",
        text("debian_gnu/linux_12"),
    );
    for (field, wrong) in [
        (Field::GpuArch, "nvida"),
        (Field::HostId, "h-31b"),
        (Field::GpuName, "___"),
        (Field::GpuName, "any"),
        (Field::Os, "it's"),
        (Field::HasAvx, "maybe"),
    ] {
        assert!(
            matches!(read(field, wrong), Err(ValueProblem::Wrong { .. })),
            "{wrong}"
        );
    }
}

#[test]
fn problems_say_what_is_wanted() {
    let say = |field, text: &str| read(field, text).unwrap_err().to_string();
    assert_eq!(
        say(Field::NumGpus, "two"),
        "'two' is not a value of num_gpus: a whole number is wanted (GPUs)"
    );
    assert_eq!(
        say(Field::NumGpus, "1.5"),
        "'1.5' is finer than num_gpus is counted: whole numbers"
    );
    for (field, text) in [
        (Field::GpuRam, "-1"),
        (Field::GpuRam, "-0"),
        (Field::DphTotal, "$-0.5"),
        (Field::Reliability, "-1%"),
    ] {
        assert!(say(field, text).contains("is below nothing"), "{text}");
    }
    assert!(say(Field::GpuRam, "--1").contains("a decimal number is wanted"));
    assert_eq!(
        say(Field::GpuArch, "nvida"),
        "'nvida' is not a value of gpu_arch: one of nvidia, amd, intel, none is wanted"
    );
}
