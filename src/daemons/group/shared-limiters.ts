import type { Clock } from '../../kit/clock.ts';
import { type CreateLimiter, localLimiters } from '../../kit/rate-limiter.ts';
import { primaryLimiters } from './primary-limiters.ts';
import type { ProcessGroup } from './process-group.ts';
import { siblingLimiters } from './sibling-limiters.ts';

/**
 * Limits over all processes of a daemon. The primary counts; a sibling borrows calls ahead while plenty are left, so
 * that most of its verdicts are at once, and what was lent and not used is called back before anybody is refused. In
 * all, exactly the limit is let through; only what a killed process had borrowed is lost until the window ends.
 */
export function sharedLimiters(group: ProcessGroup, clock: Clock): CreateLimiter {
  if (group.role === 'primary') return primaryLimiters(group, clock);
  if (group.role === 'sibling') return siblingLimiters(group, clock);
  return localLimiters(clock);
}
