/** Reason why a replay was stopped before its function returned. */
export type Halt =
  | { end: 'suspended' }
  | { end: 'strayed'; missed?: string | undefined }
  | { end: 'broke'; message: string };

/** A promise that never resolves. Code of an ended replay awaits this promise, so that the code does not continue. */
export const NEVER = new Promise<never>(() => {});
