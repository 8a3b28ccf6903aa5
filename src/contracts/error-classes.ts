/** How a failure is classed; the first four pass by themselves. @spec Errors: workflow retries */
export const ERROR_CLASSES = [
  'network',
  'timeout',
  'rate_limit',
  'server',
  'validation',
  'auth',
  'not_found',
  'cancelled',
  'code',
] as const;
