import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { ClientRecord, ClientStore } from '../../../../store/ports/index.ts';
import { hashSecret, isOutdated, verifySecret } from './client-secrets.ts';

export interface Credentials {
  clientId: string;
  clientSecret: string;
}

export interface ClientRegistryDeps {
  store: ClientStore;
  clock: Clock;
  random: Random;
}

type ClientId = Pick<ClientRecord, 'hostId' | 'clientId'>;

export type ClientRegistry = ReturnType<typeof createClientRegistry>;

/** Creates the registry of clients, which exchange a secret for tokens. @spec Client credentials and token pair */
export function createClientRegistry({ store, clock, random }: ClientRegistryDeps) {
  async function revokeOthers({ hostId, clientId }: ClientId): Promise<void> {
    for (const other of await store.list()) {
      if (other.hostId === hostId && other.clientId !== clientId)
        await store.revoke(other.clientId, clock.now());
    }
  }

  /**
   * Verifies a client's secret. If the secret is correct and its hash uses the outdated scheme, the hash is replaced.
   */
  async function matches(client: ClientRecord | undefined, clientSecret: string): Promise<boolean> {
    if (!(await verifySecret(clientSecret, client?.secretHash)) || !client) return false;
    const { clientId, secretHash } = client;
    if (isOutdated(secretHash)) await store.rehash(clientId, secretHash, await hashSecret(clientSecret));
    return true;
  }

  return {
    /** Creates a client without storing the client. Only the return value contains the secret in plain text. */
    async draft(identity: Pick<ClientRecord, 'hostId' | 'namespaceId' | 'name'>) {
      const clientSecret = `svcs_${random.secret(32)}`;
      const secretHash = await hashSecret(clientSecret);
      const clientId = `client_${random.uuid()}`;
      const client: ClientRecord = {
        ...identity,
        clientId,
        secretHash,
        createdAt: clock.now(),
        revokedAt: null,
      };
      return { client, clientSecret };
    },
    /**
     * Stores the operator's client if the client is new or changed. On the only node, other operator clients are
     * revoked, because their secrets might have leaked. With several nodes, those clients are kept, because they can
     * belong to other nodes.
     */
    async adopt(
      client: Credentials & { hostId: string; namespaceId: string; name: string },
      { isOnlyNode }: { isOnlyNode: boolean },
    ): Promise<void> {
      const { clientId, clientSecret, hostId, namespaceId, name } = client;
      const known = await store.find(clientId);
      const unchanged =
        known &&
        known.revokedAt === null &&
        known.hostId === hostId &&
        known.namespaceId === namespaceId &&
        (await matches(known, clientSecret));
      if (unchanged) return;
      // The other clients are revoked first. If the gateway crashes before the new client is stored, the next start
      // repeats both steps.
      if (isOnlyNode) await revokeOthers(client);
      const secretHash = await hashSecret(clientSecret);
      await store.upsert({
        clientId,
        hostId,
        namespaceId,
        name,
        secretHash,
        createdAt: clock.now(),
        revokedAt: null,
      });
    },
    /**
     * Returns the client if its secret matches, otherwise undefined. An unknown client, a revoked client and a wrong
     * secret take equally long to verify.
     */
    async verify({ clientId, clientSecret }: Credentials): Promise<ClientRecord | undefined> {
      const isGenuine = await matches(await store.find(clientId), clientSecret);
      // The client is read again, because it might have been revoked while the secret was hashed.
      return isGenuine ? this.valid(clientId) : undefined;
    },
    async valid(clientId: string): Promise<ClientRecord | undefined> {
      const client = await store.find(clientId);
      return client?.revokedAt === null ? client : undefined;
    },
  };
}
