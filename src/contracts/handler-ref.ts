import { z } from 'zod';

/** A reference `<file>#<export>` to an export of a file in the plugin's folder. */
export const HandlerRef = z
  .string()
  .max(512)
  .regex(/^[^#\0\\]+#[A-Za-z_$][\w$]*$/, 'must be "<file>#<export>", for example "dist/hooks.js#onPush"');
export type HandlerRef = z.infer<typeof HandlerRef>;
