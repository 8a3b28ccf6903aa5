import type { CommandEntry } from './entry.ts';

/** Help on the CLI and the API. */
export const SHELL_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'openapi',
    summary: 'Print the OpenAPI description of one or all services',
    group: 'Help',
    example: 'svc openapi --merged > openapi.json',
    load: async () => (await import('../commands/openapi.ts')).openapi,
  },
  {
    name: 'explain',
    summary: 'Explain an error, reason or exit code and what to do',
    group: 'Help',
    example: 'svc explain WEBHOOK_NOT_FOUND',
    load: async () => (await import('../commands/explain.ts')).explain,
  },
  {
    name: 'completion',
    summary: 'Print a shell completion script, which also completes live ids',
    group: 'Help',
    example: 'source <(svc completion bash)',
    load: async () => (await import('../commands/completion.ts')).completion,
  },
];
