{{/* Security context of a container, of the map that describes its image: (list image own-context capability...). */}}
{{- define "fairway.security" -}}
{{- $image := first . -}}
{{- $own := index . 1 -}}
{{- if $own -}}
{{- toYaml $own -}}
{{- else -}}
runAsNonRoot: {{ $image.runAsNonRoot }}
runAsUser: {{ include "fairway.text" $image.runAsUser }}
runAsGroup: {{ include "fairway.text" $image.runAsGroup }}
allowPrivilegeEscalation: {{ $image.allowPrivilegeEscalation }}
readOnlyRootFilesystem: {{ $image.readOnlyRootFilesystem }}
{{- with $image.seccompProfile }}
seccompProfile:
  {{- toYaml . | nindent 2 }}
{{- end }}
capabilities:
  drop: [ALL]
  {{- with (slice . 2) }}
  add:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
