import type { AdapterName } from '../../contracts/index.ts';
import { PlatformError } from './errors.ts';

/** Returns the error for a call to an adapter without configuration. @spec Platform codes: ADAPTER_NOT_CONFIGURED */
export function adapterMissing(name: AdapterName): PlatformError {
  return new PlatformError(
    'ADAPTER_NOT_CONFIGURED',
    `ctx.${name} needs adapters.${name}, which svc.config.json does not set. See docs/operations.md, "Adapters".`,
    { details: { key: `adapters.${name}` } },
  );
}
