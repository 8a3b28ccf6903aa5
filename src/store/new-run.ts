/**
 * Minimum time between two updates of a definition's `used_at`. An update at each start would double the number of
 * writes.
 */
export const DEFINITION_USE_MS = 3600_000;

/** Initial values of the fields that change after a run has started. */
export const NEW_PROGRESS = {
  status: 'queued',
  fence: null,
  resumeCount: 0,
  crashes: 0,
  kills: 0,
  inFlight: false,
  ending: null,
  endingAt: null,
  endingHeldAt: null,
  output: null,
  error: null,
  startedAt: null,
  finishedAt: null,
  pauseScope: null,
} as const;
