import { EVENT_COMMANDS } from './commands/events/entries.ts';
import { WORKFLOW_COMMANDS } from './commands/workflows/entries.ts';
import type { AnyCommand } from './define-command.ts';

/** What is known of a command before it is loaded: enough for help and for finding it. */
export interface CommandEntry {
  name: string;
  summary: string;
  group: 'Platform' | 'Access' | 'Webhooks' | 'Plugins' | 'Workflows';
  example: string;
  /** Works, but is not for people. */
  hidden?: boolean;
  load: () => Promise<AnyCommand>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'Start the platform, in the foreground or (-d) in the background',
    group: 'Platform',
    example: 'svc up -d --port gateway=4100',
    load: async () => (await import('./commands/up.ts')).up,
  },
  {
    name: 'down',
    summary: 'Stop the platform: drain every service, then end',
    group: 'Platform',
    example: 'svc down',
    load: async () => (await import('./commands/down.ts')).down,
  },
  {
    name: 'restart',
    summary: 'Restart one service, or all, with the config as it is now',
    group: 'Platform',
    example: 'svc restart gateway',
    load: async () => (await import('./commands/restart.ts')).restart,
  },
  {
    name: 'status',
    summary: 'What runs where, since when, and how it last ended',
    group: 'Platform',
    example: 'svc status --env > .env.svc',
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'logs',
    summary: 'Show the latest log lines of the services, or follow them',
    group: 'Platform',
    example: 'svc logs -f gateway workflow',
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  {
    name: 'webhooks provision',
    summary: 'Create or rotate the secret of a declared webhook',
    group: 'Webhooks',
    example: 'svc webhooks provision github push',
    load: async () => (await import('./commands/webhooks/provision.ts')).provision,
  },
  {
    name: 'webhooks list',
    summary: 'List declared webhooks, and which are provisioned',
    group: 'Webhooks',
    example: 'svc webhooks list',
    load: async () => (await import('./commands/webhooks/list.ts')).list,
  },
  {
    name: 'webhooks revoke',
    summary: 'Revoke the secret of a webhook: deliveries answer 401 from then on',
    group: 'Webhooks',
    example: 'svc webhooks revoke github push',
    load: async () => (await import('./commands/webhooks/revoke.ts')).revoke,
  },
  {
    name: 'webhooks deliveries',
    summary: 'List deliveries, refused ones too, newest first',
    group: 'Webhooks',
    example: 'svc webhooks deliveries --status failed --since 1h',
    load: async () => (await import('./commands/webhooks/deliveries.ts')).deliveries,
  },
  {
    name: 'webhooks show',
    summary: 'Show a delivery: every step, headers, body, outcome, and why it was refused',
    group: 'Webhooks',
    example: 'svc webhooks show 01b8dac5-b5c2-7c27-a83c-4825204b1967',
    load: async () => (await import('./commands/webhooks/show.ts')).show,
  },
  {
    name: 'webhooks replay',
    summary: 'Run the handler again: for one delivery, or for all that failed (--failed --since)',
    group: 'Webhooks',
    example: 'svc webhooks replay --failed --since 1h',
    load: async () => (await import('./commands/webhooks/replay.ts')).replay,
  },
  {
    name: 'webhooks tail',
    summary: 'Show deliveries as they come and as they end, until Ctrl-C',
    group: 'Webhooks',
    example: 'svc webhooks tail --plugin github',
    load: async () => (await import('./commands/webhooks/tail.ts')).tail,
  },
  {
    name: 'webhooks listen',
    summary: 'Forward each authentic delivery to a program on this machine, until Ctrl-C',
    group: 'Webhooks',
    example: 'svc webhooks listen --forward http://localhost:3000/hooks',
    load: async () => (await import('./commands/webhooks/listen.ts')).listen,
  },
  {
    name: 'webhooks send',
    summary: "Deliver a sample, signed by the gateway: the plugin's own, or --data",
    group: 'Webhooks',
    example: "svc webhooks send github push --data @push.json --header 'x-github-event: push'",
    load: async () => (await import('./commands/webhooks/send.ts')).send,
  },
  {
    name: 'webhooks pause',
    summary: 'Stop calling a handler: async deliveries are held, sync ones answered 503',
    group: 'Webhooks',
    example: 'svc webhooks pause github push',
    load: async () => (await import('./commands/webhooks/pause.ts')).pause,
  },
  {
    name: 'webhooks resume',
    summary: 'Call a paused handler again, for what was held first',
    group: 'Webhooks',
    example: 'svc webhooks resume github push',
    load: async () => (await import('./commands/webhooks/resume.ts')).resume,
  },
  ...EVENT_COMMANDS,
  ...WORKFLOW_COMMANDS,
  {
    name: 'run',
    summary: "Run a plugin's command; its flags come from its input schema",
    group: 'Plugins',
    example: 'svc run github summary --repository octo/hello',
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'plugins list',
    summary: 'List plugins, broken and disabled ones too',
    group: 'Plugins',
    example: 'svc plugins list',
    load: async () => (await import('./commands/plugins/list.ts')).list,
  },
  {
    name: 'plugins show',
    summary: 'Show a plugin: what it brings along, and what it may do',
    group: 'Plugins',
    example: 'svc plugins show github',
    load: async () => (await import('./commands/plugins/show.ts')).show,
  },
  {
    name: 'plugins install',
    summary: 'Install a plugin: npm name and range, archive, folder or git address',
    group: 'Plugins',
    example: 'svc plugins install @acme/orders@^1.2.0',
    load: async () => (await import('./commands/plugins/install.ts')).install,
  },
  {
    name: 'plugins update',
    summary: 'Update an installed plugin, after showing what changes',
    group: 'Plugins',
    example: 'svc plugins update @acme/orders',
    load: async () => (await import('./commands/plugins/update.ts')).update,
  },
  {
    name: 'plugins uninstall',
    summary: 'Uninstall a plugin; what it kept in its state stays',
    group: 'Plugins',
    example: 'svc plugins uninstall @acme/orders',
    load: async () => (await import('./commands/plugins/uninstall.ts')).uninstall,
  },
  {
    name: 'plugins enable',
    summary: 'Switch a plugin on again',
    group: 'Plugins',
    example: 'svc plugins enable github',
    load: async () => (await import('./commands/plugins/switch.ts')).enable,
  },
  {
    name: 'plugins disable',
    summary: 'Switch a plugin off; what it runs now finishes',
    group: 'Plugins',
    example: 'svc plugins disable github',
    load: async () => (await import('./commands/plugins/switch.ts')).disable,
  },
  {
    name: 'plugins link',
    summary: 'Use a folder under development as a plugin, where it is',
    group: 'Plugins',
    example: 'svc plugins link ./my-plugin',
    load: async () => (await import('./commands/plugins/link.ts')).link,
  },
  {
    name: 'plugins unlink',
    summary: 'Stop using a linked folder; it stays as it is',
    group: 'Plugins',
    example: 'svc plugins unlink my-plugin',
    load: async () => (await import('./commands/plugins/link.ts')).unlink,
  },
  {
    name: 'plugins dev',
    summary: 'Link a folder, and have the services read it anew whenever it changes',
    group: 'Plugins',
    example: 'svc plugins dev ./my-plugin',
    load: async () => (await import('./commands/plugins/dev.ts')).dev,
  },
  {
    name: 'plugins create',
    summary: 'Make a new plugin whose tests pass',
    group: 'Plugins',
    example: 'svc plugins create orders --template rest',
    load: async () => (await import('./commands/plugins/create.ts')).create,
  },
  {
    name: 'plugins validate',
    summary: "Check a plugin's manifest, files and handlers, and list every fault",
    group: 'Plugins',
    example: 'svc plugins validate ./plugins/orders',
    load: async () => (await import('./commands/plugins/validate.ts')).validate,
  },
  {
    name: 'login',
    summary: 'Log in to a gateway elsewhere with client credentials; the secret is read from stdin',
    group: 'Access',
    example: 'svc login client_01b8dac5 --url https://svc.example.com < secret.txt',
    load: async () => (await import('./commands/login.ts')).login,
  },
  {
    name: 'logout',
    summary: 'Forget the login to a gateway elsewhere',
    group: 'Access',
    example: 'svc logout --url https://svc.example.com',
    load: async () => (await import('./commands/logout.ts')).logout,
  },
  {
    name: 'whoami',
    summary: 'Whom the gateway takes this command line for',
    group: 'Access',
    example: 'svc whoami',
    load: async () => (await import('./commands/whoami.ts')).whoami,
  },
  {
    name: 'tokens mint',
    summary: 'Mint an access token for a host id',
    group: 'Access',
    example: 'svc tokens mint ci --namespace acme --ttl-seconds 86400',
    load: async () => (await import('./commands/tokens/mint.ts')).mint,
  },
  {
    name: 'tokens list',
    summary: 'List the tokens minted by hand that have not expired',
    group: 'Access',
    example: 'svc tokens list',
    load: async () => (await import('./commands/tokens/list.ts')).list,
  },
  {
    name: 'tokens revoke',
    summary: 'Revoke a token by its id: it is refused at once',
    group: 'Access',
    example: 'svc tokens revoke 01b8dac5-b400-78bd-9f09-db9b7052b656',
    load: async () => (await import('./commands/tokens/revoke.ts')).revoke,
  },
  {
    name: 'tokens inspect',
    summary: 'Show what a JWT says; its signature is not checked',
    group: 'Access',
    example: 'svc tokens inspect eyJhbGciOiJIUzI1NiJ9...',
    load: async () => (await import('./commands/tokens/inspect.ts')).inspect,
  },
  {
    name: 'clients create',
    summary: 'Create client credentials, which POST /auth/token takes',
    group: 'Access',
    example: 'svc clients create nightly-import --namespace acme',
    load: async () => (await import('./commands/clients/create.ts')).create,
  },
  {
    name: 'clients list',
    summary: 'List clients, those of hosts included, without their secrets',
    group: 'Access',
    example: 'svc clients list',
    load: async () => (await import('./commands/clients/list.ts')).list,
  },
  {
    name: 'clients revoke',
    summary: 'Revoke a client: its credentials and all of its tokens are refused at once',
    group: 'Access',
    example: 'svc clients revoke client_01b8dac5',
    load: async () => (await import('./commands/clients/revoke.ts')).revoke,
  },
  {
    name: 'hosts invite',
    summary: 'Make an enrolment token: one machine may register with it within 15 minutes',
    group: 'Access',
    example: 'svc hosts invite --namespace acme',
    load: async () => (await import('./commands/hosts/invite.ts')).invite,
  },
  {
    name: 'hosts list',
    summary: 'List registered hosts and whether they are connected',
    group: 'Access',
    example: 'svc hosts list',
    load: async () => (await import('./commands/hosts/list.ts')).list,
  },
  {
    name: 'hosts show',
    summary: 'Show one host',
    group: 'Access',
    example: 'svc hosts show host_01b8dac5',
    load: async () => (await import('./commands/hosts/show.ts')).show,
  },
  {
    name: 'hosts revoke',
    summary: 'Revoke a host: its client id, tokens and socket are refused at once',
    group: 'Access',
    example: 'svc hosts revoke host_01b8dac5',
    load: async () => (await import('./commands/hosts/revoke.ts')).revoke,
  },
  {
    name: 'agent register',
    summary: 'Register this machine as a host that runs plugin code',
    group: 'Access',
    example: 'svc agent register --gateway https://svc.example.com --token <enrolment token>',
    load: async () => (await import('./commands/agent/register.ts')).register,
  },
  {
    name: 'agent run',
    summary: 'Connect this machine to its gateway and run plugin code for it',
    group: 'Access',
    example: 'svc agent run --max-processes 4',
    load: async () => (await import('./commands/agent/run.ts')).run,
  },
  {
    name: 'agent install',
    summary: 'Print a systemd unit that keeps the agent running, or write it (--write)',
    group: 'Access',
    example: 'svc agent install > svc-agent.service',
    load: async () => (await import('./commands/agent/install.ts')).install,
  },
  {
    name: 'supervise',
    summary: 'Run the platform for the `svc up -d` that started this process',
    group: 'Platform',
    example: 'svc supervise',
    hidden: true,
    load: async () => (await import('./commands/supervise.ts')).supervise,
  },
];

/** The command of these words; the first noun also in the singular. */
export function findCommand(words: readonly string[]): CommandEntry | undefined {
  const name = [pluralOf(words[0] ?? ''), ...words.slice(1)].join(' ');
  return COMMANDS.find((entry) => entry.name === name);
}

/** `webhook` means `webhooks`. */
export function pluralOf(noun: string): string {
  return isNoun(`${noun}s`) ? `${noun}s` : noun;
}

/** Whether the word is a noun that needs a verb after it. */
export function isNoun(word: string): boolean {
  return COMMANDS.some((entry) => entry.name.startsWith(`${word} `));
}

export function verbsOf(noun: string): CommandEntry[] {
  return COMMANDS.filter((entry) => !entry.hidden && entry.name.startsWith(`${noun} `));
}
