//! What bodies say of GPUs on each way, and that nothing of an image or a job changes it.

use super::predicates::{hosts, last_value};
use super::*;
use bollard::models::DeviceRequest;

/// What the engine is asked for, what NVIDIA's runtime is told, and what the label says are one.
pub(super) fn gpus_are_the_leased_ones(body: &Body) -> bool {
    let visible = last_value(body, "NVIDIA_VISIBLE_DEVICES");
    let label = body
        .labels
        .as_ref()
        .and_then(|labels| labels.get(LABEL_GPUS));
    let way = label.and_then(|label| label.split(' ').next());
    let requests = hosts(body).device_requests.as_deref();
    match (way, requests) {
        (None | Some("nodes"), None) => visible == Some("void"),
        (Some("cdi"), Some([request])) => {
            let ids = request.device_ids.clone().unwrap_or_default();
            visible == Some("void")
                && request.driver.as_deref() == Some("cdi")
                && ids.iter().all(|id| id.starts_with("nvidia.com/gpu=GPU-"))
        }
        (Some("request"), Some([request])) => {
            let ids = request.device_ids.clone().unwrap_or_default();
            request.driver.as_deref() == Some("nvidia")
                && request.count == Some(0)
                && visible == Some(ids.join(",").as_str())
                && ids.iter().all(|id| id.starts_with("GPU-"))
        }
        _ => false,
    }
}

pub(super) fn devices_are_gpus(body: &Body) -> bool {
    let devices = hosts(body).devices.as_deref();
    let groups = hosts(body).group_add.as_deref();
    let is_given = |device: &bollard::models::DeviceMapping| {
        let path = device.path_in_container.as_deref().unwrap_or_default();
        let allowed = device.cgroup_permissions.as_deref();
        device.path_on_host.as_deref() == Some(path)
            && match path {
                "/dev/nvidia0" => allowed == Some("rw"),
                "/dev/nvidia-caps/nvidia-cap30" => allowed == Some("r"),
                _ => false,
            }
    };
    let are_given = match (devices, groups) {
        (None, None) => true,
        (Some(devices), Some([group])) => devices.iter().all(is_given) && group == "44",
        (None, Some(_)) | (Some(_), _) => false,
    };
    are_given && hosts(body).device_cgroup_rules.is_none()
}

fn body_of(way: Way, image: &PulledImage) -> Body {
    container_body(&spec(), image, &engine(), host(), &given(way)).unwrap()
}

#[test]
fn the_engine_is_asked_by_name_and_told_nothing_in_a_variable() {
    let body = body_of(Way::Cdi, &image());
    let request = DeviceRequest {
        driver: Some("cdi".to_owned()),
        device_ids: Some(vec!["nvidia.com/gpu=GPU-0a".to_owned()]),
        ..DeviceRequest::default()
    };
    assert_eq!(hosts(&body).device_requests, Some(vec![request]));
    assert_eq!(last_value(&body, "NVIDIA_VISIBLE_DEVICES"), Some("void"));
    assert_eq!(body.labels.unwrap()[LABEL_GPUS], "cdi GPU-0a 1");
}

#[test]
fn the_engine_is_asked_by_uuid_where_it_has_the_runtime() {
    let body = body_of(Way::Request, &image());
    let request = &hosts(&body).device_requests.as_ref().unwrap()[0];
    assert_eq!(request.driver.as_deref(), Some("nvidia"));
    assert_eq!(request.device_ids, Some(vec!["GPU-0a".to_owned()]));
    assert_eq!(last_value(&body, "NVIDIA_VISIBLE_DEVICES"), Some("GPU-0a"));
}

#[test]
fn our_own_list_has_nodes_and_libraries_and_asks_for_nothing() {
    let mut image = image();
    let set = [
        "LD_LIBRARY_PATH=/tmp/x:/opt/lib",
        "NVIDIA_VISIBLE_DEVICES=all",
    ];
    image.config.environment = set.map(str::to_owned).to_vec();
    let body = body_of(Way::Nodes, &image);
    assert_eq!(hosts(&body).device_requests, None);
    assert!(devices_are_gpus(&body) && hosts(&body).devices.as_ref().unwrap().len() == 2);
    assert_eq!(hosts(&body).mounts.as_ref().unwrap().len(), 2);
    assert_eq!(
        last_value(&body, "LD_LIBRARY_PATH"),
        Some("/usr/local/nvidia/lib64:/opt/lib")
    );
    assert_eq!(last_value(&body, "NVIDIA_VISIBLE_DEVICES"), Some("void"));
    image.config.environment.clear();
    assert_eq!(
        last_value(&body_of(Way::Nodes, &image), "LD_LIBRARY_PATH"),
        Some("/usr/local/nvidia/lib64")
    );
}

#[test]
fn each_predicate_holds_on_each_way() {
    for way in [Way::Cdi, Way::Request, Way::Nodes] {
        assert_eq!(
            broken(&body_of(way, &image())),
            Vec::<&str>::new(),
            "{way:?}"
        );
    }
}
