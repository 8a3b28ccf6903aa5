import { existsSync } from 'node:fs';
import { PlatformError } from '../kit/errors.ts';
import type { CommandContext } from './context.ts';

type Place = Pick<CommandContext, 'platform' | 'folder'>;

/** Whether a command was called in a project: in or below a folder with a config file, or with a platform's data. */
export function isProject({ platform, folder }: Place): boolean {
  return platform().configFile !== null || existsSync(folder().root);
}

/** What starts the platform, or, outside a project, leads to one: `svc up` would make a platform of any folder. */
export function startHint(place: Place): string {
  return isProject(place)
    ? 'Start it: svc up -d'
    : 'This folder belongs to no project: go to one, make one with svc init, or name a gateway: --url, SVC_GATEWAY_URL or svc login.';
}

/** What a command says that needs the platform of this folder: exit code 5. */
export function notRunning(place: Place, hint = startHint(place)): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', 'svc is not running here.', { details: { hint } });
}
