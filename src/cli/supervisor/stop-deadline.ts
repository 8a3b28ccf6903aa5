import { seconds } from '../../kit/duration.ts';

/** From the end of a service's `drainMs` until it is ended by force: later than its own deadline, so that it can say what held it up. */
export const FORCE_AFTER_MS = seconds(4);
