import type { CommandEntry } from './entry.ts';

/** Webhooks and their deliveries. */
export const WEBHOOK_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'webhooks provision',
    summary: 'Create or rotate the secret of a declared webhook',
    group: 'Webhooks',
    example: 'svc webhooks provision github push',
    load: async () => (await import('../commands/webhooks/provision.ts')).provision,
  },
  {
    name: 'webhooks list',
    summary: 'List declared webhooks and whether they are provisioned or paused',
    group: 'Webhooks',
    example: 'svc webhooks list',
    load: async () => (await import('../commands/webhooks/list.ts')).list,
  },
  {
    name: 'webhooks revoke',
    summary: 'Revoke the secret of a webhook; deliveries then get 401',
    group: 'Webhooks',
    example: 'svc webhooks revoke github push',
    load: async () => (await import('../commands/webhooks/revoke.ts')).revoke,
  },
  {
    name: 'webhooks deliveries',
    summary: 'List deliveries, including refused ones, newest first',
    group: 'Webhooks',
    example: 'svc webhooks deliveries --status failed --since 1h',
    load: async () => (await import('../commands/webhooks/deliveries.ts')).deliveries,
  },
  {
    name: 'webhooks show',
    summary: 'Show a delivery with its steps, headers, body, outcome and reason of refusal',
    group: 'Webhooks',
    example: 'svc webhooks show 01b8dac5-b5c2-7c27-a83c-4825204b1967',
    load: async () => (await import('../commands/webhooks/show.ts')).show,
  },
  {
    name: 'webhooks replay',
    summary: 'Run the handler again for one delivery or for all failed ones (--failed --since)',
    group: 'Webhooks',
    example: 'svc webhooks replay --failed --since 1h',
    load: async () => (await import('../commands/webhooks/replay.ts')).replay,
  },
  {
    name: 'webhooks tail',
    summary: 'Follow deliveries and their outcomes until Ctrl-C',
    group: 'Webhooks',
    example: 'svc webhooks tail --plugin github',
    load: async () => (await import('../commands/webhooks/tail.ts')).tail,
  },
  {
    name: 'webhooks listen',
    summary: 'Forward authentic deliveries to a local program until Ctrl-C',
    group: 'Webhooks',
    example: 'svc webhooks listen --forward http://localhost:3000/hooks',
    load: async () => (await import('../commands/webhooks/listen.ts')).listen,
  },
  {
    name: 'webhooks send',
    summary: "Send a signed sample delivery: the plugin's sample, or --data",
    group: 'Webhooks',
    example: "svc webhooks send github push --data @push.json --header 'x-github-event: push'",
    load: async () => (await import('../commands/webhooks/send.ts')).send,
  },
  {
    name: 'webhooks pause',
    summary: 'Pause a webhook: async deliveries are held, sync ones get 503',
    group: 'Webhooks',
    example: 'svc webhooks pause github push',
    load: async () => (await import('../commands/webhooks/pause.ts')).pause,
  },
  {
    name: 'webhooks resume',
    summary: 'Resume a paused webhook, starting with held deliveries',
    group: 'Webhooks',
    example: 'svc webhooks resume github push',
    load: async () => (await import('../commands/webhooks/resume.ts')).resume,
  },
];
