import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Moment } from '../../contracts/index.ts';

export const NAME_CHARS = 256;

/** Options with which plugin code starts a run or a job. */
export const StartOptions = z.strictObject({
  idempotencyKey: z.string().min(1).max(NAME_CHARS).optional(),
  priority: z.number().int().min(-100).max(100).optional(),
  runAt: Moment.optional(),
});

export const SignalOptions = StartOptions.pick({ idempotencyKey: true });

/**
 * Returns an idempotency key that depends on the plugin id and the target, so that equal keys of different plugins or
 * targets do not collide. Returns no key if `key` is undefined.
 */
export function ownKey(
  pluginId: string,
  target: `workflow ${string}` | `job ${string}` | `signal ${string}` | `event ${string}`,
  key: string | undefined,
): { idempotencyKey?: string } {
  if (key === undefined) return {};
  const digest = createHash('sha256')
    .update(JSON.stringify([pluginId, target, key]))
    .digest('base64url');
  return { idempotencyKey: `plugin:${digest}` };
}
