/** Why a replay was stopped before its function has returned. */
export type Halt =
  | { end: 'suspended' }
  | { end: 'strayed'; missed?: string | undefined }
  | { end: 'broke'; message: string };

/** Never resolves. Code of an ended replay awaits this promise, because it must not continue. */
export const NEVER = new Promise<never>(() => {});
