import type { Clock } from '../../../../kit/clock.ts';
import type { Random } from '../../../../kit/random.ts';
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

export type ClientRegistry = ReturnType<typeof createClientRegistry>;

/** Who may exchange a secret for tokens. @spec Client credentials and token pair */
export function createClientRegistry({ store, clock, random }: ClientRegistryDeps) {
  async function revokeOthers({
    hostId,
    clientId,
  }: Pick<ClientRecord, 'hostId' | 'clientId'>): Promise<void> {
    for (const other of await store.list()) {
      if (other.hostId === hostId && other.clientId !== clientId)
        await store.revoke(other.clientId, clock.now());
    }
  }

  /** Verifies the secret of a client; the hash of a former scheme is replaced once it matched. */
  async function matches(client: ClientRecord | undefined, clientSecret: string): Promise<boolean> {
    if (!(await verifySecret(clientSecret, client?.secretHash)) || !client) return false;
    const { clientId, secretHash } = client;
    if (isOutdated(secretHash)) await store.rehash(clientId, secretHash, await hashSecret(clientSecret));
    return true;
  }

  return {
    /** A new client, not yet stored, and its secret, which is nowhere else. */
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
     * Makes the operator's credentials of this machine valid, as they are now, and those alone: who replaces them does so
     * because somebody else may have them. Hashes only what changed: starting must not cost 30 ms of scrypt each time.
     */
    async adopt(client: Credentials & { hostId: string; namespaceId: string; name: string }): Promise<void> {
      const { clientId, clientSecret, hostId, namespaceId, name } = client;
      const known = await store.find(clientId);
      const unchanged =
        known &&
        known.revokedAt === null &&
        known.hostId === hostId &&
        known.namespaceId === namespaceId &&
        (await matches(known, clientSecret));
      if (unchanged) return;
      // First, so that a crash in between has the next start do it.
      await revokeOthers(client);
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
    /** The client whose secret this is; undefined alike for unknown, revoked and wrong, and after the same time. */
    async verify({ clientId, clientSecret }: Credentials): Promise<ClientRecord | undefined> {
      const isGenuine = await matches(await store.find(clientId), clientSecret);
      // Read again: a revocation may have come while the secret was being hashed.
      return isGenuine ? this.valid(clientId) : undefined;
    },
    async valid(clientId: string): Promise<ClientRecord | undefined> {
      const client = await store.find(clientId);
      return client?.revokedAt === null ? client : undefined;
    },
  };
}
