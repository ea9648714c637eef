//! Enrollment and channels. A missing section restricts nothing.
use super::at::{At, Findings};
use super::read::{Object, array, object, texts};

const SWITCHES: [&str; 5] = ["allow_join", "allow_enroll", "allow_invite", "allow_adopt", "require_verified_hostname"];
const CUSTODIES: [&str; 2] = ["skarbiec", "openssh"];

pub(super) fn check(root: &Object, out: &mut Findings) {
    check_enrollment(root, out);
    check_channels(root, out);
}

fn check_enrollment(root: &Object, out: &mut Findings) {
    let at = At::ROOT.key("enrollment");
    let Some(enrollment) = root.get("enrollment").and_then(|e| object(e, at, out)) else { return };
    for switch in SWITCHES {
        if enrollment.get(switch).is_some_and(|value| !value.is_boolean()) {
            out.add(at.key(switch), "must be a boolean");
        }
    }
    let custody = enrollment.get("key_custody");
    if custody.is_some_and(|value| !value.as_str().is_some_and(|c| CUSTODIES.contains(&c))) {
        out.add(at.key("key_custody"), "must be 'skarbiec' or 'openssh'");
    }
}

fn check_channels(root: &Object, out: &mut Findings) {
    let at = At::ROOT.key("channels");
    let Some(channels) = root.get("channels").and_then(|c| object(c, at, out)) else { return };
    let at = at.key("control_plane");
    if let Some(list) = channels.get("control_plane").and_then(|value| array(value, at, out)) {
        texts(list, at, out);
    }
}
