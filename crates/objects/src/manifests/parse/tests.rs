//! Documents, lists, places of mistakes, and what is left alone.

use super::*;
use crate::manifests::{FileId, Files};

fn yaml(text: &str) -> Parsed {
    parse(Path::new("a.yaml"), text)
}

fn names(parsed: &Parsed) -> Vec<String> {
    parsed.objects.iter().map(|(_, object)| object.kind().label(object.key())).collect()
}

fn faults(parsed: &Parsed) -> Vec<(usize, usize, &str)> {
    let faults = parsed.faults.iter();
    faults.map(|f| (f.place.line, f.place.column, f.message.as_str())).collect()
}

#[test]
fn documents_are_read_one_by_one_and_know_their_line() {
    let parsed = yaml(
        "# a comment\n---\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n\
         data:\n  pem: |\n    -----BEGIN-----\n    --- no separator\n--- # another\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {name: b, namespace: ignored}\n...\n---\n",
    );
    assert_eq!(faults(&parsed), []);
    assert_eq!(names(&parsed), ["ConfigMap default/a", "Namespace b"]);
    assert_eq!(parsed.objects[0].0, Place { line: 4, column: 1 });
    assert_eq!(parsed.objects[1].0, Place { line: 12, column: 1 });
    let Object::ConfigMap(map) = &parsed.objects[0].1 else { panic!("{parsed:?}") };
    assert_eq!(map.data["pem"], "-----BEGIN-----\n--- no separator\n");
}

#[test]
fn a_document_that_is_no_yaml_costs_only_itself() {
    let parsed = yaml(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: [Ingress\nmetadata:\n\
         ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
    );
    assert_eq!(names(&parsed), ["ConfigMap default/a", "ConfigMap default/b"]);
    assert_eq!(parsed.faults.len(), 1);
    assert_eq!(parsed.faults[0].object, None);
    assert!((5..=6).contains(&parsed.faults[0].place.line), "{:?}", parsed.faults[0]);
}

#[test]
fn a_wildcard_without_quotes_and_a_tab_are_told_with_what_to_write() {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n";
    for (line, remedy) in [
        (
            "  host: *.shop.example\n",
            "; text that begins with * needs quotes, as in \"*.shop.example\"",
        ),
        ("\thost: x\n", "; write spaces instead of the tab"),
    ] {
        let parsed = yaml(&format!("{head}{line}"));
        let [(5, _, message)] = faults(&parsed)[..] else { panic!("{:?}", parsed.faults) };
        assert!(message.ends_with(remedy), "{message}");
    }
}

#[test]
fn a_field_of_the_wrong_type_is_reported_where_it_is_with_its_object() {
    let parsed = yaml(
        "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n\
         \x20 - port: eighty\n",
    );
    assert_eq!(names(&parsed), [""; 0]);
    let fault = &parsed.faults[0];
    assert_eq!(fault.object, Some((Kind::Service, ObjectKey::new("default", "web"))));
    assert_eq!(fault.place, Place { line: 8, column: 11 });
}

#[test]
fn text_that_is_not_quoted_is_refused_as_the_api_server_does() {
    let parsed = yaml(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  annotations:\n\
         \x20   nginx.ingress.kubernetes.io/ssl-redirect: false\n",
    );
    assert_eq!(names(&parsed), [""; 0]);
    assert_eq!(parsed.faults[0].place.line, 6, "{parsed:?}");
}

#[test]
fn items_of_lists_are_objects_of_their_own() {
    let parsed = yaml(
        "apiVersion: v1\nkind: List\nitems:\n\
         - apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n\
         - apiVersion: v1\n  kind: Service\n  metadata: {name: b}\n  spec: {ports: 7}\n\
         - apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: c}\n\
         ---\napiVersion: networking.k8s.io/v1\nkind: IngressList\nitems:\n\
         - metadata: {name: web, namespace: shop}\n",
    );
    assert_eq!(names(&parsed), ["ConfigMap default/a", "Ingress shop/web"]);
    assert_eq!(parsed.faults.len(), 1);
    assert_eq!(parsed.faults[0].place, Place { line: 7, column: 3 });
    assert_eq!(parsed.faults[0].object, Some((Kind::Service, ObjectKey::new("default", "b"))));
}

#[test]
fn a_template_is_called_one() {
    let parsed = yaml("apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.name }}\n");
    let [fault] = parsed.faults.as_slice() else { panic!("{parsed:?}") };
    assert!(fault.place.line == 4 && fault.message.contains("helm template"), "{fault:?}");
}

#[test]
fn json_may_hold_several_documents_and_its_mistakes_have_places() {
    let text = "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}\n\
                {\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"b\"},\n \
                \"spec\": {\"ports\": 7}}\n  {\"kind\": }";
    let parsed = parse(Path::new("a.json"), text);
    assert_eq!(names(&parsed), ["ConfigMap default/a"]);
    let places: Vec<_> = parsed.faults.iter().map(|f| (f.place.line, f.object.is_some())).collect();
    assert_eq!(places, [(3, true), (4, false)]);
    assert_eq!(parsed.faults[1].place.column, 12);
}

#[test]
fn what_is_no_manifest_is_left_alone_and_an_old_version_is_not() {
    let parsed = yaml(
        "replicas: 3\n---\n- a\n- b\n---\napiVersion: serving.knative.dev/v1\nkind: Service\n\
         metadata: {name: a}\n---\napiVersion: extensions/v1beta1\nkind: Ingress\n\
         metadata: {name: a}\n---\napiVersion: v1\nmetadata: {name: a}\n",
    );
    assert_eq!(names(&parsed), [""; 0]);
    assert_eq!(
        faults(&parsed),
        [
            (
                10,
                1,
                "Ingress of apiVersion `extensions/v1beta1` is not read; \
                 write apiVersion: networking.k8s.io/v1, and what it asks for: backend.service.name, \
                 backend.service.port.number and a pathType (`kubectl convert` writes all of it)"
            ),
            (14, 1, "kind is missing; name the kind of the object"),
        ]
    );
}

#[test]
fn what_was_meant_as_an_object_and_is_none_is_told() {
    let parsed = yaml(
        "apiVersion: v1\nkind: List\nitems:\n- 17\n- apiVersion: v1\n  kind: Pod\n\
         ---\napiVersion: networking.k8s.io/v1\nkind: ingress\n---\napiVersion: networking.k8s.io/v1\n\
         kind: Ingres\n---\njust words\n---\nkind: Ingress\n---\napiVersion: example.com/v1\nkind: ingress\n\
         ---\napiVersion: gateway.networking.k8s.io/v1\nkind: XMesh\n---\napiVersion: v1\nkind: Pod\n",
    );
    assert_eq!(names(&parsed), [""; 0]);
    let faults = faults(&parsed);
    let told: Vec<_> = faults.iter().map(|(line, _, message)| (*line, *message)).collect();
    assert_eq!(
        told[..5],
        [
            (4, "an item is no object; write apiVersion, kind and metadata"),
            (8, "there is no kind ingress; did you mean Ingress?"),
            (11, "there is no kind Ingres; did you mean Ingress?"),
            (14, "is no object; write apiVersion, kind and metadata"),
            (16, "Ingress has no apiVersion; write apiVersion: networking.k8s.io/v1"),
        ]
    );
    let (line, message) = told[5];
    assert!(line == 21 && message.starts_with("XMesh of the Gateway API is not"), "{message}");
    assert!(message.contains("HTTPRoute"), "{message}");
    assert_eq!(told.len(), 6, "{told:?}");
}

#[test]
fn an_endpoint_slice_may_point_at_loopback() {
    let parsed = yaml(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: web\n  labels:\n\
         \x20   kubernetes.io/service-name: web\naddressType: IPv4\nports:\n- port: 8080\n\
         endpoints:\n- addresses: [127.0.0.1]\n",
    );
    let Object::EndpointSlice(slice) = &parsed.objects[0].1 else { panic!("{parsed:?}") };
    assert_eq!(&*slice.endpoints[0].addresses[0], "127.0.0.1");
    assert_eq!(
        slice.ports,
        [crate::SlicePort { name: None, port: Some(8080), protocol: "TCP".into() }]
    );
}

#[test]
fn aliases_that_unfold_without_end_are_refused() {
    let mut text = "a0: &a0 [x, x]\n".to_owned();
    for level in 1..40 {
        let below = level - 1;
        text.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}]\n"));
    }
    assert_eq!(yaml(&text).faults.len(), 1);
}

#[test]
fn what_is_more_than_the_reader_takes_is_told_with_the_remedy() {
    let list =
        |count: usize, item: &dyn Fn(usize) -> String| -> String { (0..count).map(item).collect() };
    let anchors = list(60_000, &|number| format!("a{number}: &a{number} x\n"));
    let merged =
        format!("a: &a {{b: c}}\n{}", list(12_000, &|number| format!("k{number}: {{<<: *a}}\n")));
    let levels: String = (1..40)
        .map(|level| format!("a{level}: &a{level} [*a{below}, *a{below}]\n", below = level - 1))
        .collect();
    for text in [anchors, merged, format!("a0: &a0 [x, x]\n{levels}")] {
        let parsed = yaml(&text);
        let [(_, _, message)] = faults(&parsed)[..] else { panic!("{:?}", parsed.faults) };
        assert!(message.contains("give JSON, which has none"), "{message}");
    }
    let block: String = (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let flow = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
    for text in [block, flow.clone(), format!("a: {}", "[".repeat(300))] {
        let parsed = yaml(&text);
        let [(_, _, message)] = faults(&parsed)[..] else { panic!("{:?}", parsed.faults) };
        assert!(message.contains("nested more deeply"), "{message}");
    }
    let json = |text: &str| parse(Path::new("a.json"), text);
    for (text, words) in [
        (&*format!("{{\"a\": {}", "[".repeat(300)), "nested more deeply"),
        ("{\"kind\": \"Service\",", "the file ends in the middle"),
        ("kind: Service", "ends with .yaml"),
    ] {
        let parsed = json(text);
        let [(1, _, message)] = faults(&parsed)[..] else { panic!("{:?}", parsed.faults) };
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn texts_and_comments_of_a_document_may_be_as_long_as_its_file() {
    // Secrets of Helm, one for each release of each application, are beyond 64 MiB in ordinary clusters.
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  release: |\n    ";
    let text = format!("{head}{}\n", "x".repeat(65 << 20));
    assert_eq!(names(&yaml(&text)), ["ConfigMap default/a"]);
    let comments = "  # another line\n".repeat(100);
    let item = "  apiVersion: v1\n  kind: Namespace\n  metadata: {name: a}\n";
    let parsed = yaml(&format!("apiVersion: v1\nkind: List\nitems:\n-\n{comments}{item}"));
    assert_eq!((faults(&parsed), names(&parsed)), (vec![], vec!["Namespace a".to_owned()]));
}

#[test]
fn lines_of_a_quoted_text_may_begin_where_its_key_does() {
    let text = "kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata:\n  name: a\n  annotations:\n    \
                one: 'first\n    second\n\n    it''s'\n    two: \"x\\\n    y\n  z\"\n    three: plain\n";
    let parsed = yaml(text);
    assert_eq!(faults(&parsed), []);
    let [(_, Object::Ingress(ingress))] = parsed.objects.as_slice() else { panic!("an Ingress") };
    let said = |name: &str| ingress.meta.annotations[name].as_str();
    assert_eq!([said("one"), said("two"), said("three")], ["first second\nit's", "xy z", "plain"]);
    let open = yaml("kind: Secret\napiVersion: v1\nmetadata:\n  name: 'a\n  b\nspec: {}\n");
    assert_eq!(open.faults.len(), 1);
}

#[test]
fn hosts_and_paths_that_no_api_server_takes_are_told() {
    let told = |host: &str, path: &str| {
        let text = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: a, namespace: b}}\nspec: {{rules: [{{host: \
             '{host}', http: {{paths: [{{path: '{path}', pathType: Prefix, backend: {{service: {{name: c, port: {{number: \
             80}}}}}}}}]}}}}]}}\n"
        );
        let parsed = parse(Path::new("in.yaml"), &text);
        assert_eq!(parsed.objects.len(), 1, "it counts");
        parsed.faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>()
    };
    for host in ["", "a.test", "*.a.test", "Shop.test", "10.example"] {
        assert_eq!(told(host, "/"), Vec::<String>::new(), "{host}");
    }
    for host in ["*", "x_y.io", "x.io:8080", "a.*.test", "x..io"] {
        let told = told(host, "/");
        let wanted = format!(
            "spec.rules[0].host is {host:?}, which no API server takes: write a name alone"
        );
        assert!(matches!(told.as_slice(), [one] if one.contains(&wanted)), "{told:?}");
    }
    let address = told("10.0.0.1", "/");
    assert!(address[0].contains("\"10.0.0.1\", which no API server takes"), "{address:?}");
    assert!(told("${HOST}", "/")[0].contains("(envsubst)"));
    for path in ["/a//b", "/a/./b", "/a/../b", "/a%2Fb", "/a%2fb", "/a/..", "/a/."] {
        let told = told("a.test", path);
        let wanted =
            format!("paths[0].path is {path:?}, which no API server takes: write it without");
        assert!(matches!(told.as_slice(), [one] if one.contains(&wanted)), "{told:?}");
    }
    for path in ["/a.b", "/..a", "/a%20b", "/.well-known/x"] {
        assert_eq!(told("a.test", path), Vec::<String>::new(), "{path}");
    }
    let expression = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec: {rules: [{http: {paths: \
                      [{path: '/a//b', pathType: ImplementationSpecific, backend: {service: {name: c, port: {number: \
                      80}}}}]}}]}\n";
    assert_eq!(faults(&yaml(expression)), [], "expressions may be anything");
    let told = told("a.test", "foo");
    let wanted = "spec.rules[0].http.paths[0].path is \"foo\", which no API server takes: a path starts with /";
    assert!(told[0].contains(wanted), "{told:?}");
}

#[test]
fn fields_that_do_not_exist_and_paths_without_a_type_are_told_and_the_object_counts() {
    let text = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: b, annotation: {c: d}}\n\
                spec:\n  rules:\n  - hosts: e.test\n    http:\n      paths:\n      - {path: /, pathType: prefix, backend: \
                {serviceName: f, servicePort: 80}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: g}\n\
                DATA: {h: i}\n";
    let parsed = parse(Path::new("in.yaml"), text);
    assert_eq!(parsed.objects.len(), 2);
    let told: Vec<&str> = parsed.faults.iter().map(|fault| fault.message.as_str()).collect();
    let wanted = [
        "spec.rules[0].http.paths[0].pathType is \"prefix\", which no API server takes",
        "metadata.annotation is no field of Ingress and was not read: did you mean annotations?",
        "spec.rules[0].hosts is no field of Ingress and was not read: did you mean host?",
        "backend.serviceName is no field of Ingress and was not read: it is one of v1beta1",
        "backend.servicePort is no field",
        "DATA is no field of ConfigMap and was not read: did you mean data?",
    ];
    assert_eq!(told.len(), wanted.len(), "{told:?}");
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.contains(wanted), "{told}");
    }
}

#[test]
fn what_has_the_wrong_type_is_named_by_its_field() {
    let text =
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: '80'}]}\n";
    let parsed = parse(Path::new("in.yaml"), text);
    let wanted = "spec.ports[0].port is \"80\", and has to be a number: take the quotes away";
    assert_eq!(parsed.faults[0].message, wanted);
}

#[test]
fn every_value_that_is_no_text_is_told_in_its_line() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  use-gzip: \"true\"\n  size: 8\n  \
                hsts: false\n";
    let parsed = yaml(text);
    assert_eq!(
        faults(&parsed),
        [
            (7, 9, "data.hsts is no text: put it in quotes, \"false\""),
            (6, 9, "data.size is no text: put it in quotes, \"8\""),
        ]
    );
    assert!(parsed.faults.iter().all(|fault| fault.object.is_some()));
}

#[test]
fn an_array_of_objects_is_a_list_and_any_other_one_is_left_alone() {
    let objects = "[{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}},\n \
                   {\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"b\"}, \"spec\": {\"ports\": 7}}]";
    for path in ["a.json", "a.yaml"] {
        let parsed = parse(Path::new(path), objects);
        assert_eq!(names(&parsed), ["ConfigMap default/a"], "{path}");
        assert_eq!(faults(&parsed), [(2, 2, "spec.ports is 7, and has to be a list")], "{path}");
    }
    let patch = parse(Path::new("a.json"), "[{\"op\": \"remove\", \"path\": \"/spec\"}]");
    assert!(patch.objects.is_empty() && patch.faults.is_empty(), "{patch:?}");
}

#[test]
fn what_has_a_name_and_a_content_and_no_head_is_told() {
    let parsed =
        yaml("metadata: {name: a}\nspec: {rules: []}\n---\nmetadata: {name: chart}\nreplicas: 3\n");
    let [(1, _, message)] = faults(&parsed)[..] else { panic!("{parsed:?}") };
    assert!(message.starts_with("has neither apiVersion nor kind"), "{message}");
}

#[test]
fn fields_of_the_gateway_api_that_do_not_exist_are_told_and_those_that_nobody_reads_are_not() {
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec:\n  parentRefs: \
                 [{name: g}]\n  rules:\n  - name: one\n    match: [{path: {value: /x}}]\n    backendRef: [{name: s}]\n    \
                 filters: [{type: ExtensionRef, extensionRef: {group: g, kind: k, name: n}}]\nstatus: {parents: \
                 [{parentRef: {name: g}, controllerName: c, conditions: []}]}\n";
    let gateway = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec:\n  \
                   gatewayClassName: c\n  listeners: [{name: h, port: 80, protocol: HTTPS, tls: {options: {a: b}}}]\n\
                   status: {conditions: [], listeners: []}\n";
    let parsed = yaml(&format!("{route}{gateway}"));
    assert_eq!(parsed.objects.len(), 2, "{parsed:?}");
    let told: Vec<&str> = parsed.faults.iter().map(|fault| fault.message.as_str()).collect();
    let wanted = [
        "spec.rules[0].backendRef is no field of HTTPRoute and was not read: did you mean backendRefs?",
        "spec.rules[0].match is no field of HTTPRoute and was not read: did you mean matches?",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn experimental_kinds_are_told_with_what_they_became_and_hide_nothing() {
    const GROUP: &str = "gateway.networking.x-k8s.io/v1alpha1";
    let of = |kind: &str| {
        let parsed = yaml(&format!("apiVersion: {GROUP}\nkind: {kind}\nmetadata: {{name: a}}\n"));
        assert!(parsed.objects.is_empty() && parsed.faults.is_empty(), "{kind}");
        parsed.passed.into_iter().map(|fault| fault.message).collect::<Vec<_>>()
    };
    for (kind, remedy) in [
        ("XListenerSet", "write ListenerSet of apiVersion gateway.networking.k8s.io/v1"),
        (
            "XBackendTrafficPolicy",
            "sessionPersistence and retry of the rules of an HTTPRoute say a part of it",
        ),
        ("XMesh", "Fairway is no mesh: leave it to whoever is one"),
        ("XTCPRoute", "write TCPRoute of apiVersion gateway.networking.k8s.io/v1"),
        ("XNew", "there is no standard kind for it"),
    ] {
        let whole =
            format!("{kind} of apiVersion `{GROUP}` is experimental and not read; {remedy}");
        assert_eq!(of(kind), [whole]);
    }
    let parsed = yaml(&format!("apiVersion: {GROUP}\nkind: HTTPRoute\nmetadata: {{name: a}}\n"));
    let whole = "HTTPRoute of apiVersion `gateway.networking.x-k8s.io/v1alpha1` is not read; \
                 write apiVersion: gateway.networking.k8s.io/v1";
    assert_eq!(faults(&parsed), [(1, 1, whole)]);
    // An object that the file has no longer is gone, though something of the file is not read.
    let file = FileId { root: 0, path: "a.yaml".into() };
    let (map, x) = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n",
        format!("---\napiVersion: {GROUP}\nkind: XMesh\n"),
    );
    let mut files = Files::default();
    for (text, maps) in [(map.to_owned() + &x, 1), (x, 0)] {
        files.set(&file, yaml(&text));
        let snapshot = files.store().snapshot();
        assert_eq!((snapshot.config_maps.len(), snapshot.malformed.len()), (maps, 1));
    }
}

#[test]
fn words_of_listeners_that_are_none_are_told_with_what_counts() {
    let parsed = yaml(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec:\n  \
         allowedListeners: {namespaces: {from: all}}\n  listeners:\n  \
         - {name: a, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Every}}}\n  \
         - {name: b, port: 443, protocol: TLS, tls: {mode: passthrough}, allowedRoutes: {namespaces: {from: All}}}\n",
    );
    assert_eq!(names(&parsed), ["Gateway default/g"]);
    let told: Vec<_> = faults(&parsed).into_iter().map(|(.., message)| message).collect();
    assert_eq!(
        told,
        [
            "spec.allowedListeners.namespaces.from is \"all\", which no API server takes: write All, Same, Selector, None; \
             as it is, None counts",
            "spec.listeners[0].allowedRoutes.namespaces.from is \"Every\", which no API server takes: write All, Same, \
             Selector, None; as it is, None counts",
            "spec.listeners[1].tls.mode is \"passthrough\", which no API server takes: write Terminate, Passthrough; as it \
             is, Terminate counts",
        ]
    );
}

#[test]
fn names_that_no_api_server_takes_are_told_and_the_object_counts() {
    let of = |kind: &str, metadata: &str| {
        let version = Kind::named(kind).expect("a kind").api_version();
        let parsed =
            yaml(&format!("{{apiVersion: {version}, kind: {kind}, metadata: {metadata}}}"));
        assert_eq!(parsed.objects.len(), 1, "{parsed:?}");
        faults(&parsed).into_iter().map(|(_, _, said)| said.to_owned()).collect::<Vec<_>>()
    };
    let template = "is this a template? Render it first (helm template)";
    for (kind, metadata, words) in [
        ("Ingress", "{name: 'web-{{ .Release.Name }}'}", template),
        ("Ingress", "{name: web, namespace: '{{ .Release.Namespace }}'}", template),
        ("Ingress", "{name: 'web-${STAGE}'}", "envsubst"),
        ("Ingress", "{name: web, namespace: Demo_X}", "digits and -, 63 at most"),
        ("Ingress", "{name: web_1}", "metadata.name is \"web_1\", which no API server takes"),
        ("Ingress", "{name: a..b}", "digits, - and ., 253 at most"),
        ("Secret", "{name: web, namespace: a.b}", "metadata.namespace is \"a.b\""),
        ("Namespace", "{name: a.b}", "metadata.name is \"a.b\""),
        ("Service", "{name: a.b}", "metadata.name is \"a.b\""),
        ("HTTPRoute", "{name: -a}", "metadata.name is \"-a\""),
    ] {
        let said = of(kind, metadata);
        assert!(said.len() == 1 && said[0].contains(words), "{kind} {metadata}: {said:?}");
    }
    for (kind, metadata) in [
        ("Ingress", "{name: web.shop-1.example, namespace: 1-shop}"),
        ("IngressClass", "{name: nginx.internal, namespace: Is_Ignored}"),
        ("ConfigMap", "{name: kube-root-ca.crt}"),
        ("Service", "{name: 1web, namespace: ''}"),
    ] {
        assert_eq!(of(kind, metadata), [""; 0], "{kind} {metadata}");
    }
}

#[test]
fn words_of_listeners_and_routes_that_no_api_server_takes_are_told_and_the_object_counts() {
    let of = |kind: &str, spec: &str| {
        let parsed = yaml(&format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {{name: g}}\nspec: {spec}\n"
        ));
        assert_eq!(parsed.objects.len(), 1, "{parsed:?}");
        faults(&parsed).into_iter().map(|(.., said)| said.to_owned()).collect::<Vec<_>>()
    };
    let twice =
        "{listeners: [{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}]}";
    let matched = |found: &str| format!("{{rules: [{{matches: [{found}]}}]}}");
    for (kind, spec, wanted) in [
        ("Gateway", twice, "spec.listeners[1].name is \"a\" a second time"),
        ("ListenerSet", twice, "spec.listeners[1].name is \"a\" a second time"),
        (
            "Gateway",
            "{listeners: [{port: 80, protocol: HTTP}]}",
            "spec.listeners[0].name is missing",
        ),
        ("Gateway", "{listeners: [{name: A_1, port: 80}]}", "spec.listeners[0].name is \"A_1\""),
        (
            "Gateway",
            "{listeners: [{name: a, port: 80, protocol: HTTP, tls: {}}]}",
            "spec.listeners[0].tls is there beside protocol HTTP",
        ),
        ("HTTPRoute", &matched("{method: get}"), "spec.rules[0].matches[0].method is \"get\""),
        (
            "HTTPRoute",
            &matched("{headers: [{name: X Y, value: a}]}"),
            "spec.rules[0].matches[0].headers[0].name is \"X Y\"",
        ),
        (
            "GRPCRoute",
            &matched("{method: {service: S}, headers: [{name: X Y, value: a}]}"),
            "spec.rules[0].matches[0].headers[0].name is \"X Y\"",
        ),
        ("HTTPRoute", &matched("{path: {type: Exact, value: /a//b}}"), "path.value is \"/a//b\""),
        ("HTTPRoute", &matched("{path: {value: /a//b}}"), "path.value is \"/a//b\""),
    ] {
        let said = of(kind, spec);
        let is_it = said.len() == 1 && said[0].contains(wanted);
        assert!(is_it && said[0].contains(", which no API server takes: "), "{spec}: {said:?}");
    }
    for (kind, spec) in [
        ("Gateway", "{listeners: [{name: a.b, port: 443, protocol: HTTPS, tls: {}}]}".to_owned()),
        ("Gateway", "{listeners: [{name: a, port: 80, protocol: HTTP, tls: null}]}".to_owned()),
        ("HTTPRoute", matched("{method: PATCH, headers: [{name: X-Y, value: a}]}")),
        ("HTTPRoute", matched("{path: {type: RegularExpression, value: /a//b}}")),
    ] {
        assert_eq!(of(kind, &spec), [""; 0], "{spec}");
    }
    let without_port = yaml(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec: {listeners: [{name: a}]}\n",
    );
    let wanted = "spec.listeners[0].port is missing or 0; a port is a number from 1 to 65535";
    assert_eq!(faults(&without_port), [(1, 1, wanted)]);
}

#[test]
fn what_was_meant_as_a_list_is_told_and_lists_of_others_are_left_alone() {
    const INGRESS: &str = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}";
    for (head, wanted) in [
        ("apiVersion: v1, kind: list", "there is no kind list; did you mean List?"),
        ("apiVersion: v1, kind: Lists", "there is no kind Lists; did you mean List?"),
        ("apiVersion: v1, kind: Lst", "there is no kind Lst; did you mean List?"),
        ("apiVersion: v1, kind: Bundle", "there is no kind Bundle; did you mean List?"),
        (
            "apiVersion: networking.k8s.io/v1, kind: IngressLst",
            "there is no kind IngressLst; did you mean IngressList?",
        ),
    ] {
        let parsed = yaml(&format!("{{{head}, items: [{INGRESS}]}}\n"));
        assert_eq!(faults(&parsed), [(1, 1, wanted)]);
    }
    let item = yaml(&format!("{{apiVersion: v1, kind: List, item: [{INGRESS}]}}\n"));
    assert_eq!(
        faults(&item),
        [(1, 1, "item is no field of a list; write its objects below items")]
    );
    let alone = yaml(&format!("items: [{INGRESS}]\n"));
    assert_eq!(
        faults(&alone),
        [(1, 1, "items alone are no list; write apiVersion: v1 and kind: List beside it")]
    );
    for (kind, meant) in [
        ("Ingresses", "Ingress"),
        ("ingresses", "Ingress"),
        ("IngressClasses", "IngressClass"),
        ("networkpolicies", ""),
    ] {
        let parsed = yaml(&format!("apiVersion: networking.k8s.io/v1\nkind: {kind}\n"));
        let told: Vec<_> = faults(&parsed).into_iter().map(|(.., message)| message).collect();
        let wanted = format!("there is no kind {kind}; did you mean {meant}?");
        assert_eq!(told, if meant.is_empty() { vec![] } else { vec![wanted.as_str()] }, "{kind}");
    }
    for text in [
        "apiVersion: v1\nkind: List\nitems: []\nmetadata: {resourceVersion: ''}\n",
        "apiVersion: v1\nkind: List\n",
        "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}]\n",
        "apiVersion: example.com/v1\nkind: AllowList\nspec: {a: b}\n",
        "apiVersion: example.com/v1\nkind: List\nspec: {a: b}\n",
        "apiVersion: example.com/v1\nkind: Bundle\nitems: [{apiVersion: v1, kind: Secret}]\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
        "items: [a, b]\n",
        "items: [{name: a}]\n",
        "replicas: 2\nitems: [{apiVersion: v1, kind: ConfigMap}]\n",
    ] {
        let parsed = yaml(text);
        assert!(parsed.faults.is_empty() && parsed.objects.is_empty(), "{text}: {parsed:?}");
    }
}

#[test]
fn a_namespace_that_is_nothing_is_the_default_one() {
    let parsed = yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: null}\n");
    assert_eq!(names(&parsed), ["ConfigMap default/a"]);
    assert_eq!(faults(&parsed), []);
}
