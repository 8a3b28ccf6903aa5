/** Groups of `svc --help` with their commands and nouns, in the order shown. */
export const GROUPS = {
  Platform: ['up', 'start', 'down', 'restart', 'status', 'studio', 'logs', 'supervise', 'events', 'traces'],
  Setup: [
    ...['init', 'doctor', 'config', 'backup', 'restore', 'keys', 'migrate', 'store'],
    ...['report', 'reset', 'service'],
  ],
  Webhooks: [
    ...['webhooks', 'sources', 'queues', 'connections', 'alerts'],
    ...['endpoints', 'messages', 'event-types'],
  ],
  Workflows: ['workflows', 'schedules', 'jobs'],
  Plugins: ['run', 'plugins'],
  Access: [
    ...['login', 'logout', 'whoami', 'tokens', 'clients', 'roles', 'secrets', 'audit', 'hosts'],
    ...['agent', 'mcp', 'agent-inbox'],
  ],
  Help: ['openapi', 'commands', 'explain', 'completion'],
} as const satisfies Record<string, readonly string[]>;

export type Group = keyof typeof GROUPS;

/** Verbs of each noun, in the order shown. */
export const VERBS: Readonly<Record<string, readonly string[]>> = {
  agent: ['register', 'run', 'install'],
  alerts: [
    ...['list', 'show', 'test', 'silence', 'unsilence', 'silences'],
    ...['rules', 'add-rule', 'delete-rule', 'channels', 'add-channel', 'delete-channel'],
  ],
  audit: ['list', 'verify'],
  clients: ['create', 'list', 'scopes', 'revoke'],
  connections: ['create', 'list', 'show', 'update', 'authorize', 'refresh', 'revoke', 'delete'],
  config: ['show', 'get', 'validate', 'schema'],
  endpoints: [
    ...['create', 'list', 'show', 'update', 'enable', 'disable', 'delete'],
    ...['rotate', 'test', 'attempts', 'replay', 'portal'],
  ],
  events: ['list', 'stats', 'tail'],
  hosts: ['invite', 'list', 'show', 'revoke'],
  jobs: ['submit', 'show', 'list', 'cancel'],
  keys: ['rotate', 'status'],
  mcp: ['stdio', 'config'],
  messages: ['send', 'list', 'show', 'attempts', 'replay'],
  plugins: [
    ...['list', 'show', 'install', 'update', 'uninstall', 'add-mcp', 'accept-mcp', 'enable', 'disable'],
    ...['link', 'unlink', 'dev', 'create', 'validate', 'test', 'repair'],
  ],
  queues: ['list', 'show', 'configure', 'put', 'lease', 'ack', 'nack', 'dead', 'retry', 'purge'],
  roles: ['grant', 'list', 'revoke'],
  schedules: ['list', 'pause', 'resume', 'trigger'],
  secrets: ['set', 'list', 'revoke'],
  service: ['install', 'status', 'uninstall'],
  sources: [
    ...['create', 'list', 'show', 'update', 'delete', 'rotate', 'expect-secret', 'connect', 'disconnect'],
    ...['pause', 'resume', 'deliveries', 'replay'],
  ],
  store: ['copy'],
  traces: ['show'],
  tokens: ['mint', 'list', 'revoke', 'inspect'],
  webhooks: [
    ...['provision', 'expect-secret', 'rotation', 'list', 'revoke', 'deliveries', 'counts', 'show', 'replay'],
    ...['tail', 'listen', 'send', 'pause', 'resume', 'fixture', 'import', 'providers'],
  ],
  workflows: [
    ...['list', 'run', 'create', 'validate', 'runs', 'counts', 'show', 'timeline', 'export'],
    ...['logs', 'cancel', 'pause', 'resume', 'rerun', 'approve', 'approve-secrets', 'decide', 'signal'],
  ],
};
