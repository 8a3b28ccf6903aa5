import type { ServiceName } from '../../contracts/index.ts';

/** Fingerprints of a member's keys; they do not reveal the keys. */
export interface KeyFingerprints {
  master: string;
  /** Null: the platform signs no JWTs. */
  jwt: string | null;
  /** Of the JWT secret that is accepted for verification only. */
  previousJwt: string | null;
  internal: string;
}

/** One process of a service that works on this store. Times in epoch ms by the store's clock. */
export interface MemberRecord {
  /** Unique number of this boot, never reused: the owner of the rows it writes. */
  fence: number;
  kind: ServiceName;
  /** The node; stays the same over restarts. */
  instance: string;
  /** Where other members reach it; null until it listens. */
  url: string | null;
  version: string;
  /** Digest of the config or release that it runs with, as its kind defines it. */
  release: string | null;
  keys: KeyFingerprints | null;
  startedAt: number;
  /** Null: a lock that the kernel releases stands for the lease. */
  leaseUntil: number | null;
}

export type NewMember = Pick<MemberRecord, 'kind' | 'instance' | 'version' | 'release' | 'keys'> & {
  leaseMs: number | null;
  /** The caller holds the store's owner lock, so every other member of this kind is dead. */
  isSole: boolean;
};

/** Processes that share a store, and their leases. All methods are atomic. */
export interface MemberStore {
  /** Adds a member and returns its fence; ends earlier members of the same kind and instance. */
  join(member: NewMember): Promise<number>;
  /** Extends the lease and notes the address. Returns false when the member was ended and must stop. */
  renew(fence: number, options: { leaseMs: number | null; url: string | null }): Promise<boolean>;
  /** Ends the member. */
  leave(fence: number): Promise<void>;
  /** Members that have not ended and whose lease runs, oldest first. */
  live(kind: ServiceName): Promise<MemberRecord[]>;
  /** Fences of members that have not ended, including those whose lease has expired. */
  unended(kind: ServiceName): Promise<number[]>;
  /** Ends other members whose lease has expired; returns their number. */
  endExpired(kind: ServiceName, own: number): Promise<number>;
  /** Fences of ended members whose rows are not swept yet. */
  unswept(kind: ServiceName): Promise<number[]>;
  /** Forgets ended members whose rows were swept. */
  swept(fences: readonly number[]): Promise<void>;
}
