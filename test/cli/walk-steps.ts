import type { AnyJson } from '../support/any-json.ts';
/** An id that nothing has. */
export const NOBODY = '01b8dac5-b5c2-7c27-a83c-4825204b1967';

/** Ids of messages and endpoints that nothing has. */
const NO_ENDPOINT = 'ep_00000000000000000000000000';
const NO_MESSAGE = 'msg_00000000000000000000000000';

/** What earlier commands made, for the later ones. */
export interface Made {
  endpoint: string;
  message: string;
  delivery: string;
  trace: string;
  run: string;
  schedule: string;
  job: string;
  lease: string;
  jti: string;
  token: string;
  client: string;
  clientSecret: string;
  invitation: string;
  host: string;
  gateway: string;
}

export interface Step {
  args: (made: Made) => string[];
  /** The exit code that is right here; 0 unless told. */
  code?: number;
  /** What it is good for later. */
  take?: (result: AnyJson) => Partial<Made>;
  stdin?: (made: Made) => string;
}

const step = (...args: string[]): Step => ({ args: () => args });
const fails = (code: number, ...args: string[]): Step => ({ args: () => args, code });

/**
 * Every command but those that stream until they are told to stop, in an order in which most succeed. The keys are the
 * names in the table; a command that is not here fails the first test.
 */
export const STEPS: Record<string, Step[]> = {
  up: [step('up', '-d')],
  studio: [step('studio')],
  status: [
    step('status'),
    {
      args: () => ['status', '--env'],
      take: ({ env }) => ({ gateway: env.SVC_GATEWAY_URL }),
    },
  ],
  logs: [],
  doctor: [{ ...step('doctor'), code: -1 }],
  init: [step('init', 'sub', '--yes'), fails(1, 'init', 'sub', '--yes')],
  'config show': [step('config', 'show')],
  'config get': [step('config', 'get', 'gateway.port'), fails(2, 'config', 'get', 'gateway.prot')],
  'config validate': [step('config', 'validate')],
  'config schema': [step('config', 'schema')],
  backup: [step('backup', 'b.tar.gz'), fails(1, 'backup', 'b.tar.gz')],
  'keys status': [step('keys', 'status')],
  report: [step('report', 'r.tar.gz')],
  'service install': [step('service', 'install', '--user')],
  'service status': [step('service', 'status', '--user')],
  'service uninstall': [{ ...step('service', 'uninstall', '--user'), code: -1 }],
  'webhooks provision': [
    step('webhooks', 'provision', 'toy', 'ping'),
    fails(1, 'webhook', 'provision', 'toy', 'pang'),
  ],
  'webhooks expect-secret': [fails(1, 'webhooks', 'expect-secret', 'senders', 'sync')],
  'webhooks fixture': [fails(1, 'webhooks', 'fixture', NOBODY)],
  'webhooks import': [fails(1, 'webhooks', 'import', 'no-such-file.json')],
  'webhooks list': [step('webhooks', 'list')],
  'webhooks pause': [step('webhooks', 'pause', 'toy', 'ping')],
  'webhooks resume': [step('webhooks', 'resume', 'toy', 'ping')],
  'webhooks send': [
    {
      args: () => ['webhooks', 'send', 'toy', 'ping', '--data', '{"n":1}'],
      take: ({ webhookId }) => ({ delivery: webhookId }),
    },
  ],
  'webhooks deliveries': [step('webhooks', 'deliveries', '--since', '1h')],
  'webhooks rotation': [
    step('webhooks', 'rotation', 'toy', 'ping'),
    fails(1, 'webhooks', 'rotation', 'toy', 'pang'),
  ],
  'webhooks providers': [
    step('webhooks', 'providers'),
    step('webhooks', 'providers', 'stripe'),
    fails(2, 'webhooks', 'providers', 'nobody'),
  ],
  'webhooks counts': [step('webhooks', 'counts', '--since', '1h')],
  'webhooks show': [
    {
      args: ({ delivery }) => ['webhooks', 'show', delivery],
      take: ({ traceId }) => ({ trace: traceId }),
    },
    fails(1, 'webhooks', 'show', NOBODY),
  ],
  'webhooks replay': [{ args: ({ delivery }) => ['webhooks', 'replay', delivery] }],
  'webhooks revoke': [
    step('webhooks', 'revoke', 'toy', 'ping'),
    fails(1, 'webhooks', 'send', 'toy', 'ping', '--data', '{}'),
  ],
  'alerts add-channel': [
    step('alerts', 'add-channel', 'ops', '--type', 'webhook', '--target', 'https://receiver.example/alerts'),
    fails(1, 'alerts', 'add-channel', 'mail', '--type', 'email'),
  ],
  'alerts channels': [step('alerts', 'channels')],
  'alerts add-rule': [
    step('alerts', 'add-rule', 'failed-runs', '--kind', 'run.failed', '--channels', 'ops'),
    fails(1, 'alerts', 'add-rule', 'other', '--kind', 'run.failed', '--channels', 'nothing'),
  ],
  'alerts rules': [step('alerts', 'rules')],
  'alerts test': [step('alerts', 'test', '--channel', 'ops'), fails(2, 'alerts', 'test')],
  'alerts silence': [
    step('alerts', 'silence', '--rule', 'failed-runs', '--for', '2h'),
    fails(2, 'alerts', 'silence', '--rule', 'failed-runs', '--for', 'long'),
  ],
  'alerts silences': [step('alerts', 'silences')],
  'alerts unsilence': [fails(1, 'alerts', 'unsilence', 'sil_nothing')],
  'alerts list': [step('alerts', 'list', '--state', 'firing')],
  'alerts show': [fails(1, 'alerts', 'show', 'alert_nothing')],
  'alerts delete-rule': [step('alerts', 'delete-rule', 'failed-runs')],
  'alerts delete-channel': [step('alerts', 'delete-channel', 'ops')],
  'endpoints create': [
    {
      args: () => ['endpoints', 'create', 'https://hooks.example/in', '--application', 'walk'],
      take: ({ id }) => ({ endpoint: id }),
    },
    fails(2, 'endpoints', 'create', 'https://hooks.example/in', '--headers', '{}'),
  ],
  'endpoints list': [step('endpoints', 'list')],
  'endpoints show': [
    { args: ({ endpoint }) => ['endpoints', 'show', endpoint] },
    fails(1, 'endpoints', 'show', NO_ENDPOINT),
  ],
  'endpoints update': [
    { args: ({ endpoint }) => ['endpoints', 'update', endpoint, '--rate', '5'] },
    fails(2, 'endpoints', 'update', NO_ENDPOINT),
  ],
  'endpoints rotate': [{ args: ({ endpoint }) => ['endpoints', 'rotate', endpoint] }],
  'endpoints disable': [{ args: ({ endpoint }) => ['endpoints', 'disable', endpoint] }],
  'endpoints enable': [{ args: ({ endpoint }) => ['endpoints', 'enable', endpoint] }],
  'endpoints test': [fails(1, 'endpoints', 'test', NO_ENDPOINT)],
  'endpoints attempts': [{ args: ({ endpoint }) => ['endpoints', 'attempts', endpoint] }],
  'endpoints replay': [{ args: ({ endpoint }) => ['endpoints', 'replay', endpoint, '--dead'] }],
  'endpoints portal': [
    step('endpoints', 'portal', 'walk'),
    step('endpoints', 'portal', 'walk', '--revoke'),
    fails(2, 'endpoints', 'portal', 'walk', '--expires', '8d'),
  ],
  'messages send': [
    {
      args: () => ['messages', 'send', 'order.paid', '--data', '{"n": 1}'],
      take: ({ id }) => ({ message: id }),
    },
  ],
  'messages list': [step('messages', 'list')],
  'messages show': [
    { args: ({ message }) => ['messages', 'show', message] },
    fails(1, 'messages', 'show', NO_MESSAGE),
  ],
  'messages attempts': [{ args: ({ message }) => ['messages', 'attempts', message] }],
  'messages replay': [step('messages', 'replay', '--dead'), fails(2, 'messages', 'replay')],
  'endpoints delete': [
    { args: ({ endpoint }) => ['endpoints', 'delete', endpoint, '--yes'] },
    fails(1, 'endpoints', 'delete', NO_ENDPOINT, '--yes'),
  ],
  'event-types': [step('event-types')],
  'sources create': [
    step('sources', 'create', 'inbound', '--auth', '{"type":"token"}'),
    fails(1, 'sources', 'create', 'inbound', '--provider', 'github'),
    fails(2, 'sources', 'create', 'other'),
  ],
  'sources connect': [
    step('sources', 'connect', 'inbound', '--queue', 'inbound'),
    fails(1, 'sources', 'connect', 'inbound', '--workflow', 'hold', '--filter', 'body.'),
  ],
  'sources list': [step('sources', 'list')],
  'sources show': [step('sources', 'show', 'inbound'), fails(1, 'sources', 'show', 'nothing')],
  'sources update': [
    step('sources', 'update', 'inbound', '--description', 'For tests'),
    step('sources', 'update', 'inbound', '--destination', 'queue', '--concurrency', '2'),
    fails(2, 'sources', 'update', 'inbound'),
  ],
  'sources rotate': [step('sources', 'rotate', 'inbound')],
  'sources expect-secret': [fails(1, 'sources', 'expect-secret', 'inbound')],
  'sources pause': [step('sources', 'pause', 'inbound', '--destination', 'queue')],
  'sources resume': [step('sources', 'resume', 'inbound', '--destination', 'queue')],
  'sources deliveries': [step('sources', 'deliveries', 'inbound')],
  'sources replay': [fails(1, 'sources', 'replay', 'inbound', NOBODY)],
  'sources disconnect': [step('sources', 'disconnect', 'inbound', 'queue')],
  'sources delete': [step('sources', 'delete', 'inbound'), fails(1, 'sources', 'delete', 'inbound')],
  'events list': [step('events', 'list')],
  'events stats': [step('events', 'stats')],
  'traces show': [
    { args: ({ trace }) => ['traces', 'show', trace] },
    fails(1, 'traces', 'show', 'nothing-of-the-kind'),
  ],
  'connections create': [
    step('connections', 'create', 'crm', '--provider', 'github', '--client-id', 'c', '--no-wait'),
    fails(2, 'connections', 'create', 'other', '--client-id', 'c'),
    fails(1, 'connections', 'create', 'other', '--client-id', 'c', '--issuer', 'http://provider.example'),
  ],
  'connections list': [step('connections', 'list')],
  'connections show': [step('connections', 'show', 'crm'), fails(1, 'connections', 'show', 'nothing')],
  'connections update': [
    step('connections', 'update', 'crm', '--scopes', 'repo'),
    fails(2, 'connections', 'update', 'crm'),
  ],
  'connections authorize': [step('connections', 'authorize', 'crm', '--no-wait')],
  'connections refresh': [fails(1, 'connections', 'refresh', 'crm')],
  'connections revoke': [step('connections', 'revoke', 'crm', '--yes')],
  'connections delete': [
    step('connections', 'delete', 'crm', '--yes'),
    fails(1, 'connections', 'delete', 'crm', '--yes'),
  ],
  'queues put': [step('queues', 'put', 'orders', '{"n":1}', '--id', 'one')],
  'queues list': [step('queues', 'list')],
  'queues show': [
    step('queues', 'show', 'orders'),
    step('queues', 'show', 'orders', 'one'),
    fails(1, 'queues', 'show', 'nothing'),
  ],
  'queues configure': [
    step('queues', 'configure', 'orders', '--max-attempts', '5', '--concurrency', '4'),
    step('queues', 'configure', 'orders', '--concurrency', 'none'),
    fails(2, 'queues', 'configure', 'orders'),
    fails(2, 'queues', 'configure', 'orders', '--lease-ms', '10'),
  ],
  'queues lease': [
    {
      args: () => ['queues', 'lease', 'orders'],
      take: ({ items }) => ({ lease: items[0].leaseId }),
    },
  ],
  'queues nack': [{ args: ({ lease }) => ['queues', 'nack', 'orders', lease, '--delay-ms', '0'] }],
  'queues ack': [{ args: ({ lease }) => ['queues', 'ack', 'orders', lease], code: 1 }],
  'queues dead': [step('queues', 'dead', 'orders')],
  'queues retry': [
    step('queues', 'retry', 'orders', '--dead'),
    step('queues', 'retry', 'orders', '--dead', '--dry-run'),
    fails(1, 'queues', 'retry', 'orders', 'one'),
    fails(2, 'queues', 'retry', 'orders'),
  ],
  'queues purge': [
    fails(3, 'queues', 'purge', 'orders', 'waiting'),
    step('queues', 'purge', 'orders', 'waiting', '--yes'),
  ],
  'secrets set': [
    { args: () => ['secrets', 'set', 'API_KEY', '--expires', '90d'], stdin: () => 'a value of the walk\n' },
    { args: () => ['secrets', 'set', 'SHORT'], stdin: () => 'short', code: 1 },
    { args: () => ['secrets', 'set', 'lower'], stdin: () => 'a value of the walk', code: 2 },
  ],
  'secrets list': [step('secrets', 'list')],
  'secrets revoke': [
    step('secrets', 'revoke', 'API_KEY', '--yes'),
    fails(1, 'secrets', 'revoke', 'API_KEY', '--yes'),
  ],
  'workflows approve-secrets': [fails(1, 'workflows', 'approve-secrets', 'hold', '--yes')],
  'workflows list': [step('workflows', 'list')],
  'workflows run': [
    { args: () => ['workflows', 'run', 'hold'], take: ({ id }) => ({ run: id }) },
    fails(1, 'workflows', 'run', 'nothing'),
  ],
  'workflows create': [
    step('workflows', 'create', 'fresh'),
    fails(1, 'workflows', 'create', 'fresh'),
    step('workflows', 'validate', 'workflows/fresh.yaml'),
  ],
  'workflows validate': [
    step('workflows', 'validate', 'workflows/hold.yaml'),
    fails(1, 'workflows', 'validate', 'nowhere.yaml'),
  ],
  'workflows runs': [step('workflows', 'runs')],
  'workflows counts': [step('workflows', 'counts')],
  'workflows show': [{ args: ({ run }) => ['workflows', 'show', run] }],
  'workflows timeline': [{ args: ({ run }) => ['workflows', 'timeline', run] }],
  'workflows export': [
    { args: ({ run }) => ['workflows', 'export', run] },
    { args: ({ run }) => ['workflows', 'export', run, '--otlp'] },
    fails(1, 'workflows', 'export', 'run_nothing'),
  ],
  'workflows pause': [
    { args: ({ run }) => ['workflows', 'pause', run] },
    step('workflows', 'pause', '--workflow', 'hold'),
    fails(1, 'workflows', 'pause', 'run_nothing'),
    fails(1, 'workflows', 'pause', '--workflow', 'nothing'),
    fails(2, 'workflows', 'pause'),
  ],
  'workflows resume': [
    { args: ({ run }) => ['workflows', 'resume', run] },
    step('workflows', 'resume', '--workflow', 'hold'),
    fails(1, 'workflows', 'resume', 'run_nothing'),
  ],
  'workflows decide': [
    { args: ({ run }) => ['workflows', 'decide', run, 'main.note', 'retry'], code: 1 },
    step('workflows', 'decide', 'all', 'all', 'retry'),
  ],
  'workflows approve': [{ args: ({ run }) => ['workflows', 'approve', run, 'main.gate'] }],
  'workflows signal': [{ args: ({ run }) => ['workflows', 'signal', run, 'paid', '--input', '{"n":1}'] }],
  'workflows cancel': [
    { args: ({ run }) => ['workflows', 'cancel', run] },
    step('workflows', 'cancel', '--all', '--dry-run'),
  ],
  'workflows rerun': [{ args: ({ run }) => ['workflows', 'rerun', run] }],
  'schedules list': [{ args: () => ['schedules', 'list'], take: ({ items }) => ({ schedule: items[0].id }) }],
  'schedules pause': [{ args: ({ schedule }) => ['schedules', 'pause', schedule] }],
  'schedules resume': [{ args: ({ schedule }) => ['schedules', 'resume', schedule] }],
  'schedules trigger': [{ args: ({ schedule }) => ['schedules', 'trigger', schedule] }],
  'jobs submit': [{ args: () => ['jobs', 'submit', 'toy/sweep'], take: ({ id }) => ({ job: id }) }],
  'jobs show': [{ args: ({ job }) => ['jobs', 'show', job] }],
  'jobs list': [step('jobs', 'list')],
  'jobs cancel': [{ args: ({ job }) => ['jobs', 'cancel', job] }],
  run: [
    step('run', 'toy', 'greet', '--input', '{"name":"Ada"}'),
    fails(1, 'run', 'toy', 'refuse'),
    fails(2, 'run', 'toy'),
  ],
  'plugins list': [step('plugins', 'list')],
  'plugins show': [step('plugins', 'show', 'toy'), fails(1, 'plugins', 'show', 'nothing')],
  'plugins create': [step('plugins', 'create', 'extra', '--folder', 'made/extra')],
  'plugins validate': [step('plugins', 'validate', 'made/extra')],
  'plugins test': [step('plugins', 'test', 'made/extra'), fails(1, 'plugins', 'test', 'nowhere')],
  'plugins repair': [step('plugins', 'repair', 'made/extra'), fails(1, 'plugins', 'repair', 'nowhere')],
  'plugins link': [step('plugins', 'link', 'made/extra', '--yes')],
  'plugins unlink': [step('plugins', 'unlink', 'extra')],
  'plugins install': [
    fails(3, 'plugins', 'install', './made/extra'),
    step('plugins', 'install', './made/extra', '--yes'),
  ],
  'plugins update': [step('plugins', 'update', 'extra', './made/extra', '--yes')],
  'plugins disable': [step('plugins', 'disable', 'extra')],
  'plugins enable': [step('plugins', 'enable', 'extra')],
  'plugins add-mcp': [fails(1, 'plugins', 'add-mcp', 'http://127.0.0.1:9/mcp', '--yes')],
  'plugins accept-mcp': [fails(1, 'plugins', 'accept-mcp', 'extra', '--yes')],
  'plugins uninstall': [step('plugins', 'uninstall', 'extra', '--yes')],
  'tokens mint': [
    {
      args: () => ['tokens', 'mint', 'ci'],
      take: ({ token, jti }) => ({ token, jti }),
    },
  ],
  'tokens list': [step('tokens', 'list')],
  'tokens inspect': [
    { args: ({ token }) => ['tokens', 'inspect', token] },
    fails(2, 'tokens', 'inspect', 'opaque'),
  ],
  'tokens revoke': [{ args: ({ jti }) => ['tokens', 'revoke', jti] }],
  'clients create': [
    {
      args: () => ['clients', 'create', 'nightly'],
      take: ({ clientId, clientSecret }) => ({ client: clientId, clientSecret }),
    },
  ],
  'clients list': [step('clients', 'list')],
  'agent-inbox': [step('agent-inbox', 'agent-events'), fails(1, 'agent-inbox', 'agent-events')],
  'clients scopes': [
    { args: ({ client }) => ['clients', 'scopes', client, '--scope', 'deliveries:read'] },
    { args: ({ client }) => ['clients', 'scopes', client, '--all'] },
    { args: ({ client }) => ['clients', 'scopes', client], code: 2 },
  ],
  'roles grant': [
    step('roles', 'grant', 'host:walker', 'viewer'),
    step('roles', 'grant', 'host:walker', 'editor', '--all-namespaces'),
    fails(2, 'roles', 'grant', 'walker', 'viewer'),
  ],
  'roles list': [step('roles', 'list')],
  'roles revoke': [
    step('roles', 'revoke', 'host:walker'),
    step('roles', 'revoke', 'host:walker', '--all-namespaces'),
    fails(1, 'roles', 'revoke', 'host:walker'),
  ],
  'audit list': [step('audit', 'list', '--action', 'role.', '--since', '1h')],
  'audit verify': [step('audit', 'verify'), fails(1, 'audit', 'verify', '--expect', `1:${'0'.repeat(64)}`)],
  login: [
    {
      args: ({ client, gateway }) => ['login', client, '--url', gateway],
      stdin: ({ clientSecret }) => clientSecret,
    },
    { args: ({ client, gateway }) => ['login', client, '--url', gateway], stdin: () => 'wrong', code: 4 },
  ],
  'mcp stdio': [],
  'mcp config': [step('mcp', 'config', 'claude'), fails(2, 'mcp', 'config', 'emacs')],
  whoami: [step('whoami'), { args: ({ gateway }) => ['whoami', '--url', gateway] }],
  logout: [{ args: ({ gateway }) => ['logout', '--url', gateway] }, fails(2, 'logout')],
  'clients revoke': [{ args: ({ client }) => ['clients', 'revoke', client] }],
  'hosts invite': [{ args: () => ['hosts', 'invite'], take: ({ token }) => ({ invitation: token }) }],
  'agent register': [
    {
      args: ({ invitation, gateway }) => ['agent', 'register', '--gateway', gateway, '--token', invitation],
      take: ({ hostId }) => ({ host: hostId }),
    },
  ],
  'agent install': [step('agent', 'install')],
  'hosts list': [step('hosts', 'list')],
  'hosts show': [{ args: ({ host }) => ['hosts', 'show', host] }],
  'hosts revoke': [{ args: ({ host }) => ['hosts', 'revoke', host] }],
  openapi: [step('openapi'), step('openapi', 'rest'), step('openapi', '--client', 'ts')],
  commands: [step('commands')],
  explain: [step('explain', 'UNAUTHORIZED'), step('explain'), fails(2, 'explain', 'NOTHING_OF_THE_KIND')],
  completion: [step('completion', 'bash'), fails(2, 'completion', 'tcsh')],
  restart: [step('restart', 'rest')],
  down: [step('down')],
  migrate: [step('migrate')],
  'store copy': [fails(1, 'store', 'copy', '.svc', 'postgres://127.0.0.1:1/none')],
  'keys rotate': [fails(3, 'keys', 'rotate'), step('keys', 'rotate', '--yes')],
  restore: [fails(3, 'restore', 'b.tar.gz'), step('restore', 'b.tar.gz', '--yes')],
  reset: [fails(3, 'reset'), step('reset', '--yes')],
};

/** How each streaming command is called; all of them end by a signal. */
export const STREAMS: Record<string, (made: Made) => string[]> = {
  logs: () => ['logs', '-f', '-n', '5'],
  'webhooks tail': () => ['webhooks', 'tail', '--cursor', '0'],
  'webhooks listen': () => ['webhooks', 'listen', '--cursor', '0'],
  'events tail': () => ['events', 'tail', '-n', '5'],
  'workflows logs': ({ run }) => ['workflows', 'logs', run, '-f'],
  'workflows run': () => ['workflows', 'run', 'hold', '--follow'],
  'plugins dev': () => ['plugins', 'dev', 'made/extra'],
  'agent run': () => ['agent', 'run'],
  up: () => ['up'],
  start: () => ['start', 'state'],
};
