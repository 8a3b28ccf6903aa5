import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import { vendoredState } from '../../vendor/vendored-platform.ts';

interface Tested {
  folder: string;
  /** Output of the test runner in TAP format. */
  output: string;
}

/** @spec docs/plugins.md "Testing" */
export const test = defineCommand({
  name: 'plugins test',
  summary: "Run a plugin's tests with the Node version of svc",
  example: 'svc plugins test ./plugins/orders',
  args: z.object({
    folder: z.string().default('.').describe('plugin folder; default: current folder'),
    watch: z.boolean().default(false).describe('rerun the tests when a file changes'),
  }),
  positionals: ['folder'],
  async run({ folder: given, watch }, context) {
    const folder = resolve(context.cwd, given);
    await requireRunnable(folder);
    const { fault } = await vendoredState(folder);
    if (fault) context.ui.note(`! ${fault}: svc plugins repair ${shellWord(folder)}`);
    const flags = ['--test', ...(watch ? ['--watch'] : [])];
    if (!context.globals.json) return streamed((await runNode(folder, flags, 'inherit')).code);
    const { code, output } = await runNode(folder, [...flags, '--test-reporter=tap'], 'pipe');
    if (code === 0) return ok<Tested>({ folder, output });
    throw new PlatformError('EXECUTION_ERROR', `Tests in ${folder} failed (exit code ${code}).`, {
      details: { folder, output },
    });
  },
});

/** Throws INVALID_MANIFEST if the folder is not a package, and MISSING_DEPENDENCY if svc-platform is not installed. */
async function requireRunnable(folder: string): Promise<void> {
  if (!existsSync(join(folder, 'package.json')))
    throw new PlatformError('INVALID_MANIFEST', `${folder} is not a plugin: it has no package.json.`, {
      details: { folder, hint: 'Pass the folder of a plugin: svc plugins test <folder>' },
    });
  for (let from = folder; ; from = dirname(from)) {
    if (existsSync(join(from, 'node_modules', 'svc-platform', 'package.json'))) return;
    if (from === dirname(from)) break;
  }
  const { spec, fault } = await vendoredState(folder);
  const repair = `svc plugins repair ${shellWord(folder)}`;
  throw new PlatformError(
    'MISSING_DEPENDENCY',
    `svc-platform is not installed in ${folder}${fault ? `: ${fault}` : ''}.`,
    { details: { folder, hint: spec === null || fault ? repair : `npm install, or: ${repair}` } },
  );
}

function runNode(
  cwd: string,
  args: string[],
  stdout: 'inherit' | 'pipe',
): Promise<{ code: number; output: string }> {
  return new Promise((done, reject) => {
    const child = spawn(process.execPath, args, { cwd, stdio: ['inherit', stdout, 'inherit'] });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.once('error', reject);
    child.once('close', (code) => done({ code: code ?? 1, output }));
  });
}
