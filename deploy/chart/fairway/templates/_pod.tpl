{{/* The Pods of the controller: metadata and spec. */}}
{{- define "fairway.pod" -}}
{{- $controller := .Values.controller -}}
{{- $webhooks := $controller.admissionWebhooks -}}
{{- /* Values of ingress-nginx may bring a volume for /tmp already. */ -}}
{{- $temporary := true -}}
{{- range $controller.extraVolumeMounts -}}
{{- if eq (trimSuffix "/" .mountPath) "/tmp" -}}{{- $temporary = false -}}{{- end -}}
{{- end -}}
metadata:
  labels:
    {{- include "fairway.pod.labels" . | nindent 4 }}
  {{- with $controller.podAnnotations }}
  annotations:
    {{- range $key, $value := . }}
    {{ $key }}: {{ include "fairway.text" $value | quote }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "fairway.account" . }}
  automountServiceAccountToken: {{ .Values.serviceAccount.automountServiceAccountToken }}
  terminationGracePeriodSeconds: {{ include "fairway.text" $controller.terminationGracePeriodSeconds }}
  dnsPolicy: {{ $controller.dnsPolicy }}
  {{- with $controller.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $controller.hostAliases }}
  hostAliases:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  {{- with $controller.hostname }}
  hostname: {{ include "fairway.text" . | quote }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $controller.priorityClassName }}
  priorityClassName: {{ include "fairway.text" . | quote }}
  {{- end }}
  {{- with $controller.runtimeClassName }}
  runtimeClassName: {{ include "fairway.text" . | quote }}
  {{- end }}
  {{- if or $controller.podSecurityContext $controller.sysctls }}
  securityContext:
    {{- with $controller.podSecurityContext }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $controller.sysctls }}
    sysctls:
      {{- range $name, $value := . }}
      - name: {{ $name | quote }}
        value: {{ include "fairway.text" $value | quote }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if $controller.shareProcessNamespace }}
  shareProcessNamespace: true
  {{- end }}
  {{- if $controller.hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- with $controller.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $controller.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $controller.affinity }}
  affinity:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  {{- with $controller.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  {{- with $controller.extraInitContainers }}
  initContainers:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ $controller.containerName }}
      image: {{ include "fairway.image" (list . $controller.image) | quote }}
      imagePullPolicy: {{ $controller.image.pullPolicy }}
      args:
        - /fairway
        - run
        {{- include "fairway.args" . | trim | nindent 8 }}
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        {{- with $controller.extraEnvs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        {{- include "fairway.pod.ports" . | trim | nindent 8 }}
      securityContext:
        {{- include "fairway.security" (list $controller.image $controller.containerSecurityContext "NET_BIND_SERVICE") | nindent 8 }}
      {{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" }}
      {{- with index $controller $probe }}
      {{ $probe }}:
        {{- include "fairway.probe" (list $ .) | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with $controller.lifecycle }}
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $controller.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $controller.resizePolicy }}
      resizePolicy:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if or $webhooks.enabled $temporary $controller.adminToken.secretName $controller.extraVolumeMounts }}
      volumeMounts:
        {{- if $temporary }}
        - name: temporary-files
          mountPath: /tmp
        {{- end }}
        {{- if $webhooks.enabled }}
        - name: webhook-cert
          mountPath: {{ dir $webhooks.certificate }}
          readOnly: true
        {{- end }}
        {{- if $controller.adminToken.secretName }}
        - name: admin-token
          mountPath: /etc/fairway-admin
          readOnly: true
        {{- end }}
        {{- with $controller.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
    {{- with $controller.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or $webhooks.enabled $temporary $controller.adminToken.secretName $controller.extraVolumes }}
  volumes:
    {{- if $temporary }}
    - name: temporary-files
      emptyDir:
        {{- toYaml $controller.temporaryFiles | nindent 8 }}
    {{- end }}
    {{- if $webhooks.enabled }}
    - name: webhook-cert
      secret:
        secretName: {{ include "fairway.webhook" . }}
        items:
          - key: {{ ternary "tls.crt" "cert" $webhooks.certManager.enabled }}
            path: {{ base $webhooks.certificate }}
          - key: {{ ternary "tls.key" "key" $webhooks.certManager.enabled }}
            path: {{ base $webhooks.key }}
    {{- end }}
    {{- with $controller.adminToken }}
    {{- if .secretName }}
    - name: admin-token
      secret:
        secretName: {{ include "fairway.text" .secretName | quote }}
        items:
          - key: {{ include "fairway.text" .key | quote }}
            path: token
    {{- end }}
    {{- end }}
    {{- with $controller.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/*
Labels of the Pods. ingress-nginx knows its other Pods by all of their labels, and the last one it knows empties the status of
Ingresses when it ends. So Pods that come directly after those of its chart have the very labels of them; the next upgrade has our own.
*/}}
{{- define "fairway.pod.labels" -}}
{{- $controller := .Values.controller -}}
{{- $labels := include "fairway.labels" (list . "controller" $controller.labels $controller.podLabels) | fromYaml -}}
{{- range $kind := list "Deployment" "DaemonSet" -}}
{{- $before := lookup "apps/v1" $kind (include "fairway.namespace" $) (include "fairway.controller" $) -}}
{{- if regexMatch "ingress-nginx-[0-9]" (dig "metadata" "labels" "helm.sh/chart" "" $before) -}}
{{- $labels = mergeOverwrite $labels (deepCopy (dig "spec" "template" "metadata" "labels" dict $before)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{- define "fairway.pod.ports" -}}
{{- $controller := .Values.controller -}}
{{- range $name, $port := $controller.containerPort }}
- name: {{ $name }}
  containerPort: {{ $port }}
  protocol: TCP
  {{- if $controller.hostPort.enabled }}
  hostPort: {{ index $controller.hostPort.ports $name | default $port }}
  {{- end }}
{{- end }}
{{- if $controller.metrics.enabled }}
- name: {{ $controller.metrics.portName }}
  containerPort: {{ include "fairway.admin.port" . }}
  protocol: TCP
{{- end }}
{{- if $controller.admissionWebhooks.enabled }}
- name: webhook
  containerPort: {{ $controller.admissionWebhooks.port }}
  protocol: TCP
{{- end }}
{{- range $protocol, $services := dict "tcp" .Values.tcp "udp" .Values.udp }}
{{- range $port, $_ := $services }}
- name: {{ include "fairway.port" (list $ $port $protocol) }}
  containerPort: {{ $port }}
  protocol: {{ upper $protocol }}
  {{- if $controller.hostPort.enabled }}
  hostPort: {{ $port }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A probe: (list $ probe). What asks the admin port where it is by default goes with it. */}}
{{- define "fairway.probe" -}}
{{- $probe := deepCopy (last .) -}}
{{- if eq (int ($probe.httpGet).port) 10254 -}}
{{- $_ := set $probe.httpGet "port" (include "fairway.admin.port" (first .) | int) -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end -}}

{{/* Name of the port of a TCP or UDP service: (list $ port protocol). */}}
{{- define "fairway.port" -}}
{{- $prefix := (first .).Values.portNamePrefix -}}
{{- printf "%s%v-%s" (ternary (printf "%s-" $prefix) "" (ne ($prefix | default "") "")) (index . 1) (last .) -}}
{{- end -}}
