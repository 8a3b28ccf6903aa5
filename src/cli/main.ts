import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { version } from '../kit/files/paths.ts';
import { userCacheFolder } from '../kit/files/user-folder.ts';
import { escapeControls } from '../kit/security/escape-controls.ts';
import { COMMANDS, findCommand, isNoun, nounOf, verbsOf } from './command-table/command-table.ts';
import { splitWords } from './globals.ts';

/**
 * Entry point of `svc`. Help and version load few modules. Each command loads its other modules when the command runs.
 */

process.stdout.on('error', onOutputError);
// A closed stderr must not end the command. For example, `svc up -d 2>&1 | head -1` still starts the platform.
process.stderr.on('error', () => {});
await end(await main(process.argv.slice(2)));

async function main(argv: string[]): Promise<number> {
  if (argv[0] === 'complete') return (await import('./completion/complete.ts')).complete(argv.slice(1));
  const { words, rest } = splitWords(argv, (first) => (isNoun(nounOf(first)) ? 2 : 1));
  const asksHelp = rest.some((token) => token === '--help' || token === '-h');
  if (words.length === 0 && (rest.includes('--version') || rest.includes('-V'))) return printVersion(rest);
  if (words[0] === 'help') return main([...argv.filter((token) => token !== 'help'), '--help']);
  if (words.length === 0) return printHelp(rest);
  const entry = findCommand(words);
  if (entry) {
    keepCompiledCode();
    await import('./schemas-uncompiled.ts');
    const { runCommand } = await import('./run-command.ts');
    return runCommand(await entry.load(), rest);
  }
  const noun = nounOf(words[0]!);
  if (asksHelp && words.length === 1 && isNoun(noun)) return printHelp(rest, noun);
  const { reportUsage } = await import('./run-command.ts');
  const { describeUnknown } = await import('./unknown-command.ts');
  return reportUsage(describeUnknown(words, COMMANDS, verbsOf(noun)), rest);
}

/**
 * Enables Node's compile cache if HOME is set. The cache saves a third of the load time. Node ignores an unusable cache
 * folder.
 */
function keepCompiledCode(): void {
  if (process.env.HOME) enableCompileCache(join(userCacheFolder(process.env), 'svc', 'compiled'));
}

async function printHelp(rest: string[], noun?: string): Promise<number> {
  const { nounHelp, rootHelp } = await import('./help.ts');
  const { helpWidth } = await import('./wrap.ts');
  const width = helpWidth(process.stdout);
  const help = noun ? nounHelp(noun, width) : rootHelp(width);
  process.stdout.write(
    `${rest.includes('--json') ? JSON.stringify({ ok: true, result: { help } }) : help}\n`,
  );
  return 0;
}

function printVersion(rest: string[]): number {
  const result = { version, node: process.versions.node, platform: `${process.platform}-${process.arch}` };
  process.stdout.write(`${rest.includes('--json') ? JSON.stringify({ ok: true, result }) : version}\n`);
  return 0;
}

/**
 * Exits once stdout is flushed. Without the explicit exit, open connections would keep the process alive for seconds.
 */
async function end(code: number): Promise<never> {
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  process.exit(code);
}

/**
 * EPIPE means that the reader needs no more output (`svc logs | head`). Any other error leaves the output incomplete.
 */
function onOutputError(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`${escapeControls(`error Cannot write the output: ${error.message}.`)}\n`);
  process.exit(1);
}
