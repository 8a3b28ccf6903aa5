import { nearest } from '../kit/nearest.ts';
import type { CommandEntry } from './command-table/entry.ts';
import { UsageError } from './parse-args.ts';

/** Words of other command lines, and what they are called here; the first that a noun has is meant. */
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

/** Says what was probably meant. */
export function describeUnknown(
  words: readonly string[],
  commands: readonly CommandEntry[],
  verbs: readonly CommandEntry[],
): UsageError {
  const shown = commands.filter((entry) => !entry.hidden).map((entry) => entry.name);
  if (verbs.length > 0) return describeVerb(words, verbs);
  const typed = words.join(' ');
  const nouns = [...new Set(shown.map((name) => name.split(' ')[0]!))];
  const meant =
    nearest(typed, shown) ??
    SYNONYMS[typed]?.find((other) => other.startsWith('-') || shown.includes(other)) ??
    nearest(words[0]!, nouns);
  return new UsageError(
    `There is no command "svc ${typed}".${meant ? ` Did you mean "svc ${meant}"?` : ''}`,
    {
      known: shown,
      hint: 'svc --help lists the commands.',
    },
  );
}

/** The noun is known; its verb is missing or is none. */
function describeVerb([noun, verb]: readonly string[], verbs: readonly CommandEntry[]): UsageError {
  const names = verbs.map(({ name }) => name.split(' ')[1]!);
  const known = verbs.map(({ name }) => name);
  const hint = `svc ${noun} --help shows them with examples.`;
  if (verb === undefined) {
    return new UsageError(`svc ${noun} needs a verb: ${names.join(', ')}.`, { known, hint });
  }
  const meant = nearest(verb, names) ?? SYNONYMS[verb]?.find((other) => names.includes(other));
  const full = known.find((name) => name.endsWith(` ${meant}`));
  const advice = full ? ` Did you mean "svc ${full}"?` : ` Its verbs: ${names.join(', ')}.`;
  return new UsageError(`There is no command "svc ${noun} ${verb}".${advice}`, { known, hint });
}
