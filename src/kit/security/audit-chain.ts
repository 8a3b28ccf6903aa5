import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { AuditEntry, AuditFault, AuditHead } from '../../contracts/index.ts';
import { canonicalJson } from '../data/json.ts';
import { deriveKey, safeEqual } from './keys.ts';

/** An entry before it is added to the chain. */
export type AuditDraft = Omit<AuditEntry, 'sequence' | 'anchored' | 'previousHash' | 'hash'>;

/** Position and hash of the last entry, with the signature of the platform. */
export interface SignedHead extends AuditHead {
  signature: string;
}

/** The new entry and the new head of the chain. Both must be stored in one transaction. */
export interface AuditLink {
  entry: AuditEntry;
  head: SignedHead;
}

/** Adds an entry behind the given head, which is undefined for the first entry. */
export type AppendLink = (head: SignedHead | undefined) => AuditLink;

/** `previousHash` of the first entry. */
const GENESIS = '0'.repeat(64);

/**
 * Links and signs the entries of the audit log. Each entry contains the hash of the entry before it. The signature of
 * the head covers the whole chain. @spec docs/security.md "Audit log"
 */
export class AuditChain {
  readonly #key: KeyObject;

  constructor(internalSecret: string) {
    // With a string, each HMAC would import the key again.
    this.#key = createSecretKey(deriveKey(internalSecret, 'audit-log'), 'utf8');
  }

  link(draft: AuditDraft, head: SignedHead | undefined): AuditLink {
    const unhashed = {
      ...draft,
      sequence: (head?.sequence ?? 0) + 1,
      anchored: head === undefined || this.isSigned(head),
      previousHash: head?.hash ?? GENESIS,
    };
    const hash = hashOf(unhashed);
    const entry = { ...unhashed, hash };
    const next = { sequence: entry.sequence, hash };
    return { entry, head: { ...next, signature: this.#sign(next) } };
  }

  isSigned({ signature, ...head }: SignedHead): boolean {
    return safeEqual(signature, this.#sign(head));
  }

  /** Returns a keyed digest. Without the key, an attacker cannot guess short secrets in the value by brute force. */
  digest(value: unknown): string {
    return createHmac('sha256', this.#key).update(canonicalJson(value)).digest('hex');
  }

  #sign({ sequence, hash }: AuditHead): string {
    return createHmac('sha256', this.#key).update(`head ${sequence} ${hash}`).digest('base64url');
  }
}

function hashOf(unhashed: Omit<AuditEntry, 'hash'>): string {
  return hash('sha256', canonicalJson(unhashed), 'hex');
}

/** Checks the entries of the chain in ascending order. */
export class ChainCheck {
  #sequence = 0;
  #hash = GENESIS;
  #entries = 0;
  /** Sequence numbers of entries before which the signature of the head was invalid. */
  readonly unanchored: number[] = [];

  /** Returns the fault of the entry, if any. The check must end at the first fault. */
  next(entry: AuditEntry): AuditFault | undefined {
    const { hash, ...unhashed } = entry;
    const { sequence } = entry;
    const expected = this.#sequence + 1;
    if (sequence !== expected)
      return { kind: 'removed', sequence: expected, message: `Entry ${expected} is missing.` };
    if (entry.previousHash !== this.#hash)
      return {
        kind: 'unlinked',
        sequence,
        message:
          sequence === 1
            ? 'Entry 1 is not the first entry that was written.'
            : `Entry ${sequence} does not follow entry ${sequence - 1}: one of the two was moved, replaced or removed.`,
      };
    if (hashOf(unhashed) !== hash)
      return { kind: 'changed', sequence, message: `Entry ${sequence} was changed after it was written.` };
    this.#sequence = sequence;
    this.#hash = hash;
    this.#entries++;
    if (!entry.anchored) this.unanchored.push(sequence);
    return undefined;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Position and hash of the last entry, or null if there was none. */
  get last(): AuditHead | null {
    return this.#sequence === 0 ? null : { sequence: this.#sequence, hash: this.#hash };
  }
}
