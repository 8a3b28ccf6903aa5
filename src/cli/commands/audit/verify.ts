import { z } from 'zod';
import { type ReplyOf, verifyAudit } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec docs/security.md "Audit log" */
export const verify = defineCommand({
  name: 'audit verify',
  summary: 'Verify that no entry of the audit log was changed, removed or moved',
  example: 'svc audit verify',
  args: z.object({
    expect: z.string().min(1).optional().describe('head that an earlier verification printed'),
  }),
  async run({ expect }, { client, ui }) {
    const reply = await client.call(verifyAudit, { query: expect === undefined ? {} : { expect } });
    for (const warning of reply.warnings) ui.warn(warning);
    const { fault } = reply;
    if (fault) throw new PlatformError('INTEGRITY_MISMATCH', fault.message, { details: { ...fault } });
    return ok(reply);
  },
  text({ entries, head }: ReplyOf<typeof verifyAudit>, style) {
    if (!head) return 'The audit log is empty.';
    return [
      `${style.green('✓')} ${entries === 1 ? '1 entry is' : `${entries} entries are`} intact.`,
      `head: ${head.sequence}:${head.hash}`,
      style.dim(
        'Keep the head elsewhere. `svc audit verify --expect <head>` then also detects a log that was set back.',
      ),
    ].join('\n');
  },
});
