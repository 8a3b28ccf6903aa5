import { type CreateLimiter, localLimiters } from '../../kit/limits/rate-limiter.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { primaryLimiters } from './primary-limiters.ts';
import type { ProcessGroup } from './process-group.ts';
import { siblingLimiters } from './sibling-limiters.ts';

/**
 * Rate limits over all processes of a service. The primary counts calls and lends permits to siblings, so that most
 * verdicts are synchronous. Permits of a killed process count as used until the window ends.
 */
export function sharedLimiters(group: ProcessGroup, clock: Clock): CreateLimiter {
  if (group.role === 'primary') return primaryLimiters(group, clock);
  if (group.role === 'sibling') return siblingLimiters(group, clock);
  return localLimiters(clock);
}
