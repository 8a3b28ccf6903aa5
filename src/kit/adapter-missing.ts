import type { AdapterName } from '../contracts/index.ts';
import { PlatformError } from './errors.ts';

/** What a call of an adapter that the config lacks is refused with. @spec Platform codes: ADAPTER_NOT_CONFIGURED */
export function adapterMissing(name: AdapterName): PlatformError {
  return new PlatformError(
    'ADAPTER_NOT_CONFIGURED',
    `ctx.${name} needs adapters.${name} in svc.config.json, and it is not there; docs/operations.md "Adapters" shows how.`,
    { details: { key: `adapters.${name}` } },
  );
}
