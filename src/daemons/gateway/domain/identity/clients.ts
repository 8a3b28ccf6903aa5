import type { Caller, Client } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { ClientRecord, ClientStore } from '../../../../store/ports/index.ts';
import type { AccessRights } from '../access/access-rights.ts';
import type { Roles } from '../access/roles.ts';
import { pageOf } from '../page.ts';
import type { Admins } from './admins.ts';
import type { ClientRegistry } from './client-registry.ts';
import type { Revocations } from './revocations.ts';

export interface ClientsDeps {
  store: ClientStore;
  registry: ClientRegistry;
  revocations: Revocations;
  admins: Admins;
  roles: Pick<Roles, 'scopeNewClient'>;
  rights: Pick<AccessRights, 'scopesOfClient'>;
  random: Random;
  logger: Logger;
  /**
   * The operator's current client, which comes from the environment or a file. The API therefore cannot revoke this
   * client.
   */
  operator: Pick<ClientRecord, 'clientId' | 'hostId'> | null;
  clock: Clock;
}

export interface NewClient {
  name: string;
  namespaceId?: string | undefined;
  scopes?: string[] | undefined;
}

export type Clients = ReturnType<typeof createClients>;

/** Creates the service that creates, lists and revokes client credentials. @spec docs/gateway.md "Who may call" */
export function createClients({
  store,
  registry,
  revocations,
  admins,
  roles,
  rights,
  random,
  logger,
  operator,
  clock,
}: ClientsDeps) {
  const scopesOf = ({ clientId }: ClientRecord): string[] | null => {
    const scopes = rights.scopesOfClient(clientId);
    return scopes && [...scopes];
  };
  return {
    async create(caller: Caller, asked: NewClient) {
      admins.require(caller);
      const namespaceId = admins.scope(caller, asked.namespaceId);
      // Each client gets its own host id, because revocations apply to a host id.
      const hostId = `client:${random.uuid()}`;
      const { client, clientSecret } = await registry.draft({ hostId, namespaceId, name: asked.name });
      const { clientId } = client;
      const { scopes } = asked;
      if (scopes) await roles.scopeNewClient(client, scopes);
      await store.create(client);
      return { clientId, clientSecret, hostId, namespaceId, ...(scopes ? { scopes } : {}) };
    },
    async list(
      caller: Caller,
      query: { namespaceId?: string | undefined; limit: number; cursor?: string | undefined },
    ) {
      admins.require(caller);
      const records = await store.list(admins.listScope(caller, query.namespaceId));
      const start = query.cursor ? records.findIndex(({ clientId }) => clientId === query.cursor) + 1 : 0;
      return pageOf(
        records.slice(start, start + query.limit + 1),
        query.limit,
        ({ clientId }) => clientId,
        (record) => ({ ...clientOf(record), scopes: scopesOf(record) }),
      );
    },
    async revoke(caller: Caller, clientId: string): Promise<void> {
      admins.require(caller);
      const client = await store.find(clientId);
      if (!client)
        throw new PlatformError(
          'NOT_FOUND',
          `There is no client "${clientId}"; list all with \`svc clients list\`.`,
        );
      if (clientId === operator?.clientId) {
        throw new PlatformError(
          'CONFLICT',
          "This is the operator's client. Replace SVC_OPERATOR_CLIENT_ID, or delete credentials.json in the data folder, and restart first.",
        );
      }
      // Previous clients of the operator share the host id of the current client. Therefore only the client is revoked,
      // not the host.
      if (client.hostId === operator?.hostId) {
        await store.revoke(clientId, clock.now());
        return;
      }
      await revocations.revokeHost(client.hostId);
      logger.diagnostic({
        domain: 'auth',
        event: 'client.revoked',
        level: 'warn',
        reasonCode: 'REVOKED',
        message: `Client "${client.name}" was revoked by ${caller.hostId}`,
        outcome: 'succeeded',
        evidence: { clientId, hostId: client.hostId, by: caller.hostId },
      });
    },
  };
}

function clientOf({ secretHash: _, ...client }: ClientRecord): Client {
  return { ...client, valid: client.revokedAt === null };
}
