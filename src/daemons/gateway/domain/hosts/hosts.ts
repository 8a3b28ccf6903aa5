import type { Caller, Host } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { HostRecord, HostStore } from '../../../../store/ports/index.ts';
import type { Admins } from '../identity/admins.ts';
import type { ClientRegistry } from '../identity/client-registry.ts';
import type { Revocations } from '../identity/revocations.ts';
import { pageOf } from '../page.ts';

export type NewHost = Pick<HostRecord, 'name' | 'publicKey' | 'capabilities' | 'labels' | 'metadata'>;

export interface HostsDeps {
  store: HostStore;
  clients: ClientRegistry;
  revocations: Revocations;
  admins: Admins;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export type Hosts = ReturnType<typeof createHosts>;

/** Creates the registry of machines that run plugin handlers. @spec Host agent registration; Host record */
export function createHosts({ store, clients, revocations, admins, clock, random, logger }: HostsDeps) {
  /**
   * Returns a host. Callers who are not administrators also get HOST_NOT_FOUND for hosts of other namespaces, so that
   * these callers cannot find out which host ids exist.
   */
  async function find(caller: Caller, hostId: string): Promise<HostRecord> {
    const host = await store.find(hostId);
    if (host && (host.namespaceId === caller.namespaceId || admins.is(caller))) return host;
    throw new PlatformError(
      'HOST_NOT_FOUND',
      `There is no host "${hostId}"; list all with \`svc hosts list\`.`,
    );
  }
  return {
    async register(namespaceId: string, given: NewHost) {
      const hostId = `host_${random.uuid()}`;
      const { client, clientSecret } = await clients.draft({ hostId, namespaceId, name: given.name });
      const { clientId } = client;
      const createdAt = clock.now();
      const offline = { sessionId: null, connectedAt: null, lastSeenAt: null };
      await store.register(
        { ...given, hostId, clientId, namespaceId, createdAt, revokedAt: null, ...offline },
        client,
      );
      logger.diagnostic({
        domain: 'hosts',
        event: 'host.registered',
        level: 'info',
        reasonCode: 'REGISTERED',
        message: `Host "${given.name}" registered as ${hostId}`,
        outcome: 'succeeded',
        evidence: { hostId, clientId, namespaceId },
      });
      return { hostId, clientId, clientSecret, namespaceId };
    },
    async list(
      caller: Caller,
      query: { namespaceId?: string | undefined; limit: number; cursor?: string | undefined },
    ) {
      const scope = admins.listScope(caller, query.namespaceId);
      const { limit, cursor } = query;
      const records = await store.list(scope, { limit: limit + 1, ...(cursor ? { after: cursor } : {}) });
      return pageOf(records, limit, ({ hostId }) => hostId, hostOf);
    },
    get: async (caller: Caller, hostId: string): Promise<Host> => hostOf(await find(caller, hostId)),
    /** Revokes a host with its client, tokens and sockets. */
    async revoke(caller: Caller, hostId: string): Promise<void> {
      admins.require(caller);
      const { name, namespaceId } = await find(caller, hostId);
      await revocations.revokeHost(hostId);
      logger.diagnostic({
        domain: 'hosts',
        event: 'host.revoked',
        level: 'warn',
        reasonCode: 'REVOKED',
        message: `Host "${name}" was revoked by ${caller.hostId}`,
        outcome: 'succeeded',
        evidence: { hostId, namespaceId, by: caller.hostId },
      });
    },
  };
}

function hostOf({ publicKey: _, metadata: __, ...record }: HostRecord): Host {
  const { revokedAt, sessionId } = record;
  const status = revokedAt !== null ? 'revoked' : sessionId === null ? 'offline' : 'online';
  return { ...record, valid: revokedAt === null, status };
}
