import { nearest } from '../kit/nearest.ts';
import type { CommandEntry } from './command-table/entry.ts';
import { UsageError } from './parse-args.ts';

/** Says what was probably meant. */
export function describeUnknown(
  words: readonly string[],
  commands: readonly CommandEntry[],
  verbs: readonly CommandEntry[],
): UsageError {
  const typed = words.join(' ');
  const shown = commands.filter((entry) => !entry.hidden).map((entry) => entry.name);
  if (verbs.length > 0 && words.length === 1) {
    return new UsageError(
      `svc ${typed} needs a verb: ${verbs.map(({ name }) => name.split(' ')[1]).join(', ')}.`,
      {
        known: verbs.map(({ name }) => name),
        hint: `svc ${typed} --help shows them with examples.`,
      },
    );
  }
  const nouns = [...new Set(shown.map((name) => name.split(' ')[0]!))];
  const meant = nearest(typed, shown) ?? nearest(words[0]!, nouns);
  return new UsageError(
    `There is no command "svc ${typed}".${meant ? ` Did you mean "svc ${meant}"?` : ''}`,
    {
      known: shown,
      hint: 'svc --help lists the commands.',
    },
  );
}
