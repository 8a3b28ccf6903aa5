import { z } from 'zod';
import { revokeSecret } from '../../../contracts/index.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { inTenant, nameArg, tenantFlag } from './secret-args.ts';

/** @spec docs/secrets.md */
export const revoke = defineCommand({
  name: 'secrets revoke',
  summary: 'Delete a secret with all its versions',
  example: 'svc secrets revoke STRIPE_KEY --yes',
  args: z.object({ name: nameArg, tenant: tenantFlag }),
  async run({ name, tenant }, context) {
    if (!(await confirm(context, `Delete ${name}? Plugins and workflows that use it will fail.`)))
      throw new CancelledError();
    return ok(await context.client.call(revokeSecret, { params: { name } }, inTenant(tenant)));
  },
  text: (_reply, style) => `${style.green('✓')} Deleted. The value is unusable from now on.`,
});
