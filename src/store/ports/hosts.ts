import type { ClientRecord } from './clients.ts';
import type { JsonValue } from './key-value.ts';

/** A machine that runs plugin handlers. Times in epoch ms. @spec Host agent registration */
export interface HostRecord {
  hostId: string;
  clientId: string;
  namespaceId: string;
  name: string;
  /** x25519, base64. */
  publicKey: string;
  capabilities: string[];
  labels: Record<string, string>;
  metadata: Record<string, JsonValue>;
  createdAt: number;
  revokedAt: number | null;
  /** Of the socket it is connected by; null while offline. */
  sessionId: string | null;
  connectedAt: number | null;
  lastSeenAt: number | null;
}

export interface HostStore {
  /** Writes the host and the client it logs in by, both or neither. */
  register(host: HostRecord, client: ClientRecord): Promise<void>;
  find(hostId: string): Promise<HostRecord | undefined>;
  /** In the order of their ids; every namespace when none is given. */
  list(namespaceId: string | undefined, options: { limit: number; after?: string }): Promise<HostRecord[]>;
  /** Notes a new session; it replaces the one before. */
  connect(hostId: string, sessionId: string, now: number): Promise<void>;
  /** Notes a sign of life of that session. */
  seen(hostId: string, sessionId: string, now: number): Promise<void>;
  /** Ends that session; the late close of a replaced one changes nothing. */
  disconnect(hostId: string, sessionId: string, now: number): Promise<void>;
}
