import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { SCRIPTS, SHELLS, type Shell } from './scripts.ts';

/** @spec docs/cli.md "Completion" */
export const completion = defineCommand({
  name: 'completion',
  summary: 'Print a shell completion script, which also completes live ids',
  example: 'source <(svc completion bash)',
  args: z.object({ shell: z.enum(SHELLS).describe('shell to generate the script for') }),
  async run({ shell }, { ui }) {
    const { script, install } = SCRIPTS[shell];
    if (ui.interactive) ui.note(install);
    return ok({ shell, script });
  },
  text: ({ script }: { shell: Shell; script: string }) => script.trimEnd(),
});
