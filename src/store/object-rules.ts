import { PlatformError } from '../kit/errors/errors.ts';
import type { ObjectScope } from './ports/index.ts';

/** Throws QUOTA_EXCEEDED if writing `bytes` would exceed the quota of a scope that already uses `used` bytes. */
export function requireObjectQuota(bytes: number, used: number, quotaBytes: number): void {
  if (used + bytes <= quotaBytes) return;
  throw new PlatformError(
    'QUOTA_EXCEEDED',
    `The object takes ${bytes} bytes; ${Math.max(0, quotaBytes - used)} of the plugin's ${quotaBytes} are free. Delete some objects, or raise adapters.storage.quotaBytes.`,
    { details: { bytes, used, quotaBytes } },
  );
}

/** Encodes the scope as JSON, because the tenant or the namespace could contain any separator. */
export function scopeName({ tenant, namespace }: ObjectScope): string {
  return JSON.stringify([tenant, namespace]);
}
