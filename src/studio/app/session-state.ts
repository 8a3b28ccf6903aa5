import { signal } from '@preact/signals';
import type { StudioSession } from '../../contracts/studio.ts';

/** Session of this browser: null without one, undefined until it is known. */
export const session = signal<StudioSession | null | undefined>(undefined);

/** Token of a portal, which is kept in memory only. Null when it has expired, undefined outside a portal. */
export const portalToken = signal<string | null | undefined>(undefined);

/** Called when a call was refused, because the session or the portal link has ended. */
export function onSignedOut(): void {
  if (portalToken.value) portalToken.value = null;
  else session.value = null;
}
