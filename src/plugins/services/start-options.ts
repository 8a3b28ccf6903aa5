import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Moment } from '../../contracts/index.ts';

export const NAME_CHARS = 256;

/** How plugin code starts a run or a job. */
export const StartOptions = z.strictObject({
  idempotencyKey: z.string().min(1).max(NAME_CHARS).optional(),
  priority: z.number().int().min(-100).max(100).optional(),
  runAt: Moment.optional(),
});

/** How plugin code sends a signal. */
export const SignalOptions = StartOptions.pick({ idempotencyKey: true });

/**
 * A plugin's key among all keys of the tenant: two plugins that think of the same one mean two things, and so does one
 * plugin that starts several things for one order.
 */
export function ownKey(
  pluginId: string,
  target: `workflow ${string}` | `job ${string}` | `signal ${string}`,
  key: string | undefined,
): { idempotencyKey?: string } {
  if (key === undefined) return {};
  const digest = createHash('sha256')
    .update(JSON.stringify([pluginId, target, key]))
    .digest('base64url');
  return { idempotencyKey: `plugin:${digest}` };
}
