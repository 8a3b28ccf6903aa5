import { z } from 'zod';
import { defineCommand, ok } from '../define-command.ts';
import { SCRIPTS, SHELLS, type Shell } from './completion/scripts.ts';

/** @spec docs/cli.md "Completion" */
export const completion = defineCommand({
  name: 'completion',
  summary: 'Print the script that lets a shell complete svc, live ids included',
  example: 'source <(svc completion bash)',
  args: z.object({ shell: z.enum(SHELLS).describe('which shell') }),
  async run({ shell }, { ui }) {
    const { script, install } = SCRIPTS[shell];
    if (ui.interactive) ui.note(install);
    return ok({ shell, script });
  },
  text: ({ script }: { shell: Shell; script: string }) => script.trimEnd(),
});
