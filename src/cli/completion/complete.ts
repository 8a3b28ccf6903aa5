import { COMMANDS, findCommand, isNoun, nounOf, verbsOf } from '../command-table/command-table.ts';
import { NOUNS } from '../command-table/nouns.ts';
import { GLOBAL_FLAGS, splitWords } from '../globals.ts';
import { type Candidate, FILES, globalFlags } from './candidate.ts';

/**
 * Prints the completion candidates for the last word. Each line is a value, a tab and a description. Commands are
 * loaded lazily and errors are silent, because each Tab key press runs this function.
 */
export async function complete(argv: readonly string[]): Promise<number> {
  try {
    const lines = await completionLines(argv[0] === '--' ? argv.slice(1) : argv);
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  } catch {
    // An error message would garble the line that the user is typing.
  }
  return 0;
}

/** Returns the lines to print for the last word. Omits values with characters that a shell interprets. */
export async function completionLines(words: readonly string[]): Promise<string[]> {
  const typed = words.at(-1) ?? '';
  const candidates = await candidatesFor(words.slice(0, -1), typed);
  return candidates
    .filter(({ value }) => value === FILES.value || (value.startsWith(typed) && SHELL_SAFE.test(value)))
    .map(lineOf);
}

/** Values are untrusted and become part of a command line, so values with shell syntax are excluded. */
const SHELL_SAFE = /^[\w@%+=:,./-]+$/;

function lineOf({ value, description }: Candidate): string {
  // Control characters could break the line or reach the terminal.
  const oneLine = description?.replace(/\p{Cc}+/gu, ' ').trim();
  return oneLine ? `${value}\t${oneLine}` : value;
}

async function candidatesFor(before: string[], typed: string): Promise<Candidate[]> {
  if (before.includes('--')) return [];
  const { words, rest } = splitWords(before, (first) => (isNoun(nounOf(first)) ? 2 : 1));
  const flag = globalValue(before);
  if (flag) return flag === 'config' ? [FILES] : [];
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

/** Returns the global flag whose value is being typed, if any. */
function globalValue(before: readonly string[]): string | undefined {
  const last = before.at(-1);
  return GLOBAL_FLAGS.find(({ name, value }) => value !== undefined && last === `--${name}`)?.name;
}
