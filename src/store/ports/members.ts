import type { ServiceName } from '../../contracts/index.ts';

/** Fingerprints of a member's keys, which do not reveal the keys themselves. */
export interface KeyFingerprints {
  master: string;
  /** Fingerprint of the JWT secret, or null if the platform signs no JWTs. */
  jwt: string | null;
  /** Fingerprint of the former JWT secret, which is accepted for verification only. */
  previousJwt: string | null;
  internal: string;
}

/** A process of a service that uses this store. Times are in epoch ms of the store's clock. */
export interface MemberRecord {
  /** Number of the process, which is never reused and which marks the rows that the process owns. */
  fence: number;
  kind: ServiceName;
  /**
   * Id of the node. The id stays the same over restarts. If the node has several processes, `/` and the process number
   * are appended.
   */
  instance: string;
  /** URL for other members, or null until the process listens. */
  url: string | null;
  /** Whether the process is stopping. Only calls that no other member can answer are sent to such a process. */
  isDraining: boolean;
  version: string;
  /** Digest of the config or release with which the process runs. Each kind of service defines its own digest. */
  release: string | null;
  keys: KeyFingerprints | null;
  startedAt: number;
  /**
   * End of the lease, or null if a file lock replaces the lease. The kernel releases a file lock when its process ends.
   */
  leaseUntil: number | null;
}

/** Values that a member stores with each renewal. `isDraining` is false by default. */
export type MemberRenewal = Pick<MemberRecord, 'url'> &
  Partial<Pick<MemberRecord, 'isDraining'>> & { leaseMs: number | null };

export type NewMember = Pick<MemberRecord, 'kind' | 'instance' | 'version' | 'release' | 'keys'> & {
  leaseMs: number | null;
  /**
   * Instance that the member replaces, including all processes of that instance. The default is the member's own
   * instance.
   */
  replaces?: string;
  /**
   * Whether the caller holds the owner lock of the store. The lock proves that no other member of the same kind is
   * alive.
   */
  isSole: boolean;
};

/** Processes that use a store, with their leases. All methods are atomic. */
export interface MemberStore {
  /**
   * Adds a member and returns its fence. Ends earlier members of the same kind whose instance is replaced. If `isSole`
   * is true, ends all earlier members of the same kind.
   */
  join(member: NewMember): Promise<number>;
  /** Extends the lease and stores the address. Returns false when the member was ended and must stop. */
  renew(fence: number, renewal: MemberRenewal): Promise<boolean>;
  leave(fence: number): Promise<void>;
  /** Returns members that have not ended and whose lease is valid, oldest first. */
  live(kind: ServiceName): Promise<MemberRecord[]>;
  /** Returns the fence tokens of members that have not ended. Members with an expired lease are included. */
  unended(kind: ServiceName): Promise<number[]>;
  /** Marks members with an expired lease as ended, except the member `own`. Returns the number of marked members. */
  endExpired(kind: ServiceName, own: number): Promise<number>;
  /** Returns the fence tokens of ended members whose rows still need cleaning up. */
  unswept(kind: ServiceName): Promise<number[]>;
  /** Deletes ended members after their rows were cleaned up. */
  swept(fences: readonly number[]): Promise<void>;
}
