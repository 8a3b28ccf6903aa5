import { NOUNS } from '../command-table/nouns.ts';
import { COMMANDS, findCommand, isNoun, nounOf, verbsOf } from '../command-table.ts';
import { GLOBAL_FLAGS, splitWords } from '../globals.ts';

/** One word that could stand here. */
export interface Candidate {
  value: string;
  description?: string;
}

/** What a shell completes by itself: names of files. */
export const FILES: Candidate = { value: ':files' };

/**
 * `svc complete -- <words>`: what could stand for the last word, a candidate a line, its description after a tab. The
 * scripts of `svc completion` call it at each Tab, so it loads a command only when its arguments are asked for, and
 * says nothing when anything fails: a half-typed line is no place for an error.
 */
export async function complete(argv: readonly string[]): Promise<number> {
  try {
    const lines = await completionLines(argv[0] === '--' ? argv.slice(1) : argv);
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  } catch {
    // Nothing to offer.
  }
  return 0;
}

/** The candidates for the last of the words. Throws what asking for them throws. */
export async function completionLines(words: readonly string[]): Promise<string[]> {
  const typed = words.at(-1) ?? '';
  const candidates = await candidatesFor(words.slice(0, -1), typed);
  return candidates
    .filter(({ value }) => value === FILES.value || (value.startsWith(typed) && PLAIN.test(value)))
    .map(lineOf);
}

/** Values come from elsewhere and land on a command line: what a shell could take for more than a word is left out. */
const PLAIN = /^[\w@%+=:,./-]+$/;

function lineOf({ value, description }: Candidate): string {
  // One that breaks the line, or speaks to the terminal, would be a candidate or a command of its own.
  const told = description?.replace(/\p{Cc}+/gu, ' ').trim();
  return told ? `${value}\t${told}` : value;
}

async function candidatesFor(before: string[], typed: string): Promise<Candidate[]> {
  if (before.includes('--')) return [];
  const { words, rest } = splitWords(before, (first) => (isNoun(nounOf(first)) ? 2 : 1));
  const waiting = globalValue(before);
  if (waiting) return waiting === 'config' ? [FILES] : [];
  const entry = findCommand(words);
  if (entry) {
    await import('../schemas-uncompiled.ts');
    const { argumentCandidates } = await import('./argument-candidates.ts');
    return argumentCandidates(await entry.load(), rest, typed);
  }
  if (typed.startsWith('-')) return globalFlags();
  if (words.length === 0) return firstWords();
  return words.length === 1
    ? verbsOf(nounOf(words[0]!)).map(({ name, summary }) => ({
        value: name.split(' ')[1]!,
        description: summary,
      }))
    : [];
}

function firstWords(): Candidate[] {
  const shown = COMMANDS.filter(({ hidden }) => !hidden);
  const firsts = [...new Set(shown.map(({ name }) => name.split(' ')[0]!))];
  return [...firsts, 'help'].map((value) => ({
    value,
    description: shown.find(({ name }) => name === value)?.summary ?? NOUNS[value] ?? 'Show help',
  }));
}

export function globalFlags(): Candidate[] {
  return [
    ...GLOBAL_FLAGS.map(({ name, summary }) => ({ value: `--${name}`, description: summary })),
    { value: '--help', description: 'show the help of this command' },
  ];
}

/** The global flag whose value comes next. */
function globalValue(before: readonly string[]): string | undefined {
  const last = before.at(-1);
  return GLOBAL_FLAGS.find(({ name, value }) => value !== undefined && last === `--${name}`)?.name;
}
