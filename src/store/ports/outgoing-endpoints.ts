import type { DisabledReason } from '../../contracts/index.ts';

/** An endpoint that receives messages. Times are in epoch ms. */
export interface StoredEndpoint {
  id: string;
  namespaceId: string;
  application: string | null;
  url: string;
  /** Whether a user of a portal set the URL, so that it must not lead to private addresses. */
  publicOnly: boolean;
  types: string[];
  description: string | null;
  rateLimitPerSecond: number | null;
  /** JSON object of the custom headers, encrypted. Null without headers. */
  headers: string | null;
  /** Secret for signatures, encrypted. */
  secret: string;
  previousSecret: string | null;
  previousSecretExpiresAt: number | null;
  ordered: boolean;
  /** Seconds between attempts, or null for the default. */
  retrySchedule: number[] | null;
  timeoutMs: number | null;
  /** Null for an enabled endpoint. */
  disabledReason: DisabledReason | null;
  disabledAt: number | null;
  /** Time of the first failure since the last success. */
  failingSince: number | null;
  createdAt: number;
  updatedAt: number;
}

export type EndpointChanges = Partial<
  Omit<StoredEndpoint, 'id' | 'namespaceId' | 'createdAt' | 'failingSince'>
> & { failingSince?: null };

export interface EndpointFilter {
  namespaceId: string;
  application?: string | undefined;
  disabled?: boolean | undefined;
  /** Only endpoints with a smaller id. */
  before?: string | undefined;
  limit: number;
}

/** Endpoints that receive messages. Changes are added to the change feed (topic `endpoints`, key: the id). */
export interface OutgoingEndpointStore {
  all(): Promise<StoredEndpoint[]>;
  read(ids: readonly string[]): Promise<StoredEndpoint[]>;
  list(filter: EndpointFilter): Promise<StoredEndpoint[]>;
  find(namespaceId: string, id: string): Promise<StoredEndpoint | undefined>;
  /** Adds an endpoint. Returns false if the namespace has `max` endpoints. */
  add(endpoint: StoredEndpoint, max: number): Promise<boolean>;
  /** Changes an endpoint. Returns its new state, or undefined if it does not exist. */
  update(namespaceId: string, id: string, changes: EndpointChanges): Promise<StoredEndpoint | undefined>;
  /** Replaces the secret. The replaced one becomes the previous one. */
  rotate(
    namespaceId: string,
    id: string,
    next: { secret: string; previousExpiresAt: number; now: number },
  ): Promise<StoredEndpoint | undefined>;
  /** Disables an endpoint that is enabled. Returns false if it is not. */
  disable(id: string, reason: DisabledReason, at: number): Promise<boolean>;
  remove(namespaceId: string, id: string): Promise<boolean>;
}
