import { signal } from '@preact/signals';
import type { StudioSession } from '../../contracts/studio.ts';

/** Session of this browser: null without one, undefined until it is known. */
export const session = signal<StudioSession | null | undefined>(undefined);

/** Called when a call was refused, because the session has ended. */
export function onSignedOut(): void {
  session.value = null;
}
