/** Why a replay was stopped before its function has returned. */
export type Halt =
  | { end: 'suspended' }
  | { end: 'strayed'; missed?: string | undefined }
  | { end: 'broke'; message: string };

/** A promise that never resolves. Code of a replay that has ended awaits it, because the code must not continue. */
export const NEVER = new Promise<never>(() => {});
