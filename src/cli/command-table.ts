import type { AnyCommand } from './define-command.ts';

/** What is known of a command before it is loaded: enough for help and for finding it. */
export interface CommandEntry {
  name: string;
  summary: string;
  group: 'Platform' | 'Webhooks' | 'Plugins';
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
    name: 'plugins validate',
    summary: "Check a plugin's manifest, files and handlers, and list every fault",
    group: 'Plugins',
    example: 'svc plugins validate ./plugins/orders',
    load: async () => (await import('./commands/plugins/validate.ts')).validate,
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
