{{/* What Fairway may do; the same as deploy/rbac.yaml, which a test compares. */}}

{{/* With objects that lie in namespaces. */}}
{{- define "fairway.rules.objects" -}}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [services, secrets, configmaps]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end -}}

{{/* With objects that lie in none. */}}
{{- define "fairway.rules.cluster" -}}
- apiGroups: [networking.k8s.io]
  resources: [ingressclasses]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- end -}}

{{/* In its own namespace, wherever it watches. */}}
{{- define "fairway.rules.own" -}}
{{- end -}}

{{/* In its own namespace, where another one is watched: the objects that flags name. */}}
{{- define "fairway.rules.named" -}}
- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end -}}
