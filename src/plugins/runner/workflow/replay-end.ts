/** Why a replay was stopped before its function has returned. */
export type Halt =
  | { end: 'suspended' }
  | { end: 'strayed'; missed?: string | undefined }
  | { end: 'broke'; message: string };

/** Awaited by code of a replay that has ended: it must not continue. */
export const NEVER = new Promise<never>(() => {});
