/** Classes of failures. The first four classes are transient. @spec Errors: workflow retries */
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
