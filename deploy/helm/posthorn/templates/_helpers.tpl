{{- define "posthorn.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "posthorn.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "posthorn.labels" -}}
{{ include "posthorn.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "posthorn.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "posthorn.fullname" .) .Values.serviceAccount.name }}
{{- else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "posthorn.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* SHUTDOWN_GRACE_MS, ten seconds to end, and the pause before SIGTERM. */}}
{{- define "posthorn.gracePeriodSeconds" -}}
{{- $graceMs := int (default 20000 .Values.settings.SHUTDOWN_GRACE_MS) -}}
{{ add (div (add $graceMs 999) 1000) 15 }}
{{- end }}

{{/* The secrets of a component: "api", "worker", "migrate" or "relay". Returns JSON: setting -> key of the Secret. */}}
{{- define "posthorn.secretKeys" -}}
{{- $keys := dict -}}
{{- range $setting, $key := .root.Values.secrets.keys -}}
{{- $isOfRelay := hasPrefix "RELAY_" $setting -}}
{{- $isForAll := eq $setting "DATABASE_URL" -}}
{{- $isForApi := and (eq $setting "POSTHORN_OPERATOR_KEYS") (eq $.component "api") -}}
{{- $isForBoth := and (ne $setting "POSTHORN_OPERATOR_KEYS") (ne $.component "migrate") -}}
{{- $isForOthers := and (not $isOfRelay) (or $isForAll $isForApi $isForBoth) -}}
{{- if and $key (eq $.component "relay" | ternary $isOfRelay $isForOthers) }}{{ $_ := set $keys $setting $key }}{{ end -}}
{{- end -}}
{{ toJson $keys }}
{{- end }}

{{/* The settings that the relay reads. */}}
{{- define "posthorn.relaySettings" -}}
{{ toJson (pick .Values.settings "LOG_LEVEL" "SHUTDOWN_GRACE_MS" "RELAY_KEEP_HOURS") }}
{{- end }}

{{/* What the pods of all components have in common. */}}
{{- define "posthorn.podSpec" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: false
# The variables of a Service with the name "smtp" or "temporal" would be read as settings.
enableServiceLinks: false
# The first process of a container ignores signals that it has no handler for yet: here that is the pause container.
shareProcessNamespace: true
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the containers of all components have in common. */}}
{{- define "posthorn.container" -}}
image: {{ include "posthorn.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: tmp
    mountPath: /tmp
  - name: secrets
    mountPath: /run/secrets/posthorn
    readOnly: true
  {{- if and .root.Values.temporalTls.existingSecret (has .component (list "api" "worker")) }}
  - name: temporal-tls
    mountPath: /run/secrets/temporal
    readOnly: true
  {{- end }}
  {{- if and .root.Values.catalogue.existingConfigMap (has .component (list "api" "worker")) }}
  - name: catalogue
    mountPath: /run/catalogue
    readOnly: true
  {{- end }}
  {{- if and .root.Values.brandLogo.existingConfigMap (has .component (list "api" "worker")) }}
  - name: brand-logo
    mountPath: /run/brand-logo
    readOnly: true
  {{- end }}
{{- end }}

{{- define "posthorn.volumes" -}}
- name: tmp
  emptyDir: {}
- name: secrets
  secret:
    secretName: {{ required "secrets.existingSecret is required" .root.Values.secrets.existingSecret }}
    defaultMode: 288 # 0440
    items:
      {{- range $setting, $key := include "posthorn.secretKeys" . | fromJson }}
      - key: {{ $key | quote }}
        path: {{ $setting }}
      {{- end }}
{{- if and .root.Values.temporalTls.existingSecret (has .component (list "api" "worker")) }}
- name: temporal-tls
  secret:
    secretName: {{ .root.Values.temporalTls.existingSecret }}
    defaultMode: 288 # 0440
{{- end }}
{{- if and .root.Values.catalogue.existingConfigMap (has .component (list "api" "worker")) }}
- name: catalogue
  configMap:
    name: {{ .root.Values.catalogue.existingConfigMap }}
{{- end }}
{{- if and .root.Values.brandLogo.existingConfigMap (has .component (list "api" "worker")) }}
- name: brand-logo
  configMap:
    name: {{ .root.Values.brandLogo.existingConfigMap }}
{{- end }}
{{- end }}

{{/* The environment of a component. */}}
{{- define "posthorn.env" -}}
{{- range $setting, $key := include "posthorn.secretKeys" . | fromJson }}
- name: {{ $setting }}_FILE
  value: /run/secrets/posthorn/{{ $setting }}
{{- end }}
{{- if eq .component "migrate" }}
{{- with .root.Values.settings.DATABASE_POOLER }}
- name: DATABASE_POOLER
  value: {{ . | quote }}
{{- end }}
{{- else }}
{{- $_ := required "settings.TEMPORAL_ADDRESS is required" .root.Values.settings.TEMPORAL_ADDRESS }}
{{- $isRelay := eq .component "relay" }}
{{- range $setting, $value := $isRelay | ternary (include "posthorn.relaySettings" .root | fromJson) .root.Values.settings }}
{{- if ne (toString $value) "" }}
- name: {{ $setting }}
  {{- /* YAML reads off as false. */}}
  {{- if and (eq $setting "MEMBER_API_KEYS") (kindIs "bool" $value) }}{{ $value = ternary "on" "off" $value }}{{ end }}
  {{- /* A number of values.yaml is a float for the template. */}}
  value: {{ kindIs "float64" $value | ternary (toString (int64 $value)) (toString $value) | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.temporalTls }}
{{- if and .existingSecret (not $isRelay) }}
{{- with .caKey }}
- name: TEMPORAL_TLS_CA_FILE
  value: /run/secrets/temporal/{{ . }}
{{- end }}
{{- with .certKey }}
- name: TEMPORAL_TLS_CERT_FILE
  value: /run/secrets/temporal/{{ . }}
{{- end }}
{{- with .keyKey }}
- name: TEMPORAL_TLS_KEY_FILE
  value: /run/secrets/temporal/{{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .root.Values.catalogue.existingConfigMap (not $isRelay) }}
- name: POSTHORN_CATALOGUE
  value: /run/catalogue/{{ .root.Values.catalogue.key }}
{{- end }}
{{- if and .root.Values.brandLogo.existingConfigMap (has .component (list "api" "worker")) }}
- name: BRAND_LOGO_FILE
  value: /run/brand-logo/{{ .root.Values.brandLogo.key }}
{{- end }}
- name: METRICS_HOST
  value: {{ .root.Values.listenAddress | quote }}
- name: METRICS_PORT
  value: '9464'
{{- if eq .component "api" }}
- name: HOST
  value: {{ .root.Values.listenAddress | quote }}
- name: PORT
  value: '3000'
{{- end }}
{{- end }}
{{- end }}

{{/* Spreads the pods of a component over the nodes. */}}
{{- define "posthorn.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "posthorn.selectorLabels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}
