import { nearest } from '../kit/data/nearest.ts';
import type { CommandEntry } from './command-table/command-entry.ts';
import { UsageError } from './parse-args.ts';

/**
 * Words that users know from other CLIs, with the equivalent words of svc. The first equivalent that exists is
 * suggested.
 */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  add: ['install', 'create', 'register', 'link'],
  delete: ['revoke', 'uninstall', 'cancel'],
  describe: ['show'],
  get: ['show'],
  info: ['show', 'status'],
  inspect: ['show'],
  ls: ['list', 'status'],
  new: ['create', 'init'],
  ps: ['status'],
  remove: ['uninstall', 'revoke', 'cancel'],
  retry: ['replay', 'rerun'],
  rm: ['uninstall', 'revoke', 'cancel'],
  rotate: ['provision'],
  serve: ['up'],
  start: ['up', 'run', 'submit'],
  stop: ['down', 'cancel', 'pause'],
  trigger: ['send', 'run', 'submit'],
  version: ['--version'],
  watch: ['tail', 'logs'],
};

export function describeUnknown(
  words: readonly string[],
  commands: readonly CommandEntry[],
  verbs: readonly CommandEntry[],
): UsageError {
  const shown = commands.filter((entry) => !entry.hidden).map((entry) => entry.name);
  if (verbs.length > 0) return describeVerb(words, verbs);
  const typed = words.join(' ');
  const nouns = [...new Set(shown.map((name) => name.split(' ')[0]!))];
  const suggestion =
    nearest(typed, shown) ??
    SYNONYMS[typed]?.find((other) => other.startsWith('-') || shown.includes(other)) ??
    nearest(words[0]!, nouns);
  return new UsageError(
    `Unknown command "svc ${typed}".${suggestion ? ` Did you mean "svc ${suggestion}"?` : ''}`,
    {
      known: shown,
      hint: 'Run svc --help to list the commands.',
    },
  );
}

/** Returns the error of a noun without a verb or with an unknown verb. */
function describeVerb([noun, verb]: readonly string[], verbs: readonly CommandEntry[]): UsageError {
  const names = verbs.map(({ name }) => name.split(' ')[1]!);
  const known = verbs.map(({ name }) => name);
  const hint = `Run svc ${noun} --help for examples.`;
  if (verb === undefined) {
    return new UsageError(`svc ${noun} needs a verb: ${names.join(', ')}.`, { known, hint });
  }
  const suggestion = nearest(verb, names) ?? SYNONYMS[verb]?.find((other) => names.includes(other));
  const full = known.find((name) => name.endsWith(` ${suggestion}`));
  const advice = full ? ` Did you mean "svc ${full}"?` : ` Verbs: ${names.join(', ')}.`;
  return new UsageError(`Unknown command "svc ${noun} ${verb}".${advice}`, { known, hint });
}
