import type { CommandEntry } from './command-entry.ts';
import { ACCESS_COMMANDS } from './generated/access.ts';
import { HELP_COMMANDS } from './generated/help.ts';
import { PLATFORM_COMMANDS } from './generated/platform.ts';
import { PLUGINS_COMMANDS } from './generated/plugins.ts';
import { SETUP_COMMANDS } from './generated/setup.ts';
import { WEBHOOKS_COMMANDS } from './generated/webhooks.ts';
import { WORKFLOWS_COMMANDS } from './generated/workflows.ts';

/** All commands by group. Help lists the groups in the order of this array. */
export const COMMANDS: readonly CommandEntry[] = [
  ...PLATFORM_COMMANDS,
  ...SETUP_COMMANDS,
  ...WEBHOOKS_COMMANDS,
  ...WORKFLOWS_COMMANDS,
  ...PLUGINS_COMMANDS,
  ...ACCESS_COMMANDS,
  ...HELP_COMMANDS,
];

/** Finds a command by its words, such as `webhooks list`. The noun may be singular or plural. */
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

/** Returns true if the word is a noun, such as `webhooks`, which requires a verb. */
export function isNoun(word: string): boolean {
  return COMMANDS.some((entry) => entry.name.startsWith(`${word} `));
}

export function verbsOf(noun: string): CommandEntry[] {
  return COMMANDS.filter((entry) => !entry.hidden && entry.name.startsWith(`${noun} `));
}
