import { keepTenantSecret } from '../../../../kit/telemetry/redact.ts';
import type { ConnectionKey } from '../../../../store/ports/index.ts';
import type { Tokens } from './connection-records.ts';

/** Makes this process mask tokens in all that it logs and records. */
export function maskTokens(key: ConnectionKey, { accessToken, refreshToken }: Tokens): void {
  mask(key, 'access', accessToken);
  mask(key, 'refresh', refreshToken);
}

export function maskClientSecret(key: ConnectionKey, secret: string | null): void {
  mask(key, 'client', secret);
}

/** Secrets of the vault have other names, so that neither replaces the other. */
function mask({ namespaceId, name }: ConnectionKey, part: string, value: string | null): void {
  if (value !== null) keepTenantSecret({ namespaceId, name: `connection ${name} ${part}` }, value);
}
