import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../kit/errors.ts';
import { defineCommand, ok } from '../define-command.ts';
import { writeBundle } from './report/bundle.ts';
import { contentsOf } from './report/contents.ts';

interface Reported {
  file: string;
  /** What is inside, by name. */
  contents: string[];
}

/** @spec docs/operations.md "svc report" */
export const report = defineCommand({
  name: 'report',
  summary: 'Gather versions, config, status, checks and last logs for a bug report, without secrets',
  example: 'svc report svc-report.tar.gz',
  args: z.object({
    file: z.string().min(1).default('svc-report.tar.gz').describe('the archive to write'),
    lines: z.coerce.number().int().min(0).default(500).describe('log lines of each service; default 500'),
    force: z.boolean().default(false).describe('replace a file that is there'),
  }),
  positionals: ['file'],
  async run({ file: given, lines, force }, context) {
    const file = resolve(context.cwd, given);
    if (existsSync(file) && !force) {
      throw new PlatformError('CONFLICT', `${file} is there already.`, {
        details: { file, hint: 'Choose another name, or replace it with --force.' },
      });
    }
    const contents = await contentsOf(context, lines);
    await writeBundle(file, contents, context.clock.now());
    context.ui.note('Read it before you send it: names of plugins, hosts and namespaces are inside,');
    context.ui.note('secrets are not.');
    return ok<Reported>({ file, contents: Object.keys(contents) });
  },
  text: ({ file, contents }: Reported, style) =>
    [`${style.green('✓')} ${file}`, ...contents.map((name) => `  ${name}`)].join('\n'),
});
