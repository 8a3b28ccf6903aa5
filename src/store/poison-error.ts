import type { RunRecord } from './ports/index.ts';

/** Returns the error, as JSON, of a run that ends because it was interrupted too often. */
export function poisonError(
  { crashes, kills }: Pick<RunRecord, 'crashes' | 'kills'>,
  what: 'The run' | 'The clean-up of the run',
): string {
  const interruptions = crashes + kills;
  return JSON.stringify({
    code: 'STEP_FAILED',
    message: `${what} was interrupted ${interruptions} times without finishing a step in between (crashes of the workflow service: ${crashes}; kills: ${kills}); it probably crashes the service. Fix the step, then run it again.`,
    details: { reason: 'poison', interruptions, crashes, kills },
  });
}
