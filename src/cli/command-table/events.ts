import type { CommandEntry } from './entry.ts';

export const EVENT_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'events list',
    summary: 'List analytics events, newest first',
    group: 'Platform',
    example: 'svc events list --type plugin.command.failed --since 1d',
    load: async () => (await import('../commands/events/list.ts')).list,
  },
  {
    name: 'events stats',
    summary: 'Count events by type, source, actor and day',
    group: 'Platform',
    example: 'svc events stats --since 7d',
    load: async () => (await import('../commands/events/stats.ts')).stats,
  },
  {
    name: 'events tail',
    summary: 'Follow new events until Ctrl-C',
    group: 'Platform',
    example: 'svc events tail --type plugin.command.failed',
    load: async () => (await import('../commands/events/tail.ts')).tail,
  },
];
