//! The rows of NVIDIA's errors: what each means, and what is done about it.

use super::{OnGpu, OnLease, Reach, Repeat, Row, Special};
use crate::unit::Until;
use OnLease::{Ends, GoesOn};
use protocol::lease::FaultClass::{Driver, Hardware, Link, Program};

/// A row that is noted and no more.
const NOTED: Row = Row {
    xids: &[],
    meaning: "",
    classes: &[],
    lease: GoesOn,
    gpu: OnGpu::Nothing,
    repeat: Repeat::Same,
    special: Special::No,
};

/// A row of which the GPU is reset, and every lease that it struck ends.
const RESET: Row = Row {
    lease: Ends(Reach::Struck),
    gpu: OnGpu::Waits(Until::Reset),
    ..NOTED
};

/// Every row.
pub const ROWS: &[Row] = &[
    Row {
        xids: &[(8, 8)],
        meaning: "the GPU stopped processing",
        classes: &[Driver, Program],
        repeat: Repeat::WithinAnHour(3, Until::Reset),
        ..NOTED
    },
    Row {
        xids: &[(11, 11), (25, 25), (32, 32), (80, 80)],
        meaning: "corrupted commands or data reached the GPU",
        classes: &[Program, Driver, Link],
        repeat: Repeat::AcrossLeases(Until::Tested),
        ..NOTED
    },
    Row {
        xids: &[(13, 13)],
        meaning: "an exception in the graphics engine",
        classes: &[Program, Hardware],
        repeat: Repeat::AcrossLeases(Until::Tested),
        ..NOTED
    },
    Row {
        xids: &[(31, 31)],
        meaning: "a page fault of GPU memory",
        classes: &[Program, Hardware],
        repeat: Repeat::AcrossLeases(Until::Tested),
        ..NOTED
    },
    Row {
        xids: &[(37, 37), (66, 67)],
        meaning: "the driver did what its firmware does not allow",
        classes: &[Driver],
        ..NOTED
    },
    Row {
        xids: &[(38, 38), (44, 44)],
        meaning: "a watchdog of the firmware, or a fault in a switch of contexts",
        classes: &[Driver],
        repeat: Repeat::WithinADay(Until::Reset),
        ..NOTED
    },
    Row {
        xids: &[(39, 41), (70, 72), (75, 77), (85, 85), (126, 135)],
        meaning: "an error of a copy engine",
        classes: &[Program, Hardware],
        repeat: Repeat::AcrossLeases(Until::Tested),
        ..NOTED
    },
    Row {
        xids: &[(43, 43)],
        meaning: "a program's context was reset",
        classes: &[Program],
        ..NOTED
    },
    Row {
        xids: &[(45, 45)],
        meaning: "channels were cleared away after another error",
        special: Special::Collateral,
        ..NOTED
    },
    Row {
        xids: &[(46, 46), (62, 62), (158, 158)],
        meaning: "the GPU or one of its controllers stopped",
        classes: &[Hardware, Driver],
        ..RESET
    },
    Row {
        xids: &[(109, 109)],
        meaning: "a switch of contexts timed out",
        classes: &[Hardware, Driver],
        repeat: Repeat::FirstIsNoted,
        ..RESET
    },
    Row {
        xids: &[(48, 48)],
        meaning: "a memory error that could not be corrected",
        classes: &[Hardware],
        special: Special::Followed,
        ..RESET
    },
    Row {
        xids: &[(54, 54)],
        meaning: "a power connector of the card is not connected",
        classes: &[Hardware],
        gpu: OnGpu::Waits(Until::Checked),
        special: Special::Alarm("connect the auxiliary power of the card"),
        ..NOTED
    },
    Row {
        xids: &[
            (60, 60),
            (68, 68),
            (82, 84),
            (86, 86),
            (88, 89),
            (96, 105),
            (139, 139),
            (142, 142),
        ],
        meaning: "an error of a video, image or optical-flow engine",
        classes: &[Program],
        ..NOTED
    },
    Row {
        xids: &[(63, 63)],
        meaning: "a row or page of memory was retired",
        classes: &[Hardware],
        gpu: OnGpu::ResetWhenIdle,
        ..NOTED
    },
    Row {
        xids: &[(64, 64)],
        meaning: "a row or page of memory could not be retired",
        classes: &[Hardware],
        lease: Ends(Reach::Struck),
        gpu: OnGpu::Waits(Until::Checked),
        special: Special::Alarm(
            "the card may have to be returned: run the vendor's field diagnostic",
        ),
        ..NOTED
    },
    Row {
        xids: &[(69, 69)],
        meaning: "an error in a class of the graphics engine",
        classes: &[Program],
        ..NOTED
    },
    Row {
        xids: &[(74, 74)],
        meaning: "an error of NVLink",
        classes: &[Link],
        lease: Ends(Reach::Together),
        repeat: Repeat::Pair(Until::Reset),
        ..NOTED
    },
    Row {
        xids: &[(78, 78)],
        meaning: "a virtual GPU could not start",
        classes: &[Driver],
        ..NOTED
    },
    Row {
        xids: &[(79, 79)],
        meaning: "the GPU has fallen off the bus",
        classes: &[Hardware, Link],
        lease: Ends(Reach::Gpu),
        gpu: OnGpu::Waits(Until::Reboot),
        ..NOTED
    },
    Row {
        xids: &[(92, 92)],
        meaning: "many memory errors that were corrected",
        classes: &[Hardware],
        ..NOTED
    },
    Row {
        xids: &[(93, 93)],
        meaning: "the card's own record is written too often",
        classes: &[Hardware],
        ..NOTED
    },
    Row {
        xids: &[(94, 94)],
        meaning: "a memory error that was contained",
        classes: &[Hardware],
        lease: Ends(Reach::Struck),
        gpu: OnGpu::ResetWhenIdle,
        ..NOTED
    },
    Row {
        xids: &[(95, 95), (140, 140), (167, 167), (169, 169), (171, 173)],
        meaning: "an error that could not be contained",
        classes: &[Hardware, Link],
        lease: Ends(Reach::Gpu),
        gpu: OnGpu::Waits(Until::Reset),
        ..NOTED
    },
    Row {
        xids: &[(106, 107)],
        meaning: "a test message",
        ..NOTED
    },
    Row {
        xids: &[(110, 110)],
        meaning: "a security fault",
        classes: &[Hardware, Driver],
        special: Special::Alarm("a security fault: look who had this GPU"),
        ..RESET
    },
    Row {
        xids: &[(119, 120)],
        meaning: "the GPU's system processor does not answer, or failed",
        classes: &[Driver],
        repeat: Repeat::WithinADay(Until::Reboot),
        ..RESET
    },
    Row {
        xids: &[(121, 121)],
        meaning: "an error of the link to the processor",
        classes: &[Link],
        repeat: Repeat::IfCoherent,
        ..NOTED
    },
    Row {
        xids: &[(136, 136)],
        meaning: "a link could not be trained",
        classes: &[Link],
        gpu: OnGpu::Waits(Until::Reset),
        ..NOTED
    },
    Row {
        xids: &[(137, 137)],
        meaning: "a GPU read or wrote another's memory without the right to",
        classes: &[Program],
        special: Special::AlarmIfShared(
            "GPUs that are linked have different leases, and one reached for another's memory: see that peers are not visible to each other",
        ),
        ..NOTED
    },
    Row {
        xids: &[(141, 141)],
        meaning: "a fast path of CUDA failed",
        classes: &[Driver],
        ..NOTED
    },
    Row {
        xids: &[(143, 143)],
        meaning: "the GPU could not be started",
        classes: &[Hardware],
        gpu: OnGpu::Waits(Until::Checked),
        ..NOTED
    },
    Row {
        xids: &[(144, 150)],
        meaning: "an error of an NVLink unit",
        classes: &[Link],
        lease: Ends(Reach::Together),
        special: Special::Severity,
        ..NOTED
    },
    Row {
        xids: &[(151, 151)],
        meaning: "keys of confidential computing could not be changed",
        classes: &[Driver],
        lease: Ends(Reach::Struck),
        ..NOTED
    },
    Row {
        xids: &[(154, 154)],
        meaning: "the driver's recommended action changed",
        special: Special::Verdict,
        ..NOTED
    },
    Row {
        xids: &[(155, 156)],
        meaning: "NVLink has to be set up anew, or resources were retired",
        classes: &[Link, Hardware],
        gpu: OnGpu::Waits(Until::Reset),
        ..NOTED
    },
    Row {
        xids: &[(152, 153), (157, 157), (160, 161)],
        meaning: "a message of retired parts or of a deep-learning unit",
        ..NOTED
    },
    Row {
        xids: &[(168, 168)],
        meaning: "the GPU has less memory than it is offered with",
        classes: &[Hardware],
        gpu: OnGpu::Waits(Until::Checked),
        special: Special::Alarm("its memory is less than the offer says"),
        ..NOTED
    },
];
