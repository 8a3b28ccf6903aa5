/** Number of attempts from which the share of successes is shown. */
export const MAX_RECENT_ATTEMPTS = 100;

/** Days of continuous failures after which an endpoint is disabled. */
export const DISABLE_AFTER_DAYS = 5;
