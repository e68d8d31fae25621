{{/* Names and labels. */}}

{{- define "fairway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairway.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The full name with a last part: (list $ "part"). */}}
{{- define "fairway.named" -}}
{{- printf "%s-%s" (include "fairway.fullname" (first .)) (last .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairway.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairway.controller" -}}
{{- include "fairway.named" (list . .Values.controller.name) -}}
{{- end -}}

{{- define "fairway.webhook" -}}
{{- include "fairway.named" (list . .Values.controller.admissionWebhooks.name) -}}
{{- end -}}

{{- define "fairway.backend" -}}
{{- include "fairway.named" (list . .Values.defaultBackend.name) -}}
{{- end -}}

{{- define "fairway.leader" -}}
{{- default (include "fairway.named" (list . "leader")) .Values.controller.electionID -}}
{{- end -}}

{{- define "fairway.account" -}}
{{- $made := ternary (include "fairway.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $made .Values.serviceAccount.name -}}
{{- end -}}

{{- define "fairway.jobs.account" -}}
{{- $account := .Values.controller.admissionWebhooks.patch.serviceAccount -}}
{{- default (ternary (include "fairway.webhook" .) "default" $account.create) $account.name -}}
{{- end -}}

{{- define "fairway.backend.account" -}}
{{- $account := .Values.defaultBackend.serviceAccount -}}
{{- default (ternary (include "fairway.named" (list . "backend")) "default" $account.create) $account.name -}}
{{- end -}}

{{/* The namespace that is watched alone, or nothing. */}}
{{- define "fairway.scope" -}}
{{- if .Values.controller.scope.enabled -}}
{{- default (include "fairway.namespace" .) .Values.controller.scope.namespace -}}
{{- end -}}
{{- end -}}

{{- define "fairway.selector" -}}
app.kubernetes.io/name: {{ include "fairway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of an object: (list $ "component" more-labels...). */}}
{{- define "fairway.labels" -}}
{{- $ := first . -}}
{{- $own := include "fairway.selector" $ | fromYaml -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $own "app.kubernetes.io/version" $.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/part-of" (include "fairway.name" $) -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" $.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/component" (index . 1) -}}
{{- $all := deepCopy ($.Values.commonLabels | default dict) -}}
{{- range (slice . 2) -}}
{{- $all = mergeOverwrite $all (. | default dict) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $all $own) -}}
{{- end -}}

{{/* Name, namespace, labels and annotations of an object: (dict "top" $ "name" … "component" … "labels" (list …) "annotations" …). */}}
{{- define "fairway.metadata" -}}
name: {{ .name }}
{{- if not .everywhere }}
namespace: {{ .namespace | default (include "fairway.namespace" .top) | quote }}
{{- end }}
labels:
  {{- include "fairway.labels" (concat (list .top (.component | default "controller")) (.labels | default list)) | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* An image: (list $ the-map). Fairway's own, if the map names none. */}}
{{- define "fairway.image" -}}
{{- $ := first . -}}
{{- $own := $.Values.controller.image -}}
{{- $image := last . -}}
{{- if not (or $image.image $image.repository) -}}
{{- $image = $own -}}
{{- end -}}
{{- $registry := $image.registry | default (dig "image" "registry" "" ($.Values.global | default dict)) -}}
{{- $name := $image.repository | default (ternary (printf "%s/%s" $registry $image.image) $image.image (ne $registry "")) -}}
{{- $digest := $image.digest | default "" -}}
{{- $version := printf "%s%s" $.Chart.AppVersion (ternary "-nginx" "" (eq (include "fairway.engine" $) "nginx")) -}}
{{- printf "%s:%s%s" $name (include "fairway.text" ($image.tag | default $version)) (ternary (printf "@%s" $digest) "" (ne $digest "")) -}}
{{- end -}}

{{/* What carries HTTP. */}}
{{- define "fairway.engine" -}}
{{- dig "engine" .Values.controller.engine (.Values.controller.extraArgs | default dict) -}}
{{- end -}}

{{/* Names that values of ingress-nginx users may mention in their own templates. */}}
{{- define "ingress-nginx.name" -}}{{ include "fairway.name" . }}{{- end -}}
{{- define "ingress-nginx.fullname" -}}{{ include "fairway.fullname" . }}{{- end -}}
{{- define "ingress-nginx.namespace" -}}{{ include "fairway.namespace" . }}{{- end -}}
{{- define "ingress-nginx.controller.fullname" -}}{{ include "fairway.controller" . }}{{- end -}}
{{- define "ingress-nginx.selectorLabels" -}}{{ include "fairway.selector" . }}{{- end -}}
{{- define "ingress-nginx.labels" -}}{{ include "fairway.labels" (list . "controller") }}{{- end -}}
