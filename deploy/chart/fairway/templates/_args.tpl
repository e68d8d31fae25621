{{/* Flags of the controller, as YAML. What extraArgs say goes before what other keys say. */}}
{{- define "fairway.args" -}}
{{- $controller := .Values.controller -}}
{{- $webhooks := $controller.admissionWebhooks -}}
{{- $here := "$(POD_NAMESPACE)" -}}
{{- $flags := dict
  "election-id" (include "fairway.leader" .)
  "controller-class" $controller.ingressClassResource.controllerValue
  "configmap" (printf "%s/%s" (default $here $controller.configMapNamespace) (include "fairway.controller" .)) -}}
{{- range $name, $port := dict "http" 80 "https" 443 -}}
{{- $chosen := index $controller.containerPort $name | default $port -}}
{{- if ne (int $chosen) $port -}}
{{- $_ := set $flags (printf "%s-port" $name) $chosen -}}
{{- end -}}
{{- end -}}
{{- $admin := include "fairway.admin.port" . | int -}}
{{- if ne $admin 10254 -}}
{{- $_ := set $flags "healthz-port" $admin -}}
{{- end -}}
{{- if eq (include "fairway.engine" .) "nginx" -}}
{{- $_ := set $flags "engine" "nginx" -}}
{{- end -}}
{{- with $controller.shutdownGracePeriod -}}
{{- $_ := set $flags "shutdown-grace-period" . -}}
{{- end -}}
{{- with $controller.ingressClass -}}
{{- $_ := set $flags "ingress-class" . -}}
{{- end -}}
{{- if not $controller.enableAnnotationValidations -}}
{{- $_ := set $flags "enable-annotation-validation" "false" -}}
{{- end -}}
{{- if .Values.defaultBackend.enabled -}}
{{- $_ := set $flags "default-backend-service" (printf "%s/%s" $here (include "fairway.backend" .)) -}}
{{- end -}}
{{- if and $controller.publishService.enabled $controller.service.enabled (or $controller.service.external.enabled $controller.service.internal.enabled) -}}
{{- $own := printf "%s/%s" $here (include "fairway.controller" .) -}}
{{- $suffix := ternary "" "-internal" $controller.service.external.enabled -}}
{{- $_ := set $flags "publish-service" (printf "%s%s" ($controller.publishService.pathOverride | default $own) $suffix) -}}
{{- end -}}
{{- if .Values.tcp -}}
{{- $_ := set $flags "tcp-services-configmap" (printf "%s/%s" (default $here $controller.tcp.configMapNamespace) (include "fairway.named" (list . "tcp"))) -}}
{{- end -}}
{{- if .Values.udp -}}
{{- $_ := set $flags "udp-services-configmap" (printf "%s/%s" (default $here $controller.udp.configMapNamespace) (include "fairway.named" (list . "udp"))) -}}
{{- end -}}
{{- if $controller.scope.enabled -}}
{{- $_ := set $flags "watch-namespace" (default $here $controller.scope.namespace) -}}
{{- else if $controller.scope.namespaceSelector -}}
{{- $_ := set $flags "watch-namespace-selector" $controller.scope.namespaceSelector -}}
{{- end -}}
{{- if and $controller.reportNodeInternalIp $controller.hostNetwork -}}
{{- $_ := set $flags "report-node-internal-ip-address" "true" -}}
{{- end -}}
{{- if $webhooks.enabled -}}
{{- $_ := set $flags "validating-webhook" (printf ":%v" $webhooks.port) -}}
{{- $_ := set $flags "validating-webhook-certificate" $webhooks.certificate -}}
{{- $_ := set $flags "validating-webhook-key" $webhooks.key -}}
{{- end -}}
{{- if $controller.adminToken.secretName -}}
{{- $_ := set $flags "admin-token-file" "/etc/fairway-admin/token" -}}
{{- end -}}
{{- with $controller.healthCheckHost -}}
{{- $_ := set $flags "healthz-host" . -}}
{{- end -}}
{{- if ne $controller.healthCheckPath "/healthz" -}}
{{- $_ := set $flags "health-check-path" $controller.healthCheckPath -}}
{{- end -}}
{{- range $key, $flag := dict
  "ingressClassByName" "ingress-class-by-name"
  "watchIngressWithoutClass" "watch-ingress-without-class"
  "enableTopologyAwareRouting" "enable-topology-aware-routing"
  "disableLeaderElection" "disable-leader-election" -}}
{{- if index $controller $key -}}
{{- $_ := set $flags $flag "true" -}}
{{- end -}}
{{- end -}}
{{- if $controller.metrics.enabled -}}
{{- $_ := set $flags "enable-metrics" "true" -}}
{{- end -}}
{{- with $controller.electionTTL -}}
{{- $_ := set $flags "election-ttl" . -}}
{{- end -}}
{{- include "fairway.flags" (merge (deepCopy ($controller.extraArgs | default dict)) $flags) -}}
{{- end -}}

{{/* The one port of metrics and health checks. */}}
{{- define "fairway.admin.port" -}}
{{- index (.Values.controller.extraArgs | default dict) "healthz-port" | default .Values.controller.metrics.port | default 10254 -}}
{{- end -}}

{{/* A map as flags. */}}
{{- define "fairway.flags" -}}
{{- range $flag, $value := . }}
{{- with include "fairway.text" $value }}
- {{ printf "--%s=%s" $flag . | quote }}
{{- else }}
- --{{ $flag }}
{{- end }}
{{- end }}
{{- end -}}
