import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { hours } from '../../../../kit/time/duration.ts';
import type { KeyValueStore, MemberStore } from '../../../../store/ports/index.ts';
import type { Fence } from '../../../membership/membership.ts';

/** Claims on execution ids, so that an id runs only once at a time. */
export interface ExecutionClaims {
  /** Claims the id and returns a function that releases the claim. Throws CONFLICT if the id is already claimed. */
  take(executionId: string): Promise<() => void>;
}

/** Claims of a gateway that shares its store with no other process. */
export class LocalExecutionClaims implements ExecutionClaims {
  readonly #claimed = new Set<string>();

  async take(executionId: string): Promise<() => void> {
    if (this.#claimed.has(executionId)) throw alreadyRunning(executionId);
    this.#claimed.add(executionId);
    return () => this.#claimed.delete(executionId);
  }
}

export interface StoredExecutionClaimsDeps {
  cache: KeyValueStore;
  members: Pick<MemberStore, 'unended'>;
  fence: Fence;
  logger: Logger;
}

const SCOPE = 'execution-claims';
/** Lifetime of a claim, which is longer than any handler may run. */
const CLAIM_MS = hours(25);
const PAGE = 500;

/** Claims over all gateways of a store. A claim of a gateway that has ended is released by the sweep. */
export class StoredExecutionClaims implements ExecutionClaims {
  readonly #deps: StoredExecutionClaimsDeps;

  constructor(deps: StoredExecutionClaimsDeps) {
    this.#deps = deps;
  }

  async take(executionId: string): Promise<() => void> {
    const { cache, fence } = this.#deps;
    const owner = fence.require();
    if (!(await cache.setIfAbsent(SCOPE, executionId, owner, CLAIM_MS))) throw alreadyRunning(executionId);
    return () => {
      this.#release(executionId, owner).catch((error) => this.#warn(executionId, error));
    };
  }

  /** Releases the claims of gateways that have ended. */
  async sweep(): Promise<void> {
    const { cache, members } = this.#deps;
    for (let after: string | undefined; ; ) {
      const page = await cache.scan(SCOPE, { prefix: '', limit: PAGE, ...(after ? { after } : {}) });
      // Read after the claims, so that the claims of a new gateway are not taken for orphans.
      const unended = new Set<unknown>(await members.unended('gateway'));
      const orphans = page.filter(({ value }) => !unended.has(value));
      await Promise.all(orphans.map(({ key }) => cache.delete(SCOPE, key)));
      if (page.length < PAGE) return;
      after = page.at(-1)!.key;
    }
  }

  /** Releases a claim, unless another gateway has taken it over after the end of this gateway's lease. */
  async #release(executionId: string, owner: number): Promise<void> {
    const { cache } = this.#deps;
    const claim = await cache.get(SCOPE, executionId);
    if (claim?.value === owner) await cache.delete(SCOPE, executionId);
  }

  #warn(executionId: string, error: unknown): void {
    this.#deps.logger.warn(
      `The id of the execution ${executionId} stays claimed until this gateway restarts`,
      {
        error,
      },
    );
  }
}

function alreadyRunning(executionId: string): PlatformError {
  return new PlatformError('CONFLICT', `The execution ${executionId} is already running.`);
}
