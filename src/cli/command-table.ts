import { ACCESS_COMMANDS } from './command-table/access.ts';
import type { CommandEntry } from './command-table/entry.ts';
import { EVENT_COMMANDS } from './command-table/events.ts';
import { PLATFORM_COMMANDS } from './command-table/platform.ts';
import { PLUGIN_COMMANDS } from './command-table/plugins.ts';
import { SETUP_COMMANDS } from './command-table/setup.ts';
import { SHELL_COMMANDS } from './command-table/shell.ts';
import { WEBHOOK_COMMANDS } from './command-table/webhooks.ts';
import { WORKFLOW_COMMANDS } from './command-table/workflows.ts';

/** All commands. Help lists the groups in this order. */
export const COMMANDS: readonly CommandEntry[] = [
  ...PLATFORM_COMMANDS,
  ...SETUP_COMMANDS,
  ...WEBHOOK_COMMANDS,
  ...EVENT_COMMANDS,
  ...WORKFLOW_COMMANDS,
  ...PLUGIN_COMMANDS,
  ...ACCESS_COMMANDS,
  {
    name: 'commands',
    summary: 'List all commands with examples; --json describes each argument',
    group: 'Help',
    example: 'svc commands --json',
    load: async () => (await import('./commands/commands.ts')).commandsOf(COMMANDS),
  },
  ...SHELL_COMMANDS,
];

/** Finds a command by its words; the noun may be singular or plural. */
export function findCommand(words: readonly string[]): CommandEntry | undefined {
  const name = [nounOf(words[0] ?? ''), ...words.slice(1)].join(' ');
  return COMMANDS.find((entry) => entry.name === name);
}

/** Normalizes a noun: `webhook` becomes `webhooks`, `agents` becomes `agent`. */
export function nounOf(word: string): string {
  if (isNoun(`${word}s`)) return `${word}s`;
  const singular = word.replace(/s$/, '');
  return !isNoun(word) && isNoun(singular) ? singular : word;
}

/** Whether the word is a noun that requires a verb. */
export function isNoun(word: string): boolean {
  return COMMANDS.some((entry) => entry.name.startsWith(`${word} `));
}

export function verbsOf(noun: string): CommandEntry[] {
  return COMMANDS.filter((entry) => !entry.hidden && entry.name.startsWith(`${noun} `));
}
