{{- define "plans.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "plans.labels" -}}
app.kubernetes.io/name: plans
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "plans.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "plans.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end -}}
{{- end }}

{{- /* image: a dict with `of` (repository, tag, digest) and `root` */ -}}
{{- define "plans.image" -}}
{{- if .of.digest }}{{ printf "%s@%s" .of.repository .of.digest }}{{ else }}{{ printf "%s:%s" .of.repository (default .root.Chart.AppVersion .of.tag) }}{{ end -}}
{{- end }}

{{- define "plans.stateClaim" -}}
{{- default (printf "%s-state" (include "plans.name" .)) .Values.state.existingClaim -}}
{{- end }}

{{- /* workspaceClaim: a dict with `worker` and `root` */ -}}
{{- define "plans.workspaceClaim" -}}
{{- default (printf "%s-%s-workspace" (include "plans.name" .root) .worker.name) .worker.workspace.existingClaim -}}
{{- end }}

{{- define "plans.podSpec" -}}
serviceAccountName: {{ include "plans.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "plans.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Secrets are mounted as links that the group may read; programs want private files of their own user. */ -}}
{{- define "plans.filesContainer" -}}
{{- if .Values.files.secretName }}
initContainers:
  - name: files
    image: {{ include "plans.image" (dict "of" .Values.image.worker "root" .) | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: ["sh", "-ec", "install -m 0600 /etc/plans/* /run/plans/"]
    securityContext: {{- include "plans.containerSecurity" . | nindent 6 }}
    resources:
      requests: {cpu: 10m, memory: 16Mi}
      limits: {memory: 64Mi}
    volumeMounts:
      - {name: files-source, mountPath: /etc/plans, readOnly: true}
      - {name: files, mountPath: /run/plans}
{{- end }}
{{- end }}

{{- define "plans.env" -}}
- {name: TEMPORAL_ADDRESS, value: {{ required "temporal.address is required: HOST:PORT of the Temporal server" .Values.temporal.address | quote }}}
- {name: TEMPORAL_NAMESPACE, value: {{ .Values.temporal.namespace | quote }}}
{{- if .Values.temporal.apiKeySecret }}
- name: TEMPORAL_API_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.temporal.apiKeySecret | quote }}, key: api-key}}
{{- end }}
{{- if .Values.temporal.tlsSecret }}
- {name: TEMPORAL_TLS, value: "true"}
- {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/temporal-tls/tls.crt}
- {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/temporal-tls/tls.key}
{{- if .Values.temporal.tlsCa }}
- {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/temporal-tls/ca.crt}
{{- end }}
{{- end }}
- {name: PLANS_STATE_DIR, value: /var/lib/plans/state}
- {name: PLANS_STORAGE, value: {{ .Values.storage | quote }}}
- {name: PLANS_APPROVALS, value: {{ .Values.approvals | quote }}}
- {name: PLANS_DECISIONS, value: {{ .Values.decisions | quote }}}
{{- with .Values.llm.baseUrl }}
- {name: OPENAI_BASE_URL, value: {{ . | quote }}}
{{- end }}
{{- with .Values.llm.model }}
- {name: PLANS_MODEL, value: {{ . | quote }}}
{{- end }}
{{- with .Values.llm.apiKeySecret }}
- name: OPENAI_API_KEY
  valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: OPENAI_API_KEY}}
{{- end }}
{{- if .Values.files.secretName }}
{{- range $name, $file := .Values.files.settings }}
- {name: {{ $name }}, value: {{ printf "/run/plans/%s" $file | quote }}}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- define "plans.envFrom" -}}
{{- with .Values.envFromSecrets }}
envFrom:
{{- range . }}
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "plans.mounts" -}}
- {name: state, mountPath: /var/lib/plans}
- {name: temporary, mountPath: /tmp}
{{- if .Values.files.secretName }}
- {name: files, mountPath: /run/plans, readOnly: true}
{{- end }}
{{- if .Values.temporal.tlsSecret }}
- {name: tls, mountPath: /etc/temporal-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "plans.volumes" -}}
- {name: state, persistentVolumeClaim: {claimName: {{ include "plans.stateClaim" . | quote }}}}
- {name: temporary, emptyDir: {}}
{{- if .Values.files.secretName }}
- {name: files-source, secret: {secretName: {{ .Values.files.secretName | quote }}, defaultMode: 0440}}
- {name: files, emptyDir: {medium: Memory, sizeLimit: 4Mi}}
{{- end }}
{{- if .Values.temporal.tlsSecret }}
- {name: tls, secret: {secretName: {{ .Values.temporal.tlsSecret | quote }}, defaultMode: 0440}}
{{- end }}
{{- end }}
