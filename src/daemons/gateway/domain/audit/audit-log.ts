import type { AccessRule, AuditFault, AuditHead, AuditOutcome, Caller } from '../../../../contracts/index.ts';
import { type AppendLink, type AuditChain, ChainCheck } from '../../../../kit/security/audit-chain.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { AuditFilter, AuditStore } from '../../../../store/ports/index.ts';
import { roleIn } from '../access/access-rights.ts';
import type { Principal } from '../identity/authenticator.ts';
import { type AuditedParts, objectOf } from './audit-object.ts';

/** A call that changes something, with its answer. */
export interface AuditedCall {
  caller: Caller & Partial<Pick<Principal, 'jti'>> & { kind?: Principal['kind'] | 'portal' | 'sender' };
  rule: AccessRule;
  parts: AuditedParts;
  /** Path with the query. */
  path: string;
  requestId: string;
  traceId: string;
  status: number;
  outcome: AuditOutcome;
}

export interface AuditLogDeps {
  store: AuditStore;
  chain: AuditChain;
  clock: Clock;
}

const PAGE = 1000;

/** Records who changed what. @spec docs/security.md "Audit log" */
export class AuditLog {
  readonly #deps: AuditLogDeps;

  constructor(deps: AuditLogDeps) {
    this.#deps = deps;
  }

  /** Adds an entry. The answer to the call must wait for it. */
  async record(call: AuditedCall): Promise<void> {
    await this.#deps.store.append(this.linkOf(call));
  }

  /** Returns the function that links the entry of a call, for stores that add it in the transaction of the change. */
  linkOf({ caller, rule, parts, path, requestId, traceId, status, outcome }: AuditedCall): AppendLink {
    const { chain, clock } = this.#deps;
    const { hostId, namespaceId, access, kind, jti } = caller;
    const draft = {
      at: clock.now(),
      actor: hostId,
      actorKind: kind ?? 'access',
      tokenId: jti ?? null,
      role: access?.roles ? roleIn(access.roles, namespaceId) : null,
      action: rule.audit!,
      object: objectOf(rule, parts),
      namespaceId,
      requestId,
      traceId,
      outcome,
      status,
      digest: chain.digest({ path, body: parts.body ?? null }),
    };
    return (head) => chain.link(draft, head);
  }

  async list(filter: AuditFilter) {
    const entries = await this.#deps.store.list({ ...filter, limit: filter.limit + 1 });
    const items = entries.slice(0, filter.limit);
    const isMore = entries.length > filter.limit;
    return { items, nextCursor: isMore ? String(items.at(-1)!.sequence) : null };
  }

  /**
   * Checks all entries that existed at the start of the call. `expect` is a head `<sequence>:<hash>` that the log must
   * still contain.
   */
  async verify(expect?: string) {
    const { store, chain } = this.#deps;
    // The head is read first. Entries that are added during the check are then not part of it.
    const head = await store.head();
    const check = new ChainCheck();
    const expected = expect === undefined ? undefined : headOf(expect);
    let fault: AuditFault | undefined;
    for (let isLast = false; !isLast && !fault; ) {
      const page = await store.after(check.entries, PAGE);
      const known = page.filter(({ sequence }) => head === undefined || sequence <= head.sequence);
      for (const entry of known) {
        fault = check.next(entry) ?? unexpected(entry, expected);
        if (fault) break;
      }
      isLast = known.length < PAGE;
    }
    const { last } = check;
    fault ??= endFault(last, head, head !== undefined && chain.isSigned(head)) ?? missing(last, expected);
    fault ??= await this.#beyondHead(check.entries);
    return {
      intact: fault === undefined,
      entries: check.entries,
      head: last,
      fault: fault ?? null,
      warnings: check.unanchored.map(
        (sequence) =>
          `The head before entry ${sequence} had no valid signature: GATEWAY_INTERNAL_SECRET was replaced, or entries before it were removed.`,
      ),
    };
  }

  /** Returns a fault if there is an entry that no signed head covers. */
  async #beyondHead(sequence: number): Promise<AuditFault | undefined> {
    const [next] = await this.#deps.store.after(sequence, 1);
    if (!next || next.sequence <= ((await this.#deps.store.head())?.sequence ?? 0)) return undefined;
    const message = `Entry ${next.sequence} was added without a signature.`;
    return { kind: 'unsigned', sequence: next.sequence, message };
  }
}

function headOf(text: string): AuditHead {
  const [sequence, hash] = text.split(':');
  return { sequence: Number(sequence), hash: hash! };
}

function unexpected({ sequence, hash }: AuditHead, expected: AuditHead | undefined): AuditFault | undefined {
  if (sequence !== expected?.sequence || hash === expected.hash) return undefined;
  return { kind: 'unexpected', sequence, message: `Entry ${sequence} differs from the expected one.` };
}

function missing(last: AuditHead | null, expected: AuditHead | undefined): AuditFault | undefined {
  if (!expected || expected.sequence <= (last?.sequence ?? 0)) return undefined;
  const { sequence } = expected;
  return { kind: 'truncated', sequence, message: `The expected entry ${sequence} is missing.` };
}

/** Compares the last entry with the signed head. */
function endFault(
  last: AuditHead | null,
  head: AuditHead | undefined,
  isSigned: boolean,
): AuditFault | undefined {
  const end = last?.sequence ?? 0;
  if (!head) {
    if (end === 0) return undefined;
    return { kind: 'unsigned', sequence: end, message: 'The signed head of the log is missing.' };
  }
  if (end < head.sequence) {
    const sequence = end + 1;
    return { kind: 'truncated', sequence, message: `Entries ${sequence} to ${head.sequence} are missing.` };
  }
  if (!isSigned)
    return {
      kind: 'unsigned',
      sequence: end,
      message:
        'The signature of the head is invalid: the log was rewritten, or GATEWAY_INTERNAL_SECRET was replaced.',
    };
  if (last!.hash === head.hash) return undefined;
  return { kind: 'changed', sequence: end, message: `Entry ${end} differs from the signed head.` };
}
