import { listSecrets, resolveSecrets, revokeSecret, setSecret } from '../../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import type { Vault } from '../domain/vault/vault.ts';

const READS_PER_MINUTE = 600;
const CHANGES_PER_MINUTE = 60;
/** Encoded as JSON, each byte of a value takes at most six. */
const MAX_BODY_BYTES = 512 * 1024;

/** @spec docs/secrets.md */
export function secretRoutes(
  http: Http,
  { vault, internalSecret }: { vault: Vault; internalSecret: string },
): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  const changing = { auth: 'caller', perMinute: CHANGES_PER_MINUTE } as const;
  mount(http, listSecrets, { auth: 'caller', perMinute: READS_PER_MINUTE }, async ({ caller }) => ({
    items: await vault.list(caller.namespaceId),
    nextCursor: null,
  }));
  mount(http, setSecret, { ...changing, bodyLimitBytes: MAX_BODY_BYTES }, ({ params, body, caller }) => {
    const { namespaceId, hostId } = caller;
    return vault.set({ namespaceId, name: params.name }, { ...body, by: hostId });
  });
  mount(http, revokeSecret, changing, async ({ params, caller }) => {
    await vault.revoke({ namespaceId: caller.namespaceId, name: params.name });
    return { revoked: true as const };
  });
  mount(http, resolveSecrets, { auth: 'open' }, async ({ body, request, reply }) => {
    const { namespaceId } = await identify(request);
    reply.header('cache-control', 'no-store');
    const values = await vault.read(namespaceId, body.names, body.isUse);
    return { items: [...values].map(([name, value]) => ({ name, value })) };
  });
}
