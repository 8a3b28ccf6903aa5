import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { writeBundle } from './bundle.ts';
import { contentsOf } from './contents.ts';

interface Reported {
  file: string;
  contents: string[];
}

/** @spec docs/operations.md "svc report" */
export const report = defineCommand({
  name: 'report',
  summary: 'Collect versions, config, status, checks and recent logs for a bug report, without secrets',
  example: 'svc report svc-report.tar.gz',
  args: z.object({
    file: z.string().min(1).default('svc-report.tar.gz').describe('the archive to write'),
    lines: z.coerce.number().int().min(0).default(500).describe('log lines per service; default 500'),
    force: z.boolean().default(false).describe('overwrite an existing file'),
  }),
  positionals: ['file'],
  async run({ file: given, lines, force }, context) {
    const file = resolve(context.cwd, given);
    if (existsSync(file) && !force) {
      throw new PlatformError('CONFLICT', `${file} already exists.`, {
        details: { file, hint: 'Choose another name, or overwrite it with --force.' },
      });
    }
    const contents = await contentsOf(context, lines);
    await writeBundle(file, contents, context.clock.now());
    context.ui.note(
      'Check the report before you send it: it contains names of plugins, hosts and namespaces,',
    );
    context.ui.note('but no secrets.');
    return ok<Reported>({ file, contents: Object.keys(contents) });
  },
  text: ({ file, contents }: Reported, style) =>
    [`${style.green('✓')} ${file}`, ...contents.map((name) => `  ${name}`)].join('\n'),
});
