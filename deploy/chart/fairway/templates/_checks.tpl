{{/* Values that would not do what they say; rendered first, so that nothing is changed in the cluster. */}}
{{- define "fairway.checks" -}}
{{- $controller := .Values.controller -}}
{{- $image := $controller.image -}}
{{- range $name := list ($image.image | default "") ($image.repository | default "") -}}
{{- if and (or (contains "ingress-nginx" $name) (contains "nginx-ingress" $name)) (not (contains "fairway" (base $name))) -}}
{{- fail (printf "controller.image names ingress-nginx (%s): leave out controller.image, or name the image of Fairway there. With helm upgrade --reuse-values it comes from the old chart: take --reset-then-reuse-values" $name) -}}
{{- end -}}
{{- end -}}
{{- $name := $image.repository | default $image.image | default "" -}}
{{- $is_usual := and (eq ($image.image | default "") "fairway") (not $image.repository) -}}
{{- if or (and $is_usual (hasPrefix "v" ($image.tag | toString))) (and (ne (base $name) "fairway") (regexMatch "^v1\\.[0-9]+\\.[0-9]" ($image.tag | toString))) -}}
{{- fail (printf "controller.image.tag is %v, a version of ingress-nginx: leave it out, or name a version of Fairway, such as %s" $image.tag .Chart.AppVersion) -}}
{{- end -}}
{{- /* Those of v1.15.1, which its chart has by default: the image would never be pulled. */ -}}
{{- if has ($image.digest | default "") (list "sha256:594ceea76b01c592858f803f9ff4d2cb40542cae2060410b2c95f75907d659e1" "sha256:af31d00c9d82c612896b380a9003bd36843b7647b98e4588251c66325317bc72") -}}
{{- fail (printf "controller.image.digest is %s, that of ingress-nginx v1.15.1: leave it out, or name that of Fairway's image" $image.digest) -}}
{{- end -}}
{{- /* An image of one's own may have a shell, as that of the nginx engine has. */ -}}
{{- if and $is_usual (ne (include "fairway.engine" .) "nginx") -}}
{{- $programs := list "/wait-shutdown" "/fairway" "/dbg" "/nginx-ingress-controller" -}}
{{- range $hook := list "preStop" "postStart" -}}
{{- $one := index ($controller.lifecycle | default dict) $hook | default dict -}}
{{- $command := ($one.exec | default dict).command | default list -}}
{{- if and $command (not (has (first $command) $programs)) -}}
{{- fail (printf "controller.lifecycle.%s runs %v, and the image has no shell and no such program: the hook would fail, and with preStop the Pod end at once. Where it waits, leave it out and give its seconds to controller.shutdownGracePeriod, or write {sleep: {seconds: 30}} (Kubernetes 1.30 and later); /wait-shutdown is there" $hook (first $command)) -}}
{{- end -}}
{{- end -}}
{{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" -}}
{{- $one := index $controller $probe | default dict -}}
{{- $command := ($one.exec | default dict).command | default list -}}
{{- if and $command (not (has (first $command) $programs)) -}}
{{- fail (printf "controller.%s runs %v, and the image has no shell and no such program: it would never succeed. Leave it out: by default the probe asks for %s" $probe (first $command) $controller.healthCheckPath) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $class := (.Values.global | default dict).systemDefaultIngressClass | default "" -}}
{{- if and (eq $class "ingress-nginx") (not (and $controller.watchIngressWithoutClass $controller.ingressClassResource.default)) -}}
{{- fail "global.systemDefaultIngressClass is ingress-nginx: RKE2's chart takes Ingresses without a class then, and this one would answer them with 404. Set controller.watchIngressWithoutClass and controller.ingressClassResource.default to true (docs/platforms/rke2.md)" -}}
{{- end -}}
{{- with $controller.customTemplate.configMapName -}}
{{- fail "controller.customTemplate.configMapName: Fairway has no template of nginx.conf. Say what it changes with annotations or with controller.config (docs/migration.md), and leave it out" -}}
{{- end -}}
{{- with $controller.extraModules -}}
{{- if eq (include "fairway.engine" $) "nginx" -}}
{{- fail "controller.extraModules: the nginx engine loads the modules of its image, no others. Leave it out; docs/nginx-modules.md says which they are" -}}
{{- end -}}
{{- fail "controller.extraModules: Fairway has no nginx that could load modules. Leave it out; brotli, GeoIP2 and OpenTelemetry are built in, ModSecurity and Lua need controller.engine=nginx (docs/nginx-modules.md)" -}}
{{- end -}}
{{- range $of, $service := dict "service" $controller.service "service.internal" $controller.service.internal -}}
{{- range $name, $target := $service.targetPorts -}}
{{- /* Ports of the controller, and those that servers of an http-snippet open. */ -}}
{{- $snippet := get ($controller.config | default dict) "http-snippet" | toString -}}
{{- $own := list "http" "https" -}}
{{- range $port, $number := $controller.containerPort -}}
{{- if regexMatch (printf "\\blisten\\s+(\\S+:)?%v[\\s;]" $number) $snippet -}}{{- $own = append $own $port -}}{{- end -}}
{{- end -}}
{{- $numbers := list -}}
{{- range $port := $own -}}{{- $numbers = append $numbers (get $controller.containerPort $port | toString) -}}{{- end -}}
{{- if and $target (not (has ($target | toString) (concat $own $numbers))) -}}
{{- fail (printf "controller.%s.targetPorts.%s is %v, where nothing would listen: every connection to that port of the Service would be refused. It can be %s. A port that only redirects to HTTPS takes a server with its listen in controller.config.http-snippet, and a name in controller.containerPort (docs/platforms/aws-nlb-tls.md)" $of $name $target ($own | uniq | join " or ")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $modsecurity := get ($controller.config | default dict) "enable-modsecurity" | toString | lower -}}
{{- if and (ne (include "fairway.engine" .) "nginx") (has $modsecurity (list "true" "t" "1")) -}}
{{- fail "controller.config.enable-modsecurity is true, and only the nginx engine has ModSecurity: every path would answer 503. Set controller.engine to nginx, or leave the key out" -}}
{{- end -}}
{{- if and $controller.autoscaling.enabled $controller.keda.enabled -}}
{{- fail "controller.autoscaling.enabled and controller.keda.enabled are both true, and would fight over the number of Pods: switch one of them off" -}}
{{- end -}}
{{- /* The Service would have two ports of one number, which the API server refuses in the middle of an upgrade. */ -}}
{{- $service := $controller.service -}}
{{- $services := dict -}}
{{- if and $service.enabled $service.external.enabled -}}{{- $_ := set $services "service" $service -}}{{- end -}}
{{- if and $service.enabled $service.internal.enabled $service.internal.annotations -}}{{- $_ := set $services "service.internal" $service.internal -}}{{- end -}}
{{- range $port, $_ := .Values.tcp -}}
{{- range $which, $is := $services -}}
{{- range $name, $usual := $service.ports -}}
{{- $number := index ($is.ports | default dict) $name | default $usual -}}
{{- if and (eq ($number | toString) ($port | toString)) (index $service (printf "enable%s" (title $name))) -}}
{{- fail (printf "tcp.%v is also controller.%s.ports.%s, and a Service has a port once: take another one, or move that port" $port $which $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $number := $controller.containerPort -}}
{{- if eq ($number | toString) ($port | toString) -}}
{{- fail (printf "tcp.%v is also controller.containerPort.%s, where the controller listens itself: take another one, or move that port" $port $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $metrics := int $controller.metrics.port -}}
{{- $admin := include "fairway.admin.port" . | int -}}
{{- /* What is there by default says nothing against the flag. */ -}}
{{- if not (has $metrics (list 0 10254 $admin)) -}}
{{- fail (printf "controller.metrics.port is %d and controller.extraArgs.healthz-port is %d, and one port is for both metrics and health checks: leave out controller.extraArgs.healthz-port, or set both to the same port" $metrics $admin) -}}
{{- end -}}
{{- if and .Values.rbac.scope (not $controller.scope.enabled) -}}
{{- fail "rbac.scope is true without controller.scope.enabled: Fairway would watch namespaces that it may not read. Set controller.scope.enabled, or leave out rbac.scope" -}}
{{- end -}}
{{- end -}}
