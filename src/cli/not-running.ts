import { existsSync } from 'node:fs';
import { PlatformError } from '../kit/errors/errors.ts';
import { findSupervisor } from '../supervisor/control-client.ts';
import { singleServices } from '../supervisor/single-services.ts';
import type { CommandContext } from './context.ts';

type Place = Pick<CommandContext, 'platform' | 'folder'>;

/** Returns true if this folder or a parent contains a config file or platform data. */
export function isProject({ platform, folder }: Place): boolean {
  return platform().configFile !== null || existsSync(folder().root);
}

/**
 * Returns a hint on how to start the platform. Outside of a project, the hint omits `svc up`, because that command
 * would create platform data in any folder.
 */
export function startHint(place: Place): string {
  const singles = singleServices(place.folder()).map(({ name, pid }) => `${name} (pid ${pid})`);
  if (singles.length === 1)
    return `There is no supervisor here, but ${singles[0]} runs by itself. Stop it before svc up.`;
  if (singles.length > 1)
    return `There is no supervisor here, but these services run by themselves: ${singles.join(', ')}. Stop them before svc up.`;
  return isProject(place)
    ? 'Start it with svc up -d.'
    : 'This folder is not part of a project. Change to one, create one with svc init, or select a gateway with --url, SVC_GATEWAY_URL or svc login.';
}

/** Returns the error of a command that requires a running platform. The exit code is 5. */
export function notRunning(place: Place, hint = startHint(place)): PlatformError {
  if (findSupervisor(place.folder()))
    return new PlatformError('UPSTREAM_UNAVAILABLE', 'This node runs no gateway, or it is restarting.', {
      details: { hint: 'See svc status. Select a gateway with --url, SVC_GATEWAY_URL or svc login.' },
    });
  return new PlatformError('UPSTREAM_UNAVAILABLE', 'svc is not running here.', { details: { hint } });
}
