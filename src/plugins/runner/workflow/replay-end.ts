/** Reason why a replay was stopped before its function returned. */
export type Halt =
  | { end: 'suspended' }
  | { end: 'strayed'; missed?: string | undefined }
  | { end: 'broke'; message: string };

/**
 * A promise that never resolves. The code of a replay that has ended awaits this promise, because the code must not
 * continue.
 */
export const NEVER = new Promise<never>(() => {});
