import { PlatformError } from '../kit/errors.ts';

/** What a command says that needs the platform of this folder: exit code 5. */
export function notRunning(hint = 'Start it: svc up -d'): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', 'svc is not running here.', { details: { hint } });
}
