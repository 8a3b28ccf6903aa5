import { z } from 'zod';
import { type Secret, setSecret } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { expiresFlag, expiryOf, inTenant, nameArg, readValue, tenantFlag } from './secret-args.ts';

/** @spec docs/secrets.md */
export const set = defineCommand({
  name: 'secrets set',
  summary: 'Set a new version of a secret, read from stdin',
  example: 'svc secrets set STRIPE_KEY < key.txt',
  args: z.object({ name: nameArg, tenant: tenantFlag, expires: expiresFlag }),
  async run({ name, tenant, expires }, context) {
    const value = await readValue(context, name);
    const expiresAt = expiryOf(expires, context.clock.now());
    const input = { params: { name }, body: { value, expiresAt } };
    return ok(await context.client.call(setSecret, input, inTenant(tenant)));
  },
  text: ({ name, version }: Secret, style) => `${style.green('✓')} ${name} has version ${version}.`,
});
