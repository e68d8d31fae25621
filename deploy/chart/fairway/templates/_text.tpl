{{/*
A value as its user wrote it, nothing if there is none. Helm reads numbers of a values file as floats, and as text
those are 1e+06 from a million up, which no flag, annotation or key of a ConfigMap takes. JSON has all their digits.
*/}}
{{- define "fairway.text" -}}
{{- if kindIs "float64" . -}}
{{- toJson . -}}
{{- else if not (kindIs "invalid" .) -}}
{{- toString . -}}
{{- end -}}
{{- end -}}
