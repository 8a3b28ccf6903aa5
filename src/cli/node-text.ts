import { SERVICE_NAMES } from '../contracts/index.ts';
import type { ServiceStatus } from '../supervisor/control-protocol.ts';

/** Returns words that name the services of a node with `--services`, or an empty text if the node runs all services. */
export function nodeText(services: readonly Pick<ServiceStatus, 'name'>[]): string {
  if (services.length === SERVICE_NAMES.length) return '';
  return ` with only ${services.map(({ name }) => name).join(', ')}`;
}
