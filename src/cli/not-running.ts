import { existsSync } from 'node:fs';
import { PlatformError } from '../kit/errors/errors.ts';
import type { CommandContext } from './context.ts';

type Place = Pick<CommandContext, 'platform' | 'folder'>;

/** Whether the current folder belongs to a project: it has a config file or platform data, here or above. */
export function isProject({ platform, folder }: Place): boolean {
  return platform().configFile !== null || existsSync(folder().root);
}

/**
 * Returns how to start the platform. `svc up` is not suggested outside a project, because it would create data in any
 * folder.
 */
export function startHint(place: Place): string {
  return isProject(place)
    ? 'Start it with svc up -d.'
    : 'This folder is not part of a project. Change to one, create one with svc init, or select a gateway with --url, SVC_GATEWAY_URL or svc login.';
}

/** Creates the error of commands that require a running platform. The exit code is 5. */
export function notRunning(place: Place, hint = startHint(place)): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', 'svc is not running here.', { details: { hint } });
}
