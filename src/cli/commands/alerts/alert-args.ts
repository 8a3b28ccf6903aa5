import { z } from 'zod';
import { ALL_NAMESPACES, type RoleNamespace } from '../../../contracts/index.ts';

export const everywhere = z
  .boolean()
  .default(false)
  .describe('act for operators: all namespaces and the platform');

/** Returns the query that selects the namespace of rules, channels and silences. */
export function scopeOf(isEverywhere: boolean): { namespaceId?: z.infer<typeof RoleNamespace> } {
  return isEverywhere ? { namespaceId: ALL_NAMESPACES } : {};
}
