//! What Helm makes of the chart: refusals that name the key, and the names that ingress-nginx's objects have.

use crate::helm::{chart, helm, object, render, render_file, values_files};
use crate::root;
use serde_json::Value;

fn refusal(setting: &str) -> String {
    match render(&["--set-json", setting]) {
        Ok(_) => panic!("{setting} is taken"),
        Err(said) => said,
    }
}

#[test]
fn a_key_that_is_not_known_fails_with_its_name_and_place() {
    for (setting, name, place) in [
        ("contoller={}", "contoller", "at '':"),
        ("controller.replicas=3", "replicas", "at '/controller':"),
        (
            "controller.service.internal.anotations={}",
            "anotations",
            "at '/controller/service/internal':",
        ),
        (
            "controller.admissionWebhooks.patch.img={}",
            "img",
            "at '/controller/admissionWebhooks/patch':",
        ),
        ("defaultBackend.images={}", "images", "at '/defaultBackend':"),
    ] {
        let said = refusal(setting);
        assert!(said.contains(&format!("'{name}' not allowed")) && said.contains(place), "{said}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_fails_with_its_place() {
    for (setting, place) in [
        ("controller.tolerations={}", "at '/controller/tolerations'"),
        ("controller.hostNetwork=\"yes\"", "at '/controller/hostNetwork'"),
        ("controller.kind=\"StatefulSet\"", "at '/controller/kind'"),
        ("controller.replicaCount=\"three\"", "at '/controller/replicaCount'"),
        ("controller.replicaCount=\"50%\"", "at '/controller/replicaCount'"),
        ("controller.service.type=\"LoadBalncer\"", "at '/controller/service/type'"),
        (
            "controller.service.externalTrafficPolicy=\"Lokal\"",
            "at '/controller/service/externalTrafficPolicy'",
        ),
        (
            "controller.admissionWebhooks.failurePolicy=\"Fial\"",
            "at '/controller/admissionWebhooks/failurePolicy'",
        ),
        ("controller.image.pullPolicy=\"Somtimes\"", "at '/controller/image/pullPolicy'"),
    ] {
        let said = refusal(setting);
        assert!(said.contains(place), "{said}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_the_key_and_a_way_out() {
    for (setting, key, remedy) in [
        (
            r#"controller.customTemplate.configMapName="t""#,
            "controller.customTemplate",
            "controller.config",
        ),
        (
            r#"controller.extraModules=[{"name": "brotli"}]"#,
            "controller.extraModules",
            "Leave it out",
        ),
        (
            r#"controller={"engine": "nginx", "extraModules": [{"name": "brotli"}]}"#,
            "controller.extraModules",
            "docs/nginx-modules.md",
        ),
        (
            r#"controller={"containerPort": {"tohttps": 2443}, "service": {"targetPorts": {"http": "tohttps"}}}"#,
            "controller.service.targetPorts.http is tohttps",
            "controller.config.http-snippet",
        ),
        (
            r#"controller={"engine": "nginx", "containerPort": {"tohttps": 2443}, "service": {"targetPorts": {"http": "tohttps"}}, "config": {"http-snippet": "server { listen 12443; listen 24430; }"}}"#,
            "controller.service.targetPorts.http is tohttps",
            "controller.config.http-snippet",
        ),
        (
            "controller.service.internal.targetPorts.https=9443",
            "controller.service.internal.targetPorts.https is 9443",
            "http or https",
        ),
        (
            r#"global.systemDefaultIngressClass="ingress-nginx""#,
            "global.systemDefaultIngressClass",
            "controller.watchIngressWithoutClass",
        ),
        ("rbac.scope=true", "rbac.scope", "controller.scope.enabled"),
        (
            r#"controller.config={"enable-modsecurity": "true"}"#,
            "controller.config.enable-modsecurity",
            "controller.engine to nginx",
        ),
        (
            r#"controller={"keda": {"enabled": true}, "autoscaling": {"enabled": true}}"#,
            "controller.keda.enabled",
            "switch one of them off",
        ),
    ] {
        let said = refusal(setting);
        assert!(said.contains(key) && said.contains(remedy), "{setting}: {said}");
    }
}

#[test]
fn what_is_of_another_image_is_refused_with_the_key_and_a_way_out() {
    for (setting, key, remedy) in [
        (
            r#"controller.image.image="ingress-nginx/controller""#,
            "controller.image",
            "--reset-then-reuse-values",
        ),
        (
            r#"controller.image.repository="r.test/m/ingress-nginx/controller""#,
            "controller.image",
            "leave out",
        ),
        (
            r#"controller.image={"repository": "rancher/nginx-ingress-controller", "tag": "v1.14.5-hardened1"}"#,
            "controller.image",
            "leave out",
        ),
        (
            r#"controller.image={"repository": "r.test/mirror/ingress-nginx-controller", "tag": "v1.15.1"}"#,
            "controller.image",
            "leave out",
        ),
        (
            r#"controller.image.image="ingress-nginx/controller-chroot""#,
            "controller.image",
            "leave out",
        ),
        (
            r#"controller.image={"repository": "r.test/platform/edge", "tag": "v1.15.1"}"#,
            "controller.image.tag is v1.15.1",
            "leave it out",
        ),
        (
            r#"controller.image.digest="sha256:594ceea76b01c592858f803f9ff4d2cb40542cae2060410b2c95f75907d659e1""#,
            "controller.image.digest",
            "leave it out",
        ),
        (
            r#"controller.lifecycle={"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 30"]}}}"#,
            "controller.lifecycle.preStop runs /bin/sh",
            "controller.shutdownGracePeriod",
        ),
        (
            r#"controller.readinessProbe={"exec": {"command": ["curl", "127.0.0.1"]}}"#,
            "controller.readinessProbe runs curl",
            "Leave it out",
        ),
        (r#"controller.image.tag="v1.12.1""#, "controller.image.tag is v1.12.1", "leave it out"),
    ] {
        let said = refusal(setting);
        assert!(said.contains(key) && said.contains(remedy), "{setting}: {said}");
    }
}

#[test]
fn a_port_that_the_service_or_the_controller_has_is_refused_for_tcp() {
    for (setting, taken) in [
        (r#"tcp={"80": "web/shop:80"}"#, "tcp.80 is also controller.service.ports.http"),
        (
            r#"controller={"containerPort": {"http": 8080}},tcp={"8080": "web/shop:80"}"#,
            "tcp.8080 is also controller.containerPort.http",
        ),
        (
            r#"controller={"service": {"internal": {"enabled": true, "annotations": {"a": "b"}, "ports": {"http": 81}}}},tcp={"81": "web/shop:80"}"#,
            "tcp.81 is also controller.service.internal.ports.http",
        ),
    ] {
        let said = refusal(setting);
        assert!(said.contains(taken) && said.contains("take another one"), "{setting}: {said}");
    }
    let none = r#"controller={"service": {"enabled": false, "ports": {"http": 81}}},tcp={"81": "web/shop:80"}"#;
    assert!(render(&["--set-json", none]).is_ok(), "no Service has the port");
}

#[test]
fn a_chart_that_depends_on_this_one_may_say_whether_it_is_wanted_and_share_globals() {
    let rendered =
        render(&["--set", "enabled=true,global.region=north,global.image.registry=r.test"]);
    let objects = rendered.expect("both belong to other charts");
    let deployment = object(&objects, "Deployment", "ingress-nginx-controller");
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, &format!("r.test/fairway:{}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_network_policy_lets_probes_in_with_and_without_metrics() {
    for metrics in [false, true] {
        let settings =
            format!("controller.networkPolicy.enabled=true,controller.metrics.enabled={metrics}");
        let objects = render(&["--set", &settings]).expect("good values");
        let policy = object(&objects, "NetworkPolicy", "ingress-nginx-controller");
        let ports = policy["spec"]["ingress"][0]["ports"].as_array().expect("a list");
        let probes = ports.iter().filter(|port| port["port"] == 10254);
        assert_eq!(probes.count(), 1, "{ports:?}");
    }
}

#[test]
fn ports_that_something_listens_on_and_keys_of_other_charts_are_taken() {
    for setting in [
        "controller.service.targetPorts.https=\"http\"",
        "controller.service.targetPorts.http=80",
        "controller.replicaCount=\"3\"",
        "controller.minAvailable=\"50%\"",
        "controller.service.externalTrafficPolicy=null",
        "controller.image.primeTag=\"v1\"",
        "controller.image={\"repository\": \"r.test/ingress-nginx/fairway\", \"tag\": \"0.1.0\"}",
        "controller.lifecycle={\"preStop\": {\"exec\": {\"command\": [\"/wait-shutdown\"]}}}",
        "controller.lifecycle={\"preStop\": {\"exec\": null, \"sleep\": {\"seconds\": 30}}}",
        "controller={\"engine\": \"nginx\", \"lifecycle\": {\"preStop\": {\"exec\": {\"command\": [\"sh\"]}}}}",
        "controller={\"image\": {\"image\": \"own\"}, \"lifecycle\": {\"preStop\": {\"exec\": {\"command\": [\"sh\"]}}}}",
        "controller.admissionWebhooks.service.ipFamilyPolicy=\"SingleStack\"",
        "controller.service.omitClusterIP=true",
        "controller.useIngressClassOnly=true",
        r#"global={"systemDefaultRegistry": "r.test", "prime": {"enabled": true}}"#,
    ] {
        assert!(render(&["--set-json", setting]).is_ok(), "{setting} is refused");
    }
}

/// An upgrade in place keeps what clients, load balancers and immutable fields hang on.
#[test]
fn names_and_selectors_are_those_of_ingress_nginx() {
    let objects = render(&[]).expect("defaults are good");
    for (kind, name) in [
        ("Deployment", "ingress-nginx-controller"),
        ("Service", "ingress-nginx-controller"),
        ("Service", "ingress-nginx-controller-admission"),
        ("ConfigMap", "ingress-nginx-controller"),
        ("ServiceAccount", "ingress-nginx"),
        ("IngressClass", "nginx"),
        ("ValidatingWebhookConfiguration", "ingress-nginx-admission"),
    ] {
        object(&objects, kind, name);
    }
    let selector = serde_json::json!({
        "app.kubernetes.io/name": "ingress-nginx",
        "app.kubernetes.io/instance": "ingress-nginx",
        "app.kubernetes.io/component": "controller",
    });
    let deployment = object(&objects, "Deployment", "ingress-nginx-controller");
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], selector);
    assert_eq!(
        object(&objects, "Service", "ingress-nginx-controller")["spec"]["selector"],
        selector
    );
}

#[test]
fn every_selector_meets_the_pods_of_its_workload() {
    for file in values_files() {
        let objects = render_file(&file);
        let pods: Vec<&Value> = objects
            .iter()
            .map(|object| &object["spec"]["template"]["metadata"]["labels"])
            .collect();
        for service in objects.iter().filter(|object| object["kind"] == "Service") {
            let selector = service["spec"]["selector"].as_object().expect("a selector");
            let meets =
                |pod: &&&Value| selector.iter().all(|(name, value)| &pod[name.as_str()] == value);
            assert!(
                pods.iter().any(|pod| meets(&pod)),
                "{file}: {} selects nothing",
                service["metadata"]["name"]
            );
        }
    }
}

/// The flags of the controller that is called `name`.
fn flags<'a>(objects: &'a [Value], name: &str) -> Vec<&'a str> {
    let container =
        &object(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"][0];
    container["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn values_become_flags_and_extra_args_go_before_them() {
    let everything = render_file("tests/deploy/values/everything.yaml");
    let flags = flags(&everything, "ingress-nginx-controller");
    for flag in [
        "--http-port=8080",
        "--https-port=8443",
        "--configmap=$(POD_NAMESPACE)/ingress-nginx-controller",
        "--tcp-services-configmap=$(POD_NAMESPACE)/ingress-nginx-tcp",
        "--validating-webhook=:9443",
        "--enable-annotation-validation=false",
        "--election-id=edge-leader",
        "--election-ttl=45s",
        "--update-status=false",
    ] {
        assert_eq!(flags.iter().filter(|given| **given == flag).count(), 1, "{flag} in {flags:?}");
    }
    let names = flags.iter().map(|flag| flag.split('=').next());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "none comes twice: {flags:?}");
    let roles = everything.iter().filter(|object| object["kind"] == "ClusterRole");
    let text = roles.map(Value::to_string).collect::<String>();
    assert!(
        text.contains("\"ingresses\"") && !text.contains("ingresses/status"),
        "nobody writes it"
    );
}

#[test]
fn the_nginx_engine_has_its_image_its_flag_and_a_folder_that_can_be_written() {
    let plain = render(&[]).expect("the defaults");
    let settings = ["controller.engine=nginx", "controller.extraArgs.engine=nginx"];
    for setting in settings {
        let objects = render(&["--set", setting]).expect("the engine can be chosen");
        let pod = |objects: &[Value]| {
            let workload = object(objects, "Deployment", "ingress-nginx-controller");
            workload["spec"]["template"]["spec"].clone()
        };
        let (pod, plain) = (pod(&objects), pod(&plain));
        assert_eq!(plain["volumes"], pod["volumes"], "both engines need one");
        let container = &pod["containers"][0];
        let own = plain["containers"][0]["image"].as_str().expect("an image");
        assert_eq!(container["image"], format!("{own}-nginx"), "{setting}");
        let flags = container["args"].as_array().expect("arguments");
        assert_eq!(flags.iter().filter(|flag| **flag == "--engine=nginx").count(), 1, "{setting}");
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        let mount = mounts.iter().find(|mount| mount["mountPath"] == "/tmp").expect("/tmp");
        let volumes = pod["volumes"].as_array().expect("volumes");
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("it is");
        assert!(volume["emptyDir"].is_object(), "{volume}");
    }
    let mistaken = refusal(r#"controller.engine="envoy""#);
    assert!(mistaken.contains("at '/controller/engine'"), "{mistaken}");
}

#[test]
fn a_namespace_that_yaml_takes_for_a_number_stays_a_text() {
    let objects = render(&["--set-string", "namespaceOverride=123"]).expect("objects");
    let namespaces = objects.iter().map(|object| &object["metadata"]["namespace"]);
    let here: Vec<_> = namespaces.filter(|namespace| !namespace.is_null()).collect();
    assert!(here.len() > 3 && here.iter().all(|namespace| **namespace == "123"), "{here:?}");
    let webhook = object(&objects, "ValidatingWebhookConfiguration", "ingress-nginx-admission");
    for webhook in webhook["webhooks"].as_array().expect("webhooks") {
        assert_eq!(webhook["clientConfig"]["service"]["namespace"], "123");
    }
}

#[test]
fn helm_has_nothing_against_the_chart_whatever_the_values() {
    let chart = chart();
    let chart = chart.to_str().expect("a path that is text");
    for file in values_files() {
        let values = root().join(&file);
        let values = values.to_str().expect("a path that is text");
        let output = helm(&["lint", "--strict", chart, "--values", values]).output();
        let output = output.expect("Helm starts");
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn who_watches_one_namespace_reviews_nothing_of_others() {
    let selectors_at = |version: &str, options: &[&str]| {
        let options = [options, &["--kube-version", version]].concat();
        let objects = render(&options).expect("it renders");
        let webhook = object(&objects, "ValidatingWebhookConfiguration", "ingress-nginx-admission");
        let all = webhook["webhooks"].as_array().expect("a list").iter();
        all.map(|webhook| webhook["namespaceSelector"].clone()).collect::<Vec<_>>()
    };
    let selectors = |options: &[&str]| selectors_at("1.21.0", options);
    assert!(selectors(&[]).iter().all(Value::is_null));
    let scope = "controller.scope.enabled=true,controller.scope.namespace=apps";
    let apps = serde_json::json!({"matchLabels": {"kubernetes.io/metadata.name": "apps"}});
    assert!(selectors(&["--set", scope]).iter().all(|selector| *selector == apps));
    // Namespaces have no label with their name there.
    let old = selectors_at("1.20.15", &["--set", scope]);
    assert!(old.iter().all(Value::is_null));
    let own = format!("{scope},controller.admissionWebhooks.namespaceSelector.matchLabels.a=b");
    let b = serde_json::json!({"matchLabels": {"a": "b"}});
    assert!(selectors(&["--set", &own]).iter().all(|selector| *selector == b));
}
