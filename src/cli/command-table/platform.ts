import type { CommandEntry } from './entry.ts';

/** Starting, stopping and monitoring the platform. */
export const PLATFORM_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'Start the platform, in the foreground or with -d in the background',
    group: 'Platform',
    example: 'svc up -d --port gateway=4100',
    load: async () => (await import('../commands/up.ts')).up,
  },
  {
    name: 'down',
    summary: 'Drain and stop the platform',
    group: 'Platform',
    example: 'svc down',
    load: async () => (await import('../commands/down.ts')).down,
  },
  {
    name: 'restart',
    summary: 'Restart one or all services with the current config',
    group: 'Platform',
    example: 'svc restart gateway',
    load: async () => (await import('../commands/restart.ts')).restart,
  },
  {
    name: 'status',
    summary: 'Show services with address, uptime and last exit',
    group: 'Platform',
    example: 'svc status --env > .env.svc',
    load: async () => (await import('../commands/status.ts')).status,
  },
  {
    name: 'logs',
    summary: 'Show the latest log lines of the services, or follow them',
    group: 'Platform',
    example: 'svc logs -f gateway workflow',
    load: async () => (await import('../commands/logs.ts')).logs,
  },
  {
    name: 'supervise',
    summary: 'Run the platform for the `svc up -d` that started this process',
    group: 'Platform',
    example: 'svc supervise',
    hidden: true,
    load: async () => (await import('../commands/supervise.ts')).supervise,
  },
];
