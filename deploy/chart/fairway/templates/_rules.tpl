{{/* What Fairway may do; the same as deploy/rbac.yaml, which a test compares. */}}

{{/* With objects that lie in namespaces. */}}
{{- define "fairway.rules.objects" -}}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [get, list, watch]
{{- if ne (index (.Values.controller.extraArgs | default dict) "update-status" | toString) "false" }}
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [patch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, grpcroutes/status, tcproutes/status, udproutes/status, tlsroutes/status, backendtlspolicies/status]
  verbs: [update]
{{- end }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, grpcroutes, tcproutes, udproutes, tlsroutes, backendtlspolicies]
  verbs: [get, list, watch]
{{- if has (index (.Values.controller.extraArgs | default dict) "gateway-services" | toString) (list "true" "headless" "load-balancer") }}
- apiGroups: [""]
  resources: [services]
  verbs: [create, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [create, patch, delete]
{{- end }}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [services, secrets, configmaps]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* With objects that lie in none. */}}
{{- define "fairway.rules.cluster" -}}
- apiGroups: [networking.k8s.io]
  resources: [ingressclasses]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses, referencegrants]
  verbs: [get, list, watch]
{{- if ne (index (.Values.controller.extraArgs | default dict) "update-status" | toString) "false" }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses/status]
  verbs: [update]
{{- end }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- with include "fairway.scope" . }}
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [{{ . }}]
  verbs: [get]
{{- else }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
{{- end }}
{{- end -}}

{{/* In its own namespace, wherever it watches. */}}
{{- define "fairway.rules.own" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list]
{{- if not .Values.controller.disableLeaderElection }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ index (.Values.controller.extraArgs | default dict) "election-id" | default (include "fairway.leader" .) }}]
  verbs: [get, update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- end }}
{{- end -}}

{{/* In its own namespace, where another one is watched: the objects that flags name, and Events about itself. */}}
{{- define "fairway.rules.named" -}}
- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
