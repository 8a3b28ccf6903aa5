import type { CommandEntry } from './entry.ts';

/** What the command line and the API say of themselves. */
export const SHELL_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'openapi',
    summary: 'Print the OpenAPI description of one service, or of all of them',
    group: 'Help',
    example: 'svc openapi --merged > openapi.json',
    load: async () => (await import('../commands/openapi.ts')).openapi,
  },
  {
    name: 'commands',
    summary: 'List every command with an example; --json describes each argument',
    group: 'Help',
    example: 'svc commands --json',
    load: async () => (await import('../commands/commands.ts')).commands,
  },
  {
    name: 'explain',
    summary: 'Say what an error, reason or exit code means, and what to do',
    group: 'Help',
    example: 'svc explain WEBHOOK_NOT_FOUND',
    load: async () => (await import('../commands/explain.ts')).explain,
  },
  {
    name: 'completion',
    summary: 'Print the script that lets a shell complete svc, live ids included',
    group: 'Help',
    example: 'source <(svc completion bash)',
    load: async () => (await import('../commands/completion.ts')).completion,
  },
];
