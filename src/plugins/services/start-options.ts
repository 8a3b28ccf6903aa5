import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Moment } from '../../contracts/index.ts';

export const NAME_CHARS = 256;

/** Options for starting a run or job from plugin code. */
export const StartOptions = z.strictObject({
  idempotencyKey: z.string().min(1).max(NAME_CHARS).optional(),
  priority: z.number().int().min(-100).max(100).optional(),
  runAt: Moment.optional(),
});

/** Options for sending a signal from plugin code. */
export const SignalOptions = StartOptions.pick({ idempotencyKey: true });

/**
 * Scopes an idempotency key to its plugin and target: equal keys of two plugins, or for two targets, are
 * different.
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
